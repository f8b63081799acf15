"""Live recall of any join: predicates, join graphs, selective processing, queues, slow CPUs, dual windows, lazy evaluation.

How missing results are estimated
    Beside the join runs a small copy of it, without a limit of the CPU, that keeps a random sample of the rows (`row_sample`). It
    finds some results of the exact join. Those that the join does not deliver are missing. A found result counts w = 1 / p,
    where p is the probability that the sample has all its rows but the newest. So its expectation is one (Horvitz and
    Thompson). Why a result is missing does not matter: evicted, dropped, not compared.

The interval
    Let z_u be the summed w of missing results that needed the stored row u, and p_u the probability of u alone. The variance
    is at most the sum over rows of the part that is due to u (Efron and Stein), estimated by the sum of (1 - p_u) z_u^2. Of two
    streams each result needs one stored row, and this is the variance itself. Limits follow as in `shedjoin.recall.pairs`.

Results that come later
    Rows wait in queues, in an aux-window, or for a round of lazy evaluation. Their results count as missing until they come. A
    found result is kept until its newest row has had its turn. Turns are in order of arrival: when a result has row q of a
    stream, all earlier rows of this stream have had theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine.output import Output, ShedLog
from shedjoin.policies import KeepAll
from shedjoin.recall.let_in import LetIn
from shedjoin.recall.live import LARGEST_WEIGHT, LiveRecall
from shedjoin.recall.row_sample import Found, Integers, Numbers, RowSample
from shedjoin.spec import JoinSpec

#: Results, their importance, and both decayed.
KINDS = 4
#: Changes that do not make a saved estimate useless.
MAY_CHANGE = ("budget", "policy", "selective", "cpu", "queue", "dual", "order", "index", "reordering", "expire_every")


class SampledRecall(LiveRecall):
    """Estimates the recall of any join, by a copy of it that keeps a random sample of the rows.

    Examples
    --------
    >>> import shedjoin as sj
    >>> cpu = sj.VirtualCpu(capacity=1.0, probe=2.0)
    >>> spec = sj.JoinSpec(sj.TimeWindow(3), cpu=cpu, queue=sj.Queue(tuples=1))
    >>> engine, live = spec.build(), SampledRecall(spec)
    >>> for batch in (sj.Batch.of({"key": [1, 1, 1, 3]}, {"key": [1, 3, 1, 1]}), sj.Batch.of()):
    ...     live.follow(batch, engine.push(batch) if len(batch) else engine.flush())
    >>> now = live.estimate()
    >>> now.results + now.missing, now.low == now.recall == now.high
    (9.0, True)
    """

    def _start(self, spec: JoinSpec, seed: int, part: tuple[int, int]) -> None:
        self._let_in = LetIn(spec) if LetIn.matters(spec) else None
        #: Results of this push, while the rows that the sample gets are not known yet.
        self._held: list[Sequence[Integers]] = []
        admits = spec.plan().admission is not None
        self._rounds, self._waits = bool(spec.evaluate_every), admits or bool(spec.evaluate_every)
        loses = not isinstance(spec.policy, KeepAll) or spec.selective is not None or admits or self._drops
        self._sample = RowSample(spec, seed, self._most, part) if loses else None
        streams = len(spec.names)
        self._delivered, self._missing = np.zeros(KINDS), np.zeros(KINDS)
        self._left = np.zeros((streams, KINDS, 2))  # squares and cubes of rows that have left, by stream
        self._shed = self._late = 0
        self._turned = np.full(streams, -1)  # rows of each stream before this number have had their turn
        self._come = np.zeros(streams, np.int64)  # rows of each stream before the push
        self._found = Found.none(streams)  # results that have not been delivered,
        self._decayed = np.zeros(0)  # and the weight of their push in decayed counts
        self._index: tuple[NDArray[np.uint64], Integers] | None = (
            None  # sorted hashes of found results, and their places
        )
        self._came: NDArray[np.bool_] = np.zeros(0, np.bool_)  # which of them were delivered in this push

    def _settings(self, spec: JoinSpec) -> dict[str, Any]:
        settings = {name: value for name, value in spec.to_dict().items() if name not in MAY_CHANGE}
        return {**settings, "let in": LetIn.matters(spec)}

    # ---------------------------------------------------------------------------------------------------------- pushes

    def _begin(self, batch: Batch) -> None:
        """Find results of the rows of a push in the sample."""
        self._push = np.zeros(2)
        if len(batch):
            self._raise_weight()
        if self._let_in is None:
            self._find(() if self._sample is None else self._sample.push(batch))
        else:
            self._let_in.come(batch)

    def _find(self, new: Iterable[Found]) -> None:
        """Results were found in the sample."""
        self._index = None
        found = [self._found, *new]
        self._found = Found(*(np.concatenate(column) for column in zip(*found, strict=True)))
        now = np.full(self._found.newest.size - self._decayed.size, self._recent_weight)
        self._decayed = np.concatenate([self._decayed, now])
        self._came = np.zeros(self._decayed.size, np.bool_)

    def drop(self, rows: int) -> None:
        """Count rows that the engine does not get: they are in the sample as all others, and their results never come."""
        if not self._drops:
            super().drop(rows)
        self._shed += rows

    def deliver(self, out: Output) -> None:
        """Count the results of one piece of output, and note which found results are among them."""
        self._push = _added(self._push, np.stack([np.ones(len(out)), out.importance], axis=1))
        self._delivered[:2] = _added(self._delivered[:2], np.stack([np.ones(len(out)), out.importance], axis=1))
        self._shed += len(out.shed) - out.stats["late"]
        if self._rounds and out.stats["evaluations"]:
            self._turned = np.maximum(self._turned, self._come)
        if len(out):
            self._turned = np.maximum(self._turned, [column.max() for column in out.columns])
        if self._let_in is not None:
            self._held.append(out.columns)
            self._let_in.hear(out.shed, out.stats["let_in"])
        elif len(out):
            self._match(out.columns)

    def _find_let_in(self, let_in: LetIn) -> None:
        """Find results of the rows that are known to be let in, and note which of them were delivered."""
        assert self._sample is not None
        found: list[Found] = []
        for rows in let_in.take():
            if isinstance(rows, Batch):
                found += self._sample.push(rows)
            else:
                self._sample.tell(rows, None)
        self._find(found)
        for columns in self._held:
            if len(columns[0]):
                self._match([let_in.numbers(stream, column) for stream, column in enumerate(columns)])
        self._held = []
        for stream, table in enumerate(self._sample.rows):
            let_in.forget(stream, int(table["seq"].min(initial=self._sample.arrived[stream])))

    def _match(self, columns: Sequence[Integers]) -> None:
        if not self._came.size:
            return
        if self._index is None:
            hashes = _hashes(self._found.rows.T)
            order = np.argsort(hashes, kind="stable")
            self._index = hashes[order], order
        hashes, order = self._index
        mine = _hashes(columns)
        at = np.searchsorted(hashes, mine).clip(max=hashes.size - 1)
        same = np.flatnonzero(hashes[at] == mine)
        place = order[at[same]]
        for stream, column in enumerate(columns):
            alike = self._found.rows[place, stream] == column[same]
            same, place = same[alike], place[alike]
        self._came[place] = True

    def set_clocks(self, clocks: Sequence[int | None], arrived: Sequence[int] | None = None) -> None:
        """The sample expires by them too."""
        if self._let_in is not None:
            self._let_in.tell(clocks)
        elif self._sample is not None:
            self._sample.tell(clocks, arrived)

    def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
        """End a push: found results that can no longer come are missing."""
        self._late += late
        self._delivered[2:] += self._recent_weight * self._push
        if self._sample is None:
            return
        if self._waits and not self._rounds and len(shed):
            self._turned = np.maximum(self._turned, shed.seen.max(axis=0))
        turned = self._turned
        if self._let_in is not None:
            self._find_let_in(self._let_in)
            turned = np.concatenate([self._let_in.numbers(stream, turned[[stream]]) for stream in range(turned.size)])
        waits = np.zeros_like(self._came)
        if self._waits:
            newest = self._found.newest
            waits = ~self._came & (self._found.rows[np.arange(newest.size), newest] >= turned[newest])
        final = self._found_where(~self._came & ~waits)
        self._missing = self._settle(self._sample.rows, self._missing, *final)
        self._found, self._decayed = self._found_where(waits)
        self._came = np.zeros(self._decayed.size, np.bool_)
        self._come = self._sample.arrived.copy()
        self._retire()

    def _found_where(self, chosen: NDArray[np.bool_]) -> tuple[Found, Numbers]:
        return self._found.where(chosen), self._decayed[chosen]

    def _settle(self, tables: Sequence[NDArray[Any]], missing: Numbers, found: Found, decayed: Numbers) -> Numbers:
        """Count found results as missing, for the rows that were needed to find them; returns the sums."""
        assert self._sample is not None
        if not decayed.size:
            return missing
        places = self._sample.places(found.rows)
        ones = np.ones(decayed.size)
        amounts = np.stack([ones, found.importance, decayed, decayed * found.importance], axis=1)
        amounts /= found.p.prod(axis=1)[:, None]
        for stream, table in enumerate(tables):
            needed = found.newest != stream
            at = places[needed, stream]
            np.add.at(table["missing"], at, amounts[needed])
            np.minimum.at(table["p"], at, found.p[needed, stream])
        return _added(missing, amounts)

    def _retire(self) -> None:
        """Forget rows that have left the sample, and that no result waits for."""
        assert self._sample is not None
        for stream, table in enumerate(self._sample.rows):
            goes = table["gone"] > 0
            if self._decayed.size:
                goes &= ~np.isin(table["seq"], self._found.rows[:, stream])
            if goes.any():
                left = table[goes]
                self._left[stream] = _added(self._left[stream], _powers(left[np.argsort(left["gone"], kind="stable")]))
                self._sample.rows[stream] = table[~goes]

    def _raise_weight(self) -> None:
        self._recent_weight *= 2.0 ** (1.0 / self._half_life)
        if self._recent_weight > LARGEST_WEIGHT:
            self._recent_weight /= LARGEST_WEIGHT
            self._delivered[2:] /= LARGEST_WEIGHT
            self._missing[2:] /= LARGEST_WEIGHT
            self._left[:, 2:] /= LARGEST_WEIGHT ** np.array([2, 3])
            self._decayed /= LARGEST_WEIGHT
            for table in self._sample.rows if self._sample is not None else ():
                table["missing"][:, 2:] /= LARGEST_WEIGHT

    # ---------------------------------------------------------------------------------------------------- the estimate

    def _sums(self) -> tuple[Numbers, list[float]]:
        missing, powers = self._missing, self._left.sum(axis=0)
        if self._sample is not None:
            tables = self._sample.rows
            if self._decayed.size:  # what is not delivered yet is missing for now
                tables = [table.copy() for table in tables]
                missing = self._settle(tables, missing, self._found, self._decayed)
            for table in tables:
                powers = powers + _powers(table).sum(axis=0)
        unit = 0.0 if self._sample is None else self._sample.weight - 1.0
        return np.column_stack([self._delivered, missing, powers]), [self._shed, self._shed * unit, self._late]

    @property
    def remembered(self) -> int:
        """The number of rows in the sample."""
        return 0 if self._sample is None else sum(self._sample.engine.residents)

    # -------------------------------------------------------------------------------------------------------- as bytes

    def _arrays(self) -> dict[str, NDArray[Any]]:
        rows = {} if self._sample is None else {f"rows {number}": one for number, one in enumerate(self._sample.rows)}
        sums = {"delivered": self._delivered, "missing": self._missing, "left": self._left, "turned": self._turned}
        let_in = {} if self._let_in is None else self._let_in.arrays()
        return {**sums, "come": self._come, **self._found._asdict(), "decayed": self._decayed, **rows, **let_in}

    def _numbers(self) -> list[Any]:
        sample = None if self._sample is None else self._sample.numbers()
        let_in = None if self._let_in is None else self._let_in.plain()
        return [self._recent_weight, self._shed, self._late, sample, let_in]

    def _snapshot(self) -> bytes:
        return b"" if self._sample is None else self._sample.engine.snapshot()

    def _restore(self, arrays: Mapping[str, NDArray[Any]], numbers: list[Any], snapshot: bytes) -> None:
        self._delivered, self._missing, self._left = arrays["delivered"], arrays["missing"], arrays["left"]
        self._turned, self._come = arrays["turned"], arrays["come"]
        self._found, self._decayed = Found(*(arrays[name] for name in Found._fields)), arrays["decayed"]
        self._recent_weight, self._shed, self._late, sample, let_in = numbers
        if self._sample is not None:
            rows = [arrays[f"rows {number}"] for number in range(len(self._sample.rows))]
            self._sample.restore(sample, rows, snapshot)
        if self._let_in is not None:
            self._let_in.restore(arrays, let_in)


def _added(total: Numbers, amounts: Numbers) -> Numbers:
    """A sum and more amounts, one after another: however they are split into calls, the result is the same."""
    whole: Numbers = np.cumsum(np.concatenate([total[None], amounts]), axis=0)[-1]
    return whole


def _powers(table: NDArray[Any]) -> Numbers:
    """Of each row and kind (1 - p) z^2 and (1 - p) z^3."""
    z = table["missing"]
    powers: Numbers = (1.0 - table["p"])[:, None, None] * np.stack([z**2, z**3], axis=2)
    return powers


def _hashes(columns: Sequence[Integers] | Integers) -> NDArray[np.uint64]:
    """A hash of the row numbers of each result."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed
