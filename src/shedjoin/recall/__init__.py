"""Live recall: which share of the results a running join has delivered, with a confidence interval.

Its names are in `__init__.pyi`; each is imported when it is first asked for.
"""

from shedjoin.lazy import lazily

__getattr__, __dir__ = lazily(__name__, __file__)
