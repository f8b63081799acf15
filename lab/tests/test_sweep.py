"""Sweeps on a real Spark in local mode: the same rows as in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from processes import QUICK_JAVA

from shedjoin.errors import ShedjoinError
from shedjoin_lab.catalogue import find
from shedjoin_lab.experiment import Scale
from shedjoin_lab.run import in_process, run
from shedjoin_lab.store import Store
from shedjoin_lab.sweep import SparkSweep

pytestmark = pytest.mark.own_spark

FULL = find("das2003", "fig05")
#: A few of the figure's simulations; workers find the figure itself by its name.
FEW = replace(FULL, parameters=lambda scale: FULL.parameters(Scale(scale.seeds, quick=True))[:6])


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSweep]:
    with pytest.MonkeyPatch.context() as patch, SparkSweep("local[2]") as sweep:
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK_JAVA)
        yield sweep


def test_spark_gives_the_rows_of_one_process(spark: SparkSweep, tmp_path: Path) -> None:
    on_spark, here = Store(tmp_path / "spark"), Store(tmp_path / "here")
    assert run(FEW, Scale(seeds=1), on_spark, spark) == len(FEW.parameters(Scale(seeds=1)))
    run(FEW, Scale(seeds=1), here, in_process)
    assert on_spark.read(FEW) == here.read(FEW)
    assert on_spark.path(FEW).read_bytes() == here.path(FEW).read_bytes()


def test_a_sweep_on_spark_resumes(spark: SparkSweep, tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(replace(FEW, parameters=lambda scale: FEW.parameters(scale)[:2]), Scale(seeds=1), store, spark)
    assert len(store.missing(FEW, Scale(seeds=1))) == len(FEW.parameters(Scale(seeds=1))) - 2
    run(FEW, Scale(seeds=1), store, spark)
    assert run(FEW, Scale(seeds=1), store, spark) == 0


def test_a_failure_in_a_worker_is_told_and_the_rest_kept(spark: SparkSweep, tmp_path: Path) -> None:
    good = FEW.parameters(Scale(seeds=1))[0]
    bad = {**good, "method": "NO_SUCH_METHOD"}
    store = Store(tmp_path)
    with pytest.raises(ShedjoinError, match=r"NO_SUCH_METHOD(.|\n)*KeyError"):
        run(replace(FEW, parameters=lambda scale: [good, bad]), Scale(seeds=1), store, spark)
    assert len(store.read(FEW)) == 1


def test_workers_use_this_interpreter_unless_told_otherwise(spark: SparkSweep, tmp_path: Path) -> None:
    run(FEW, Scale(seeds=1), Store(tmp_path), spark)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
