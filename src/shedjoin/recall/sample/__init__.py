"""The recall sample: rows that are followed past their eviction, to count the results that shedding costs.

`shedjoin.recall.pairs` says what is estimated and why the estimate is unbiased. This package has the kernels.

1. An arriving row enters the sample with some probability. Its state is STORED.
2. When the shed log says that the row was evicted, its state becomes SHED. Each later row that would have joined it adds one
   missing result to its counts.
3. When no later row can join it, its counts are added to the totals and it is removed. A row that is never shed is removed
   without being counted.

Most rows and most records of the shed log do not concern the sample, and must be skipped in a few nanoseconds. So rows are
processed in blocks of `block` rows, numbered from the first row of the stream, with three passes a block (`passes`): sample
rows, read the shed log, count missing results. Each pass first selects the few rows that matter, without branches, and then
processes those. Probabilities change between blocks only (`upkeep`), so pushes may cut a block anywhere.
"""
