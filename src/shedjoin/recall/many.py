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
Limits follow as in `shedjoin.recall.pairs`, and so does what late rows are expected to find: nothing that had expired.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine.codes import IMPORTANCE, LATE
from shedjoin.engine.output import Output, ShedLog
from shedjoin.engine.records import NEVER, NONE
from shedjoin.errors import SpecError
from shedjoin.recall.expected import COLUMNS, Integers, Numbers, Rows, concat, expected_results, rows_of, select, steps
from shedjoin.recall.key_sample import KINDS, KeySample
from shedjoin.recall.live import LARGEST_WEIGHT, LiveRecall
from shedjoin.recall.unsampled import UnsampledKeys
from shedjoin.spec import JoinSpec, check_whole_windows
from shedjoin.window import TimeWindow

#: The largest number of rows in the history, and of steps of counting in a push.
ROWS, WORK = 1 << 17, 1 << 27
#: What is saved of the sample, and of keys outside it.
SAMPLED, UNSAMPLED = ("keys", "p", "missing", "settled", "last_seen"), ("keys", "p", "missing")


class MultiRecall(LiveRecall):
    """Estimates the recall of an n-way join on one column with time windows. A row of the history takes 32 bytes.

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

    def _check(self, spec: JoinSpec) -> None:
        check_whole_windows("MultiRecall", spec)
        by_time = all(isinstance(window, TimeWindow) for window in spec.windows)
        if not isinstance(spec.on, str) or not by_time or spec.between is not None:
            raise SpecError(f"spec must join on one column within time windows for MultiRecall, not {spec!r}")
        if spec.evaluate_every:
            raise SpecError(
                f"spec must have evaluate_every=0 for MultiRecall, not {spec.evaluate_every}: what is missing is counted push "
                "by push"
            )
        if spec.cpu is not None or spec.dual is not None:
            raise SpecError(f"spec must have no cpu, queue or dual windows for MultiRecall, not {spec!r}")

    def _start(self, spec: JoinSpec, seed: int, part: tuple[int, int]) -> None:
        self._lengths = np.array([window.size for window in spec.windows], np.int64)
        self._code = IMPORTANCE[spec.importance]
        self._lateness, self._max_skew = spec.lateness, spec.max_skew
        streams = len(spec.names)
        self._history = {name: np.empty(0, kind) for name, kind in COLUMNS.items()}
        self._sample = KeySample(seed)
        self._delivered = np.zeros(KINDS)
        self._clock = np.full(streams, NEVER)
        self._arrived = np.zeros(streams, np.int64)
        self._shed, self._unit, self._late = 0, 0.0, 0
        self._unsampled = UnsampledKeys(KINDS)
        self._edge = NEVER  # keys last seen at this time or before have no rows inside the windows
        self._first_ts = NEVER  # the time of the first row
        self._batch: Batch | None = None
        self._push = np.zeros((2, 1))  # delivered results and importance of this push; by key, once keys are sampled

    # ---------------------------------------------------------------------------------------------------------- pushes

    def _begin(self, batch: Batch) -> None:
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
        for stream, clock in enumerate(clocks):
            if clock is not None:
                self._clock[stream] = max(self._clock[stream], clock)

    def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
        new = self._new_rows(batch, shed, late)
        self._shed += len(shed) - late
        self._unit += (len(shed) - late) * (1.0 / self._sample.base - 1.0)
        self._late += late
        self._arrived += np.bincount(batch.stream, minlength=self._arrived.size)
        if len(batch):
            self._raise_weight()
        self._delivered[2:] += self._recent_weight * self._push.sum(axis=1)
        keys, exact = self._expected(new, shed.expired) if late else self._completed(self._history, new)
        self._sample.add_missing(keys, exact, self._push, self._recent_weight)
        self._history = concat(self._history, new)
        each = self._delivered[1] / self._delivered[0] if self._delivered[0] else 1.0
        self._unsampled.end(each, self._recent_weight)
        self._sample.see(rows_of(batch, ~batch.null))
        self._expire()

    def _new_rows(self, batch: Batch, shed: ShedLog, late: int) -> Rows:
        """The rows of a push that can be in results and have a sampled key."""
        rows = rows_of(batch, ~batch.null)
        if late:
            record = np.full(len(batch), NONE)
            for stream, start in enumerate(self._arrived.tolist()):
                mine = np.flatnonzero(batch.stream == stream)
                records = np.flatnonzero((shed.why == LATE) & (shed.stream == stream))
                record[mine[shed.seq[records] - start]] = records
            rows["late"] = record[~batch.null]
            rows["instant"] = np.cumsum(np.append(0, np.diff(batch.ts) != 0))[~batch.null]
        for stream in range(self._clock.size):
            self._clock[stream] = max(self._clock[stream], rows["ts"][rows["stream"] == stream].max(initial=NEVER))
        return self._sample.admit(rows, self._edge)

    def _completed(self, old: Rows, new: Rows) -> tuple[Integers, Numbers]:
        return expected_results(old, new, self._lengths, self._code)

    def _expected(self, new: Rows, expired: Integers) -> tuple[Integers, Numbers]:
        """The same, of a push with late rows: these do not meet what had expired before their instant.

        Rows of a key are counted piece by piece where one that is late would meet such a row; there are few of them.
        """
        cut = np.isin(new["key"], new["key"][self._reaches_expired(new, expired)])
        keys, found = self._completed(self._history, select(new, ~cut))
        pieces = [(keys, found)]
        for key in np.unique(new["key"][cut]):
            old, mine = (select(rows, rows["key"] == key) for rows in (self._history, new))
            starts = np.flatnonzero(np.append(True, np.diff(mine["instant"]) != 0))
            borders = starts[np.maximum.reduceat(mine["late"], starts) != NONE]
            for start, end in itertools.pairwise(np.unique([0, *borders, mine["key"].size]).tolist()):
                piece = select(mine, np.s_[start:end])
                if start in borders:
                    line = expired[piece["late"][piece["instant"] == piece["instant"][0]].max()]
                    old = select(old, old["ts"] > line[old["stream"]])
                pieces.append(self._completed(old, piece))
                old = concat(old, piece)
        keys, which = np.unique(np.concatenate([keys for keys, _ in pieces]), return_inverse=True)
        total = np.zeros((keys.size, 2))
        np.add.at(total, which, np.concatenate([found for _, found in pieces], axis=1).T)
        return keys, np.ascontiguousarray(total.T)

    def _reaches_expired(self, new: Rows, expired: Integers) -> NDArray[np.bool_]:
        """Which rows are late, and would meet a row of their key that had expired."""
        late = np.flatnonzero(new["late"] != NONE)
        rows, found = concat(self._history, new), np.zeros(new["key"].size, np.bool_)
        keys, times = np.unique(rows["key"]), np.unique(rows["ts"])
        place = np.searchsorted(keys, rows["key"]) * (times.size + 1) + np.searchsorted(times, rows["ts"])
        mine = np.searchsorted(keys, new["key"][late]) * (times.size + 1)
        for stream, length in enumerate(self._lengths.tolist()):
            there = np.sort(place[rows["stream"] == stream])
            first = mine + np.searchsorted(times, new["ts"][late] - length, side="right")
            last = mine + np.searchsorted(times, expired[new["late"][late], stream], side="right")
            some = np.searchsorted(there, last) > np.searchsorted(there, first)
            found[late] |= some & (new["stream"][late] != stream)
        return found

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

    def _sums(self) -> tuple[Numbers, list[float]]:
        total = self._sample.moments()
        total[:, 1:] = np.maximum(total[:, 1:], self._unsampled.moments())
        return np.column_stack([self._delivered, total]), [self._shed, self._unit, self._late]

    @property
    def remembered(self) -> int:
        """The number of rows in the history."""
        return int(self._history["key"].size)

    # ------------------------------------------------------------------------------------------------------- as bytes

    def _arrays(self) -> dict[str, NDArray[Any]]:
        sample, unsampled = self._sample, self._unsampled
        return {
            **self._history,
            **{f"sample {name}": getattr(sample, name) for name in SAMPLED},
            **{f"unsampled {name}": getattr(unsampled, name) for name in UNSAMPLED},
            "delivered": self._delivered,
            "clock": self._clock,
            "arrived": self._arrived,
        }

    def _numbers(self) -> list[Any]:
        return [self._sample.certain, self._recent_weight, self._shed, self._unit, self._late, self._first_ts]

    def _restore(self, arrays: Mapping[str, NDArray[Any]], numbers: list[Any], snapshot: bytes) -> None:
        self._history = {name: arrays[name] for name in COLUMNS}
        for name in SAMPLED:
            setattr(self._sample, name, arrays[f"sample {name}"])
        for name in UNSAMPLED:
            setattr(self._unsampled, name, arrays[f"unsampled {name}"])
        self._delivered, self._clock, self._arrived = (arrays[name] for name in ("delivered", "clock", "arrived"))
        self._sample.certain, self._recent_weight, self._shed, self._unit, self._late, self._first_ts = numbers
