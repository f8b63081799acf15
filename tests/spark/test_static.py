"""The static join of Spark DataFrames: Spark counts the keys, and the answer is that of plain tables."""

from __future__ import annotations

import numpy as np
from pyspark.sql import SparkSession

import shedjoin as sj


def test_histograms_by_spark_give_the_same_join(spark: SparkSession) -> None:
    rng = np.random.default_rng(1)
    sides = [[None if key == 9 else int(key) for key in np.minimum(rng.zipf(1.5, 200), 9)] for _ in range(3)]
    frames = [spark.createDataFrame([(key,) for key in side], "id int") for side in sides]
    tables = [{"id": side} for side in sides]
    for keep in (40, (20, 10)):
        plain = sj.truncated_join(*tables[:2], keep=keep, key="id")
        counted = sj.truncated_join(*frames[:2], keep=keep, key="id")
        assert (counted.size, counted.exact) == (plain.size, plain.exact)
        assert counted.kept.tolist() == plain.kept.tolist()
        kept = [np.array([key or 0 for key in side])[counted.rows(place, side)] for place, side in enumerate(sides[:2])]
        assert sum(int((kept[1] == key).sum()) for key in kept[0]) == plain.size
    mixed = sj.truncated_joins([frames[0], tables[1], frames[2]], keep=[9, 9, 9], key="id")
    assert mixed.size == sj.truncated_joins(tables, keep=[9, 9, 9], key="id").size
