"""What was asked of estimates, and what our rows say."""

from __future__ import annotations

from shedjoin_lab.claims import Claim, Finding
from shedjoin_lab.experiment import Row
from shedjoin_lab.papers.estimates.accuracy import in_per_cent
from shedjoin_lab.summary import number

#: Intervals of 95% are to hold this often, in per cent.
LOW, HIGH = 93.0, 97.0
SKEWED = ("Zipf 1, equal ranks", "Zipf 1, permuted ranks")
_CHANCE = "200 seeds tell a ratio of two errors to about 7%"


def _hold(rows: list[Row]) -> Finding:
    found = {f"{row['workload']}, {row['method']}": row["covered"] for row in in_per_cent(rows)}
    shares = {
        name: float(str(share)) for name, share in found.items() if share == share
    }  # NaN: there were no intervals
    low, high = min(shares.values()), max(shares.values())
    return Finding(f"{low:.1f}% to {high:.1f}%", {name: LOW <= share <= HIGH for name, share in shares.items()})


def _ratios(rows: list[Row], workloads: tuple[str, ...], most: float) -> Finding:
    """The error of the total by Sample, divided by that of uniform sampling."""
    errors = {(row["workload"], row["part"], row["method"]): number(row, "total") for row in in_per_cent(rows)}
    ratios = {
        f"{workload}, memory {part}": error / errors[workload, part, "uniform sampling"]
        for (workload, part, method), error in errors.items()
        if method == "Sample" and workload in workloads
    }
    ours = f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f}"
    return Finding(ours, {name: ratio <= most for name, ratio in ratios.items()})


def _near_prob(rows: list[Row], method: str) -> Finding:
    recall = {(row["workload"], row["part"], row["method"]): number(row, "recall") for row in in_per_cent(rows)}
    behind = {
        f"{workload}, memory {part}": value - recall[workload, part, method]
        for (workload, part, other), value in recall.items()
        if other == "PROB / live recall"
    }
    ours = f"up to {max(behind.values()):.1f} points below"
    return Finding(ours, {name: points <= 5.0 for name, points in behind.items()})


CLAIMS = (
    Claim(
        "intervals-hold",
        "The 95% intervals of counts hold, of groups with 10 effective rows and more",
        "93% to 97%",
        ("coverage",),
        _hold,
        "rows of very few keys have sums with long tails",
    ),
    Claim(
        "less-than-uniform",
        "On Zipf 1 the error of the total is at most 0.6 of that of uniform sampling, at memories of a tenth to a half",
        "<= 0.6",
        ("against_uniform",),
        lambda rows: _ratios(rows, SKEWED, 0.6),
        _CHANCE,
    ),
    Claim(
        "as-good-on-uniform-keys",
        "On uniform keys it is at most 1.05 of it",
        "<= 1.05",
        ("against_uniform",),
        lambda rows: _ratios(rows, ("Zipf 0, equal ranks",), 1.05),
        _CHANCE,
    ),
    Claim(
        "recall-near-prob",
        "With keep=0.5 recall is at most 5 points below that of PROB",
        "<= 5 points",
        ("accuracy",),
        lambda rows: _near_prob(rows, "Sample, keep=0.5"),
        "half of the memory is a sample: PROB fills it with the most likely rows, and a sample must have others too",
    ),
    Claim(
        "recall-near-prob-with-nine-tenths",
        "With keep=0.9 recall is at most 5 points below that of PROB",
        "<= 5 points",
        ("accuracy",),
        lambda rows: _near_prob(rows, "Sample, keep=0.9"),
        "a tenth of the memory is a sample",
    ),
)
