"""Names that are found late: the lists of them agree, each is there, and nothing heavy comes before it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import shedjoin
import shedjoin.quality

PACKAGES = (shedjoin, shedjoin.quality)


def ran(program: str) -> str:
    """What a new process says."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def typed_names(package: ModuleType) -> dict[str, list[str]]:
    """What type checkers are told: the names by their modules."""
    tree = ast.parse(Path(str(package.__file__)).read_text())
    (told,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in told.body if isinstance(node, ast.ImportFrom)]
    return {str(node.module): [one.name for one in node.names] for node in imports}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_lists_of_names_agree(package: ModuleType) -> None:
    found = {f"{package.__name__}.{module}": names for module, names in package._NAMES.items()}
    assert typed_names(package) == found
    assert sorted(package.__all__) == sorted(name for names in found.values() for name in names)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_that_of_its_module(package: ModuleType) -> None:
    for module, names in package._NAMES.items():
        for name in names:
            assert getattr(package, name) is getattr(import_module(f"{package.__name__}.{module}"), name)
    assert {*package.__all__} <= {*dir(package)}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_has_the_name_of_something_else(package: ModuleType) -> None:
    """It would take its place as soon as it is imported."""
    folder = Path(str(package.__file__)).parent
    modules = {path.stem for path in folder.iterdir()}
    assert "__init__" in modules
    assert not modules & {*package.__all__}


def test_an_unknown_name_is_an_error_as_everywhere() -> None:
    with pytest.raises(AttributeError, match="module 'shedjoin' has no attribute 'JoinSpek'"):
        _ = shedjoin.JoinSpek  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'JoinSpek'"):
        exec("from shedjoin import JoinSpek")
    assert not hasattr(shedjoin, "JoinSpek")


def test_all_names_come_with_a_star() -> None:
    names = ran("from shedjoin import *\nprint(*(name for name in dir() if name[0] != '_'))").split()
    assert sorted(names) == sorted(shedjoin.__all__)


def test_the_package_alone_imports_nothing_heavy() -> None:
    heavy = "{'numba', 'numpy', 'pandas', 'pyarrow', 'pyspark', 'rich', 'scipy'}"
    assert ran(f"import sys, shedjoin, shedjoin.quality\nprint({heavy} & {{*sys.modules}} or 'nothing')") == "nothing"


def test_specs_need_no_numba_before_their_engines_are_built() -> None:
    program = """
import sys
import shedjoin as sj
seconds, memory = sj.TimeWindow(3), sj.Budget(tuples=4)
specs = [
    sj.JoinSpec(seconds, memory, sj.Prob(sj.CountMin())),
    sj.MultiJoinSpec({"a": seconds, "b": seconds, "c": seconds}, on="key", budget=memory),
    sj.PredicateJoin(seconds, sj.Overlap("tags", at_least=2), budget=memory, selective=sj.Selective(basic=1)),
    sj.DualJoin(seconds),
]
assert [type(spec).from_dict(spec.to_dict()) for spec in specs] == specs
print("numba" in sys.modules)
for spec in specs:
    spec.build()
print("numba" in sys.modules)
"""
    assert ran(program).split() == ["False", "True"]
