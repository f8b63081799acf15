"""Live recall of a join of n streams on one key: the share of the results delivered so far, with an interval.

The number of results that a row completes in the exact join is a product of counts: for each other stream, the rows of its
key inside their windows. So missing results can be counted without joining, if the times of the key's rows are known.
`MultiRecall` keeps a few numbers a row for this, its history. While there is room for the rows of all keys, recall is exact
and both limits equal it.

When there is no more room, or counting takes too long, keys are sampled. A key stays in the sample with a probability p that
is proportional to the square of its present number of rows. Results grow with a power of that number, so keys with very many
rows stay for certain. A random draw decides, which depends on the key and the seed only. What a sampled key misses counts
1 / p (Horvitz and Thompson).

A key that arrives later has the p of a key with one row. There are two exceptions, for which p follows from the square of
the rows in the push: a key without rows inside the windows, and a key that brings very many. (The earlier rows of the
latter are unknown: for the length of a window it seems to miss less than it does.) Whether a key has rows inside the
windows is known by its hash. A hash collision may hide that it has none, but never that it has some.

Draws of keys are independent, so the variance is estimated by the sum of (1 - p) z^2 over keys, where z is the count of a
key. `shedjoin.recall.unsampled` guesses the variance from heavy keys outside the sample; the larger of both is used.
Limits follow as in `shedjoin.recall.pairs`. Late rows are not part of the estimate.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine.codes import IMPORTANCE, LATE
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.records import NEVER
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.recall.checksum import with_checksum, without_checksum
from shedjoin.recall.estimate import LIVE_COLUMNS
from shedjoin.recall.estimator import LARGEST_WEIGHT, Estimator
from shedjoin.recall.expected import COLUMNS, Integers, Rows, concat, expected_results, rows_of, select, steps
from shedjoin.recall.key_sample import KINDS, KeySample
from shedjoin.recall.unsampled import UnsampledKeys
from shedjoin.spec import JoinSpec, check_whole_windows
from shedjoin.window import TimeWindow

VERSION = 2
#: The largest number of rows in the history, and of steps of counting in a push.
ROWS, WORK = 1 << 17, 1 << 27


class MultiRecall(Estimator):
    """Estimates recall while an n-way join on one key runs.

    Parameters
    ----------
    spec
        The join whose recall is estimated: on one column, with time windows.
    seed
        The seed of the sample. Shards of one join need different seeds.
    rows
        The largest number of rows in the history; 32 bytes each.
    level
        The level of the confidence limits.
    recent
        The half-life of the recent estimate, in pushes that bring rows.

    Examples
    --------
    >>> import shedjoin as sj
    >>> spec = sj.JoinSpec(
    ...     window=dict.fromkeys("abc", sj.TimeWindow(3)), on="key", budget=sj.Budget(tuples=3), policy=sj.Simp()
    ... )
    >>> engine, live = spec.build(), MultiRecall(spec)
    >>> batch = engine.batch(dict.fromkeys("abc", {"key": [1, 2, 1, 1]}))
    >>> live.follow(batch, engine.push(batch))
    >>> now = live.estimate()
    >>> now.results + now.missing, now.low == now.recall == now.high
    (16.0, True)
    """

    ROWS: ClassVar[int] = ROWS
    LEAST_ROWS: ClassVar[int] = 1

    def __init__(
        self,
        spec: JoinSpec,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        check_whole_windows("MultiRecall", spec)
        windows = list(spec.windows)
        if not isinstance(spec.on, str) or not all(isinstance(window, TimeWindow) for window in windows):
            raise SpecError(f"spec must join on one column within time windows for MultiRecall, not {spec!r}")
        if spec.evaluate_every:
            raise SpecError(
                f"spec must have evaluate_every=0 for MultiRecall, not {spec.evaluate_every}: what is missing is counted push "
                "by push"
            )
        if spec.cpu is not None or spec.dual is not None:
            raise SpecError(f"spec must have no cpu, queue or dual windows for MultiRecall, not {spec!r}")
        super().__init__(spec, seed, rows, level, recent, part)
        self._lengths = np.array([window.size for window in windows], np.int64)
        self._code = IMPORTANCE[spec.importance]
        self._lateness, self._max_skew = spec.lateness, spec.max_skew
        self._signature = {
            "windows": self._lengths.tolist(),
            "importance": spec.importance,
            "lateness": spec.lateness,
            "max_skew": spec.max_skew,
            "seed": seed,
            "rows": self._most,
        }
        streams = len(windows)
        self._history = {name: np.empty(0, kind) for name, kind in COLUMNS.items()}
        self._sample = KeySample(seed)
        self._delivered = np.zeros(KINDS)
        self._recent_weight = 1.0  # of a result delivered now, in the decayed counts; 1 in the first push
        self._clock = np.full(streams, NEVER)
        self._arrived = np.zeros(streams, np.int64)
        self._shed, self._unit, self._late = 0, 0.0, 0
        self._unsampled = UnsampledKeys(KINDS)
        self._edge = NEVER  # keys last seen at this time or before have no rows inside the windows
        self._first_ts = NEVER  # the time of the first row
        self._batch: Batch | None = None
        self._push = np.zeros((2, 1))  # delivered results and importance of this push; by key, once keys are sampled

    # ---------------------------------------------------------------------------------------------------------- pushes

    def begin(self, batch: Batch) -> None:
        """Make room for the rows of a push, and choose the keys that are counted."""
        self._batch = batch
        if len(batch):
            self._edge = int(batch.ts.min()) - int(self._lengths.max()) - self._lateness
        rows = self._sample.admit(rows_of(batch, ~batch.null), self._edge)
        while not self._fits(rows):
            self._shrink(rows)
            rows = self._sample.admit(rows, self._edge)
        self._push = np.zeros((2, 1 if self._sample.has_all else self._sample.keys.size + 1))
        self._begin_unsampled(rows_of(batch, ~batch.null))

    def _begin_unsampled(self, rows: Rows) -> None:
        """Count the new rows of keys outside the sample, and estimate how many rows they have inside the windows."""
        if not rows["ts"].size:
            return
        first, last = rows["ts"].min(), rows["ts"].max()
        self._first_ts = int(first) if self._first_ts == NEVER else min(self._first_ts, int(first))
        if self._sample.has_all:
            return
        keys, which = np.unique(rows["key"], return_inverse=True)
        new = np.stack(
            [np.bincount(which[rows["stream"] == one], minlength=keys.size) for one in range(self._lengths.size)]
        ).astype(np.float64)
        stored = new * (np.minimum(self._lengths, last - self._first_ts + 1) / (last - first + 1))[:, None]
        chance = (np.maximum(new.sum(axis=0), stored.sum(axis=0)) / self._sample.certain) ** 2
        chance = np.minimum(chance, self._sample.draws(keys))  # with a larger chance it would be in the sample
        out = self._sample.places(keys) == self._sample.keys.size
        self._unsampled.begin(keys[out], chance[out], new[:, out], stored[:, out])

    def deliver(self, out: Output) -> None:
        """Count the results of one piece of output."""
        size, importance = out.importance.size, float(out.importance.sum())
        self._delivered[:2] += (size, importance)
        if self._sample.has_all:
            self._push[:, 0] += (size, importance)
        elif size:
            keys = self._keys_of(out.rows)
            self._unsampled.deliver(keys)
            place = self._sample.places(keys)
            self._push[0] += np.bincount(place, minlength=self._push.shape[1])
            self._push[1] += np.bincount(place, out.importance, minlength=self._push.shape[1])

    def _keys_of(self, rows: Integers) -> Integers:
        """The key of each result: at least one of its rows is in this push."""
        assert self._batch is not None
        keys = np.zeros(rows.shape[0], np.int64)
        for stream, start in enumerate(self._arrived.tolist()):
            mine = self._batch.key[self._batch.stream == stream]
            new = rows[:, stream] >= start
            keys[new] = mine[rows[new, stream] - start]
        return keys

    def set_clocks(self, clocks: Sequence[int | None], arrived: Sequence[int] | None = None) -> None:
        """Set the clocks of the streams as a whole, for a shard that has a part of their rows. Rows expire by them."""
        for stream, clock in enumerate(clocks):
            if clock is not None:
                self._clock[stream] = max(self._clock[stream], clock)

    def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
        """Process the rows of a push, its shed log and its number of late rows."""
        new = self._new_rows(batch, shed, late)
        self._shed += len(shed) - late
        self._unit += (len(shed) - late) * (1.0 / self._sample.base - 1.0)
        self._late += late
        self._arrived += np.bincount(batch.stream, minlength=self._arrived.size)
        if len(batch):
            self._raise_weight()
        self._delivered[2:] += self._recent_weight * self._push.sum(axis=1)
        keys, exact = expected_results(self._history, new, self._lengths, self._code)
        self._sample.add_missing(keys, exact, self._push, self._recent_weight)
        self._history = concat(self._history, new)
        each = self._delivered[1] / self._delivered[0] if self._delivered[0] else 1.0
        self._unsampled.end(each, self._recent_weight)
        self._sample.see(rows_of(batch, ~batch.null))
        self._expire()

    def _new_rows(self, batch: Batch, shed: ShedLog, late: int) -> Rows:
        """The rows of a push that can be in results and have a sampled key."""
        chosen = ~batch.null
        if late:
            is_late = shed.why == LATE
            for stream, start in enumerate(self._arrived.tolist()):
                mine = np.flatnonzero(batch.stream == stream)
                chosen[mine[shed.seq[is_late & (shed.stream == stream)] - start]] = False
        rows = rows_of(batch, chosen)
        for stream in range(self._clock.size):
            self._clock[stream] = max(self._clock[stream], rows["ts"][rows["stream"] == stream].max(initial=NEVER))
        return self._sample.admit(rows, self._edge)

    # ----------------------------------------------------------------------------------------------------- the sample

    def _fits(self, new: Rows) -> bool:
        """Whether there is room for new rows, and counting them takes no more than `WORK` steps."""
        rows = self._history["key"].size + new["key"].size
        if rows == 0 or self._sample.base < 2.0**-50:
            return True
        if rows > 2 * self._most or self._sample.keys.size > self._most:
            return False
        return steps(self._history, new, self._lengths.size, self._code) <= WORK

    def _shrink(self, new: Rows) -> None:
        """Remove keys from the sample, and their rows from the history."""
        self._sample.shrink(np.concatenate([self._history["key"], new["key"]]), int(self._clock.max()))
        self._history = select(self._history, np.isin(self._history["key"], self._sample.keys))

    def _expire(self) -> None:
        """Remove rows that no later row can join, and keys without rows if there are too many."""
        known = self._clock[self._clock != NEVER]
        if not known.size:
            return
        clock = self._clock if self._max_skew is None else np.maximum(self._clock, known.max() - self._max_skew)
        streams = np.arange(clock.size)
        horizon = np.array([clock[streams != stream].min() for stream in streams]) - self._lateness
        rows = self._history
        ends = rows["ts"] + self._lengths[rows["stream"]]
        stays = (clock.min() == NEVER) | (ends > horizon[rows["stream"]])
        if not stays.all():
            self._history = select(rows, stays)
        if self._sample.keys.size > self._most // 2:
            self._sample.remove(~np.isin(self._sample.keys, self._history["key"]))

    def _raise_weight(self) -> None:
        self._recent_weight *= 2.0 ** (1.0 / self._half_life)
        if self._recent_weight > LARGEST_WEIGHT:
            self._sample.rescale_recent(LARGEST_WEIGHT)
            self._unsampled.missing[2:] /= LARGEST_WEIGHT
            self._delivered[2:] /= LARGEST_WEIGHT
            self._recent_weight /= LARGEST_WEIGHT

    # ---------------------------------------------------------------------------------------------------- the estimate

    def sums(self) -> dict[str, float]:
        """The sums behind the estimate, with the names of `LIVE_COLUMNS`. The sums of shards can be added."""
        total = self._sample.moments()
        total[:, 1:] = np.maximum(total[:, 1:], self._unsampled.moments())
        delivered = self._delivered.copy()
        for power in (1, 2, 3):
            total[2:, power - 1] /= self._recent_weight**power
        delivered[2:] /= self._recent_weight
        numbers = [number for kind in range(KINDS) for number in (delivered[kind], *total[kind])]
        numbers += [self._shed, self._unit, self._late]
        return dict(zip(LIVE_COLUMNS, map(float, numbers), strict=True))

    @property
    def remembered(self) -> int:
        """The number of rows in the history."""
        return int(self._history["key"].size)

    # ------------------------------------------------------------------------------------------------------- as bytes

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved. The names are part of the format."""
        numbers = [self._sample.certain, self._recent_weight, self._shed, self._unit, self._late, self._first_ts]
        return {
            **self._history,
            "keys": self._sample.keys,
            "p": self._sample.p,
            "open": self._sample.missing,
            "closed": self._sample.settled,
            "there": self._delivered,
            "clock": self._clock,
            "arrived": self._arrived,
            "numbers": np.array(numbers),
            "seen": self._sample.last_seen,
            "outside": self._unsampled.keys,
            "outside p": self._unsampled.p,
            "outside missed": self._unsampled.missing,
        }

    def to_bytes(self) -> bytes:
        """The estimator between two pushes as bytes, with a version and a checksum."""
        arrays = self._arrays()
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        head = json.dumps({"version": VERSION, "signature": self._signature, "shapes": shapes}).encode()
        return with_checksum(
            b"".join([head, b"\n", *(np.ascontiguousarray(array).tobytes() for array in arrays.values())])
        )

    def load(self, data: bytes) -> None:
        text, _, body = without_checksum(data).partition(b"\n")
        head = json.loads(text)
        if head["version"] != VERSION or head["signature"] != self._signature:
            raise SnapshotError(
                f"the recall estimate was saved by another join: {head['signature']}, not {self._signature}"
            )
        arrays, start = {}, 0
        for name, array in self._arrays().items():
            count = int(np.prod(head["shapes"][name]))
            arrays[name] = np.frombuffer(body, array.dtype, count, start).reshape(head["shapes"][name]).copy()
            start += count * array.itemsize
        sample, unsampled = self._sample, self._unsampled
        self._history = {name: arrays[name] for name in COLUMNS}
        sample.keys, sample.p, sample.last_seen = arrays["keys"], arrays["p"], arrays["seen"]
        sample.missing, sample.settled = arrays["open"], arrays["closed"]
        self._delivered, self._clock, self._arrived = arrays["there"], arrays["clock"], arrays["arrived"]
        unsampled.keys, unsampled.p = arrays["outside"], arrays["outside p"]
        unsampled.missing = arrays["outside missed"]
        sample.certain, self._recent_weight, shed, self._unit, late, first_ts = arrays["numbers"].tolist()
        self._shed, self._late, self._first_ts = int(shed), int(late), int(first_ts)
