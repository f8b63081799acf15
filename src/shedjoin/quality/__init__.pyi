"""How good an answer is: the error measures of das2003 section 2.2, on results and on shed logs."""

from shedjoin.quality.archive_metric import arm as arm
from shedjoin.quality.archive_metric import incomplete_rows as incomplete_rows
from shedjoin.quality.arrivals import Arrivals as Arrivals
from shedjoin.quality.distances import emd as emd
from shedjoin.quality.distances import mac as mac
from shedjoin.quality.measures import Comparison as Comparison
from shedjoin.quality.measures import Pairs as Pairs
from shedjoin.quality.measures import compare as compare
from shedjoin.quality.measures import cosine as cosine
from shedjoin.quality.measures import dice as dice
from shedjoin.quality.measures import jaccard as jaccard
from shedjoin.quality.measures import matching as matching
from shedjoin.quality.measures import max_subset as max_subset
from shedjoin.quality.measures import overlap as overlap
from shedjoin.quality.measures import symmetric_difference as symmetric_difference
from shedjoin.quality.missing import exact_results as exact_results
from shedjoin.quality.missing import missing_counts as missing_counts
from shedjoin.quality.missing import missing_results as missing_results
from shedjoin.quality.runs import distances_from_run as distances_from_run
from shedjoin.quality.runs import from_run as from_run
