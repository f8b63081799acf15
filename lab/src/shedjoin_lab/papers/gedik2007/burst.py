"""A real burst: names looked up and connected to, with one minute of attack (section 1's third example)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import shedjoin as sj
from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import Workload
from shedjoin_lab.data.folder import data_set_folder
from shedjoin_lab.data.network import DATA_SET, network_logs
from shedjoin_lab.experiment import Figure, Params, Row, Scale, grid
from shedjoin_lab.papers.gedik2007.joins import run

#: Microseconds of the logs to milliseconds.
MILLI = 1000


def parameters(scale: Scale) -> list[Params]:
    """The whole 21 minutes, in steps of 15 s."""
    return grid(method=["DROP", "ALL"], window=[10], every=[15], seed=range(1 if scale.quick else scale.seeds))


def measure(params: Params, data: Path | None) -> list[Row]:
    """dns and ssl on the client's address within 10 s, on a CPU that the burst is too much for."""
    p: dict[str, Any] = dict(params)
    logs = network_logs(data_set_folder(DATA_SET, data))
    streams = Workload(tuple({"ts": one["ts"] // MILLI, "x": one["key"]} for one in logs.streams))
    selective = sj.Selective(basic=500, period=2000, rank_period=4000) if p["method"] == "ALL" else None
    join = sj.PredicateJoin(
        sj.TimeWindow(p["window"] * 1000),
        sj.Equal("x"),
        index="scan",
        selective=selective,
        cpu=sj.VirtualCpu(capacity=60.0),
        queue=sj.Queue(span=1000),
    )
    return run(join, streams, params)


FIGURE = Figure(
    paper="gedik2007",
    name="burst",
    title="A real burst: DNS and TLS logs on the client's address, windows of 10 s",
    parameters=parameters,
    measure=measure,
    plot=Plot(
        x="time",
        x_label="time (s)",
        panels=(
            Panel("rate", "arriving", "rows/s of each stream"),
            Panel("output", "output", "results/s"),
            Panel("fraction", "r", "fraction r"),
        ),
        caption="WRCCDC 2018 logs. Virtual CPU of 60 comparisons a millisecond, buffers of 1 s. Not a figure of the paper.",
        kind="time",
    ),
    minutes=0.1,
    data=DATA_SET,
)
