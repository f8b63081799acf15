"""Run a figure: skip what is stored, simulate the rest, store as it comes."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shedjoin.errors import ShedjoinError
from shedjoin_lab.build import BUILD, build
from shedjoin_lab.data.folder import data_set_folder
from shedjoin_lab.experiment import Figure, Params, Row, Scale, identity
from shedjoin_lab.progress import progress_bar
from shedjoin_lab.store import ID, Store

#: What is done is stored about this often, so that an interrupt costs no more.
STORE_SECONDS = 10.0
#: Simulates rows of parameters and gives back what it has, bit by bit.
Runner = Callable[[Figure, list[Params], Path | None], Iterator[list["Outcome"]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one row of parameters: rows, or the text of an error."""

    params: Params
    rows: list[Row]
    error: str | None = None


def run(
    figure: Figure, scale: Scale, store: Store, runner: Runner, *, data: Path | None = None, fresh: bool = False
) -> int:
    """Bring a figure's stored rows up to `scale`.

    Parameters
    ----------
    data
        The folder of real streams, where it is not the usual one.
    fresh
        True: forget what is stored and run everything.

    Returns
    -------
    int
        How many rows of parameters had to be run.
    """
    if figure.data is not None:
        data = data_set_folder(figure.data, data)
    if fresh:
        store.clear(figure)
    missing = store.missing(figure, scale)
    failed: list[Outcome] = []
    for outcomes in runner(figure, missing, data):
        done = [outcome for outcome in outcomes if outcome.error is None]
        store.add(figure, [{ID: identity(o.params), **row, BUILD: build()} for o in done for row in o.rows])
        failed += [outcome for outcome in outcomes if outcome.error is not None]
        if failed:
            break
    if failed:
        raise ShedjoinError(f"{figure.paper} {figure.name} failed with {failed[0].params}:\n{failed[0].error}")
    return len(missing)


def measure_one(figure: Figure, params: Params, data: Path | None) -> Outcome:
    """Simulate one row of parameters; an error becomes part of the outcome, so that the rest of a sweep is not lost."""
    try:
        return Outcome(params, figure.measure(params, data))
    except Exception:
        return Outcome(params, [], traceback.format_exc())


def in_process(figure: Figure, missing: list[Params], data: Path | None) -> Iterator[list[Outcome]]:
    """One after the other in this process: no Java, no Spark."""
    with progress_bar(f"{figure.paper} {figure.name}", len(missing)) as advance:
        outcomes: list[Outcome] = []
        begin = time.monotonic()
        for params in missing:
            outcomes.append(measure_one(figure, params, data))
            advance(1)
            if time.monotonic() - begin > STORE_SECONDS:
                yield outcomes
                outcomes, begin = [], time.monotonic()
        yield outcomes
