"""shedjoin: sliding-window joins over streams under a budget.

Its names are in `__init__.pyi`; each is imported when it is first asked for.
"""

from shedjoin.lazy import lazily

__version__ = "0.2.0"
__getattr__, __dir__ = lazily(__name__, __file__)
