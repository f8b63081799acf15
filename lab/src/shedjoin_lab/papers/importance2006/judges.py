"""How rows are held against what importance2006 claims: each judge takes rows of figures and gives a finding."""

from __future__ import annotations

from collections.abc import Sequence

from shedjoin.plots.summary import Mean, where
from shedjoin_lab.agreement import above, alike, at_least, grows, in_order, same_number, same_percentage
from shedjoin_lab.claims import Finding
from shedjoin_lab.experiment import Row, Scalar
from shedjoin_lab.papers.importance2006.fig02 import KINDS, errors
from shedjoin_lab.papers.importance2006.synthetic import IMPORTANCE, WORKLOAD, share_of_exact
from shedjoin_lab.summary import by_seed, mean, number, ratio, shares_of_opt

#: The paper's order on uncorrelated streams, best first.
ORDER = ("DGL", "DIMPPROB", "SIMPPROB", "PROB", "SIMP", "RAND")
#: By how much DGL is better than the others at M = 100.
MARGINS = {"DIMPPROB": 3.2, "SIMPPROB": 20.6, "PROB": 47.6, "SIMP": 52.9, "RAND": 77.8}
#: ESJA's time over ODJA's, in per cent, at the ends of Figures 3 and 4, and its memory over ODJA's at those of Figure 7.
TIMES = {"rows": (481.0, 700.0), "window": (596.0, 689.0)}
MEMORY = (25.3, 45.3)


class OrderHolds:
    """The paper's order at every value of `along`, for both distributions of importance."""

    def __init__(self, along: str, order: tuple[str, ...] = ORDER) -> None:
        self._along, self._order = along, order

    def __call__(self, rows: list[Row]) -> Finding:
        shared = share_of_exact(rows)
        values = sorted({number(row, self._along) for row in where(shared, method=self._order[0])})
        texts: list[str] = []
        places: dict[str, bool] = {}
        for kind in IMPORTANCE:
            some = where(shared, importance_of=kind)
            for value in values:
                found = {method: mean(some, "share", method=method, **{self._along: value}) for method in self._order}
                places |= {f"{kind}, {self._along} {value:g}, {pair}": ok for pair, ok in in_order(found).items()}
            texts.append(f"{kind}, {self._along} {values[0]:g}: {ranking(some, self._order, {self._along: values[0]})}")
        wrong = [place.rsplit(", ", 1)[1] for place, holds in places.items() if not holds]
        swaps = ", ".join(f"{pair} fails {wrong.count(pair)} times" for pair in dict.fromkeys(wrong))
        settings = len(IMPORTANCE) * len(values)
        return Finding(f"{'; '.join(texts)}. In {settings} settings: {swaps or 'none fails'}", places)


def ranking(rows: list[Row], order: tuple[str, ...], at: dict[str, Scalar]) -> str:
    """Methods with their shares of EXACT, best first."""
    found = {method: mean(rows, "share", method=method, **at) for method in order}
    ranked = sorted(found.items(), key=lambda item: -item[1].value)
    return " > ".join(f"{method} {share}" for method, share in ranked)


def margins(rows: list[Row]) -> Finding:
    """DGL's lead at M = 100, (DGL - X) / DGL: the reading under which 77.8% over RAND is near what memory allows."""
    texts: list[str] = []
    places: dict[str, bool] = {}
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
        places |= {f"{kind}, {rival}": same_percentage(leads[rival], paper) for rival, paper in MARGINS.items()}
        texts.append(f"{kind}: " + ", ".join(f"{lead.value:.1f} ± {lead.spread:.1f}" for lead in leads.values()))
    return Finding("; ".join(texts) + " (% of DGL)", places)


def rand_linear(rows: list[Row]) -> Finding:
    """RAND's share of EXACT is M / 2w."""
    shared = where(share_of_exact(rows), method="RAND")
    off, places = [], {}
    for kind in IMPORTANCE:
        for size in sorted({number(row, "memory") for row in shared}):
            share = mean(shared, "share", importance_of=kind, memory=size)
            line = size / (2 * number(rows[0], "window"))
            off.append(Mean(abs(share.value - line), share.spread, share.count))
            places[f"{kind}, M {size:g}"] = alike(share, line)
    worst = max(off, key=lambda one: one.value)
    return Finding(f"share of EXACT is M/2w, off by at most {worst}", places)


def rand_constant(rows: list[Row]) -> Finding:
    """RAND's importance is the same over all windows."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for kind in IMPORTANCE:
        some = where(rows, method="RAND", importance_of=kind)
        levels = [mean(some, "importance", window=window) for window in sorted({number(row, "window") for row in some})]
        low, high = (pick(levels, key=lambda one: one.value) for pick in (min, max))
        apart = high.value / low.value - 1
        places[kind] = alike(high, low)
        texts.append(f"{kind}: {100 * apart:.1f}% between the least and the most ({low:,.0f} and {high:,.0f})")
    return Finding("; ".join(texts), places)


def domain_parts(rows: list[Row]) -> Finding:
    """Every online method's share of EXACT is lower at the largest domain than at the smallest."""
    shared = share_of_exact(rows)
    domains = sorted({number(row, "domain") for row in shared})
    texts: list[str] = []
    places: dict[str, bool] = {}
    for kind in IMPORTANCE:
        ends = {
            method: [
                mean(shared, "share", importance_of=kind, method=method, domain=size)
                for size in (domains[0], domains[-1])
            ]
            for method in ORDER
        }
        places |= {f"{kind}, {method}": above(first, last) for method, (first, last) in ends.items()}
        texts.append(
            f"{kind}: " + ", ".join(f"{method} {first:.2f} to {last:.2f}" for method, (first, last) in ends.items())
        )
    return Finding("; ".join(texts), places)


def skew_helps(rows: list[Row]) -> Finding:
    """DGL, DIMPPROB and SIMPPROB have a larger share of EXACT at Zipf 1 than at Zipf 0."""
    shared = share_of_exact(rows)
    texts: list[str] = []
    places: dict[str, bool] = {}
    for kind in IMPORTANCE:
        for method in ORDER[:3]:
            first, last = (
                mean(shared, "share", importance_of=kind, method=method, skew_left=skew) for skew in (0.0, 1.0)
            )
            places[f"{kind}, {method}"] = above(last, first)
            texts.append(f"{kind} {method} {first:.2f} to {last:.2f}")
    return Finding(", ".join(texts), places)


def correlated_lead(rows: list[Row]) -> Finding:
    """DIMPPROB and SIMPPROB over DGL, mean over all skews: 2.1%, and above 0."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for kind in IMPORTANCE:
        some = where(rows, importance_of=kind)
        for rival in ("DIMPPROB", "SIMPPROB"):
            over_all, skewed = _lead(some, rival), _lead(where(some, skew_left=1.0), rival)
            places[f"{kind}, {rival}"] = above(over_all, 0.0) and same_percentage(over_all, 2.1)
            texts.append(f"{kind} {rival} {over_all:+.1f}% over all skews (at Zipf 1: {skewed:+.1f}%)")
    return Finding(", ".join(texts), places)


def _lead(rows: list[Row], rival: str) -> Mean:
    """By how many per cent a method is above DGL on the same workload."""
    dgl = {(row["seed"], row["skew_left"]): number(row, "importance") for row in where(rows, method="DGL")}
    return Mean.of(
        100 * (number(row, "importance") / dgl[row["seed"], row["skew_left"]] - 1)
        for row in where(rows, method=rival)
        if (row["seed"], row["skew_left"]) in dgl
    )


def table_time(rows: list[Row]) -> Finding:
    """Wall clock: DIMPPROB and DGL take longer than SIMP, SIMPPROB and PROB."""
    least = {
        method: Mean.of(number(row, "wall_least_seconds") for row in where(rows, method=method)) for method in ORDER
    }
    places = {
        f"{slow} over {fast}": above(least[slow], least[fast])
        for slow in ("DIMPPROB", "DGL")
        for fast in ("SIMP", "SIMPPROB", "PROB")
    }
    return Finding("ms: " + ", ".join(f"{method} {one.times(1000):.1f}" for method, one in least.items()), places)


class Errors:
    """Approximation errors in per cent at M/2 = 1 and 5, beside the paper's."""

    def __init__(self, paper: dict[str, tuple[float, float]], kinds: Sequence[str]) -> None:
        self._paper, self._kinds = paper, kinds

    def __call__(self, rows: list[Row]) -> Finding:
        found = errors(rows)
        texts: list[str] = []
        places: dict[str, bool] = {}
        for kind in self._kinds:
            for method, values in self._paper.items():
                ours = [mean(found, "error", importance_of=kind, method=method, memory=2 * half) for half in (1, 5)]
                for half, one, paper in zip((1, 5), ours, values, strict=True):
                    places[f"{kind}, {method}, M/2 = {half}"] = same_percentage(one, paper)
                texts.append(f"{kind} {method} {ours[0]:.1f} and {ours[1]:.1f}%")
        return Finding(", ".join(texts), places)


def sja_tuples(rows: list[Row]) -> Finding:
    """SJA's results less OPT's, at M/2 = 1 and 2."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for kind in KINDS:
        some = where(rows, importance_of=kind)
        extra = [_more_tuples(some, 2 * half) for half in (1, 2)]
        places |= {f"{kind}, M/2 = {half}": above(one, 0.0) for half, one in zip((1, 2), extra, strict=True)}
        texts.append(f"{kind}: {extra[0]:.0f} and {extra[1]:.0f} more")
    return Finding("; ".join(texts), places)


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
    """ESJA's time over ODJA's, at both ends of each figure, beside the paper's where it prints them."""

    def __init__(self, esja: str, *along: str, printed: bool = False) -> None:
        self._esja, self._along, self._printed = esja, along, printed

    def __call__(self, *figures: list[Row]) -> Finding:
        texts: list[str] = []
        places: dict[str, bool] = {}
        for rows, along in zip(figures, self._along, strict=True):
            values = sorted({number(row, along) for row in where(rows, method=self._esja)})
            ends = {value: _over_odja(rows, "cpu_seconds", {along: value}, self._esja) for value in values}
            places |= {f"faster at {along} {value:g}": at_least(one, 1.0) for value, one in ends.items()}
            if self._printed:
                for value, paper in zip((values[0], values[-1]), TIMES[along], strict=True):
                    places[f"{paper:g}% at {along} {value:g}"] = same_number(ends[value], paper / 100)
            told = [f"{ends[value]:.2g} at {along} {value:g}" for value in (values[0], values[-1])]
            texts.append(" to ".join(told))
        return Finding(f"{self._esja}'s time over ODJA's: {'; '.join(texts)}", places)


class EsjaMemory:
    """A method's memory over another's at both ends of Figure 7."""

    def __init__(self, esja: str, odja: str) -> None:
        self._esja, self._odja = esja, odja

    def __call__(self, rows: list[Row]) -> Finding:
        lengths = sorted({number(row, "rows") for row in where(rows, method=self._odja)})
        ends = (lengths[0], lengths[-1])
        ratios = [_over_odja(rows, "top_kilobytes", {"rows": at}, self._esja, self._odja) for at in ends]
        places = {
            f"{paper:g} times at N {at:g}": same_number(one, paper)
            for at, one, paper in zip(ends, ratios, MEMORY, strict=True)
        }
        return Finding(f"{ratios[0]:.2g} to {ratios[1]:.2g} times", places)


def _over_odja(rows: list[Row], column: str, at: dict[str, Scalar], top: str = "ESJA", bottom: str = "ODJA") -> Mean:
    esja, odja = (by_seed(rows, column, method=method, **at) for method in (top, bottom))
    return ratio(esja, {seed: max(value, 1e-9) for seed, value in odja.items()})


class OptWindow:
    """OPT's importance at the largest window over that at the smallest."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def __call__(self, rows: list[Row]) -> Finding:
        opt = where(rows, method="OPT")
        ratios = {
            kind: ratio(*(by_seed(opt, "importance", importance_of=kind, window=window) for window in (800, 200)))
            for kind in self._kinds
        }
        text = ", ".join(f"{kind} {one:.2f}" for kind, one in ratios.items())
        return Finding(text, {kind: same_number(one, 3.21) for kind, one in ratios.items()})


def domain_opt(rows: list[Row]) -> Finding:
    """From the smallest domain to the largest: OPT's share of EXACT rises, every online method's share of OPT falls."""
    of_exact, of_opt = share_of_exact(rows), shares_of_opt(rows, "importance", WORKLOAD)
    domains = sorted({number(row, "domain") for row in rows})
    texts: list[str] = []
    places: dict[str, bool] = {}
    for kind in IMPORTANCE:
        opt = [mean(of_exact, "share", method="OPT", importance_of=kind, domain=size) for size in domains]
        best = {
            method: [mean(of_opt, "share", method=method, importance_of=kind, domain=size) for size in domains]
            for method in ORDER
        }
        places[f"{kind}: OPT rises"] = grows(opt)
        places[f"{kind}: OPT meets EXACT"] = alike(opt[-1])
        places |= {f"{kind}: {method} falls behind": above(some[0], some[-1]) for method, some in best.items()}
        dgl = best["DGL"]
        texts.append(f"{kind}: OPT/EXACT {opt[0]:.2f} to {opt[-1]:.2f}, DGL/OPT {dgl[0]:.2f} to {dgl[-1]:.2f}")
    return Finding("; ".join(texts), places)
