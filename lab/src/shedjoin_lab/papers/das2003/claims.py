"""What das2003 claims, and who judges it."""

from __future__ import annotations

from shedjoin_lab.agreement import alike, far_above
from shedjoin_lab.claims import Claim
from shedjoin_lab.papers.das2003.judges import (
    HalfMemory,
    NearOpt,
    OptMeetsExact,
    Ratio,
    RealMemoryEven,
    RealSame,
    ShareOfOpt,
    SkewedStreamShare,
    VariableAtMost,
    correlation_alike,
    domain_parts,
    half_memory_real,
    rand_linear,
    real_far_above_rand,
    uniform_equal,
    variable_grows,
    window_alike,
)
from shedjoin_lab.papers.das2003.weather import HALVES, YEARS_APART

_LIFE = (
    "not explained. LIFE is t * p as in section 3.3.2 and agrees with the slow twin. It is near RAND only at low skew; with "
    "growing skew it takes over more and more of PROB's lead (fig06)"
)
_BOUND = "PROB keeps about all that a choice by key probabilities can keep (the expectation beside each value): no room is left"
_FAR_FROM_OPT = (
    "foreknowledge is worth more than the paper found: PROB keeps about all that key probabilities allow (see half-memory), "
    "and OPT also knows when the next partner comes"
)
_OTHER_DATA = (
    "the paper joins cloud reports of NDP-026B, which are not here. Ours are ship reports of two other years, and how alike two "
    "years are decides; the lines marked (ours) have two halves of one year"
)
CLAIMS = (
    Claim(
        "prob-above-rand",
        "PROB by far outperforms RAND (M up to w)",
        "“by far”",
        ("fig03", "fig04"),
        Ratio("PROB", "RAND", far_above),
    ),
    Claim(
        "prob-above-life",
        "PROB by far outperforms LIFE (M up to w)",
        "“by far”",
        ("fig03", "fig04"),
        Ratio("PROB", "LIFE", far_above),
        _LIFE,
    ),
    Claim(
        "life-near-rand",
        "LIFE is only marginally better than RAND",
        "“marginally”",
        ("fig03", "fig04"),
        Ratio("LIFE", "RAND", alike),
        _LIFE,
    ),
    Claim(
        "prob-near-opt",
        "PROB is very close to OPT at every memory size (equal ranks)",
        "“very close”",
        ("fig03", "fig04"),
        NearOpt("correlated"),
    ),
    Claim(
        "prob-near-opt-permuted-ranks",
        "the same with ranks permuted at random",
        "“very close”",
        ("fig03", "fig04"),
        NearOpt("uncorrelated"),
        _FAR_FROM_OPT,
    ),
    Claim("rand-linear", "RAND's output is linear in M", "linear", ("fig03", "fig04", "fig05"), rand_linear),
    Claim(
        "window-alike",
        "relative performance does not change with the window",
        "“similar”",
        ("fig03", "fig04"),
        window_alike,
    ),
    Claim("uniform-equal", "uniform keys: all online methods yield the same", "equal", ("fig05",), uniform_equal),
    Claim(
        "prob-96-of-opt",
        "M = w, moderate to high skew: PROB yields over 96% of OPT (equal ranks, Zipf 1 and above)",
        "> 96%",
        ("fig06",),
        ShareOfOpt("correlated"),
        _FAR_FROM_OPT,
    ),
    Claim(
        "prob-96-of-opt-permuted-ranks",
        "the same with ranks permuted at random",
        "> 96%",
        ("fig06",),
        ShareOfOpt("uncorrelated"),
        _FAR_FROM_OPT,
    ),
    Claim(
        "correlation-alike",
        "correlated and anti-correlated streams give almost the same shares of OPT",
        "“almost identical”",
        ("fig06",),
        correlation_alike,
        "not explained; likely because results are few where the popular keys of one stream are rare in the other, and "
        "foreknowledge of their times is worth more",
    ),
    Claim(
        "half-memory-equal-ranks",
        "skewed data, half the memory: PROB yields over 90% of EXACT (equal ranks, Zipf 1 and above)",
        "> 90%",
        ("fig06",),
        HalfMemory("correlated"),
        _BOUND,
    ),
    Claim(
        "half-memory-permuted-ranks",
        "the same with ranks permuted at random",
        "> 90%",
        ("fig06",),
        HalfMemory("uncorrelated"),
        _BOUND,
    ),
    Claim(
        "half-memory-real",
        "real weather data, half the memory: PROB and PROBV yield over 90% of EXACT",
        "> 90%",
        ("fig07",),
        half_memory_real,
        untestable=_OTHER_DATA,
    ),
    Claim(
        "real-above-rand",
        "real weather data: PROB far above RAND (M up to w)",
        "as in Fig 3, 4",
        ("fig07",),
        real_far_above_rand,
        untestable=_OTHER_DATA,
    ),
    Claim(
        "real-fixed-variable",
        "real weather data: PROB and PROBV are almost identical",
        "“almost identical”",
        ("fig07",),
        RealSame(YEARS_APART),
        untestable=_OTHER_DATA,
    ),
    Claim(
        "real-fixed-variable-control",
        "(ours) the same on streams of one distribution: the even and odd reports of 1942",
        "“almost identical”",
        ("fig07",),
        RealSame(HALVES),
    ),
    Claim(
        "real-memory-even",
        "real weather data: the streams share the memory about half and half all the time",
        "50-50",
        ("fig08",),
        RealMemoryEven(YEARS_APART),
        untestable=_OTHER_DATA,
    ),
    Claim(
        "real-memory-even-control",
        "(ours) the same on the even and odd reports of 1942",
        "50-50",
        ("fig08",),
        RealMemoryEven(HALVES),
    ),
    Claim(
        "variable-at-most-10",
        "variable shares are better than fixed ones, by at most 10% (Zipf up to 1)",
        "0 to 10%",
        ("fixed_vs_variable",),
        VariableAtMost(1.0),
    ),
    Claim(
        "variable-at-most-10-to-zipf-2",
        "the same with Zipf up to 2",
        "0 to 10%",
        ("fixed_vs_variable",),
        VariableAtMost(2.0),
        "the paper does not say how far its skews went; its other experiments use Zipf 1, and up to there it holds",
    ),
    Claim(
        "variable-grows",
        "the gain of variable shares grows with the difference in skew",
        "grows",
        ("fixed_vs_variable",),
        variable_grows,
    ),
    Claim(
        "skewed-stream-share",
        "“as a tendency” the more skewed stream gets more memory, up to 75% (Zipf up to 1)",
        "up to 75%",
        ("fixed_vs_variable",),
        SkewedStreamShare(1.0),
        "so it is at M = w; at M = w/2 a stream of moderate skew has less than half beside a uniform one",
    ),
    Claim(
        "skewed-stream-share-to-zipf-2",
        "the same with Zipf up to 2",
        "up to 75%",
        ("fixed_vs_variable",),
        SkewedStreamShare(2.0),
        "as above: beyond Zipf 1 the share goes on growing",
    ),
    Claim(
        "domain-200-exact",
        "domain 200: OPT meets EXACT at M = w (ranks permuted at random)",
        "equal",
        ("fig11",),
        OptMeetsExact("uncorrelated"),
        "nearly: keys that are popular in both streams by chance have more tuples with a partner to come than fit",
    ),
    Claim(
        "domain-200-exact-equal-ranks",
        "the same with equal ranks",
        "equal",
        ("fig11",),
        OptMeetsExact("correlated"),
        "popular keys are popular in both streams, so more tuples have a partner to come than fit into the memory",
    ),
    Claim(
        "domain-parts",
        "a growing domain parts PROB from OPT and brings OPT to EXACT",
        "grows",
        ("fig09", "fig10", "fig11"),
        domain_parts,
    ),
)
