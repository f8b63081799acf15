"""The online methods of importance2006 (section 4.3). Matches are estimated "solely from the sliding windows"."""

from __future__ import annotations

import shedjoin as sj
from shedjoin.lab.methods import Method, exact, online

#: By the paper's names, best first in its Figure 9. `PROB` here looks at what is in memory, not at the true table.
ONLINE: dict[str, sj.Policy] = {
    "DGL": sj.Dgl(),
    "DIMPPROB": sj.DimpProb(),
    "SIMPPROB": sj.SimpProb(),
    "PROB": sj.Prob(estimator=sj.InMemory()),
    "SIMP": sj.Simp(),
    "RAND": sj.Rand(),
}


def method(policy: sj.Policy) -> Method:
    """A policy with half of the memory for each stream."""
    return online(lambda workload: policy)


METHODS: dict[str, Method] = {"EXACT": exact, **{name: method(policy) for name, policy in ONLINE.items()}}
