"""How good an answer is: the error measures of das2003 section 2.2, on results and on shed logs."""

from typing import TYPE_CHECKING

from shedjoin.lazy import lazily

if TYPE_CHECKING:
    from shedjoin.quality.archive_metric import arm, incomplete_rows
    from shedjoin.quality.arrivals import Arrivals
    from shedjoin.quality.distances import emd, mac
    from shedjoin.quality.measures import (
        Comparison,
        Pairs,
        compare,
        cosine,
        dice,
        jaccard,
        matching,
        max_subset,
        overlap,
        symmetric_difference,
    )
    from shedjoin.quality.missing import exact_results, missing_counts, missing_results
    from shedjoin.quality.runs import distances_from_run, from_run
else:  # the same for Python: a name is imported when it is first asked for
    _NAMES = {
        "archive_metric": ["arm", "incomplete_rows"],
        "arrivals": ["Arrivals"],
        "distances": ["emd", "mac"],
        "measures": [
            "Comparison",
            "Pairs",
            "compare",
            "cosine",
            "dice",
            "jaccard",
            "matching",
            "max_subset",
            "overlap",
            "symmetric_difference",
        ],
        "missing": ["exact_results", "missing_counts", "missing_results"],
        "runs": ["distances_from_run", "from_run"],
    }
    __getattr__, __dir__ = lazily(__name__, _NAMES)

__all__ = [
    "Arrivals",
    "Comparison",
    "Pairs",
    "arm",
    "compare",
    "cosine",
    "dice",
    "distances_from_run",
    "emd",
    "exact_results",
    "from_run",
    "incomplete_rows",
    "jaccard",
    "mac",
    "matching",
    "max_subset",
    "missing_counts",
    "missing_results",
    "overlap",
    "symmetric_difference",
]
