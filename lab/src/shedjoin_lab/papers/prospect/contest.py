"""One memory, all policies, and OPT: how much of the gap between the best of the papers and OPT does Prospect close?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import shedjoin as sj
from shedjoin_lab.experiment import Params, Row
from shedjoin_lab.papers.prospect.oracle import KNOWS_AHEAD, KNOWS_NOW, schedules
from shedjoin_lab.papers.prospect.streams import Stage

#: Memory as a share of what the exact join needs at most.
MEMORIES = (0.1, 0.25, 0.5)
ALLOCATIONS = ("fixed", "variable")
#: Decayed's half-lives, in windows.
HALF_LIVES = (1 / 64, 1 / 16, 1 / 4, 1, 4)
PROSPECT, OPT = "PROSPECT", "OPT"


def rivals(stage: Stage) -> Iterator[tuple[str, sj.Policy]]:
    """The papers' policies with every estimator, the true table where there is one."""
    yield "RAND", sj.Rand()
    yield "SIMPPROB", sj.SimpProb()
    for loss in (0.99, 0.999):
        yield f"DGL {loss}", sj.Dgl(loss=loss)
    estimators: dict[str, sj.Estimator] = {
        "History": sj.History(),
        "InWindow": sj.InWindow(),
        "InMemory": sj.InMemory(),
        "CountMin": sj.CountMin(width=256, depth=3),
        **{f"Decayed {part:g} w": sj.Decayed(part * stage.window) for part in HALF_LIVES},
    }
    if stage.workload.probabilities is not None:
        estimators["Table"] = stage.workload.table()
    for name, estimator in estimators.items():
        yield f"PROB {name}", sj.Prob(estimator)
        yield f"LIFE {name}", sj.Life(estimator)


def measure(params: Params, stage: Stage) -> list[Row]:
    """A row a method, on one workload within one memory."""
    p: dict[str, Any] = dict(params)
    left, right = stage.workload.streams[:2]
    window, warmup = sj.TimeWindow(stage.window), 2 * stage.window
    exact = sj.simulate(sj.JoinSpec(window), left, right, warmup=warmup)
    memory = max(4, int(p["part"] * exact.peak_tuples))
    budget = sj.Budget(tuples=memory, allocation=p["allocation"])

    def row(method: str, run: Any) -> Row:
        counted: Row = {"matches": int(run.matches), "exact": int(exact.matches), "tuples": memory}
        return {**params, "method": method, **counted}

    rows = [row(OPT, sj.optimum(sj.JoinSpec(window, budget), left, right, warmup=warmup))]
    for name, policy in (*rivals(stage), *schedules(stage, memory, p["allocation"]), (PROSPECT, sj.Prospect())):
        run = sj.simulate(sj.JoinSpec(window, budget, policy), left, right, warmup=warmup, seed=p["seed"])
        rows.append(row(name, run))
    return rows


def contests(rows: list[Row]) -> list[Row]:
    """One row a contest: the best of the papers, chosen afterwards; OPT; and how much of the gap Prospect and oracles close."""
    by_place: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in rows:
        place = tuple(row[name] for name in ("workload", "part", "allocation", "seed"))
        by_place.setdefault(place, {})[str(row["method"])] = int(str(row["matches"]))
    found = []
    for (workload, part, allocation, seed), matches in by_place.items():
        if PROSPECT not in matches or OPT not in matches:
            continue
        opt = matches.pop(OPT)
        # Oracles are told what no policy can know: they are no rivals.
        told = {name: matches.pop(name) for name in (PROSPECT, KNOWS_NOW, KNOWS_AHEAD) if name in matches}
        best = max(matches, key=lambda name: matches[name])
        gap = opt - matches[best]
        closed = {name: (count - matches[best]) / gap if gap > 0 else 0.0 for name, count in told.items()}
        found.append(
            {
                "workload": workload,
                "part": part,
                "memory": f"{part:.0%}",
                "allocation": allocation,
                "seed": seed,
                "best": best,
                "best_of_opt": matches[best] / opt,
                "ours_of_opt": told[PROSPECT] / opt,
                "closed": closed[PROSPECT],
                "known_now": closed.get(KNOWS_NOW),
                "known_ahead": closed.get(KNOWS_AHEAD),
            }
        )
    return found
