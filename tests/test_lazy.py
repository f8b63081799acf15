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
import shedjoin.recall
from shedjoin.estimators import ESTIMATORS
from shedjoin.policies import POLICIES
from shedjoin.predicates import PREDICATES

PACKAGES = (shedjoin, shedjoin.quality, shedjoin.recall)


def ran(program: str) -> str:
    """What a new process says."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def typed_names(package: ModuleType) -> dict[str, list[str]]:
    """What type checkers are told: the names by their modules."""
    imports = ast.parse(Path(str(package.__file__) + "i").read_text()).body
    return {
        f"{node.module} {place}": [one.name for one in node.names]
        for place, node in enumerate(imports)
        if isinstance(node, ast.ImportFrom)
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_that_of_its_module(package: ModuleType) -> None:
    listed = typed_names(package)
    assert listed
    for module, names in listed.items():
        for name in names:
            if name != "*":
                assert getattr(package, name) is getattr(import_module(module.split()[0]), name)
    assert {*package.__all__} <= {*dir(package)}


def test_what_is_registered_is_a_public_name() -> None:
    for kind in (*POLICIES.values(), *ESTIMATORS.values(), *PREDICATES.values()):
        assert getattr(shedjoin, kind.__name__) is kind
        assert kind.__name__ in shedjoin.__all__


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


MODULES = "cpu errors estimators offline join_order planner policies predicates quality recall spark window parse"


def test_modules_come_when_they_are_asked_for() -> None:
    """Each as the first, in another process: here others have imported them."""
    program = f"""
import sys
for name in "{MODULES}".split():
    for known in [one for one in sys.modules if one.partition(".")[0] == "shedjoin"]:
        del sys.modules[known]
    import shedjoin as sj
    there = f"shedjoin.{{name}}" in sys.modules
    print(not there and name in dir(sj) and getattr(sj, name) is sys.modules[f"shedjoin.{{name}}"])
"""
    assert {*ran(program).split()} == {"True"}


def test_a_module_below_a_package_comes_too() -> None:
    program = "import shedjoin as sj\nprint(sj.recall.pairs.PairRecall.__name__, sj.planner.report.__name__)"
    assert ran(program) == "PairRecall shedjoin.planner.report"


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_has_what_is_for_users(package: ModuleType) -> None:
    assert not {"lazily", "lazy"} & {*dir(package)}


def test_what_a_module_lacks_it_says_itself() -> None:
    """A module that cannot be imported is not one that is not there."""
    program = """
import sys
sys.modules["numpy"] = None
import shedjoin as sj
try:
    sj.words
except ModuleNotFoundError as problem:
    print(problem.name)
"""
    assert ran(program) == "numpy"


def test_the_package_alone_imports_nothing_heavy() -> None:
    names = ", ".join(package.__name__ for package in PACKAGES)
    heavy = "{'numba', 'numpy', 'pandas', 'pyarrow', 'pyspark', 'rich', 'scipy'}"
    assert ran(f"import sys, {names}\nprint({heavy} & {{*sys.modules}} or 'nothing')") == "nothing"


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
