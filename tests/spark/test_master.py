"""Where Spark runs: what can be no master is refused before Java starts, and what does not start is told in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.cli.run import open_session
from shedjoin.spark import session
from shedjoin.spark.master import check_master, check_remote
from shedjoin.spark.sweep import sweep_session

COMMANDS = {
    "--master": ["refine", "out"],
    "--spark": ["plan", "a.csv", "b.csv", "--key", "k", "--window", "3"],
}
MASTERS = (
    "local",
    "local[*]",
    "local[3]",
    "local[2,4]",
    "local[ 2 , 4 ]",
    "spark://a:7077,b:7077",
    "yarn",
    "k8s://https://x",
)


@pytest.mark.parametrize("option", COMMANDS)
def test_a_command_refuses_what_is_no_master(
    option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("cli.refine", "spark.sweep"):
        monkeypatch.setattr(f"shedjoin.{module}.check_java", lambda: pytest.fail("something was started"))
    assert main([*COMMANDS[option], option, "nonsense"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"shedjoin: {option} must be a master of Spark: local, local[N], ")
    assert said.endswith("not 'nonsense'\n")
    assert said.count("\n") == 1


def test_the_masters_of_spark_are_known() -> None:
    for master in MASTERS:
        check_master(master)
    for master in (
        "",
        "Local",
        "local[]",
        "local[0]",
        "local[-1]",
        "spark:host",
        "sc://host:15002",
        "host:7077",
        None,
        4,
    ):
        with pytest.raises(sj.SpecError, match="master must be a master of Spark"):
            check_master(master)
    check_remote("sc://host:15002/;token=x")
    with pytest.raises(
        sj.SpecError, match=r"remote must be a server of Spark Connect: sc://HOST:PORT, not 'spark://h:1'"
    ):
        check_remote("spark://h:1")


def test_the_library_refuses_it_too() -> None:
    with pytest.raises(sj.SpecError, match=r"spark\.master must be a master of Spark: .*, not 'nonsense'"):
        session(settings={"spark.master": "nonsense"})
    wrong = pytest.raises(sj.SpecError, match=r"master must be a master of Spark: .*, not 'nonsense'")
    with wrong, sweep_session("nonsense", "a test"):
        pass


class Silent:
    """A builder of a Spark that does not start."""

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def config(self, name: str, value: str) -> Silent:
        return self

    def getOrCreate(self) -> Any:
        raise self.problem


def test_a_spark_that_does_not_start_is_told_of_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PySparkRuntimeError

    ended = PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
    settings = {"spark.master": "yarn"}
    with pytest.raises(
        sj.EnvironmentProblem, match=r"Spark does not start with the master 'yarn': \[JAVA_GATEWAY_EXITED\] .*$"
    ) as caught:
        session(Silent(ended), settings=settings)
    assert "\n" not in str(caught.value)
    java = type("Py4JJavaError", (Exception,), {"__module__": "py4j.protocol"})
    said = "An error occurred while calling None.Context.\n: org.apache.SparkException: no cluster\n\tat Some.java\n"
    with pytest.raises(sj.EnvironmentProblem, match=r"the master 'yarn': org\.apache\.SparkException: no cluster$"):
        session(Silent(java(said)), settings=settings)
    with pytest.raises(ZeroDivisionError):  # what is not of Spark is not its
        session(Silent(ZeroDivisionError()), settings=settings)
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", Silent(ended))
    with (
        pytest.raises(sj.EnvironmentProblem, match=rf"the master 'yarn': .* \(see {tmp_path}/log\)"),
        open_session(settings, tmp_path / "log"),
    ):
        pass
