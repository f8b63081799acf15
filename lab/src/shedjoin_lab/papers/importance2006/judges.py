"""How rows are held against what importance2006 claims: each judge takes rows of figures and gives a finding."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from shedjoin.plots.summary import Mean, where
from shedjoin_lab.claims import Finding
from shedjoin_lab.experiment import Row, Scalar
from shedjoin_lab.papers.importance2006.fig02 import errors
from shedjoin_lab.papers.importance2006.synthetic import IMPORTANCE, WORKLOAD, share_of_exact
from shedjoin_lab.summary import by_seed, mean, number, ratio, shares_of_opt

#: The paper's order on uncorrelated streams, best first.
ORDER = ("DGL", "DIMPPROB", "SIMPPROB", "PROB", "SIMP", "RAND")
#: By how much DGL is better than the others at M = 100.
MARGINS = {"DIMPPROB": 3.2, "SIMPPROB": 20.6, "PROB": 47.6, "SIMP": 52.9, "RAND": 77.8}
#: How far from those, in points, still counts as the same.
CLOSE = 10.0
#: A place that differs from the paper's order by less than this share of EXACT is a tie, not a contradiction.
TIE = 0.005


class OrderHolds:
    """The paper's order at every value of `along`, for both distributions of importance."""

    def __init__(self, along: str, order: tuple[str, ...] = ORDER) -> None:
        self._along, self._order = along, order

    def __call__(self, rows: list[Row]) -> Finding:
        shared = share_of_exact(rows)
        values = sorted({number(row, self._along) for row in where(shared, method=self._order[0])})
        texts = []
        wrong: Counter[str] = Counter()
        for kind in IMPORTANCE:
            some = where(shared, importance_of=kind)
            for value in values:
                wrong.update(_swapped(some, self._order, {self._along: value}))
            texts.append(f"{kind}, {self._along} {values[0]:g}: {ranking(some, self._order, {self._along: values[0]})}")
        settings = len(IMPORTANCE) * len(values)
        swaps = ", ".join(f"{swap} in {count} of {settings} settings" for swap, count in wrong.items())
        return Finding(f"{'; '.join(texts)}. Other way round: {swaps or 'none'}", not wrong)


def ranking(rows: list[Row], order: tuple[str, ...], at: dict[str, Scalar]) -> str:
    """Methods with their shares of EXACT, best first."""
    found = {method: mean(rows, "share", method=method, **at) for method in order}
    ranked = sorted(found.items(), key=lambda item: -item[1].value)
    return " > ".join(f"{method} {share}" for method, share in ranked)


def _swapped(rows: list[Row], order: tuple[str, ...], at: dict[str, Scalar]) -> list[str]:
    shares = {method: mean(rows, "share", method=method, **at).value for method in order}
    return [f"{worse} > {better}" for better, worse in pairwise(order) if shares[better] < shares[worse] - TIE]


def margins(rows: list[Row]) -> Finding:
    """DGL's lead at M = 100, (DGL - X) / DGL: the reading under which 77.8% over RAND is near what memory allows."""
    texts, close = [], True
    for kind in IMPORTANCE:
        some = where(rows, importance_of=kind, memory=100)
        dgl = {row["seed"]: number(row, "importance") for row in where(some, method="DGL")}
        leads = {
            rival: Mean.of(
                100 * (1 - number(row, "importance") / dgl[row["seed"]])
                for row in where(some, method=rival)
                if row["seed"] in dgl
            )
            for rival in MARGINS
        }
        close &= all(abs(leads[rival].value - paper) <= CLOSE for rival, paper in MARGINS.items())
        texts.append(f"{kind}: " + ", ".join(f"{lead.value:.1f} ± {lead.spread:.1f}" for lead in leads.values()))
    return Finding("; ".join(texts) + " (% of DGL)", close)


def rand_linear(rows: list[Row]) -> Finding:
    """RAND's share of EXACT is M / 2w within 0.03."""
    shared = where(share_of_exact(rows), method="RAND")
    off = []
    for kind in IMPORTANCE:
        for size in sorted({number(row, "memory") for row in shared}):
            share = mean(shared, "share", importance_of=kind, memory=size)
            line = size / (2 * number(rows[0], "window"))
            off.append(Mean(abs(share.value - line), share.spread, share.count))
    worst = max(off, key=lambda one: one.value)
    return Finding(f"share of EXACT is M/2w, off by at most {worst}", worst.value <= 0.03)


def rand_constant(rows: list[Row]) -> Finding:
    """RAND's importance changes by at most 10% over all windows."""
    texts, worst = [], 0.0
    for kind in IMPORTANCE:
        some = where(rows, method="RAND", importance_of=kind)
        levels = [mean(some, "importance", window=window) for window in sorted({number(row, "window") for row in some})]
        low, high = (pick(levels, key=lambda one: one.value) for pick in (min, max))
        apart = high.value / low.value - 1
        worst = max(worst, apart)
        texts.append(f"{kind}: {100 * apart:.1f}% between the least and the most ({low:,.0f} and {high:,.0f})")
    return Finding("; ".join(texts), worst <= 0.1)


def domain_parts(rows: list[Row]) -> Finding:
    """Every online method's share of EXACT is lower at the largest domain than at the smallest."""
    shared = share_of_exact(rows)
    domains = sorted({number(row, "domain") for row in shared})
    texts, falls = [], True
    for kind in IMPORTANCE:
        ends = {
            method: [
                mean(shared, "share", importance_of=kind, method=method, domain=size)
                for size in (domains[0], domains[-1])
            ]
            for method in ORDER
        }
        falls &= all(last.value < first.value for first, last in ends.values())
        texts.append(
            f"{kind}: " + ", ".join(f"{method} {first:.2f} to {last:.2f}" for method, (first, last) in ends.items())
        )
    return Finding("; ".join(texts), falls)


def skew_helps(rows: list[Row]) -> Finding:
    """DGL, DIMPPROB and SIMPPROB have a larger share of EXACT at Zipf 1 than at Zipf 0."""
    shared = share_of_exact(rows)
    texts, rises = [], True
    for kind in IMPORTANCE:
        for method in ORDER[:3]:
            first, last = (
                mean(shared, "share", importance_of=kind, method=method, skew_left=skew) for skew in (0.0, 1.0)
            )
            rises &= last.value > first.value
            texts.append(f"{kind} {method} {first:.2f} to {last:.2f}")
    return Finding(", ".join(texts), rises)


def correlated_lead(rows: list[Row]) -> Finding:
    """DIMPPROB and SIMPPROB over DGL, mean over all skews: above 0 and at most 5%."""
    texts, holds = [], True
    for kind in IMPORTANCE:
        some = where(rows, importance_of=kind)
        for rival in ("DIMPPROB", "SIMPPROB"):
            over_all, skewed = _lead(some, rival), _lead(where(some, skew_left=1.0), rival)
            holds &= 0 < over_all.value <= 5
            texts.append(f"{kind} {rival} {over_all:+.1f}% over all skews (at Zipf 1: {skewed:+.1f}%)")
    return Finding(", ".join(texts), holds)


def _lead(rows: list[Row], rival: str) -> Mean:
    """By how many per cent a method is above DGL on the same workload."""
    dgl = {(row["seed"], row["skew_left"]): number(row, "importance") for row in where(rows, method="DGL")}
    return Mean.of(
        100 * (number(row, "importance") / dgl[row["seed"], row["skew_left"]] - 1)
        for row in where(rows, method=rival)
        if (row["seed"], row["skew_left"]) in dgl
    )


def table_time(rows: list[Row]) -> Finding:
    """Wall clock: in most seeds DIMPPROB and DGL take longer than SIMP, SIMPPROB and PROB, each of them, by 10% or more."""
    every = {method: [number(row, "wall_least_seconds") for row in where(rows, method=method)] for method in ORDER}
    longer = [
        min(dimp, dgl) >= 1.1 * max(fast)
        for dimp, dgl, *fast in zip(
            *(every[method] for method in ("DIMPPROB", "DGL", "SIMP", "SIMPPROB", "PROB")), strict=False
        )
    ]
    named = (f"{method} {1000 * min(some):.0f} ({Mean.of(some).times(1000):.0f})" for method, some in every.items())
    return Finding(f"least (and mean) in ms: {', '.join(named)}", 2 * sum(longer) > len(longer))


class Errors:
    """Approximation errors in per cent at M/2 = 1 and 5, beside the paper's."""

    def __init__(self, paper: dict[str, tuple[float, float]]) -> None:
        self._paper = paper

    def __call__(self, rows: list[Row]) -> Finding:
        found = errors(rows)
        texts, close = [], True
        for kind in IMPORTANCE:
            for method, values in self._paper.items():
                ours = [mean(found, "error", importance_of=kind, method=method, memory=2 * half) for half in (1, 5)]
                close &= all(abs(one.value - paper) <= CLOSE for one, paper in zip(ours, values, strict=True))
                texts.append(f"{kind} {method} {ours[0]:.1f} and {ours[1]:.1f}%")
        return Finding(", ".join(texts), close)


def sja_tuples(rows: list[Row]) -> Finding:
    """SJA's results less OPT's, at M/2 = 1 and 2."""
    texts, more = [], True
    for kind in IMPORTANCE:
        some = where(rows, importance_of=kind)
        extra = [_more_tuples(some, 2 * half) for half in (1, 2)]
        more &= all(one.value > 0 for one in extra)
        texts.append(f"{kind}: {extra[0]:.0f} and {extra[1]:.0f} more")
    return Finding("; ".join(texts), more)


def _more_tuples(rows: list[Row], memory: int) -> Mean:
    sja, esja = (by_seed(rows, "matches", method=method, memory=memory) for method in ("SJA", "ESJA"))
    return Mean.of(sja[seed] - esja[seed] for seed in sja if seed in esja)


def odja_is_esja(rows: list[Row]) -> Finding:
    """The largest difference on any workload, relative to ESJA."""
    same = (*WORKLOAD, "memory")
    esja = {tuple(row[name] for name in same): number(row, "importance") for row in where(rows, method="ESJA")}
    odja = {tuple(row[name] for name in same): number(row, "importance") for row in where(rows, method="ODJA")}
    off = [abs(value / esja[place] - 1) for place, value in odja.items() if place in esja]
    return Finding(f"{len(off)} runs, at most {max(off):.1g} apart (relative)", max(off) <= 1e-9)


class FasterThanEsja:
    """ESJA's time over ODJA's, at both ends of each figure."""

    def __init__(self, *along: str) -> None:
        self._along = along

    def __call__(self, *figures: list[Row]) -> Finding:
        texts, faster = [], True
        for rows, along in zip(figures, self._along, strict=True):
            values = sorted({number(row, along) for row in rows})
            ratios = {value: _over_odja(rows, "cpu_seconds", {along: value}) for value in values}
            faster &= all(one.value >= 1 for one in ratios.values())
            ends = [f"{ratios[value]:.2g} at {along} {value:g}" for value in (values[0], values[-1])]
            texts.append(" to ".join(ends))
        return Finding(f"ESJA's time over ODJA's: {'; '.join(texts)}", faster)


def esja_memory(rows: list[Row]) -> Finding:
    """ESJA's memory over ODJA's at both ends."""
    lengths = sorted({number(row, "rows") for row in rows})
    ratios = [_over_odja(rows, "top_kilobytes", {"rows": length}) for length in (lengths[0], lengths[-1])]
    return Finding(f"{ratios[0]:.2g} to {ratios[1]:.2g} times", all(one.value >= 10 for one in ratios))


def _over_odja(rows: list[Row], column: str, at: dict[str, Scalar]) -> Mean:
    esja, odja = (by_seed(rows, column, method=method, **at) for method in ("ESJA", "ODJA"))
    return ratio(esja, {seed: max(value, 1e-9) for seed, value in odja.items()})


def opt_window(rows: list[Row]) -> Finding:
    """OPT's importance at the largest window over that at the smallest."""
    opt = where(rows, method="OPT")
    ratios = {
        kind: ratio(*(by_seed(opt, "importance", importance_of=kind, window=window) for window in (800, 200)))
        for kind in IMPORTANCE
    }
    text = ", ".join(f"{kind} {one:.2f}" for kind, one in ratios.items())
    return Finding(text, all(abs(one.value / 3.21 - 1) <= 0.1 for one in ratios.values()))


def domain_opt(rows: list[Row]) -> Finding:
    """From the smallest domain to the largest: OPT's share of EXACT rises, every online method's share of OPT falls."""
    of_exact, of_opt = share_of_exact(rows), shares_of_opt(rows, "importance", WORKLOAD)
    domains = sorted({number(row, "domain") for row in rows})
    texts, parts = [], True
    for kind in IMPORTANCE:
        opt = [mean(of_exact, "share", method="OPT", importance_of=kind, domain=size) for size in domains]
        best = [mean(of_opt, "share", method="DGL", importance_of=kind, domain=size) for size in domains]
        parts &= opt[-1].value > opt[0].value and opt[-1].value >= 0.99
        parts &= all(
            mean(of_opt, "share", method=method, importance_of=kind, domain=domains[-1]).value
            < mean(of_opt, "share", method=method, importance_of=kind, domain=domains[0]).value
            for method in ORDER
        )
        texts.append(f"{kind}: OPT/EXACT {opt[0]:.2f} to {opt[-1]:.2f}, DGL/OPT {best[0]:.2f} to {best[-1]:.2f}")
    return Finding("; ".join(texts), parts)
