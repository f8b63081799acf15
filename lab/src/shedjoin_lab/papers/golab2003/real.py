"""N-way joins of real streams: the exact sizes, and what is left of them with half the memory."""

from __future__ import annotations

import shedjoin as sj
from shedjoin.workloads import Workload
from shedjoin_lab.experiment import Row

#: The share of the memory that the exact join needs at its peak.
SHARES = {"EXACT": None, "PROB": 0.5, "PROBV": 0.5, "RAND": 0.5}


def joined(workload: Workload, window: int, method: str, seed: int) -> Row:
    """Results of all streams within a window, exactly or with half the memory."""
    tables = {f"s{number + 1}": columns for number, columns in enumerate(workload.streams)}
    windows = dict.fromkeys(tables, sj.TimeWindow(window))
    exact = sj.MultiJoinSpec(windows=windows, on="key")
    run = sj.simulate_multi(exact, tables, seed=seed)
    share = SHARES[method]
    if share is not None:
        allocation = "variable" if method.endswith("V") else "fixed"
        budget = sj.Budget(tuples=max(len(tables), int(share * run.peak_tuples)), allocation=allocation)
        policy = sj.Rand() if method == "RAND" else sj.Prob(sj.InWindow())
        whole = run
        spec = sj.MultiJoinSpec(windows=windows, on="key", budget=budget, policy=policy)
        run = sj.simulate_multi(spec, tables, seed=seed)
        return {"matches": run.results, "peak_tuples": run.peak_tuples, "share": run.results / max(whole.results, 1)}
    return {"matches": run.results, "peak_tuples": run.peak_tuples, "share": 1.0}
