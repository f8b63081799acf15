"""What was asked of our answers, and what our rows say."""

from __future__ import annotations

from shedjoin.plots.summary import where
from shedjoin_lab.agreement import above, alike, at_least
from shedjoin_lab.claims import Claim, Finding
from shedjoin_lab.experiment import Row
from shedjoin_lab.papers.open.archive import RANKS
from shedjoin_lab.papers.open.index import STREAMS
from shedjoin_lab.papers.open.top import GROUPS
from shedjoin_lab.summary import mean, number


def archive_keys(rows: list[Row]) -> Finding:
    """KEYS leaves no more incomplete tuples than PROB, LIFE and RAND."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for ranks, title in RANKS.items():
        for memory in sorted({number(row, "memory") for row in rows}):
            found = {
                method: mean(rows, "incomplete", method=method, ranks=ranks, memory=memory).value
                for method in ("KEYS", "PROB", "LIFE", "RAND", "BOUND")
            }
            places |= {
                f"{title}, M {memory:g}, {method}": at_least(found[method], found["KEYS"])
                for method in ("PROB", "LIFE", "RAND")
            }
            texts.append(
                f"{title}, M {memory:g}: " + ", ".join(f"{method} {one:,.0f}" for method, one in found.items())
            )
    return Finding("; ".join(texts), places)


def archive_bound(rows: list[Row]) -> Finding:
    """No policy is below the bound, in any run."""
    least = {
        (row["ranks"], row["memory"], row["seed"]): number(row, "incomplete")
        for row in rows
        if row["method"] == "BOUND"
    }
    ratios = [
        number(row, "incomplete") / max(1.0, least[row["ranks"], row["memory"], row["seed"]])
        for row in rows
        if row["method"] != "BOUND"
    ]
    return Finding(f"at least {min(ratios):.2f} times the bound", min(ratios) >= 1.0)


def shared_gain(rows: list[Row]) -> Finding:
    """Parts by marginal gain yield more than equal parts and parts by window, at every memory."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for share in sorted({number(row, "share_of_need") for row in rows}):
        gain, *others = (
            (method, mean(rows, "share", method=method, share_of_need=share))
            for method in ("BY GAIN", "EQUAL", "BY WINDOW")
        )
        places |= {f"{share:g} of the need, {method}": above(gain[1], one) for method, one in others}
        texts.append(f"{share:g}: " + ", ".join(f"{method} {one.percent()}" for method, one in (gain, *others)))
    return Finding("; ".join(texts), places)


def shared_expected(rows: list[Row]) -> Finding:
    """What key probabilities promise is what PROB yields."""
    places = {}
    worst = 0.0
    for row in rows:
        ours, expected = number(row, "share"), number(row, "expected")
        places[f"{row['method']}, {row['share_of_need']}, seed {row['seed']}"] = alike(ours, expected)
        worst = max(worst, abs(ours / expected - 1.0))
    return Finding(f"off by at most {100 * worst:.1f}%", places)


def index_gain(rows: list[Row]) -> Finding:
    """Indexes by cost are at least as fast as indexes on the largest windows that fit."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for streams in STREAMS:
        ratios = []
        for share in sorted({number(row, "share_of_need") for row in rows}):
            ours, rule = (
                mean(rows, "rate", method=method, streams=streams, share_of_need=share)
                for method in ("BY COST", "LARGEST")
            )
            places[f"{streams}, {share:g}"] = at_least(ours, rule)
            ratios.append(f"{share:g}: {ours.value / rule.value:.2f}")
        texts.append(f"{streams} {', '.join(ratios)}")
    return Finding(f"times LARGEST: {'; '.join(texts)}", places)


def top_is_certain(rows: list[Row]) -> Finding:
    """In at least 95% of the runs all groups that are called certain are among the ten with most results."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for method in ("Sample", "uniform"):
        for by, text in GROUPS.items():
            some = where(rows, method=method, by=by)
            runs, wrong = (sum(number(row, name) for row in some) for name in ("lots", "wrong"))
            places[f"{method}, {text}"] = wrong <= 0.05 * runs
            texts.append(f"{method}, {text}: wrong in {wrong:.0f} of {runs:.0f} runs")
    return Finding("; ".join(texts), places)


def top_is_precise(rows: list[Row]) -> Finding:
    """Sample's ten groups are at least as often right as PROB's and those of uniform sampling, at every memory."""
    texts: list[str] = []
    places: dict[str, bool] = {}
    for by, text in GROUPS.items():
        for ranks, title in RANKS.items():
            parts = []
            for part in sorted({number(row, "part") for row in rows}):
                found = {
                    method: mean(rows, "precision", method=method, by=by, ranks=ranks, part=part)
                    for method in ("Sample", "PROB", "uniform")
                }
                places |= {
                    f"{text}, {title}, memory {part:g}, {rival}": at_least(found["Sample"], found[rival])
                    for rival in ("PROB", "uniform")
                }
                parts.append(f"{part:g}: " + ", ".join(f"{method} {one.percent()}" for method, one in found.items()))
            texts.append(f"{text}, {title}: {'; '.join(parts)}")
    return Finding(". ".join(texts), places)


CLAIMS = (
    Claim(
        "archive-keys",
        "(ours) Giving up whole keys leaves no more incomplete tuples than PROB, LIFE and RAND",
        "asked: no more",
        ("archive",),
        archive_keys,
    ),
    Claim("archive-bound", "(ours) No policy leaves fewer than the bound", "asked: none", ("archive",), archive_bound),
    Claim(
        "shared-gain",
        "(ours) One memory for several joins: parts by marginal gain yield more than equal parts and parts by window",
        "asked: more",
        ("shared",),
        shared_gain,
    ),
    Claim(
        "shared-expected",
        "(ours) PROB yields what key probabilities promise",
        "asked: alike",
        ("shared",),
        shared_expected,
    ),
    Claim(
        "index-gain",
        "(ours) Indexes chosen by the cost model are at least as fast as indexes on the largest windows that fit",
        "asked: at least as fast",
        ("index",),
        index_gain,
    ),
    Claim(
        "top-certain",
        "(ours) Groups that are called certain are among the ten with most results",
        "asked: in 95% of the runs",
        ("top",),
        top_is_certain,
    ),
    Claim(
        "top-precision",
        "(ours) The ten groups that Sample finds are at least as often right as those of PROB and of uniform sampling",
        "asked: at least as often",
        ("top",),
        top_is_precise,
        "with equal ranks Sample gives most memory to the largest keys, whose places are not in doubt, and less to those near "
        "the tenth place than uniform sampling does; where PROB is ahead, it is by less than the spread over streams",
    ),
)
