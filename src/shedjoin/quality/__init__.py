"""The quality of a result: the error measures of das2003 section 2.2, on results and on shed logs.

Its names are in `__init__.pyi`; each is imported when it is first asked for.
"""

from shedjoin.lazy import lazily

__getattr__, __dir__ = lazily(__name__, __file__)
