"""The state of all shards as the state of another number of shards: split by key, sent, and put together again.

Row numbers are given by each shard, so rows of two shards may have one number. A row that moves is renumbered: from `first` on,
by its number and its shard, so that both can be read from the new number (see `Numbering`). All numbers from `start` on are of
rows that came later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shedjoin.batch import LATEST
from shedjoin.engine.regroup import Integers, Share, joined, share_of, stored_tuples
from shedjoin.errors import SnapshotError
from shedjoin.spark.exchange import from_blob, to_blob
from shedjoin.spark.job import Job
from shedjoin.spark.payload import Payload, Segment
from shedjoin.spark.state import Store
from shedjoin.window import RowWindow

#: What travels from an old shard to a new one.
SENT = "label int, origin int, arrived array<bigint>, batches bigint, share binary, rows array<binary>"
SENT_ARROW = pa.schema(
    [
        ("label", pa.int32()),
        ("origin", pa.int32()),
        ("arrived", pa.list_(pa.int64())),
        ("batches", pa.int64()),
        ("share", pa.binary()),
        ("rows", pa.list_(pa.binary())),
    ]
)


class Sent(NamedTuple):
    """The data that a shard sends to a new one. `rows`: the columns of each stream's tuples, in order of arrival."""

    origin: int
    arrived: list[int]
    batches: int
    share: bytes
    rows: list[bytes]


@dataclass(frozen=True)
class Numbering:
    """New numbers for the rows that were stored when the number of shards changed.

    Where rows are numbered over all shards (row windows, predicates) they keep their numbers: `first` is `start`.
    """

    shards: int  # that there were
    first: tuple[int, ...]  # of each stream: the first new number
    start: tuple[int, ...]  # and that of the first row that comes later

    @classmethod
    def of(cls, shards: int, arrived: Sequence[Sequence[int]], *, over_all: bool) -> Numbering:
        """`arrived`: of each old shard, how many rows of each stream it has numbered."""
        first = tuple(max(counts) for counts in zip(*arrived, strict=True))
        start = first if over_all else tuple(one + one * shards for one in first)
        if max(start) > LATEST // 2:
            raise SnapshotError("shards: row numbers are too large to change the number of shards once more")
        return cls(shards, first, start)

    def new(self, stream: Integers, seq: Integers, origin: int) -> Integers:
        """The new numbers of rows of a shard."""
        moved = np.array(self.first)[stream] + seq * self.shards + origin
        return np.where(np.array(self.start)[stream] > np.array(self.first)[stream], moved, seq)

    def to_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]


class Values:
    """A store of values that were read, and are not written to."""

    def __init__(self, rows: Iterable[tuple[str, int, bytes]]) -> None:
        self._values = {(name, part): value for name, part, value in rows}

    def head(self) -> bytes | None:
        return self.get("", 0)

    def get(self, name: str, part: int) -> bytes | None:
        return self._values.get((name, part))

    def set_head(self, value: bytes) -> None:
        self.put("", 0, value)

    def put(self, name: str, part: int, value: bytes) -> None:
        raise SnapshotError("a state that is read is not written to")

    def remove(self, name: str, part: int) -> None:
        self.put(name, part, b"")


def given_away(old: Job, number: int, new: Job, store: Store) -> Iterator[tuple[int, Sent]]:
    """What an old shard sends to each of the new ones: its tuples, and its clocks in any case."""
    state = old.state(number, store)
    state.open()
    if state.head is None:
        return
    engine = state.engine
    if engine.trying is not None:  # shards may have changed to different policies; new ones start new trials
        engine.set_policy(engine.trying.first)
    stream, seq, key = stored_tuples(engine)
    goes = _goes_to(new, stream, seq, key)
    arrived = list(engine.arrived)
    for shard in range(new.shards):
        chosen = goes == shard
        share = share_of(engine, chosen)
        rows = []
        for side, payload in enumerate(state.payloads):
            mine = seq[chosen & (stream == side)]
            rows.append(to_blob(payload.rows_at(mine)) if mine.size else b"")
        yield shard, Sent(number, arrived, state.batches, share.to_bytes(), rows)


def _goes_to(job: Job, stream: Integers, seq: Integers, key: Integers) -> Integers:
    """The shard that stores each tuple."""
    if job.cube.is_everywhere:
        return seq % job.shards
    goes = np.zeros(stream.size, np.int64)
    for side in range(job.streams):
        mine = stream == side
        goes[mine] = job.cube.first(side, key[mine])
    return goes


def put_together(job: Job, number: int, sent: Sequence[Sent], store: Store) -> None:
    """Write the state of a new shard. `job` has the policy of the old ones; a budget comes with the next micro-batch."""
    sent = sorted(sent, key=lambda one: one.origin)
    state = job.state(number, store)
    numbering = numbering_of(job, {one.origin: one.arrived for one in sent})
    shares = [Share.from_bytes(one.share) for one in sent]
    numbers = [numbering.new(share.stream, share.seq, one.origin) for share, one in zip(shares, sent, strict=True)]
    engine = state.spec.with_budget(None).build(seed=job.seed_of(number), part=state.part)
    joined(engine, shares, numbers, numbering.start)
    payloads = [_payload(side, shares, numbers, [one.rows[side] for one in sent]) for side in range(job.streams)]
    state.seed(engine, payloads, max(one.batches for one in sent), numbering.shards)


def numbering_of(job: Job, arrived: dict[int, list[int]]) -> Numbering:
    """The new numbers, from what the old shards have numbered."""
    over_all = job.cube.is_everywhere or any(isinstance(window, RowWindow) for window in job.join.windows)
    return Numbering.of(len(arrived), [arrived[origin] for origin in sorted(arrived)], over_all=over_all)


def _payload(side: int, shares: Sequence[Share], numbers: Sequence[Integers], rows: Sequence[bytes]) -> Payload:
    """The columns of all tuples of a stream, as one segment in the order of their new numbers."""
    mine = [seq[share.stream == side] for share, seq in zip(shares, numbers, strict=True)]
    parts = [batch for blob in rows if blob for batch in from_blob(blob)]
    seqs = np.concatenate(mine)
    if not seqs.size:
        return Payload()
    order = np.argsort(seqs)
    whole = pa.concat_batches(parts).take(pa.array(order))
    return Payload([Segment(0, 0, int(seqs[order[0]]), whole, seqs[order])], 1)
