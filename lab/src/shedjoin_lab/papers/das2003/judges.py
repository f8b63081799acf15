"""How rows are held against what das2003 claims: each judge takes rows of figures and gives a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shedjoin.plots.summary import Mean, where
from shedjoin_lab.agreement import above, alike, at_least, far_above, grows, same_percentage
from shedjoin_lab.claims import Finding
from shedjoin_lab.experiment import Row
from shedjoin_lab.papers.das2003 import fig06, fig07, synthetic
from shedjoin_lab.papers.das2003.fixed_vs_variable import gains
from shedjoin_lab.papers.das2003.synthetic import READINGS
from shedjoin_lab.papers.das2003.weather import YEARS_APART
from shedjoin_lab.summary import by_seed, mean, number, ratio

#: Zipf parameters that count as moderate to high skew.
SKEWED = 1.0


class Ratio:
    """The ratio of two methods' outputs at each memory size up to w, held against a rule."""

    def __init__(self, top: str, bottom: str, rule: Callable[[Mean], bool]) -> None:
        self._top, self._bottom, self._rule = top, bottom, rule

    def __call__(self, *figures: list[Row]) -> Finding:
        places: dict[str, bool] = {}
        texts = []
        for ranks, title in READINGS.items():
            found: list[Mean] = []
            for rows in figures:
                ratios = _ratios(where(rows, ranks=ranks), self._top, self._bottom)
                window = number(rows[0], "window")
                places |= {f"{title}, w {window:g}, M {size:g}": self._rule(one) for size, one in ratios.items()}
                found += ratios.values()
            low, high = _ends(found)
            texts.append(f"{title}: {low} to {high} times")
        return Finding("; ".join(texts), places)


def _ends(found: list[Mean]) -> tuple[Mean, Mean]:
    """The lowest and the highest."""
    return min(found, key=lambda one: one.value), max(found, key=lambda one: one.value)


def _ratios(rows: list[Row], top: str, bottom: str) -> dict[float, Mean]:
    """Ratios of equal seed, for each memory size up to the window."""
    sizes = sorted({number(row, "memory") for row in rows if row["memory"] is not None})
    result: dict[float, Mean] = {}
    for size in sizes:
        tops = {row["seed"]: number(row, "matches") for row in where(rows, method=top, memory=size)}
        bottoms = {row["seed"]: number(row, "matches") for row in where(rows, method=bottom, memory=size)}
        window = number(rows[0], "window")
        if size <= window and tops and bottoms:
            result[size] = Mean.of(tops[seed] / bottoms[seed] for seed in tops if seed in bottoms)
    return result


def rand_linear(*figures: list[Row]) -> Finding:
    """RAND's share of EXACT is M / 2w."""
    places, worst = {}, Mean(0.0, 0.0, 1)
    for rows in figures:
        shared = synthetic.share_of_exact(rows)
        for size in sorted({number(row, "memory") for row in where(shared, method="RAND")}):
            line = size / (2 * number(rows[0], "window"))
            share = mean(shared, "share", method="RAND", memory=size)
            places[f"w {rows[0]['window']}, M {size:g}"] = alike(share, line)
            worst = max(worst, Mean(abs(share.value - line), share.spread, share.count), key=lambda one: one.value)
    return Finding(f"share of EXACT is M/2w, off by at most {worst}", places)


def uniform_equal(rows: list[Row]) -> Finding:
    """On uniform keys RAND, PROB and LIFE yield the same at every memory size."""
    shared = synthetic.share_of_exact(rows)
    apart = {}
    for size in sorted({number(row, "memory") for row in where(shared, method="RAND")}):
        levels = [mean(shared, "share", method=method, memory=size) for method in ("RAND", "PROB", "LIFE")]
        apart[size] = _ends(levels)
    low, high = max(apart.values(), key=lambda ends: ends[1].value / ends[0].value)
    text = f"at most {100 * (high.value / low.value - 1):.1f}% apart ({low} and {high} of EXACT)"
    return Finding(text, {f"M {size:g}": alike(top, least) for size, (least, top) in apart.items()})


def window_alike(small: list[Row], large: list[Row]) -> Finding:
    """At the same M/w, shares of EXACT are alike for windows of 400 and 800."""
    found, places = [], {}
    shared = [synthetic.share_of_exact(rows) for rows in (small, large)]
    for ranks, title in READINGS.items():
        for method in ("RAND", "PROB", "LIFE"):
            for size in sorted({number(row, "memory") for row in where(shared[0], method=method)}):
                one = mean(shared[0], "share", ranks=ranks, method=method, memory=size)
                other = mean(shared[1], "share", ranks=ranks, method=method, memory=2 * size)
                found.append((abs(one.value - other.value), method, one, other))
                places[f"{title}, {method}, M {size:g}"] = alike(one, other)
    worst, method, one, other = max(found, key=lambda entry: entry[0])
    return Finding(f"shares of EXACT differ by at most {worst:.3f} ({method}: {one} and {other})", places)


class NearOpt:
    """PROB's share of OPT at every memory size of some figures."""

    def __init__(self, ranks: str) -> None:
        self._ranks = ranks

    def __call__(self, *figures: list[Row]) -> Finding:
        found = {}
        for rows in figures:
            shared = where(synthetic.share_of_opt(rows), method="PROB", ranks=self._ranks)
            for size in sorted({number(row, "memory") for row in shared}):
                found[f"w {rows[0]['window']}, M {size:g}"] = mean(shared, "share", memory=size)
        low, high = _ends(list(found.values()))
        return Finding(f"{low.percent()} to {high.percent()}", {place: alike(one) for place, one in found.items()})


class ShareOfOpt:
    """PROB yields 96% of OPT at every Zipf parameter from 1 on."""

    def __init__(self, ranks: str) -> None:
        self._ranks = ranks

    def __call__(self, rows: list[Row]) -> Finding:
        shared = where(synthetic.share_of_opt(rows), method="PROB", ranks=self._ranks)
        skews = sorted({number(row, "skew_left") for row in shared if number(row, "skew_left") >= SKEWED})
        found = {skew: mean(shared, "share", skew_left=skew) for skew in skews}
        text = ", ".join(f"Zipf {skew:g}: {share.percent()}" for skew, share in found.items())
        return Finding(text, {f"Zipf {skew:g}": share.value > 0.96 for skew, share in found.items()})


def correlation_alike(rows: list[Row]) -> Finding:
    """At every skew PROB's and RAND's mean shares of OPT lie close together, whatever the ranks."""
    shared = synthetic.share_of_opt(rows)
    texts: list[str] = []
    places: dict[str, bool] = {}
    for method in ("PROB", "RAND"):
        apart = {
            skew: [mean(shared, "share", method=method, ranks=ranks, skew_left=skew) for ranks in fig06.RANKS]
            for skew in sorted({number(row, "skew_left") for row in shared})
        }
        skew, levels = max(apart.items(), key=lambda item: _range(item[1]))
        places |= {f"{method}, Zipf {at:g}": alike(max(one), min(one)) for at, one in _values(apart).items()}
        named = ", ".join(f"{title} {level}" for title, level in zip(fig06.RANKS.values(), levels, strict=True))
        texts.append(f"{method} at most {_range(levels):.3f} apart (Zipf {skew:g}: {named})")
    return Finding("; ".join(texts), places)


def _values(levels: dict[float, list[Mean]]) -> dict[float, list[float]]:
    return {place: [one.value for one in some] for place, some in levels.items()}


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
        return Finding(f"OPT yields {share.percent()} of EXACT", alike(share))


def domain_parts(*figures: list[Row]) -> Finding:
    """At M = w, PROB's share of OPT falls and OPT's share of EXACT rises with the domain, in both readings."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for ranks, title in READINGS.items():
        prob, opt = [], []
        for rows in figures:
            at = {"ranks": ranks, "memory": rows[0]["window"]}
            prob.append(mean(synthetic.share_of_opt(rows), "share", method="PROB", **at))
            opt.append(mean(synthetic.share_of_exact(rows), "share", method="OPT", **at))
        places[f"{title}: PROB from OPT"] = above(prob[0], prob[-1])
        places[f"{title}: OPT to EXACT"] = grows(opt)
        named = [", ".join(str(value) for value in values) for values in (prob, opt)]
        texts.append(f"{title}: PROB/OPT {named[0]}, OPT/EXACT {named[1]}")
    return Finding("; ".join(texts), places)


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
        return Finding(text, {f"Zipf {skew:g}": share.value > 0.9 for skew, share in found.items()})

    def _bound(self, rows: list[Row]) -> float:
        """The mean over these workloads of the most that key probabilities allow."""
        return Mean.of(synthetic.most_by_probability(row) for row in rows).value


def half_memory_real(rows: list[Row]) -> Finding:
    """PROB and PROBV on the real reports at M = w."""
    shared = where(fig07.share_of_exact(rows), streams=YEARS_APART, memory=rows[0]["window"])
    found = {method: mean(shared, "share", method=method) for method in ("PROB", "PROBV", "RAND")}
    text = ", ".join(f"{method} {share.percent()}" for method, share in found.items())
    return Finding(text, {method: found[method].value > 0.9 for method in ("PROB", "PROBV")})


class RealSame:
    """PROB and PROBV on real reports yield the same at every memory size."""

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
        return Finding(f"PROBV over PROB: {text}", {f"M {size:g}": alike(1 + gain) for size, gain in off.items()})


def real_far_above_rand(rows: list[Row]) -> Finding:
    """PROB is far above RAND on the real reports at every M up to w."""
    window = number(rows[0], "window")
    rows = where(rows, streams=YEARS_APART)
    sizes = sorted(size for size in {number(row, "memory") for row in where(rows, method="RAND")} if size <= window)
    found = {
        size: ratio(*(by_seed(rows, "matches", method=method, memory=size) for method in ("PROB", "RAND")))
        for size in sizes
    }
    low, high = _ends(list(found.values()))
    places = {f"M {size:g}": far_above(one) for size, one in found.items()}
    return Finding(f"{low:.2f} to {high:.2f} times", places)


class RealMemoryEven:
    """PROBV leaves each stream half of the memory at all times, from the warm-up on."""

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
        ends = {"least": min(shares), "most": max(shares)}
        return Finding(text, {place: same_percentage(100 * share, 50.0) for place, share in ends.items()})


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
        places = {
            f"Zipf {left:g} and {right:g}, {READINGS[ranks]}, M {size:g}": at_least(1 + one.value / 100, 1.0)
            and one.value <= 10.0
            for (ranks, left, right, size), one in means.items()
        }
        return Finding(text, places)


def variable_grows(rows: list[Row]) -> Finding:
    """The gain is larger where the Zipf parameters differ by 1 or more than where they are equal."""
    means = _gain_means(rows)
    equal = Mean.of(one.value for (_, left, right, _), one in means.items() if left == right)
    apart = Mean.of(one.value for (_, left, right, _), one in means.items() if abs(left - right) >= 1)
    return Finding(
        f"{equal:+.1f}% where skews are equal, {apart:+.1f}% where they differ by 1 or more (spread over settings)",
        above(apart, equal),
    )


class SkewedStreamShare:
    """Up to a Zipf parameter: the more skewed stream has more of the memory "as a tendency" (in the mean over settings),
    and 75% at most."""

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
        texts, places, most = [], {}, 0.0
        for size, settings in sorted(shares.items()):
            means = [Mean.of(some) for some in settings.values()]
            low, high = _ends(means)
            texts.append(f"M {size:g}: {low.percent()} to {high.percent()}")
            places[f"M {size:g}: more"] = above(Mean.of(one.value for one in means), 0.5)
            most = max(most, high.value)
        places["the most is 75%"] = same_percentage(100 * most, 75.0)
        return Finding("; ".join(texts), places)


def _gain_means(rows: Sequence[Row]) -> dict[tuple[str, float, float, float], Mean]:
    """PROBV's gain over PROB in per cent, by ranks, both skews and memory."""
    values: dict[tuple[str, float, float, float], list[float]] = {}
    for row in where(gains(list(rows)), method="PROBV"):
        place = (str(row["ranks"]), number(row, "skew_left"), number(row, "skew_right"), number(row, "memory"))
        values.setdefault(place, []).append(number(row, "gain"))
    return {place: Mean.of(numbers) for place, numbers in values.items()}
