"""Which sources are read for doctests; in which order tests run on several processes; no limit of time for an example."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

# A test says nothing of time: the first example of a law may load kernels, and machines are busy.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests only where there are some: to find them, every process would import and search all modules.

    Packages are still imported: otherwise pytest would import a module before its package, and put the module `odja` in the
    place of the function `odja`.
    """
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule) or _has_doctests(file_path)]


def _has_doctests(path: Path) -> bool:
    return path.name == "__init__.py" or b">>>" in path.read_bytes()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests on Spark first: they take longest, and a long one at the end would keep a process busy while others wait.

    `--dist worksteal` gives each process one stretch of the list, and lets whoever is done take from the end of another's. So
    each stretch begins with its part of the long tests. A session takes a while to start and gets faster as it goes: those
    that share one are left to two processes; one alone ends minutes after the others.
    """
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    alone = [item for item in items if item.get_closest_marker("own_spark")]
    shared = [item for item in items if item not in alone and "spark" in getattr(item, "fixturenames", ())]
    first = {*alone, *shared}
    rest = [item for item in items if item not in first]
    lanes = max(1, min(2, workers - 1))
    begins = [shared[lane::lanes] for lane in range(lanes)] + [[]] * (workers - lanes)
    begins[-1] = [*begins[-1], *alone]
    ordered = []
    for number, begin in enumerate(begins):
        # As many for each process as the scheduler hands out: what is left, divided by those that have none yet.
        room = (len(items) - len(ordered)) // (workers - number) - len(begin)
        ordered += [*begin, *rest[: max(0, room)]]
        rest = rest[max(0, room) :]
    items[:] = [*ordered, *rest]
