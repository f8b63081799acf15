"""Live recall: which share of the results a running join has delivered, with a confidence interval."""

from shedjoin.recall.estimate import LIVE_COLUMNS as LIVE_COLUMNS
from shedjoin.recall.estimate import RecallEstimate as RecallEstimate
from shedjoin.recall.estimate import combine as combine
from shedjoin.recall.live import LiveRecall as LiveRecall
from shedjoin.recall.many import MultiRecall as MultiRecall
from shedjoin.recall.pairs import PairRecall as PairRecall
from shedjoin.recall.sampled import SampledRecall as SampledRecall
