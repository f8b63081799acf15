"""A `Table` of key values on Spark: the driver translates it once to the numbers of the keys in shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shedjoin.errors import SpecError
from shedjoin.estimators import Table
from shedjoin.estimators.table import check_weights
from shedjoin.policies import Policy
from shedjoin.spark.join_condition import Compared
from shedjoin.spark.keys import KEY, WHOLE, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: The column of weights in a DataFrame.
PROBABILITY = "probability"
#: The job description and the head of each shard's state have the whole table.
MOST = 100_000


def is_table(policy: Policy | None) -> bool:
    """Whether a policy uses a `Table`."""
    return isinstance(getattr(policy, "estimator", None), Table)


def table_of_numbers(
    policy: Policy, spark: SparkSession, weighed: Sequence[Sequence[Compared]], sides: Sequence[str]
) -> Policy:
    """The same policy, whose `Table` has the numbers by which rows are compared.

    `weighed`: of each stream what its weights are of. The attributes of a join graph share them.
    """
    table: Table = policy.estimator  # type: ignore[assignment]
    if table.streams != len(sides):
        raise SpecError(f"policy: {policy!r} is for {table.streams} streams, but this join has {len(sides)}")
    made = []
    for place, side in enumerate(sides):
        what, numbers = f"policy: Table, {side}", dict[int, float]()
        weights = _read(what, table.side(place), spark)
        for one in _given(weighed[place], weights):
            numbers |= _numbers(what, _frame(what, weights, spark, one.names), one)
        made.append(numbers)
    return replace(policy, estimator=Table(made[0], made[1], made[2:]))  # type: ignore[type-var]


def _given(weighed: Sequence[Compared], side: Any) -> Sequence[Compared]:
    """The values of a stream's weights: a DataFrame may have the columns of only some attributes."""
    there = [one for one in weighed if set(one.names) & set(getattr(side, "columns", one.names))]
    return there or weighed


def without_keys(policy: Policy) -> Policy:
    """The same policy with an empty `Table`, because only Spark can read the real one."""
    table: Table = policy.estimator  # type: ignore[assignment]
    return replace(policy, estimator=Table({}, {}, [{}] * (table.streams - 2)))  # type: ignore[type-var]


def _read(what: str, side: Any, spark: SparkSession) -> Any:
    """Weights as a dict or a DataFrame."""
    if not isinstance(side, str):
        return side
    try:
        return spark.read.option("header", True).csv(side) if side.endswith(".csv") else spark.read.parquet(side)
    except Exception as reason:
        raise SpecError(f"{what}: {side} cannot be read: {str(reason).splitlines()[0]}") from None


def _frame(what: str, side: Any, spark: SparkSession, names: list[str]) -> DataFrame | None:
    """Weights as a DataFrame of the key columns and `PROBABILITY`; None: there are none."""
    if isinstance(side, Mapping):
        return _of_dict(what, side, spark, names)
    missing = [name for name in (*names, PROBABILITY) if name not in side.columns]
    if missing or side.isStreaming:
        found = "is streaming" if side.isStreaming else f"has {', '.join(side.columns)}, but no {missing[0]!r}"
        raise SpecError(
            f"{what} needs a batch DataFrame with the columns {', '.join((*names, PROBABILITY))}: it {found}"
        )
    return side  # type: ignore[no-any-return]


def _of_dict(what: str, weights: Mapping[Any, float], spark: SparkSession, names: list[str]) -> DataFrame | None:
    if not weights:
        return None
    lines = [key if len(names) > 1 else (key,) for key in weights]
    wrong = [line for line in lines if not isinstance(line, tuple) or len(line) != len(names)]
    if wrong:
        raise SpecError(f"{what} needs keys that are tuples of ({', '.join(names)}), not {wrong[0]!r}")
    try:
        columns = [pa.array(list(column)) for column in zip(*lines, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as reason:
        raise SpecError(f"{what} must have keys of one type in each column: {reason}") from None
    values = pa.array(list(weights.values()), pa.float64())
    return spark.createDataFrame(pa.table([*columns, values], [*names, PROBABILITY]))


def _numbers(what: str, frame: DataFrame | None, compared: Compared) -> dict[int, float]:
    """Weights by the numbers of keys."""
    from pyspark.sql import functions as fn

    names, types, number_of = compared
    if frame is None:
        return {}
    shown = fn.concat_ws(", ", *(fn.col(quoted(name)).cast("string") for name in names))
    weight = fn.col(PROBABILITY).try_cast("double")
    casts = [_as_key(what, frame, name, kind).alias(name) for name, kind in zip(names, types, strict=True)]
    typed = frame.select(*casts, shown.alias("_sj_shown"), weight.alias(PROBABILITY))
    rows = typed.select(number_of(typed).alias(KEY), PROBABILITY, "_sj_shown").limit(MOST + 1).collect()
    if len(rows) > MOST:
        raise SpecError(f"{what} has more than {MOST:,} keys: leave out those that are unlikely, which then weigh 0")
    made: dict[int, float] = {}
    for number, weighs, said in rows:
        if number is None:
            raise SpecError(f"{what} has a key that is null or no value of ({', '.join(types)}): {said!r}")
        if number in made:
            raise SpecError(f"{what} has a key twice: {said!r}")
        made[number] = np.nan if weighs is None else weighs
    check_weights(what, np.array([*made.values()], np.float64))
    return made


def _as_key(what: str, frame: DataFrame, name: str, kind: str) -> Column:
    """A key column in the type in which keys are compared; null where a value is none of that type."""
    from pyspark.sql import functions as fn

    field, column = frame.schema[name].dataType, fn.col(quoted(name))
    if field.simpleString() == kind:
        return column
    if kind == "string" and field.typeName() not in WHOLE:
        raise SpecError(
            f"{what}: the key {name!r} is {field.simpleString()} where the streams have text: cast it to text first"
        )
    made = column.try_cast(kind)
    rounded = kind in ("date", "tinyint", "smallint", "int", "bigint") and field.typeName() != "string"
    return fn.when(made.cast(field) == column, made) if rounded else made
