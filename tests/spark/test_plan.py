"""A plan on Spark is the plan of one process."""

from __future__ import annotations

from typing import Any

import numpy as np

import shedjoin as sj


def test_spark_makes_the_plan_of_one_process(spark: Any) -> None:
    draw = np.random.default_rng(4)
    left, right = ({"key": draw.zipf(1.5, 400) % 30, "importance": 1 + draw.random(400)} for _ in range(2))
    options: dict[str, Any] = dict(window=40, target=0.8, policies=["rand", "dimp_prob"], memory=[10, 20, 40])
    here = sj.plan(left, right, **options)
    assert sj.plan(left, right, spark=spark, **options) == here
    assert here.recommendation.tuples < here.need.tuples
