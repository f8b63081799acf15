"""How rows are held against what das2003 claims: each judge takes rows of figures and gives a finding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from shedjoin.plots.summary import Mean, where
from shedjoin_lab.claims import Finding
from shedjoin_lab.experiment import Row
from shedjoin_lab.papers.das2003 import fig06, fig07, synthetic
from shedjoin_lab.papers.das2003.fixed_vs_variable import gains
from shedjoin_lab.papers.das2003.synthetic import READINGS
from shedjoin_lab.papers.das2003.weather import YEARS_APART
from shedjoin_lab.summary import by_seed, mean, number, ratio

#: What "far above" is held to mean.
FAR = 1.25
#: What "marginally better" is held to mean.
MARGINAL = 1.1
#: What "very close to OPT" is held to mean.
NEAR = 0.95
#: What "OPT meets EXACT" is held to mean.
MEETS = 0.995
#: What "almost identical" shares of OPT are held to mean.
ALIKE = 0.03
#: Zipf parameters that count as moderate to high skew.
SKEWED = 1.0


class Ratio:
    """The ratio of two methods' outputs over memory sizes up to w, held against a bound."""

    def __init__(self, top: str, bottom: str, *, least: float = 0.0, most: float = float("inf")) -> None:
        self._top, self._bottom, self._least, self._most = top, bottom, least, most

    def __call__(self, *figures: list[Row]) -> Finding:
        ratios: list[Mean] = []
        texts = []
        for ranks in READINGS:
            found = [one for rows in figures for one in _ratios(where(rows, ranks=ranks), self._top, self._bottom)]
            ratios += found
            low, high = _ends(found)
            texts.append(f"{READINGS[ranks]}: {low} to {high} times")
        holds = all(self._least <= one.value <= self._most for one in ratios)
        return Finding("; ".join(texts), holds)


def _ends(found: list[Mean]) -> tuple[Mean, Mean]:
    """The lowest and the highest."""
    return min(found, key=lambda one: one.value), max(found, key=lambda one: one.value)


def _ratios(rows: list[Row], top: str, bottom: str) -> list[Mean]:
    """Ratios of equal seed, for each memory size up to the window."""
    sizes = sorted({number(row, "memory") for row in rows if row["memory"] is not None})
    result = []
    for size in sizes:
        tops = {row["seed"]: number(row, "matches") for row in where(rows, method=top, memory=size)}
        bottoms = {row["seed"]: number(row, "matches") for row in where(rows, method=bottom, memory=size)}
        window = number(rows[0], "window")
        if size <= window and tops and bottoms:
            result.append(Mean.of(tops[seed] / bottoms[seed] for seed in tops if seed in bottoms))
    return result


def rand_linear(*figures: list[Row]) -> Finding:
    """RAND's share of EXACT is M / 2w within 0.03."""
    worst = Mean(0.0, 0.0, 1)
    for rows in figures:
        shared = synthetic.share_of_exact(rows)
        for size in sorted({number(row, "memory") for row in where(shared, method="RAND")}):
            line = size / (2 * number(rows[0], "window"))
            share = mean(shared, "share", method="RAND", memory=size)
            off = Mean(abs(share.value - line), share.spread, share.count)
            worst = max(worst, off, key=lambda one: one.value)
    return Finding(f"share of EXACT is M/2w, off by at most {worst}", worst.value <= 0.03)


def uniform_equal(rows: list[Row]) -> Finding:
    """On uniform keys RAND, PROB and LIFE lie within 5% of one another at every memory size."""
    shared = synthetic.share_of_exact(rows)
    apart = []
    for size in sorted({number(row, "memory") for row in where(shared, method="RAND")}):
        levels = [mean(shared, "share", method=method, memory=size) for method in ("RAND", "PROB", "LIFE")]
        low, high = (pick(levels, key=lambda one: one.value) for pick in (min, max))
        apart.append((high.value / low.value - 1, low, high))
    worst, low, high = max(apart, key=lambda one: one[0])
    return Finding(f"at most {100 * worst:.1f}% apart ({low} and {high} of EXACT)", worst <= 0.05)


def window_alike(small: list[Row], large: list[Row]) -> Finding:
    """At the same M/w, shares of EXACT differ by at most 0.03 between windows of 400 and 800."""
    found = []
    shared = [synthetic.share_of_exact(rows) for rows in (small, large)]
    for ranks in READINGS:
        for method in ("RAND", "PROB", "LIFE"):
            for size in sorted({number(row, "memory") for row in where(shared[0], method=method)}):
                one = mean(shared[0], "share", ranks=ranks, method=method, memory=size)
                other = mean(shared[1], "share", ranks=ranks, method=method, memory=2 * size)
                found.append((abs(one.value - other.value), method, one, other))
    worst, method, one, other = max(found, key=lambda entry: entry[0])
    return Finding(f"shares of EXACT differ by at most {worst:.3f} ({method}: {one} and {other})", worst <= 0.03)


class NearOpt:
    """PROB's share of OPT at every memory size of some figures."""

    def __init__(self, ranks: str) -> None:
        self._ranks = ranks

    def __call__(self, *figures: list[Row]) -> Finding:
        found = []
        for rows in figures:
            shared = where(synthetic.share_of_opt(rows), method="PROB", ranks=self._ranks)
            found += [mean(shared, "share", memory=size) for size in sorted({number(row, "memory") for row in shared})]
        low, high = _ends(found)
        return Finding(f"{low.percent()} to {high.percent()}", low.value >= NEAR)


class ShareOfOpt:
    """PROB yields 96% of OPT at every Zipf parameter from 1 on."""

    def __init__(self, ranks: str) -> None:
        self._ranks = ranks

    def __call__(self, rows: list[Row]) -> Finding:
        shared = where(synthetic.share_of_opt(rows), method="PROB", ranks=self._ranks)
        skews = sorted({number(row, "skew_left") for row in shared if number(row, "skew_left") >= SKEWED})
        found = {skew: mean(shared, "share", skew_left=skew) for skew in skews}
        text = ", ".join(f"Zipf {skew:g}: {share.percent()}" for skew, share in found.items())
        return Finding(text, bool(found) and all(share.value > 0.96 for share in found.values()))


def correlation_alike(rows: list[Row]) -> Finding:
    """At every skew PROB's and RAND's mean shares of OPT lie close together, whatever the ranks."""
    shared = synthetic.share_of_opt(rows)
    texts, worst = [], 0.0
    for method in ("PROB", "RAND"):
        apart = {
            skew: [mean(shared, "share", method=method, ranks=ranks, skew_left=skew) for ranks in fig06.RANKS]
            for skew in sorted({number(row, "skew_left") for row in shared})
        }
        skew, levels = max(apart.items(), key=lambda item: _range(item[1]))
        worst = max(worst, _range(levels))
        named = ", ".join(f"{title} {level}" for title, level in zip(fig06.RANKS.values(), levels, strict=True))
        texts.append(f"{method} at most {_range(levels):.3f} apart (Zipf {skew:g}: {named})")
    return Finding("; ".join(texts), worst <= ALIKE)


def _range(levels: list[Mean]) -> float:
    values = [level.value for level in levels]
    return max(values) - min(values)


class OptMeetsExact:
    """OPT yields all of EXACT at M = w."""

    def __init__(self, ranks: str) -> None:
        self._ranks = ranks

    def __call__(self, rows: list[Row]) -> Finding:
        shared = where(synthetic.share_of_exact(rows), method="OPT", ranks=self._ranks)
        share = mean(shared, "share", memory=rows[0]["window"])
        return Finding(f"OPT yields {share.percent()} of EXACT", share.value >= MEETS)


def domain_parts(*figures: list[Row]) -> Finding:
    """At M = w, PROB's share of OPT falls and OPT's share of EXACT rises with the domain, in both readings."""
    texts, parts = [], True
    for ranks, title in READINGS.items():
        prob, opt = [], []
        for rows in figures:
            at = {"ranks": ranks, "memory": rows[0]["window"]}
            prob.append(mean(synthetic.share_of_opt(rows), "share", method="PROB", **at))
            opt.append(mean(synthetic.share_of_exact(rows), "share", method="OPT", **at))
        parts &= all(more.value >= less.value for more, less in pairwise(prob))
        parts &= all(less.value <= more.value for less, more in pairwise(opt))
        named = [", ".join(str(value) for value in values) for values in (prob, opt)]
        texts.append(f"{title}: PROB/OPT {named[0]}, OPT/EXACT {named[1]}")
    return Finding("; ".join(texts), parts)


class HalfMemory:
    """PROB yields 90% of EXACT with half the memory, at every Zipf parameter from 1 on."""

    def __init__(self, ranks: str) -> None:
        self._ranks = ranks

    def __call__(self, rows: list[Row]) -> Finding:
        shared = where(synthetic.share_of_exact(rows), method="PROB", ranks=self._ranks)
        skews = sorted({number(row, "skew_left") for row in shared if number(row, "skew_left") >= SKEWED})
        found = {skew: mean(shared, "share", skew_left=skew) for skew in skews}
        text = ", ".join(
            f"Zipf {skew:g}: {share.percent()} (expected {100 * self._bound(where(shared, skew_left=skew)):.1f}%)"
            for skew, share in found.items()
        )
        return Finding(text, bool(found) and all(share.value >= 0.9 for share in found.values()))

    def _bound(self, rows: list[Row]) -> float:
        """The mean over these workloads of the most that key probabilities allow."""
        return Mean.of(synthetic.most_by_probability(row) for row in rows).value


def half_memory_real(rows: list[Row]) -> Finding:
    """PROB and PROBV on the real reports at M = w."""
    shared = where(fig07.share_of_exact(rows), streams=YEARS_APART, memory=rows[0]["window"])
    found = {method: mean(shared, "share", method=method) for method in ("PROB", "PROBV", "RAND")}
    text = ", ".join(f"{method} {share.percent()}" for method, share in found.items())
    return Finding(text, found["PROB"].value >= 0.9 and found["PROBV"].value >= 0.9)


class RealSame:
    """PROB and PROBV on real reports differ by at most 2% at every memory size."""

    def __init__(self, streams: str) -> None:
        self._streams = streams

    def __call__(self, rows: list[Row]) -> Finding:
        prob = {
            number(row, "memory"): number(row, "matches") for row in where(rows, method="PROB", streams=self._streams)
        }
        shared = {
            number(row, "memory"): number(row, "matches") for row in where(rows, method="PROBV", streams=self._streams)
        }
        off = {size: shared[size] / prob[size] - 1 for size in sorted(prob)}
        text = ", ".join(f"M {size:g}: {100 * gain:+.1f}%" for size, gain in off.items())
        return Finding(f"PROBV over PROB: {text}", max(abs(gain) for gain in off.values()) <= 0.02)


def real_far_above_rand(rows: list[Row]) -> Finding:
    """PROB at least FAR times RAND on the real reports at every M up to w."""
    window = number(rows[0], "window")
    rows = where(rows, streams=YEARS_APART)
    sizes = sorted(size for size in {number(row, "memory") for row in where(rows, method="RAND")} if size <= window)
    found = [
        ratio(*(by_seed(rows, "matches", method=method, memory=size) for method in ("PROB", "RAND"))) for size in sizes
    ]
    low, high = _ends(found)
    return Finding(f"{low:.2f} to {high:.2f} times", low.value >= FAR)


class RealMemoryEven:
    """PROBV leaves each stream within 40% to 60% of the memory, from the warm-up on."""

    def __init__(self, streams: str) -> None:
        self._streams = streams

    def __call__(self, rows: list[Row]) -> Finding:
        chosen = where(rows, method="PROBV", streams=self._streams)
        after = [row for row in chosen if number(row, "ts") >= number(row, "warmup")]
        shares = [
            number(row, "left_tuples") / (number(row, "left_tuples") + number(row, "right_tuples")) for row in after
        ]
        text = (
            f"left stream: {100 * min(shares):.0f} to {100 * max(shares):.0f}%, {Mean.of(shares).percent()} over time"
        )
        return Finding(text, min(shares) >= 0.4 and max(shares) <= 0.6)


class VariableAtMost:
    """PROBV is never worse than PROB on average, nor more than 10% better, up to a Zipf parameter."""

    def __init__(self, most_skew: float) -> None:
        self._most_skew = most_skew

    def __call__(self, rows: list[Row]) -> Finding:
        means = _gain_means([row for row in rows if number(row, "skew_left") <= self._most_skew])
        low, high = (pick(means.items(), key=lambda item: item[1].value) for pick in (min, max))
        ranks, left, right, size = high[0]
        most = f"most: Zipf {left:g} and {right:g}, {READINGS[ranks]}, M {size:g}"
        text = f"{low[1].value:+.1f} to {high[1].value:+.1f} ± {high[1].spread:.1f}% ({most})"
        return Finding(text, low[1].value >= -1.0 and high[1].value <= 10.0)


def variable_grows(rows: list[Row]) -> Finding:
    """The gain is larger where the Zipf parameters differ by 1 or more than where they are equal."""
    means = _gain_means(rows)
    alike = Mean.of(one.value for (_, left, right, _), one in means.items() if left == right)
    apart = Mean.of(one.value for (_, left, right, _), one in means.items() if abs(left - right) >= 1)
    return Finding(
        f"{alike:+.1f}% where skews are equal, {apart:+.1f}% where they differ by 1 or more (spread over settings)",
        apart.value > alike.value,
    )


class SkewedStreamShare:
    """Up to a Zipf parameter: the more skewed stream has more of the memory, the most being 75%, 10 points more or less."""

    def __init__(self, most_skew: float) -> None:
        self._most_skew = most_skew

    def __call__(self, rows: list[Row]) -> Finding:
        shares: dict[float, dict[tuple[str, float, float], list[float]]] = {}
        for row in where(gains(rows), method="PROBV"):
            left, right = number(row, "skew_left"), number(row, "skew_right")
            if left <= self._most_skew and abs(left - right) >= 0.5:
                left_share = number(row, "left_share")
                some = shares.setdefault(number(row, "memory"), {}).setdefault((str(row["ranks"]), left, right), [])
                some.append(left_share if left > right else 1 - left_share)
        texts, lows, highs = [], [], []
        for size, settings in sorted(shares.items()):
            means = [Mean.of(some) for some in settings.values()]
            low, high = (pick(means, key=lambda one: one.value) for pick in (min, max))
            texts.append(f"M {size:g}: {low.percent()} to {high.percent()}")
            lows.append(low.value)
            highs.append(high.value)
        return Finding("; ".join(texts), min(lows) > 0.5 and 0.65 <= max(highs) <= 0.85)


def _gain_means(rows: Sequence[Row]) -> dict[tuple[str, float, float, float], Mean]:
    """PROBV's gain over PROB in per cent, by ranks, both skews and memory."""
    values: dict[tuple[str, float, float, float], list[float]] = {}
    for row in where(gains(list(rows)), method="PROBV"):
        place = (str(row["ranks"]), number(row, "skew_left"), number(row, "skew_right"), number(row, "memory"))
        values.setdefault(place, []).append(number(row, "gain"))
    return {place: Mean.of(numbers) for place, numbers in values.items()}
