"""The streams of the paper, and its virtual CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import shedjoin as sj
from shedjoin.join_order import StreamStats
from shedjoin_lab.experiment import Row
from shedjoin_lab.windows import closed
from shedjoin_lab.workloads.multi import golab_streams

TABLES: dict[str, tuple[StreamStats, ...]] = {
    "table5": (StreamStats(10, 100, 500), StreamStats(1, 100, 50), StreamStats(1, 200, 40), StreamStats(3, 100, 5)),
    "table6": (StreamStats(100, 100, 200), StreamStats(1, 100, 200), StreamStats(1, 100, 20), StreamStats(3, 100, 2)),
    "table7": (StreamStats(11, 100, 200), StreamStats(10, 100, 100), StreamStats(1, 100, 65), StreamStats(1, 100, 20)),
}
EQUAL = (StreamStats(1, 100, 50),) * 4
#: Fig 3(b): the fourth stream is ten times as fast; Fig 4(b): fifty times.
TEN_TIMES = (*EQUAL[:3], StreamStats(10, 100, 50))
FIFTY_TIMES = (*EQUAL[:3], StreamStats(50, 100, 50))

#: On the virtual CPU a comparison, an insertion and a removal take one unit each, a result one for each tuple that is put
#: together, and a look into a bucket (or a window) for expired tuples takes this many. The paper says only that these cost
#: something; results and looks were given these prices with its Table 8 and Figure 4(a) in sight.
LOOK = 5


def run(
    streams: Sequence[StreamStats], order: Sequence[int], index: Sequence[int], tau: float, rows: int, seed: int
) -> Row:
    """Tuples per million units of virtual CPU, after the windows are full; tau in time units of the paper."""
    fill = round(max(stream.window for stream in streams) * sum(stream.rate for stream in streams))
    tables, lengths = golab_streams(streams, rows + fill, seed)
    names = tuple(tables)
    spec = sj.MultiJoinSpec(
        windows={name: closed(length) for name, length in lengths.items()},
        on="key",
        order=tuple(names[stream] for stream in order),
        index={name: buckets if buckets > 1 else "scan" for name, buckets in zip(names, index, strict=True)},
        evaluate_every=round(tau * sum(stream.rate for stream in streams)),
    )
    engine = spec.build()
    batch = engine.batch(tables)
    for _ in engine.chunks(batch.take(slice(0, fill)), limit=1 << 16, emit=False):
        pass
    before = engine.counters
    for _ in engine.chunks(batch.take(slice(fill, None)), limit=1 << 16, emit=False):
        pass
    engine.flush()
    done = {name: count - before[name] for name, count in engine.counters.items()}
    units = done["compared"] + done["rows"] + done["expired"] + LOOK * sum(index) * done["expirations"]
    units += len(streams) * done["results"]
    return {
        "matches": done["results"],
        "compared": done["compared"],
        "rate": 1e6 * done["rows"] / units,
        "seed": seed,
    }


def spoken(order: Sequence[int]) -> str:
    """An order as the paper writes it: streams from 1 on."""
    return ",".join(str(stream + 1) for stream in order)


def read_order(text: Any) -> tuple[int, ...]:
    """The order of `spoken`."""
    return tuple(int(part) - 1 for part in str(text).split(","))
