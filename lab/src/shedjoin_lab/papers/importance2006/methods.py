"""The methods of importance2006. Online ones (section 4.3) estimate matches "solely from the sliding windows"."""

from __future__ import annotations

from typing import Any

import numpy as np

import shedjoin as sj
from shedjoin.workloads import Workload
from shedjoin_lab.methods import Method, Setting, best, exact, online
from shedjoin_lab.papers.importance2006.printed_graph import esja_as_printed, odja_two_instants

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


def odja(workload: Workload, setting: Setting) -> Any:
    """The optimum by dynamic programming over memory states (section 4.2)."""
    spec = sj.JoinSpec(
        window=sj.TimeWindow(setting.window), budget=sj.Budget(tuples=setting.memory or 0, allocation="fixed")
    )
    return sj.odja(spec, workload.left, workload.right, warmup=setting.warmup)


def rand_input(workload: Workload, setting: Setting) -> Any:
    """RAND that "drops input tuples": M / 2w of each stream are let in by lot, and are kept for their whole life."""
    rng = np.random.default_rng([setting.seed, 13])
    part = (setting.memory or 0) / (2 * setting.window)
    left, right = (
        {name: column[let_in] for name, column in stream.items()}
        for stream in workload.streams
        for let_in in [rng.random(stream["key"].size) < part]
    )
    spec = sj.JoinSpec(window=sj.TimeWindow(setting.window))
    return sj.simulate(spec, left, right, warmup=setting.warmup)


#: OPT and ESJA are one, the flow of most importance; SJA is das2003's OPT, which counts results. The last two are what
#: importance2006 measured, for times and memory.
OFFLINE: dict[str, Method] = {
    "OPT": best("importance"),
    "ESJA": best("importance"),
    "ODJA": odja,
    "SJA": best("matches"),
    "ESJA, printed": esja_as_printed,
    "ODJA, two instants": odja_two_instants,
}
METHODS: dict[str, Method] = {
    "EXACT": exact,
    "RAND, input": rand_input,
    **OFFLINE,
    **{name: method(policy) for name, policy in ONLINE.items()},
}
