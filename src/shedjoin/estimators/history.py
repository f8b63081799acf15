"""Counts of everything so far: das2003's "history to predict the future"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shedjoin.engine.codes import HISTORY
from shedjoin.estimators.base import Estimator


@dataclass(frozen=True, slots=True)
class History(Estimator):
    """The number of rows of a key so far. Stores every key that ever arrived; `CountMin` is the bounded form.

    References
    ----------
    das2003, section 3.3.1.
    """

    name: ClassVar[str] = "history"
    code: ClassVar[int] = HISTORY
