"""Output against speed on a virtual CPU: DUAL, rear-shedding alone, and the rivals (section 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shedjoin.plots.plot import Panel, Plot
from shedjoin.workloads import zipf
from shedjoin_lab.experiment import Figure, Params, Row, Scale, as_stored, grid
from shedjoin_lab.papers.dual2006.rivals import MEMORY, METHODS, QUEUED, run

#: Rows of both streams in a time unit: V_w is 400.
SPEEDS = (40, 60, 80, 100, 120, 140, 160, 200, 250, 300, 400, 600)
X_LABEL = "rows of both streams in a time unit (V_w = 400)"
MACHINE = "Virtual CPU: 100 probes or 400 updates in a time unit."
CAPTION = (
    f"{MACHINE} EXACT: a CPU that is fast enough. BOUND: the best that any choice of "
    "probes can do that knows all partners, with rows let in by lot. PROB knows the frequency table."
)
RIVALS = (
    "Left: OPT, PROB and RAND as in das2003 keep so little in memory that every row can scan it in time. Middle and right: "
    "they drop from queues of 100 rows a stream before windows of W rows; COUNTS, a queue that counts partners in the window, "
    "knows nothing in advance. Such windows reach further back than those of all rows, so that a queue which keeps popular keys "
    "can find more results than the exact join has."
)
#: Which methods a panel shows.
PANELS = {
    "memory": (*MEMORY, "DUAL"),
    "queue": ("EXACT", "BOUND", *QUEUED, "DUAL"),
    "subset": ("EXACT", *QUEUED, "DUAL"),
}


def panels(all_results: str, subset: str, label: str) -> tuple[Panel, ...]:
    """Rivals with less memory; rivals with a queue, all their results; and those results that the exact join has too."""
    return (
        Panel("rivals with less memory", all_results, label, {"panel": "memory"}),
        Panel("rivals with a queue: all results", all_results, label, {"panel": "queue"}, log_y=True),
        Panel("with a queue: results of the exact join", subset, label, {"panel": "subset"}),
    )


def for_panels(rows: list[Row]) -> list[Row]:
    """Each row once for every panel that shows its method."""
    return [{**row, "panel": panel} for panel, shown in PANELS.items() for row in rows if row["method"] in shown]


def parameters(methods: tuple[str, ...], window: int, skew: float) -> Any:
    """Every method at every speed."""

    def of(scale: Scale) -> list[Params]:
        speeds = (60, 120, 400) if scale.quick else SPEEDS
        fixed: dict[str, Any] = {
            "window": [window],
            "domain": [50],
            "skew": [skew],
            "rows": [6 * window if scale.quick else 25 * window],
            "warmup": [3 * window if scale.quick else 5 * window],
        }
        return grid(method=methods, **fixed, speed=speeds, seed=range(scale.seeds))

    return of


def measure(params: Params, data: Path | None) -> list[Row]:
    """One method at one speed on Zipf keys."""
    del data
    p: dict[str, Any] = dict(params)
    workload = zipf(p["rows"], seed=p["seed"], domain=p["domain"], skew=p["skew"])
    return [{**params, **run(workload, params, workload.probabilities)}]


def against_speed(
    name: str, title: str, *, window: int, skew: float, methods: tuple[str, ...] = METHODS, minutes: float = 3.0
) -> Figure:
    """A figure of output against speed."""
    label = "results in a time unit"
    with_rivals = methods == METHODS
    return Figure(
        paper="dual2006",
        name=name,
        title=title,
        parameters=parameters(methods, window, skew),
        measure=measure,
        plot=Plot(
            x="speed",
            x_label=X_LABEL,
            panels=panels("rate", "subset", label) if with_rivals else (Panel("", "rate", label),),
            caption=f"{CAPTION} {RIVALS}" if with_rivals else MACHINE,
        ),
        derive=for_panels if with_rivals else as_stored,
        minutes=minutes,
    )
