"""Numbers that a paper prints, beside ours."""

from __future__ import annotations

from collections.abc import Callable

from shedjoin.errors import DataError
from shedjoin.plots.summary import where
from shedjoin_lab.experiment import Figure, Row
from shedjoin_lab.papers.golab2003 import table8
from shedjoin_lab.papers.importance2006.judges import ORDER
from shedjoin_lab.papers.importance2006.synthetic import IMPORTANCE, share_of_exact
from shedjoin_lab.summary import mean

#: (what, the paper's, ours)
Printed = list[tuple[str, str, str]]


def printed(figure: Figure, rows: list[Row]) -> Printed:
    """What the paper prints of a figure, where it does and where rows are stored."""
    made = _PRINTED.get((figure.paper, figure.name))
    if made is None or not rows:
        return []
    try:
        return made(rows)
    except DataError:  # a quick run leaves some settings out
        return []


def _table8(rows: list[Row]) -> Printed:
    """Tuples per second of a Java program of 2003; ours per million units of the virtual CPU. Their ratios can be compared."""
    lines: Printed = []
    for (buckets, tau), rates in table8.PAPER.items():
        join = "NLJ" if buckets == 1 else "hash join, 5 buckets"
        ours = [mean(rows, "rate", method=plan, buckets=buckets, tau=tau).value for plan in ("best", "worst")]
        lines.append((f"{join}, tau {tau}: best / worst plan", _divided(*rates), _divided(*ours)))
    return lines


def _divided(best: float, worst: float) -> str:
    return f"{best:,.0f} / {worst:,.0f} = {best / worst:.2f}"


def _drop_rates(rows: list[Row]) -> Printed:
    """The two drop rates in the text of section 6.2."""
    half = mean(rows, "dropped", index="scan", window=125, rate=50)
    lines = [("dropped at 50/s, 125 s, no index", "about half", half.percent())]
    if where(rows, index="lists", window=625, rate=100):
        quarter = mean(rows, "dropped", index="lists", window=625, rate=100)
        lines.append(("dropped at 100/s, 625 s, with an index", "about a quarter", quarter.percent()))
    return lines


def _quality(rows: list[Row]) -> Printed:
    """The paper's values were lost; its order was not."""
    shared = share_of_exact(rows)
    return [
        (
            f"{method}, share of EXACT and time",
            f"place {place} in quality",
            "; ".join(
                f"{mean(shared, 'share', method=method, importance_of=kind).percent()}, "
                f"{mean(rows, 'wall_seconds', method=method, importance_of=kind).times(1000):.0f} ms ({kind})"
                for kind in IMPORTANCE
            ),
        )
        for place, method in enumerate(ORDER, 1)
    ]


_PRINTED: dict[tuple[str, str], Callable[[list[Row]], Printed]] = {
    ("golab2003", "table8"): _table8,
    ("gedik2007", "fig07"): _drop_rates,
    ("importance2006", "table1"): _quality,
}
