"""Live recall: which share of the results a running join has delivered, with a confidence interval."""

from typing import TYPE_CHECKING

from shedjoin.lazy import lazily

if TYPE_CHECKING:
    from shedjoin.recall.estimate import LIVE_COLUMNS, RecallEstimate, combine
    from shedjoin.recall.live import LiveRecall
    from shedjoin.recall.many import MultiRecall
    from shedjoin.recall.pairs import PairRecall
    from shedjoin.recall.sampled import SampledRecall
else:  # Python imports a name when it is first used
    _NAMES = {
        "estimate": ["LIVE_COLUMNS", "RecallEstimate", "combine"],
        "live": ["LiveRecall"],
        "many": ["MultiRecall"],
        "pairs": ["PairRecall"],
        "sampled": ["SampledRecall"],
    }
    __getattr__, __dir__ = lazily(__name__, _NAMES)

__all__ = [
    "LIVE_COLUMNS",
    "LiveRecall",
    "MultiRecall",
    "PairRecall",
    "RecallEstimate",
    "SampledRecall",
    "combine",
]
