"""An experiment: rows of parameters, and a function that measures one of them in any process."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from shedjoin.plots.plot import Plot

Scalar = str | int | float | bool | None
#: One line of a sweep: what to simulate. Flat, so that it can be stored, shown and sent to another process.
Params = dict[str, Scalar]
#: One stored line: the parameters and what was measured.
Row = dict[str, Scalar]
#: From parameters, and the folder of real streams where one is needed, to rows.
Measure = Callable[[Params, Path | None], list[Row]]


def as_stored(rows: list[Row]) -> list[Row]:
    """Draw the rows as they are."""
    return rows


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of a figure to run.

    Parameters
    ----------
    seeds
        Number of seeds, from 0 on.
    quick
        True: a small version, to see that everything works. Its values are stored apart.
    """

    seeds: int = 5
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure or table of a paper: what to measure and how to draw it.

    Parameters
    ----------
    paper, name
        As on the command line: ``das2003 fig03``.
    title
        What it draws, in one line.
    parameters
        The rows of parameters at a scale.
    measure
        Simulates one of them.
    plot
        How the drawn rows become a picture.
    derive
        From stored rows to drawn ones: shares, differences, one row a stream.
    minutes
        About how long a full run with 5 seeds takes on two cores.
    data
        The data set it needs, if any.
    """

    paper: str
    name: str
    title: str
    parameters: Callable[[Scale], list[Params]]
    measure: Measure
    plot: Plot
    derive: Callable[[list[Row]], list[Row]] = as_stored
    minutes: float = 1.0
    data: str | None = None


def identity(params: Params) -> str:
    """A short name for a row of parameters: equal parameters have equal names, in any order and any process."""
    text = json.dumps(params, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2s(text.encode(), digest_size=10).hexdigest()


def grid(**values: Iterable[Scalar]) -> list[Params]:
    """All combinations, the last name varying fastest.

    Examples
    --------
    >>> grid(method=["RAND", "PROB"], seed=range(2))[1]
    {'method': 'RAND', 'seed': 1}
    """
    return [dict(zip(values, line, strict=True)) for line in itertools.product(*values.values())]
