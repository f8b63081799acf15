"""Witnesses: a sample of the rows, followed past their eviction, that counts the results that shedding costs.

What is estimated, and why it is unbiased, is in `shedjoin.recall.pairs`. Here is the machinery. Every row is remembered
with some probability when it arrives ("waiting"). If the shed log says that it was evicted, it becomes a witness: each
later row that would have met it adds one missing result to it. When no later row can meet it any more, what it counted is
folded into the totals and it is forgotten. A row that is never evicted is forgotten without a trace.

Most rows and most records of the shed log are none of a witness's business, and must be dismissed in a few nanoseconds.
So rows are taken in blocks of `block`, counted from the first row of all, and each block in three passes (`passes`): who is
drawn, who was shed, who is missed. A pass only lists the few that matter, without a branch to guess wrong, and then deals
with these. Probabilities change between blocks only (`upkeep`), so a block that is cut in two comes to the same.
"""

from shedjoin.recall.sample.counts import add_up, rescale, tally
from shedjoin.recall.sample.loop import follow, link_up
from shedjoin.recall.sample.state import FLOOR, LONGEST_BLOCK, STATE_RECORD, WITNESS_RECORD, Notes, Push, Sample

__all__ = [
    "FLOOR",
    "LONGEST_BLOCK",
    "STATE_RECORD",
    "WITNESS_RECORD",
    "Notes",
    "Push",
    "Sample",
    "add_up",
    "follow",
    "link_up",
    "rescale",
    "tally",
]
