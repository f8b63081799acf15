"""Random joins for hypothesis: every policy, estimator, allocation and window, on inputs full of ties and trouble; and
how a case is run on the engine.

Domains are small on purpose: few keys, few importances and rows of equal time make ties, and ties are where a heap and
a scan part ways.
"""

from shedjoin.budget import ALLOCATIONS
from strategies.combinations import (
    CHOOSERS,
    EVERY_CHOOSER,
    EXACT,
    HALVES,
    INTERPRETED,
    REPRESENTATIVES,
    WINDOWS,
    Chooser,
    Combination,
    choosers,
    share,
)
from strategies.joins import (
    LONG_SHAPE,
    Case,
    cases,
    cases_of,
    changing_cases,
    learning_cases,
    long_case,
    punctual_cases,
)
from strategies.rows import lay_out
from strategies.runner import for_all
from strategies.runs import (
    Told,
    batch,
    columns_of,
    go_on,
    pairs_of,
    records,
    results_of,
    run_engine,
    shed_by,
    side_table,
    told,
)
from strategies.specs import policies

__all__ = [
    "ALLOCATIONS",
    "CHOOSERS",
    "EVERY_CHOOSER",
    "EXACT",
    "HALVES",
    "INTERPRETED",
    "LONG_SHAPE",
    "REPRESENTATIVES",
    "WINDOWS",
    "Case",
    "Chooser",
    "Combination",
    "Told",
    "batch",
    "cases",
    "cases_of",
    "changing_cases",
    "choosers",
    "columns_of",
    "for_all",
    "go_on",
    "lay_out",
    "learning_cases",
    "long_case",
    "pairs_of",
    "policies",
    "punctual_cases",
    "records",
    "results_of",
    "run_engine",
    "share",
    "shed_by",
    "side_table",
    "told",
]
