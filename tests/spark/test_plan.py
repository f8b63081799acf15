"""A plan on Spark is the plan of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shedjoin as sj
from shedjoin.cli import main

JOB = """
[join]
window = 40
[workload]
rows = 400
domain = 30
"""


def test_spark_makes_the_plan_of_one_process(spark: Any) -> None:
    draw = np.random.default_rng(4)
    left, right = ({"key": draw.zipf(1.5, 400) % 30, "importance": 1 + draw.random(400)} for _ in range(2))
    options: dict[str, Any] = dict(window=40, target=0.8, policies=["rand", "dimp_prob"], memory=[10, 20, 40])
    here = sj.plan(left, right, **options)
    assert sj.plan(left, right, spark=spark, **options) == here
    assert here.recommendation.tuples < here.need.tuples


def test_the_command_line_plans_on_spark(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    quick = ["plan", str(tmp_path / "job.toml"), "--policies", "prob", "--memory", "20", "--target", "0.3"]
    assert main(quick) == 0
    here = capsys.readouterr().out
    assert main([*quick, "--spark", "local[2]"]) == 0
    assert capsys.readouterr().out == here
    assert spark.range(1).count() == 1  # a session that was there before stays
