"""Recall while a join of n streams on one key runs: which share of the results was delivered, with an interval.

The results that a row completes in the exact join are a product of counts: of each other stream, the rows of its key that are in
their windows. So what is missing can be counted without joining, if it is known when rows of the key came. That is kept here, a
few numbers a row, for all keys as long as they have room: then recall is exact, and both limits are recall itself.

When there is no more room, or counting takes too long, keys are sampled: a key stays with a probability p in proportion to the
square of the rows it has now (results grow with a power of them, so keys with very many stay for certain), decided by a lot
that depends on nothing but the key and the seed. Keys that come later have the p of a key with one row; but one that has no
rows in the windows, or brings very many, has its chance by the square of those that it brings. (Of what the latter had before
nothing is known: for the length of a window they seem to miss less than they do.) Whether a key has rows in the windows is
known by its hash: one that is not new may be taken for such, never the other way round. Of a key that is in, what it misses
counts 1 / p (Horvitz and Thompson).
Lots of keys are independent, so the variance is estimated by the sum of (1 - p) z^2 over keys, or by what heavy keys outside
of the sample may miss (`shedjoin.recall.unsampled`), whichever is more; limits follow as in `shedjoin.recall.pairs`. Late rows
are no part of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import IMPORTANCE, LATE
from shedjoin.engine.nway.batch import MultiBatch
from shedjoin.engine.nway.output import MultiOutput, MultiShedLog
from shedjoin.engine.state import NEVER
from shedjoin.errors import InputError, SnapshotError, SpecError
from shedjoin.multi import MultiJoinSpec
from shedjoin.recall.checksum import opened, sealed
from shedjoin.recall.estimate import LIVE_COLUMNS, RecallEstimate, combine
from shedjoin.recall.expected import COLUMNS, Integers, Rows, both, due, rows_of, some, steps
from shedjoin.recall.key_sample import KINDS, KeySample
from shedjoin.recall.pairs import LARGEST_FADE
from shedjoin.recall.unsampled import Outside
from shedjoin.spec import check_seed
from shedjoin.window import TimeWindow

VERSION = 2
#: Most rows of history, and most steps of counting a push.
ROWS, WORK = 1 << 17, 1 << 27


class MultiRecall:
    """Estimates recall while an n-way join on one key runs.

    Parameters
    ----------
    spec
        The join that is watched: on one column, time windows.
    seed
        For the sample. Shards of one join need different seeds.
    rows
        The most rows that are remembered; 32 bytes each.
    level
        Of the confidence limits.
    recent
        The half-life of the recent estimate, in pushes that bring rows.

    Examples
    --------
    >>> import shedjoin as sj
    >>> spec = sj.MultiJoinSpec(
    ...     windows=dict.fromkeys("abc", sj.TimeWindow(3)), on="key", budget=sj.Budget(tuples=3), policy=sj.Simp()
    ... )
    >>> engine, live = spec.build(), MultiRecall(spec)
    >>> batch = engine.batch(dict.fromkeys("abc", {"key": [1, 2, 1, 1]}))
    >>> live.follow(batch, engine.push(batch))
    >>> now = live.estimate()
    >>> now.results + now.missing, now.low == now.recall == now.high
    (16.0, True)
    """

    def __init__(
        self, spec: MultiJoinSpec, seed: int = 0, rows: int = ROWS, level: float = 0.95, recent: float = 8.0
    ) -> None:
        windows = list(spec.windows.values())
        if not isinstance(spec.on, str) or not all(isinstance(window, TimeWindow) for window in windows):
            raise SpecError(f"spec must join on one column within time windows for a live recall, not {spec!r}")
        if spec.evaluate_every:
            raise SpecError(
                f"spec must have evaluate_every=0 for a live recall, not {spec.evaluate_every}: what is missing is counted push "
                "by push"
            )
        check_seed(seed)
        self._rows, self._level, self._recent = rows, level, recent
        self._lengths = np.array([window.size for window in windows], np.int64)
        self._code = IMPORTANCE[spec.importance]
        self._lateness, self._max_skew = spec.lateness, spec.max_skew
        self._signature = {
            "windows": self._lengths.tolist(),
            "importance": spec.importance,
            "lateness": spec.lateness,
            "max_skew": spec.max_skew,
            "seed": seed,
            "rows": rows,
        }
        streams = len(windows)
        self._history = {name: np.empty(0, kind) for name, kind in COLUMNS.items()}
        self._sample = KeySample(seed)
        self._there = np.zeros(KINDS)  # delivered
        self._fade = 1.0
        self._clock = np.full(streams, NEVER)
        self._arrived = np.zeros(streams, np.int64)
        self._shed, self._unit, self._late = 0, 0.0, 0
        self._outside = Outside(KINDS)
        self._edge = NEVER  # keys that were last seen up to here have no rows in the windows
        self._began = NEVER  # the time of the first row
        self._batch: MultiBatch | None = None
        self._new = np.zeros((2, 1))  # results and importance of the push under way; by key, once keys are sampled

    # ------------------------------------------------------------------------------------------------------ what comes

    def follow(self, batch: MultiBatch, out: MultiOutput) -> None:
        """Take note of a push: call it after every push with what came out."""
        if out.importance.size != out.stats["results"]:
            raise InputError("out has not all results: recall needs an engine that gives all of them out")
        self.begin(batch)
        self.take(out)
        self.watch(batch, out.shed, out.stats["late"])

    def begin(self, batch: MultiBatch) -> None:
        """Where results leave in pieces: first this, then `take` for each piece, then `watch`."""
        self._batch = batch
        if len(batch):
            self._edge = int(batch.ts.min()) - int(self._lengths.max()) - self._lateness
        rows = self._sample.only(rows_of(batch, ~batch.null), self._edge)
        while not self._fits(rows):
            self._lower(rows)
            rows = self._sample.only(rows, self._edge)
        self._new = np.zeros((2, 1 if self._sample.whole else self._sample.keys.size + 1))
        self._look_outside(rows_of(batch, ~batch.null))

    def _look_outside(self, rows: Rows) -> None:
        """Keys of a push that are not in the sample: how many rows it brings, and about how many are in their windows."""
        if not rows["ts"].size:
            return
        first, last = rows["ts"].min(), rows["ts"].max()
        self._began = int(first) if self._began == NEVER else min(self._began, int(first))
        if self._sample.whole:
            return
        keys, which = np.unique(rows["key"], return_inverse=True)
        fresh = np.stack(
            [np.bincount(which[rows["stream"] == one], minlength=keys.size) for one in range(self._lengths.size)]
        ).astype(np.float64)
        stored = fresh * (np.minimum(self._lengths, last - self._began + 1) / (last - first + 1))[:, None]
        chance = (np.maximum(fresh.sum(axis=0), stored.sum(axis=0)) / self._sample.certain) ** 2
        chance = np.minimum(chance, self._sample.lots(keys))  # or it would be in
        out = self._sample.places(keys) == self._sample.keys.size
        self._outside.begin(keys[out], chance[out], fresh[:, out], stored[:, out])

    def take(self, out: MultiOutput) -> None:
        """Count the results of one piece."""
        size, worth = out.importance.size, float(out.importance.sum())
        self._there[:2] += (size, worth)
        if self._sample.whole:
            self._new[:, 0] += (size, worth)
        elif size:
            keys = self._keys_of(out.rows)
            self._outside.take(keys)
            place = self._sample.places(keys)
            self._new[0] += np.bincount(place, minlength=self._new.shape[1])
            self._new[1] += np.bincount(place, out.importance, minlength=self._new.shape[1])

    def _keys_of(self, rows: Integers) -> Integers:
        """The key of each result: at least one of its rows is of this push."""
        assert self._batch is not None
        keys = np.zeros(rows.shape[0], np.int64)
        for stream, start in enumerate(self._arrived.tolist()):
            mine = self._batch.attr[self._batch.stream == stream, 0]
            new = rows[:, stream] >= start
            keys[new] = mine[rows[new, stream] - start]
        return keys

    def tell(self, clocks: Sequence[int | None]) -> None:
        """Times of the whole streams, for who sees a part: rows are forgotten by them."""
        for stream, clock in enumerate(clocks):
            if clock is not None:
                self._clock[stream] = max(self._clock[stream], clock)

    def watch(self, batch: MultiBatch, shed: MultiShedLog, late: int) -> None:
        """Take note of the rows of a push, of what was shed, and how many came late."""
        fresh = self._fresh(batch, shed, late)
        self._shed += len(shed) - late
        self._unit += (len(shed) - late) * (1.0 / self._sample.base - 1.0)
        self._late += late
        self._arrived += np.bincount(batch.stream, minlength=self._arrived.size)
        if len(batch):
            self._grow_fade()
        self._there[2:] += self._fade * self._new.sum(axis=1)
        keys, exact = due(self._history, fresh, self._lengths, self._code)
        self._sample.settle(keys, exact, self._new, self._fade)
        self._history = both(self._history, fresh)
        self._outside.end(self._there[1] / self._there[0] if self._there[0] else 1.0, self._fade)
        self._sample.saw(rows_of(batch, ~batch.null))
        self._forget()

    def _fresh(self, batch: MultiBatch, shed: MultiShedLog, late: int) -> Rows:
        """The rows of a push that can be in results, of keys of the sample."""
        chosen = ~batch.null
        if late:
            refused = shed.why == LATE
            for stream, start in enumerate(self._arrived.tolist()):
                mine = np.flatnonzero(batch.stream == stream)
                chosen[mine[shed.seq[refused & (shed.stream == stream)] - start]] = False
        rows = rows_of(batch, chosen)
        for stream in range(self._clock.size):
            self._clock[stream] = max(self._clock[stream], rows["ts"][rows["stream"] == stream].max(initial=NEVER))
        return self._sample.only(rows, self._edge)

    # ----------------------------------------------------------------------------------------------------- the sample

    def _fits(self, fresh: Rows) -> bool:
        """Whether there is room for new rows, and whether counting them will not take too long."""
        rows = self._history["key"].size + fresh["key"].size
        if rows == 0 or self._sample.base < 2.0**-50:
            return True
        if rows > 2 * self._rows or self._sample.keys.size > self._rows:
            return False
        return steps(self._history, fresh, self._lengths.size, self._code) <= WORK

    def _lower(self, fresh: Rows) -> None:
        """Fewer keys, and their rows."""
        self._sample.lower(np.concatenate([self._history["key"], fresh["key"]]), int(self._clock.max()))
        self._history = some(self._history, np.isin(self._history["key"], self._sample.keys))

    def _forget(self) -> None:
        """Rows that no row to come can meet; and keys that have none left, if there are too many."""
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
            self._history = some(rows, stays)
        if self._sample.keys.size > self._rows // 2:
            self._sample.close(~np.isin(self._sample.keys, self._history["key"]))

    def _grow_fade(self) -> None:
        self._fade *= 2.0 ** (1.0 / self._recent)
        if self._fade > LARGEST_FADE:
            self._sample.fade(LARGEST_FADE)
            self._outside.missed[2:] /= LARGEST_FADE
            self._there[2:] /= LARGEST_FADE
            self._fade /= LARGEST_FADE

    # ---------------------------------------------------------------------------------------------------- the estimate

    def estimate(self, *, recent: bool = False) -> RecallEstimate:
        """Recall since the start; or of late, each push counting less the longer ago it was."""
        return combine([self.sums()], self._level, recent=recent)

    def sums(self) -> dict[str, float]:
        """What the estimate is made of, under the names of `LIVE_COLUMNS`. Sums of shards can be added."""
        total = self._sample.moments()
        total[:, 1:] = np.maximum(total[:, 1:], self._outside.moments())
        there = self._there.copy()
        for power in (1, 2, 3):
            total[2:, power - 1] /= self._fade**power
        there[2:] /= self._fade
        numbers = [number for kind in range(KINDS) for number in (there[kind], *total[kind])]
        numbers += [self._shed, self._unit, self._late]
        return dict(zip(LIVE_COLUMNS, map(float, numbers), strict=True))

    @property
    def remembered(self) -> int:
        """Rows of history."""
        return int(self._history["key"].size)

    # ------------------------------------------------------------------------------------------------------- as bytes

    def _arrays(self) -> dict[str, NDArray[Any]]:
        numbers = np.array([self._sample.certain, self._fade, self._shed, self._unit, self._late, self._began])
        return {
            **self._history,
            "keys": self._sample.keys,
            "p": self._sample.p,
            "open": self._sample.open,
            "closed": self._sample.closed,
            "there": self._there,
            "clock": self._clock,
            "arrived": self._arrived,
            "numbers": numbers,
            "seen": self._sample.seen,
            "outside": self._outside.keys,
            "outside p": self._outside.p,
            "outside missed": self._outside.missed,
        }

    def to_bytes(self) -> bytes:
        """All that is known between two pushes, with a version and a checksum."""
        arrays = self._arrays()
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        head = json.dumps({"version": VERSION, "signature": self._signature, "shapes": shapes}).encode()
        body = b"".join([head, b"\n", *(np.ascontiguousarray(array).tobytes() for array in arrays.values())])
        return sealed(body)

    def _load(self, data: bytes) -> None:
        text, _, rest = opened(data).partition(b"\n")
        head = json.loads(text)
        if head["version"] != VERSION or head["signature"] != self._signature:
            raise SnapshotError(
                f"the recall estimate was saved by another join: {head['signature']}, not {self._signature}"
            )
        arrays, start = {}, 0
        for name, array in self._arrays().items():
            count = int(np.prod(head["shapes"][name]))
            arrays[name] = np.frombuffer(rest, array.dtype, count, start).reshape(head["shapes"][name]).copy()
            start += count * array.itemsize
        self._history = {name: arrays[name] for name in COLUMNS}
        sample = self._sample
        sample.keys, sample.p, sample.open, sample.closed = (arrays[name] for name in ("keys", "p", "open", "closed"))
        self._there = arrays["there"]
        self._clock, self._arrived = arrays["clock"], arrays["arrived"]
        sample.certain, self._fade, shed, self._unit, late, began = arrays["numbers"].tolist()
        self._shed, self._late, self._began = int(shed), int(late), int(began)
        sample.seen, out = arrays["seen"], self._outside
        out.keys, out.p, out.missed = arrays["outside"], arrays["outside p"], arrays["outside missed"]
