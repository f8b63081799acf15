"""The methods of das2003. PROB and LIFE know the true probability of every key, as in the paper's experiments."""

from __future__ import annotations

import shedjoin as sj
from shedjoin.workloads import Workload
from shedjoin_lab.methods import Method, best, exact, online


def _rand(workload: Workload) -> sj.Policy:
    del workload
    return sj.Rand()


def _prob(workload: Workload) -> sj.Policy:
    return sj.Prob(estimator=workload.table())


def _life(workload: Workload) -> sj.Policy:
    return sj.Life(estimator=workload.table())


#: By the paper's names; those that end in V share one memory between the streams (section 4.3).
METHODS: dict[str, Method] = {
    "EXACT": exact,
    "OPT": best(),
    "RAND": online(_rand),
    "PROB": online(_prob),
    "LIFE": online(_life),
    "OPTV": best(allocation="variable"),
    "RANDV": online(_rand, "variable"),
    "PROBV": online(_prob, "variable"),
    "LIFEV": online(_life, "variable"),
}
