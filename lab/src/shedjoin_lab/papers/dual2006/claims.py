"""What dual2006 claims, and what our rows say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from shedjoin.plots.summary import Mean
from shedjoin_lab.agreement import above as better
from shedjoin_lab.agreement import alike, at_least, far_above, same_percentage
from shedjoin_lab.claims import Claim, Finding
from shedjoin_lab.experiment import Row
from shedjoin_lab.summary import by_seed, mean, number, ratio

#: A speed of a figure counts as V_opt if it is at most this much slower.
NEAR = 0.95


@dataclass(frozen=True, slots=True)
class Reading:
    """What may be meant by the rivals, and which results count.

    Parameters
    ----------
    words
        Beside the claim.
    prob, rand
        The methods that stand for PROB and RAND.
    column
        The results that count.
    beside
        A rival that the paper does not have: it is shown, and no verdict depends on it.
    """

    words: str
    prob: str
    rand: str
    column: str = "rate"
    beside: str | None = None


_MEMORY = ("PROB, memory", "RAND, memory")
_QUEUE = ("PROB, queue", "RAND, queue")
IN_MEMORY = Reading("rivals with less memory, as in das2003", *_MEMORY)
IN_MEMORY_SUBSET = Reading("rivals with less memory, results of the exact join", *_MEMORY, "subset")
IN_QUEUE = Reading("rivals with a queue, all results", *_QUEUE, beside="COUNTS, queue")
IN_QUEUE_SUBSET = Reading("rivals with a queue, results of the exact join", *_QUEUE, "subset", beside="COUNTS, queue")


def _speeds(rows: list[Row], *, beyond: float = 0.0) -> list[float]:
    """The speeds of a figure, from `beyond` times V_opt on."""
    best = max(number(row, "best") for row in rows if row.get("best") is not None)
    return [speed for speed in sorted({number(row, "speed") for row in rows}) if speed >= beyond * best]


def flat(rows: list[Row]) -> Finding:
    """DUAL's output beyond V_opt is its mean there."""
    levels = {speed: mean(rows, "rate", method="DUAL", speed=speed) for speed in _speeds(rows, beyond=1.0)}
    middle = sum(level.value for level in levels.values()) / len(levels)
    off = max(abs(level.value / middle - 1.0) for level in levels.values())
    low, high = (pick(levels.values(), key=lambda one: one.value) for pick in (min, max))
    text = f"within {100 * off:.1f}% of its mean ({low:.0f} to {high:.0f} results a time unit)"
    return Finding(text, {f"speed {speed:g}": alike(level, middle) for speed, level in levels.items()})


def rear_falls(rows: list[Row]) -> Finding:
    """Rear-shedding alone gives next to nothing from V_w = 400 on."""
    best = max(_speeds(rows), key=lambda speed: mean(rows, "rate", method="REAR", speed=speed).value)
    share = ratio(*(by_seed(rows, "rate", method="REAR", speed=speed) for speed in (400, best)))
    return Finding(f"{share.percent()} of its best at V_w", same_percentage(share.times(100), 0.0))


def best_at_computed(rows: list[Row]) -> Finding:
    """The top of a parabola through rear-shedding's best three speeds is near V_opt: the speeds of the figure are coarse."""
    speeds = _speeds(rows)
    levels = [mean(rows, "rate", method="REAR", speed=speed).value for speed in speeds]
    top = min(max(int(np.argmax(levels)), 1), len(speeds) - 2)
    logs = np.log(speeds[top - 1 : top + 2])
    a, b, _ = np.polyfit(logs, levels[top - 1 : top + 2], 2)
    measured = float(np.exp(-b / (2 * a)))
    computed = max(number(row, "best") for row in rows if row.get("best") is not None)
    off = measured / computed - 1.0
    return Finding(f"measured {measured:.0f}, computed {computed:.0f}: {100 * off:+.1f}%", alike(measured, computed))


def _over(rows: list[Row], top: str, bottom: str, speed: float, column: str = "rate") -> Mean:
    """One method's output over another's at a speed."""
    return ratio(*(by_seed(rows, column, method=method, speed=speed) for method in (top, bottom)))


def _leads(rows: list[Row], rival: str, column: str) -> dict[float, Mean]:
    """DUAL's output over a rival's at each speed from V_opt on at which the rival has any."""
    speeds = _speeds(rows, beyond=NEAR)
    some = [speed for speed in speeds if all(by_seed(rows, column, method=rival, speed=speed).values())]
    return {speed: _over(rows, "DUAL", rival, speed, column) for speed in some}


def above(*figures: list[Row], reading: Reading = IN_MEMORY) -> Finding:
    """DUAL beats PROB and RAND at every speed from V_opt on."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for rival in (reading.prob, reading.beside, reading.rand):
        if rival is None:
            continue
        leads = {
            (f"{rival}{_window(figures, rows)}, speed {speed:g}"): lead
            for rows in figures
            for speed, lead in _leads(rows, rival, reading.column).items()
        }
        place, least = min(leads.items(), key=lambda lead: lead[1].value)
        texts.append(f"{least:.2f} x {place}")
        if rival != reading.beside:
            places |= {place: far_above(lead) for place, lead in leads.items()}
    return Finding(f"at least {'; '.join(texts)}", places)


def _window(figures: tuple[list[Row], ...], rows: list[Row]) -> str:
    """The window, where a claim is about several figures."""
    return f", W {rows[0]['window']}" if len(figures) > 1 and "window" in rows[0] else ""


def most_at_high_speed(*figures: list[Row], reading: Reading = IN_MEMORY) -> Finding:
    """The lead over each rival is larger at the highest speed at which the rival has output than at V_opt."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for rival in (reading.prob, reading.rand):
        parts = []
        for rows in figures:
            leads = _leads(rows, rival, reading.column)
            slow, fast = min(leads), max(leads)
            parts.append(f"{leads[slow]:.2f} at {slow:g} to {leads[fast]:.2f} at {fast:g}")
            places[f"{rival}{_window(figures, rows)}"] = better(leads[fast], leads[slow])
        texts.append(f"over {rival}: {'; '.join(parts)}")
    return Finding(", ".join(texts), places)


def uniform_prob_is_rand(rows: list[Row], reading: Reading = IN_MEMORY) -> Finding:
    """On uniform keys PROB and RAND yield the same."""
    speeds = _leads(rows, reading.rand, reading.column)
    ratios = {speed: _over(rows, reading.prob, reading.rand, speed, reading.column) for speed in speeds}
    low, high = (pick(ratios.values(), key=lambda one: one.value) for pick in (min, max))
    places = {f"speed {speed:g}": alike(one) for speed, one in ratios.items()}
    return Finding(f"PROB is {low:.2f} to {high:.2f} x RAND", places)


def below(best: str, *figures: list[Row]) -> Finding:
    """DUAL's share of the best that can be done, at the speeds from V_opt on at which there is anything to be done."""
    part = {
        f"{figure}, speed {speed:g}": lead
        for figure, rows in enumerate(figures, 6)
        for speed, lead in _leads(rows, best, "rate").items()
    }
    low, high = (pick(part.values(), key=lambda one: one.value) for pick in (min, max))
    places = {f"Fig {place}": at_least(1.0, one) for place, one in part.items()}
    return Finding(f"DUAL has {low.percent()} to {high.percent()} of {best}", places)


_TWO_FIGURES = ("fig06", "fig07")
_POPULAR = (
    "a queue that knows which keys are popular lets in those alone, so that the windows are full of partners; front-shedding by "
    "lot cannot do that. A queue that knows nothing and counts (COUNTS) does it too. With such a queue the paper's figures could "
    "not show what it says"
)
_LONG_WINDOWS = (
    "beyond V_opt a window of rows that were let in reaches further back than one of all rows, and DUAL is flat by results "
    "that the exact join does not have"
)


def _much_better(name: str, says: str, figures: tuple[str, ...], why: dict[str, str]) -> list[Claim]:
    """The same claim under each reading of the rivals."""
    readings = {
        "": IN_MEMORY,
        "-subset": IN_MEMORY_SUBSET,
        "-queue": IN_QUEUE,
        "-queue-subset": IN_QUEUE_SUBSET,
    }
    return [
        Claim(
            f"{name}{ending}",
            f"{'the same' if ending else says} ({reading.words})",
            "see figures" if len(figures) > 1 else "see figure",
            figures,
            partial(above, reading=reading),
            why.get(ending, ""),
        )
        for ending, reading in readings.items()
    ]


CLAIMS = (
    Claim("dual-flat", "Beyond V_opt the output of DUAL is about constant", "constant", ("fig05",), flat),
    Claim("rear-falls", "Rear-shedding alone falls to nothing at V_w", "0", ("fig05",), rear_falls),
    Claim(
        "v-opt", "The best measured speed is the computed V_opt", "117.396, as computed", ("fig05",), best_at_computed
    ),
    *_much_better(
        "above-rivals",
        "DUAL is much better than PROB and RAND",
        _TWO_FIGURES,
        {
            "": "at V_opt PROB is as good: on Zipf keys a table says as much as a histogram. Beyond it, and at all speeds "
            "over RAND, as claimed (most-at-speed)",
            "-subset": f"as above, and {_LONG_WINDOWS}",
            "-queue": _POPULAR,
            "-queue-subset": _POPULAR,
        },
    ),
    Claim(
        "most-at-speed",
        f"especially when speeds are high ({IN_MEMORY.words})",
        "see figures",
        _TWO_FIGURES,
        most_at_high_speed,
    ),
    Claim(
        "most-at-speed-queue",
        f"the same ({IN_QUEUE.words})",
        "see figures",
        _TWO_FIGURES,
        partial(most_at_high_speed, reading=IN_QUEUE),
        "PROB as above. Beyond V_opt both DUAL and RAND let rows in at a constant speed, whatever the streams': so is the lead",
    ),
    Claim(
        "uniform-rivals",
        f"On uniform keys PROB is as poor as RAND ({IN_MEMORY.words})",
        "equal",
        ("fig08",),
        uniform_prob_is_rand,
    ),
    Claim(
        "uniform-rivals-queue",
        f"the same ({IN_QUEUE.words})",
        "equal",
        ("fig08",),
        partial(uniform_prob_is_rand, reading=IN_QUEUE),
    ),
    *_much_better(
        "uniform-lead",
        "On uniform keys DUAL keeps its advantage",
        ("fig08",),
        {
            "": "the lead grows with speed",
            "-subset": f"as above, and {_LONG_WINDOWS}",
            "-queue": "over both it leads by what any choice of probes can lead by (below-bound): on uniform keys partners "
            "differ by chance alone, and little. COUNTS makes that chance larger: what is let in once attracts its partners",
        },
    ),
    Claim(
        "below-bound",
        "An optimal choice of probes is above DUAL (our bound; which rows are let in is chance)",
        "see figures",
        (*_TWO_FIGURES, "fig08"),
        partial(below, "BOUND"),
        "beyond V_opt both let rows in by lot, each by lots of its own: their means over five seeds differ by up to 3% either "
        "way, and a tie is 1%",
    ),
    Claim(
        "below-opt",
        "OPT, das2003's with less memory, is above DUAL",
        "see figures",
        (*_TWO_FIGURES, "fig08"),
        partial(below, "OPT, memory"),
        "up to about V_opt it is. Beyond, it must let every row in, as all methods of das2003, and has ever less memory to "
        "choose from, while DUAL gives rows up",
    ),
    *_much_better(
        "real",
        "On real temperatures DUAL is much better than PROB and RAND",
        ("fig09",),
        {
            "-subset": _LONG_WINDOWS,
            "-queue": "temperatures come in runs: what the table of a whole year calls popular is rare now. Yet the "
            "queue lets in few values, whose partners fill the windows (COUNTS: those of now). RAND is beaten as claimed",
            "-queue-subset": f"up to V_opt DUAL is ahead of both; {_LONG_WINDOWS}. RAND is beaten as claimed",
        },
    ),
)
