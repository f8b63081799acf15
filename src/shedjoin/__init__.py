"""shedjoin: sliding-window joins over streams under a budget."""

from typing import TYPE_CHECKING

from shedjoin.lazy import lazily

if TYPE_CHECKING:
    from shedjoin.batch import ROW_BYTES, Batch
    from shedjoin.budget import Budget
    from shedjoin.cpu.settings import Deadline, Dual, Queue, Selective, VirtualCpu
    from shedjoin.engine.codes import WHY
    from shedjoin.engine.engine import Engine
    from shedjoin.engine.output import LeftOutLog, Output, ShedLog
    from shedjoin.engine.reordering import Reordering
    from shedjoin.errors import DataError, EnvironmentProblem, InputError, ShedjoinError, SnapshotError, SpecError
    from shedjoin.estimators import CountMin, Decayed, Estimator, History, InMemory, InWindow, Met, Table
    from shedjoin.joins import DualJoin, PredicateJoin, best_speed
    from shedjoin.multi import MultiJoinSpec, MultiRun, simulate_multi
    from shedjoin.offline import Optimum, Truncated, odja, optimum, truncated_join, truncated_joins
    from shedjoin.planner import Plan, plan
    from shedjoin.policies import (
        Additive,
        Cumulative,
        Dgl,
        DimpProb,
        KeepAll,
        Life,
        Multiplicative,
        Policy,
        Prob,
        Prospect,
        Rand,
        Replay,
        Simp,
        SimpProb,
    )
    from shedjoin.predicates import (
        Band,
        Equal,
        InnerProduct,
        Overlap,
        Predicate,
        SameSet,
        Sets,
        Subset,
        Superset,
        Theta,
    )
    from shedjoin.simulation import Run, simulate
    from shedjoin.spec import JoinSpec
    from shedjoin.window import UNLIMITED, RowWindow, TimeWindow
else:  # the same for Python: a name is imported when it is first asked for
    _NAMES = {
        "batch": ["ROW_BYTES", "Batch"],
        "budget": ["Budget"],
        "cpu.settings": ["Deadline", "Dual", "Queue", "Selective", "VirtualCpu"],
        "engine.codes": ["WHY"],
        "engine.engine": ["Engine"],
        "engine.output": ["LeftOutLog", "Output", "ShedLog"],
        "engine.reordering": ["Reordering"],
        "errors": ["DataError", "EnvironmentProblem", "InputError", "ShedjoinError", "SnapshotError", "SpecError"],
        "estimators": ["CountMin", "Decayed", "Estimator", "History", "InMemory", "InWindow", "Met", "Table"],
        "joins": ["DualJoin", "PredicateJoin", "best_speed"],
        "multi": ["MultiJoinSpec", "MultiRun", "simulate_multi"],
        "offline": ["Optimum", "Truncated", "odja", "optimum", "truncated_join", "truncated_joins"],
        "planner": ["Plan", "plan"],
        "policies": [
            "Additive",
            "Cumulative",
            "Dgl",
            "DimpProb",
            "KeepAll",
            "Life",
            "Multiplicative",
            "Policy",
            "Prob",
            "Prospect",
            "Rand",
            "Replay",
            "Simp",
            "SimpProb",
        ],
        "predicates": [
            "Band",
            "Equal",
            "InnerProduct",
            "Overlap",
            "Predicate",
            "SameSet",
            "Sets",
            "Subset",
            "Superset",
            "Theta",
        ],
        "simulation": ["Run", "simulate"],
        "spec": ["JoinSpec"],
        "window": ["UNLIMITED", "RowWindow", "TimeWindow"],
    }
    __getattr__, __dir__ = lazily(__name__, _NAMES)

__version__ = "0.1.0"

__all__ = [
    "ROW_BYTES",
    "UNLIMITED",
    "WHY",
    "Additive",
    "Band",
    "Batch",
    "Budget",
    "CountMin",
    "Cumulative",
    "DataError",
    "Deadline",
    "Decayed",
    "Dgl",
    "DimpProb",
    "Dual",
    "DualJoin",
    "Engine",
    "EnvironmentProblem",
    "Equal",
    "Estimator",
    "History",
    "InMemory",
    "InWindow",
    "InnerProduct",
    "InputError",
    "JoinSpec",
    "KeepAll",
    "LeftOutLog",
    "Life",
    "Met",
    "MultiJoinSpec",
    "MultiRun",
    "Multiplicative",
    "Optimum",
    "Output",
    "Overlap",
    "Plan",
    "Policy",
    "Predicate",
    "PredicateJoin",
    "Prob",
    "Prospect",
    "Queue",
    "Rand",
    "Reordering",
    "Replay",
    "RowWindow",
    "Run",
    "SameSet",
    "Selective",
    "Sets",
    "ShedLog",
    "ShedjoinError",
    "Simp",
    "SimpProb",
    "SnapshotError",
    "SpecError",
    "Subset",
    "Superset",
    "Table",
    "Theta",
    "TimeWindow",
    "Truncated",
    "VirtualCpu",
    "best_speed",
    "odja",
    "optimum",
    "plan",
    "simulate",
    "simulate_multi",
    "truncated_join",
    "truncated_joins",
]
