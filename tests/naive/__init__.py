"""The slow, obvious twin of the engine: docs/semantics.md in plain Python, step by step, with scans for everything.

Nothing is kept that can be worked out again. Numbers are Python's ints and floats, and every formula has the operations
of the page in the order of the page, so that ties and near ties fall as they do in a compiled kernel.
"""

from naive.arithmetic import Generator
from naive.exact import exact_needs, exact_pairs, exact_records, missing_pairs, place
from naive.rows import Output, Record, Row, cut, instant_borders, interleave
from naive.twin import Twin

__all__ = [
    "Generator",
    "Output",
    "Record",
    "Row",
    "Twin",
    "cut",
    "exact_needs",
    "exact_pairs",
    "exact_records",
    "instant_borders",
    "interleave",
    "missing_pairs",
    "place",
]
