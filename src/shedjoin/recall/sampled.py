"""Live recall of any join: predicates, join graphs, selective processing, queues, slow CPUs, dual windows, lazy evaluation.

How missing results are estimated
    Beside the join runs a small copy of it, without a limit of the CPU, that keeps a random sample of the rows (`store`). It
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

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shedjoin.batch import Batch
from shedjoin.engine.output import Output, ShedLog
from shedjoin.errors import SnapshotError, SpecError
from shedjoin.policies import KeepAll
from shedjoin.recall.checksum import with_checksum, without_checksum
from shedjoin.recall.estimate import LIVE_COLUMNS
from shedjoin.recall.estimator import LARGEST_WEIGHT, Estimator
from shedjoin.recall.store import Found, Integers, Numbers, SampleStore
from shedjoin.spec import JoinSpec
from shedjoin.window import RowWindow

VERSION = 1
#: Results, their importance, and both decayed.
KINDS = 4
#: Changes that do not make a saved estimate useless.
MAY_CHANGE = ("budget", "policy", "selective", "cpu", "queue", "dual", "order", "index", "reordering", "expire_every")


class SampledRecall(Estimator):
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

    def __init__(
        self,
        spec: JoinSpec,
        seed: int = 0,
        rows: int | None = None,
        level: float = 0.95,
        recent: float = 8.0,
        part: tuple[int, int] = (0, 1),
    ) -> None:
        super().__init__(spec, seed, rows, level, recent, part)
        by_rows = any(isinstance(window, RowWindow) for window in spec.windows)
        if spec.dual is not None and spec.dual.front is not False and by_rows:
            raise SpecError(
                "spec.dual must have front=False for a live recall with row windows: they count the rows that are let in, so "
                "the exact join depends on what was shed"
            )
        admits = spec.plan().admission is not None
        self._rounds, self._waits = bool(spec.evaluate_every), admits or bool(spec.evaluate_every)
        loses = not isinstance(spec.policy, KeepAll) or spec.selective is not None or admits
        self._store = SampleStore(spec, seed, self._most, part) if loses else None
        meaning = {name: value for name, value in spec.to_dict().items() if name not in MAY_CHANGE}
        self._signature = json.loads(json.dumps({**meaning, "seed": seed, "rows": self._most, "part": part}))
        streams = len(spec.names)
        self._delivered, self._missing = np.zeros(KINDS), np.zeros(KINDS)
        self._left = np.zeros((streams, KINDS, 2))  # squares and cubes of rows that have left, by stream
        self._recent_weight = 1.0
        self._shed = self._late = 0
        self._turned = np.full(streams, -1)  # rows of each stream before this number have had their turn
        self._come = np.zeros(streams, np.int64)  # rows of each stream before the push
        self._found = Found.none(streams)  # results that have not been delivered,
        self._decayed = np.zeros(0)  # and the weight of their push in decayed counts
        self._index: tuple[NDArray[np.uint64], Integers] | None = (
            None  # sorted hashes of found results, and their places
        )
        self._came: NDArray[np.bool_] = np.zeros(0, np.bool_)  # which of them were delivered in this push

    # ---------------------------------------------------------------------------------------------------------- pushes

    def begin(self, batch: Batch) -> None:
        """Find results of the rows of a push in the sample."""
        self._index = None
        self._push = np.zeros(2)
        if len(batch):
            self._raise_weight()
        found = [self._found, *(self._store.push(batch) if self._store is not None else ())]
        self._found = Found(*(np.concatenate(column) for column in zip(*found, strict=True)))
        now = np.full(self._found.newest.size - self._decayed.size, self._recent_weight)
        self._decayed = np.concatenate([self._decayed, now])
        self._came = np.zeros(self._decayed.size, np.bool_)

    def deliver(self, out: Output) -> None:
        """Count the results of one piece of output, and note which found results are among them."""
        self._push = _added(self._push, np.stack([np.ones(len(out)), out.importance], axis=1))
        self._delivered[:2] = _added(self._delivered[:2], np.stack([np.ones(len(out)), out.importance], axis=1))
        self._shed += len(out.shed) - out.stats["late"]
        if self._rounds and out.stats["evaluations"]:
            self._turned = np.maximum(self._turned, self._come)
        if len(out):
            self._match(out.columns)

    def _match(self, columns: Sequence[Integers]) -> None:
        self._turned = np.maximum(self._turned, [column.max() for column in columns])
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
        if self._store is not None:
            self._store.tell(clocks, arrived)

    def watch(self, batch: Batch, shed: ShedLog, late: int) -> None:
        """End a push: found results that can no longer come are missing."""
        self._late += late
        self._delivered[2:] += self._recent_weight * self._push
        if self._store is None:
            return
        if self._waits and not self._rounds and len(shed):
            self._turned = np.maximum(self._turned, shed.seen.max(axis=0))
        waits = np.zeros_like(self._came)
        if self._waits:
            newest = self._found.newest
            waits = ~self._came & (self._found.rows[np.arange(newest.size), newest] >= self._turned[newest])
        final = self._found_where(~self._came & ~waits)
        self._missing = self._settle(self._store.rows, self._missing, *final)
        self._found, self._decayed = self._found_where(waits)
        self._came = np.zeros(self._decayed.size, np.bool_)
        self._come = self._store.arrived.copy()
        self._retire()

    def _found_where(self, chosen: NDArray[np.bool_]) -> tuple[Found, Numbers]:
        return self._found.where(chosen), self._decayed[chosen]

    def _settle(self, tables: Sequence[NDArray[Any]], missing: Numbers, found: Found, decayed: Numbers) -> Numbers:
        """Count found results as missing, for the rows that were needed to find them; returns the sums."""
        assert self._store is not None
        if not decayed.size:
            return missing
        places = self._store.places(found.rows)
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
        assert self._store is not None
        for stream, table in enumerate(self._store.rows):
            goes = table["gone"] > 0
            if self._decayed.size:
                goes &= ~np.isin(table["seq"], self._found.rows[:, stream])
            if goes.any():
                left = table[goes]
                self._left[stream] = _added(self._left[stream], _powers(left[np.argsort(left["gone"], kind="stable")]))
                self._store.rows[stream] = table[~goes]

    def _raise_weight(self) -> None:
        self._recent_weight *= 2.0 ** (1.0 / self._half_life)
        if self._recent_weight > LARGEST_WEIGHT:
            self._recent_weight /= LARGEST_WEIGHT
            self._delivered[2:] /= LARGEST_WEIGHT
            self._missing[2:] /= LARGEST_WEIGHT
            self._left[:, 2:] /= LARGEST_WEIGHT ** np.array([2, 3])
            self._decayed /= LARGEST_WEIGHT
            for table in self._store.rows if self._store is not None else ():
                table["missing"][:, 2:] /= LARGEST_WEIGHT

    # ---------------------------------------------------------------------------------------------------- the estimate

    def sums(self) -> dict[str, float]:
        """The sums behind the estimate, with the names of `LIVE_COLUMNS`. The sums of shards can be added."""
        missing, powers = self._missing, self._left.sum(axis=0)
        if self._store is not None:
            tables = self._store.rows
            if self._decayed.size:  # what is not delivered yet is missing for now
                tables = [table.copy() for table in tables]
                missing = self._settle(tables, missing, self._found, self._decayed)
            for table in tables:
                powers = powers + _powers(table).sum(axis=0)
        whole = np.column_stack([self._delivered, missing, powers])
        whole[2:] /= self._recent_weight ** np.array([1, 1, 2, 3])
        unit = 0.0 if self._store is None else self._store.weight - 1.0
        numbers = [*whole.reshape(-1).tolist(), self._shed, self._shed * unit, self._late]
        return dict(zip(LIVE_COLUMNS, map(float, numbers), strict=True))

    @property
    def remembered(self) -> int:
        """The number of rows in the sample."""
        return 0 if self._store is None else sum(self._store.engine.residents)

    # -------------------------------------------------------------------------------------------------------- as bytes

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved. The names are part of the format."""
        rows = {} if self._store is None else {f"rows {number}": one for number, one in enumerate(self._store.rows)}
        sums = {"delivered": self._delivered, "missing": self._missing, "left": self._left, "turned": self._turned}
        return {**sums, "come": self._come, **self._found._asdict(), "decayed": self._decayed, **rows}

    def to_bytes(self) -> bytes:
        """The estimator between two pushes as bytes, with a version and a checksum."""
        arrays = self._arrays()
        engine = b"" if self._store is None else self._store.engine.snapshot()
        head = {
            "version": VERSION,
            "signature": self._signature,
            "shapes": {name: list(array.shape) for name, array in arrays.items()},
            "numbers": [self._recent_weight, self._shed, self._late],
            "store": None if self._store is None else self._store.numbers(),
        }
        body = [json.dumps(head).encode(), b"\n", *(np.ascontiguousarray(one).tobytes() for one in arrays.values())]
        return with_checksum(b"".join([*body, engine]))

    def load(self, data: bytes) -> None:
        """Go on from `to_bytes()`, with an estimator that has not begun."""
        text, _, body = without_checksum(data).partition(b"\n")
        try:
            head = json.loads(text)
        except ValueError:
            raise SnapshotError("these are not the bytes of a recall estimate (they have no header)") from None
        if head.get("version") != VERSION or head.get("signature") != self._signature:
            raise SnapshotError(
                f"the recall estimate was saved by another join: {head.get('signature')}, not {self._signature}"
            )
        arrays, start = {}, 0
        for name, array in self._arrays().items():
            shape = head["shapes"][name]
            count = int(np.prod(shape))
            arrays[name] = np.frombuffer(body, array.dtype, count, start).reshape(shape).copy()
            start += arrays[name].nbytes
        self._delivered, self._missing, self._left = arrays["delivered"], arrays["missing"], arrays["left"]
        self._turned, self._come = arrays["turned"], arrays["come"]
        self._found, self._decayed = Found(*(arrays[name] for name in Found._fields)), arrays["decayed"]
        self._recent_weight, self._shed, self._late = head["numbers"]
        if self._store is not None:
            rows = [arrays[f"rows {number}"] for number in range(len(self._store.rows))]
            self._store.restore(head["store"], rows, body[start:])


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
