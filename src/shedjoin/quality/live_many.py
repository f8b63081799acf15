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
of the sample may miss (`shedjoin.quality.outside`), whichever is more; limits follow as in `shedjoin.quality.live`. Late rows
are no part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.engine.codes import IMPORTANCE, LATE
from shedjoin.engine.nway.batch import MultiBatch
from shedjoin.engine.nway.history import MAX, complete
from shedjoin.engine.nway.output import MultiOutput, MultiShedLog
from shedjoin.engine.state import NEVER
from shedjoin.errors import InputError, SnapshotError, SpecError
from shedjoin.multi import MultiJoinSpec
from shedjoin.quality.live import LARGEST_FADE, LIVE_COLUMNS, RecallEstimate, combine
from shedjoin.quality.outside import Outside
from shedjoin.quality.seal import opened, sealed
from shedjoin.spec import check_seed
from shedjoin.window import TimeWindow

VERSION = 2
#: Most rows of history, and most comparisons a push.
ROWS, WORK = 1 << 17, 1 << 27
#: When a key was last seen is known by hash in so many cells.
CELLS = 1 << 15
#: When keys have to go, those that stay for certain have this many times as many rows as before.
MORE = 1.25
Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Rows = dict[str, NDArray[Any]]
_COLUMNS = {"stream": np.int64, "key": np.int64, "ts": np.int64, "importance": np.float64}
#: What is kept of a sampled key: results and importance that it misses, and the same of late.
KINDS = 4


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
        self._seed = np.uint64(
            int.from_bytes(hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=8).digest(), "little")
        )
        self._signature = {
            "windows": self._lengths.tolist(),
            "importance": spec.importance,
            "lateness": spec.lateness,
            "max_skew": spec.max_skew,
            "seed": seed,
            "rows": rows,
        }
        streams = len(windows)
        self._history = {name: np.empty(0, kind) for name, kind in _COLUMNS.items()}
        self._certain = 1.0  # a key with so many rows is in the sample for certain
        self._keys = np.empty(0, np.int64)  # those of the sample, in order, once not all are
        self._p = np.empty(0)
        self._open = np.zeros((KINDS, 0))  # what each of them misses
        self._closed = np.zeros((KINDS, 3))  # what is settled: sums of z, (1 - p) z^2, (1 - p) z^3
        self._there = np.zeros(KINDS)  # delivered
        self._fade = 1.0
        self._clock = np.full(streams, NEVER)
        self._arrived = np.zeros(streams, np.int64)
        self._shed, self._unit, self._late = 0, 0.0, 0
        self._outside = Outside(KINDS)
        self._seen = np.empty(0, np.int64)  # the latest time of the keys of a cell, once keys are sampled
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
        rows = self._only(_columns(batch, ~batch.null))
        while not self._fits(rows):
            self._lower(rows)
            rows = self._only(rows)
        self._new = np.zeros((2, 1 if self._base == 1.0 else self._keys.size + 1))
        self._look_outside(_columns(batch, ~batch.null))

    def _look_outside(self, rows: Rows) -> None:
        """Keys of a push that are not in the sample: how many rows it brings, and about how many are in their windows."""
        if not rows["ts"].size:
            return
        first, last = rows["ts"].min(), rows["ts"].max()
        self._began = int(first) if self._began == NEVER else min(self._began, int(first))
        if self._base == 1.0:
            return
        keys, which = np.unique(rows["key"], return_inverse=True)
        fresh = np.stack(
            [np.bincount(which[rows["stream"] == one], minlength=keys.size) for one in range(self._lengths.size)]
        ).astype(np.float64)
        stored = fresh * (np.minimum(self._lengths, last - self._began + 1) / (last - first + 1))[:, None]
        chance = (np.maximum(fresh.sum(axis=0), stored.sum(axis=0)) / self._certain) ** 2
        chance = np.minimum(chance, self._lots(keys))  # or it would be in
        out = self._places(keys) == self._keys.size
        self._outside.begin(keys[out], chance[out], fresh[:, out], stored[:, out])

    def take(self, out: MultiOutput) -> None:
        """Count the results of one piece."""
        size, worth = out.importance.size, float(out.importance.sum())
        self._there[:2] += (size, worth)
        if self._base == 1.0:
            self._new[:, 0] += (size, worth)
        elif size:
            keys = self._keys_of(out.rows)
            self._outside.take(keys)
            place = self._places(keys)
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

    def _places(self, keys: Integers) -> Integers:
        """The places of keys in the sample; one past its end for those that are not in it."""
        place = np.searchsorted(self._keys, keys).clip(max=max(self._keys.size - 1, 0))
        there = self._keys[place] == keys if self._keys.size else np.zeros(keys.size, np.bool_)
        return np.where(there, place, self._keys.size)

    def tell(self, clocks: Sequence[int | None]) -> None:
        """Times of the whole streams, for who sees a part: rows are forgotten by them."""
        for stream, clock in enumerate(clocks):
            if clock is not None:
                self._clock[stream] = max(self._clock[stream], clock)

    def watch(self, batch: MultiBatch, shed: MultiShedLog, late: int) -> None:
        """Take note of the rows of a push, of what was shed, and how many came late."""
        fresh = self._fresh(batch, shed, late)
        self._shed += len(shed) - late
        self._unit += (len(shed) - late) * (1.0 / self._base - 1.0)
        self._late += late
        self._arrived += np.bincount(batch.stream, minlength=self._arrived.size)
        if len(batch):
            self._grow_fade()
        self._there[2:] += self._fade * self._new.sum(axis=1)
        self._settle(*self._found(fresh))
        self._outside.end(self._there[1] / self._there[0] if self._there[0] else 1.0, self._fade)
        if self._seen.size:
            rows = _columns(batch, ~batch.null)
            np.maximum.at(self._seen, self._cells(rows["key"]), rows["ts"])
        self._forget()

    def _fresh(self, batch: MultiBatch, shed: MultiShedLog, late: int) -> Rows:
        """The rows of a push that can be in results, of keys of the sample."""
        chosen = ~batch.null
        if late:
            refused = shed.why == LATE
            for stream, start in enumerate(self._arrived.tolist()):
                mine = np.flatnonzero(batch.stream == stream)
                chosen[mine[shed.seq[refused & (shed.stream == stream)] - start]] = False
        rows = _columns(batch, chosen)
        for stream in range(self._clock.size):
            self._clock[stream] = max(self._clock[stream], rows["ts"][rows["stream"] == stream].max(initial=NEVER))
        return self._only(rows)

    def _only(self, rows: Rows) -> Rows:
        """Rows of keys of the sample; keys that are new may come into it."""
        if self._base == 1.0:
            return rows
        keys, counts = np.unique(rows["key"], return_counts=True)
        chance = np.minimum((counts / self._certain) ** 2, 1.0)
        chance[(chance < 1.0) & (self._seen[self._cells(keys)] > self._edge)] = self._base
        place = self._places(keys)
        there = place < self._keys.size
        self._raise(place[there], chance[there])
        new = ~there & (self._lots(keys) < chance)
        self._admit(keys[new], chance[new])
        chosen = self._places(rows["key"]) < self._keys.size
        return {name: column[chosen] for name, column in rows.items()}

    def _cells(self, keys: Integers) -> Integers:
        return (self._lots(keys ^ np.int64(-1)) * CELLS).astype(np.int64)

    def _raise(self, place: Integers, chance: Numbers) -> None:
        """Keys that would come in now with a higher probability than they did. What they missed so far is settled."""
        more = chance > self._p[place]
        place, chance = place[more], chance[more]
        self._closed += _moments(self._open[:, place], self._p[place])
        self._open[:, place] = 0.0
        self._p[place] = chance

    def _admit(self, keys: Integers, p: Numbers) -> None:
        at = np.searchsorted(self._keys, keys)
        self._keys, self._p = np.insert(self._keys, at, keys), np.insert(self._p, at, p)
        self._open = np.insert(self._open, at, 0.0, axis=1)

    @property
    def _base(self) -> float:
        """The probability with which a key that is new comes into the sample; 1: all do."""
        return 1.0 / self._certain**2

    def _lots(self, keys: Integers) -> Numbers:
        """A number from 0 to 1 for each key, always the same."""
        with np.errstate(over="ignore"):
            x = (keys.view(np.uint64) ^ self._seed) * np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
        return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53

    # ----------------------------------------------------------------------------------------------------- the sample

    def _fits(self, fresh: Rows) -> bool:
        """Whether there is room for new rows, and whether counting them will not take too long."""
        rows = self._history["key"].size + fresh["key"].size
        if rows == 0 or self._base < 2.0**-50:
            return True
        if rows > 2 * self._rows or self._keys.size > self._rows:
            return False
        keys = np.unique(np.concatenate([self._history["key"], fresh["key"]]))
        old, new = (
            np.bincount(np.searchsorted(keys, part["key"]), minlength=keys.size) for part in (self._history, fresh)
        )
        # A row that lags is looked at once for every row of its key that is later than it.
        ahead = np.zeros(keys.size, np.int64)
        if fresh["key"].size and self._history["key"].size:
            first = np.full(keys.size, np.iinfo(np.int64).max)
            np.minimum.at(first, np.searchsorted(keys, fresh["key"]), fresh["ts"])
            place = np.searchsorted(keys, self._history["key"])
            ahead = np.bincount(place, self._history["ts"] > first[place], minlength=keys.size).astype(np.int64)
        return float(((old + new).astype(np.float64) * new * (1.0 + ahead)).sum()) <= WORK

    def _lower(self, fresh: Rows) -> None:
        """Fewer keys, as far as they have few rows. Of those that go, what they missed so far is settled."""
        keys, counts = np.unique(np.concatenate([self._history["key"], fresh["key"]]), return_counts=True)
        if self._base == 1.0:  # until now, all keys were known: nothing is open
            self._seen = np.full(CELLS, self._clock.max())
            self._keys, self._p, self._open = keys, np.ones(keys.size), np.zeros((KINDS, keys.size))
        place = np.searchsorted(keys, self._keys).clip(max=max(keys.size - 1, 0))
        rows = np.where(keys[place] == self._keys, counts[place], 0) if keys.size else np.zeros(self._keys.size)
        self._certain *= MORE
        self._p = np.minimum(self._p, (rows / self._certain) ** 2)
        stays = (self._lots(self._keys) < self._p) & (rows > 0)
        self._close(~stays)
        chosen = np.isin(self._history["key"], self._keys)
        self._history = {name: column[chosen] for name, column in self._history.items()}

    def _close(self, gone: NDArray[np.bool_]) -> None:
        self._closed += _moments(self._open[:, gone], self._p[gone])
        self._keys, self._p, self._open = self._keys[~gone], self._p[~gone], self._open[:, ~gone]

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
            self._history = {name: column[stays] for name, column in rows.items()}
        if self._keys.size > self._rows // 2:
            self._close(~np.isin(self._keys, self._history["key"]))

    # ---------------------------------------------------------------------------------------------------- the counting

    def _found(self, fresh: Rows) -> tuple[Integers, Numbers]:
        """The keys of new rows, and the results and importance that each completes; the rows join the history."""
        old = self._history["key"].size
        rows = {name: np.concatenate([self._history[name], fresh[name]]) for name in _COLUMNS}
        self._history = rows
        size = rows["key"].size
        place = np.argsort(rows["key"], kind="stable")
        key = rows["key"][place]
        bounds = np.concatenate(([0], np.flatnonzero(np.diff(key)) + 1, [size])) if size else np.zeros(1, np.int64)
        is_new = np.concatenate(([0], np.cumsum(place >= old)))
        first = bounds[1:] - (is_new[bounds[1:]] - is_new[bounds[:-1]])  # new rows are the last of their keys
        importance = rows["importance"][place]
        by_worth = importance if self._code == MAX else -importance
        order = np.lexsort((by_worth, np.repeat(np.arange(bounds.size - 1), np.diff(bounds))))
        found, value, count = np.zeros(size), np.zeros(size), np.zeros((2, self._lengths.size))
        columns = rows["stream"][place], rows["ts"][place], importance
        complete(bounds, first, *columns, order, self._lengths, self._code, count[0], count[1], found, value)
        new = place >= old
        return key[new], np.stack([found[new], value[new]])

    def _settle(self, keys: Integers, exact: Numbers) -> None:
        """What is missing of this push: exact results less those that were delivered."""
        if self._base == 1.0:
            missed = _less(exact.sum(axis=1), self._new[:, 0])
            self._closed[:, 0] += np.concatenate([missed, self._fade * missed])
            return
        place = self._places(keys)
        due: Numbers = np.stack([np.bincount(place, part, minlength=self._keys.size) for part in exact]).astype(
            np.float64
        )
        missed = _less(due, self._new[:, : self._keys.size]) / self._p
        missed = np.concatenate([missed, self._fade * missed])
        sure = self._p == 1.0
        self._closed[:, 0] += missed[:, sure].sum(axis=1)
        self._open += np.where(sure, 0.0, missed)

    def _grow_fade(self) -> None:
        self._fade *= 2.0 ** (1.0 / self._recent)
        if self._fade > LARGEST_FADE:
            for power in (1, 2, 3):
                self._closed[2:, power - 1] /= LARGEST_FADE**power
            self._open[2:] /= LARGEST_FADE
            self._outside.missed[2:] /= LARGEST_FADE
            self._there[2:] /= LARGEST_FADE
            self._fade /= LARGEST_FADE

    # ---------------------------------------------------------------------------------------------------- the estimate

    def estimate(self, *, recent: bool = False) -> RecallEstimate:
        """Recall since the start; or of late, each push counting less the longer ago it was."""
        return combine([self.sums()], self._level, recent=recent)

    def sums(self) -> dict[str, float]:
        """What the estimate is made of, under the names of `LIVE_COLUMNS`. Sums of shards can be added."""
        total = self._closed + _moments(self._open, self._p)
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
        numbers = np.array([self._certain, self._fade, self._shed, self._unit, self._late, self._began])
        return {
            **self._history,
            "keys": self._keys,
            "p": self._p,
            "open": self._open,
            "closed": self._closed,
            "there": self._there,
            "clock": self._clock,
            "arrived": self._arrived,
            "numbers": numbers,
            "seen": self._seen,
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
        self._history = {name: arrays[name] for name in _COLUMNS}
        self._keys, self._p, self._open = arrays["keys"], arrays["p"], arrays["open"]
        self._closed, self._there = arrays["closed"], arrays["there"]
        self._clock, self._arrived = arrays["clock"], arrays["arrived"]
        self._certain, self._fade, shed, self._unit, late, began = arrays["numbers"].tolist()
        self._shed, self._late, self._began = int(shed), int(late), int(began)
        self._seen, out = arrays["seen"], self._outside
        out.keys, out.p, out.missed = arrays["outside"], arrays["outside p"], arrays["outside missed"]


def _moments(z: Numbers, p: Numbers) -> Numbers:
    """The sums over keys that limits are made of: z, (1 - p) z^2, (1 - p) z^3."""
    return np.stack([z.sum(axis=1), ((1.0 - p) * z**2).sum(axis=1), ((1.0 - p) * z**3).sum(axis=1)], axis=1)


def _columns(batch: MultiBatch, chosen: NDArray[np.bool_]) -> Rows:
    rows = {"stream": batch.stream, "key": batch.attr[:, 0], "ts": batch.ts, "importance": batch.importance}
    return {name: column[chosen] for name, column in rows.items()}


def _less(exact: Numbers, delivered: Numbers) -> Numbers:
    """Results and importance that are missing: no importance without results, however sums were rounded."""
    missed = np.maximum(exact - delivered, 0.0)
    missed[1] = np.where(missed[0] > 0.0, missed[1], 0.0)
    return missed
