"""The integer codes of predicates, as kernels switch on them."""

from __future__ import annotations

# On numbers.
BAND = 0  # |left - right| <= bound
LESS = 1  # left < right + bound, and so on
LESS_EQUAL = 2
GREATER = 3
GREATER_EQUAL = 4
NOT_EQUAL = 5
# On sets; a single value is a set of one item.
SAME = 6
SUBSET = 7  # left in right
SUPERSET = 8  # right in left
OVERLAP = 9  # at least `bound` common items
# On weighted sets.
INNER = 10  # sum of products of the weights of common items >= bound

#: Codes below this look at a number, the others at items.
FIRST_OF_SETS = SAME

# How the opposite window is searched.
SCAN = 0
LISTS = 1
INDEXES = {"scan": SCAN, "lists": LISTS}
