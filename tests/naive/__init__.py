"""The slow, obvious twin of the engine: docs/semantics.md and decision 017 in plain Python, step by step, with scans.

Nothing is kept that can be worked out again. Numbers are Python's ints and floats, and every formula has the operations
of the page in the order of the page, so that ties and near ties fall as they do in a compiled kernel.

`rows` is what goes through, `join` the dials, `conditions` which tuples go together and what they can expect (`formula`:
`where`), `weights` the estimators (`learned`: Prospect), `order` the policies, `admission` the queue (`aux_window`: dual
windows), `selection` the part of the windows that rows are compared with, `twin` the loop, `exact` the exact join and what is
missing from it.
"""

from naive.arithmetic import Generator
from naive.conditions import Condition, Graph, Key, common_column, fits, on
from naive.exact import Completed, cause, completed, exact, exact_needs, missing, numbers, place, without_limits
from naive.formula import Conditional, draw_tree, text, truth
from naive.join import Dual, Join
from naive.rows import LeftOut, Output, Record, Result, Row, Stored, cut, instant_borders, instants, interleave
from naive.twin import Twin

__all__ = [
    "Completed",
    "Condition",
    "Conditional",
    "Dual",
    "Generator",
    "Graph",
    "Join",
    "Key",
    "LeftOut",
    "Output",
    "Record",
    "Result",
    "Row",
    "Stored",
    "Twin",
    "cause",
    "common_column",
    "completed",
    "cut",
    "draw_tree",
    "exact",
    "exact_needs",
    "fits",
    "instant_borders",
    "instants",
    "interleave",
    "missing",
    "numbers",
    "on",
    "place",
    "text",
    "truth",
    "without_limits",
]
