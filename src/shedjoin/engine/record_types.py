"""What numba calls a record. To work that out takes 10 ms for a record of two hundred fields, so it is remembered."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba.np.numpy_support import from_dtype


@cache
def type_of(dtype: np.dtype[Any]) -> Any:
    """The numba type of a dtype."""
    return from_dtype(dtype)
