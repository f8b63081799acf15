"""Live recall of any join: which estimate a join has, and how it follows a push whose output comes in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shedjoin.batch import STREAMS, Batch
from shedjoin.engine.output import Output, ShedLog
from shedjoin.recall.many import MultiRecall
from shedjoin.recall.pairs import LiveRecall
from shedjoin.spec import JoinSpec
from shedjoin.window import TimeWindow

Recall = LiveRecall | MultiRecall


def recall_of(spec: JoinSpec, seed: int) -> Recall | None:
    """A new estimate of a join's recall; None where there is none.

    There is none of join graphs, predicates, selective processing, slow CPUs, Met, and n streams with a row window.
    """
    if not isinstance(spec.on, str) or spec.selective is not None:
        return None
    if spec.plan().admission is not None:
        return None
    if len(spec.names) == len(STREAMS):
        if not spec.plan().keyed:
            return None
        return LiveRecall(spec, seed=seed)
    by_time = all(isinstance(window, TimeWindow) for window in spec.windows)
    return MultiRecall(spec, seed=seed) if by_time else None


def followed(
    live: Recall | None, batch: Batch, clocks: Sequence[int | None], pieces: Iterable[Output]
) -> Iterator[Output]:
    """The pieces of a push as they come; the estimate of recall follows them."""
    if live is None:
        yield from pieces
        return
    live.begin(batch)
    logs: list[ShedLog] = []
    late = 0
    names: Sequence[str] = STREAMS
    for out in pieces:
        live.deliver(out)
        if len(out.shed):
            logs.append(out.shed)
        late += out.stats["late"]
        names = out.names
        yield out
    live.set_clocks(clocks)
    live.watch(batch, one_log(logs, names), late)


def one_log(logs: Sequence[ShedLog], names: Sequence[str]) -> ShedLog:
    """The logs of the pieces of a push as one. Most pushes have one: its records are put together once."""
    return logs[0] if len(logs) == 1 else ShedLog((piece for log in logs for piece in log._pieces.parts), names)
