"""`estimate`: counts, sums and averages over the exact join by group, with intervals, from results that have weights.

One plan serves results on disk, micro-batches and streams. First the results of each stored row and group are aggregated,
because results of one row depend on each other. Then rows are added up, which are independent (`shedjoin.estimates` has the
formulas).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from shedjoin.errors import InputError
from shedjoin.estimates import FEWEST_OF_RATIOS, FEWEST_ROWS, check_level
from shedjoin.spark.inputs import DELAY
from shedjoin.spark.keys import quoted
from shedjoin.spark.weights import ROW, WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COUNT, SUM, MEAN, DISTINCT = "count", "sum", "avg", "distinct"
#: The suffixes of an aggregate's additional columns.
ENDINGS = ("_low", "_high", "_rows")
_FORM = re.compile(r"\s*(count|sum|avg|mean)\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_ALLOWED = "'count', 'count(x)', 'sum(x)', 'avg(x)' or 'distinct'"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: its kind, and its SQL expression."""

    name: str
    kind: str
    sql: str | None = None

    @classmethod
    def of(cls, name: str, text: object) -> Aggregate:
        """From what a user gives.

        Examples
        --------
        >>> Aggregate.of("revenue", "sum(price * 2)")
        Aggregate(name='revenue', kind='sum', sql='price * 2')
        """
        plain = text.strip().lower() if isinstance(text, str) else ""
        if plain in (COUNT, DISTINCT):
            return cls(name, plain)
        if plain.replace(" ", "").startswith("count(distinct") or plain.startswith("distinct"):
            raise InputError(
                f"aggregates[{name!r}]: distinct values cannot be estimated without bias, because a value of which no result was "
                "delivered leaves no trace; 'distinct' alone counts the older rows that have a result"
            )
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None or not found[2].strip():
            raise InputError(f"aggregates[{name!r}] must be {_ALLOWED}, not {text!r}")
        kind, sql = found[1].lower(), found[2].strip()
        if kind == COUNT and sql in ("*", "1"):
            return cls(name, COUNT)
        return cls(name, MEAN if kind == "mean" else kind, sql)

    def terms(self) -> list[Column]:
        """What is summed over results: of an average the values, and whether there is one."""
        from pyspark.sql import functions as fn

        given = fn.lit(1.0) if self.sql is None else fn.expr(self.sql)
        there = fn.when(given.isNotNull(), 1.0).otherwise(0.0)
        value = fn.coalesce(given.cast("double"), fn.lit(0.0))
        return {COUNT: [there], SUM: [value], MEAN: [value, there], DISTINCT: [there]}[self.kind]


def estimate(
    results: DataFrame,
    by: str | Column | Sequence[str | Column] = (),
    aggregates: Mapping[str, str] | None = None,
    *,
    level: float = 0.95,
) -> DataFrame:
    """Aggregates over the results of the exact join, by group, with confidence intervals.

    For each aggregate there are four columns: `name`, `name_low` and `name_high` (the interval), and `name_rows` (the effective
    rows behind it that were left to chance). Where there are fewer than 10 of these (30 for averages), low and high are null,
    unless all weights of the results are 1: then it is taken to be exact. Streaming results have no such exception.

    Parameters
    ----------
    results
        The results of a join with ``weights=True``: on disk, in `foreachBatch`, or streaming.
    by
        Columns by name, or expressions such as ``window("clicked_at", "10 minutes")``. A streaming DataFrame needs such a
        window, and is written in append mode.
    aggregates
        By name: "count", "count(x)", "sum(x)", "avg(x)" of a SQL expression, or "distinct", the number of older rows that have a
        result. Default: {"count": "count"}.
    level
        The level of the intervals.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    check_level(level)
    names = [by] if not isinstance(by, Sequence) or isinstance(by, str) else list(by)
    made = _aggregates({"count": "count"} if aggregates is None else aggregates)
    _check_columns(results, names)
    by_row = ROW in results.columns
    if not by_row and any(one.kind == DISTINCT for one in made):
        raise InputError(f"aggregates: 'distinct' counts older rows, and the results have no column {ROW}")
    rows, groups = (_by_row if by_row else _without_rows)(results, names, made)
    _check_names(groups, made)
    whole = rows.groupBy(*map(quoted, groups)).agg(*_sums(made))
    reach = NormalDist().inv_cdf(0.5 + level / 2.0)
    sure = fn.lit(False) if results.isStreaming else fn.max("_sj_lots").over(Window.partitionBy()) == 0
    told = [column for place, one in enumerate(made) for column in _told(one, place, reach, sure, by_row)]
    return whole.select(*map(quoted, groups), *told)


def _aggregates(given: object) -> list[Aggregate]:
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) and name for name in given):
        raise InputError(f"aggregates must be a dict from names to {_ALLOWED}, not {given!r}")
    return [Aggregate.of(name, text) for name, text in given.items()]


def _check_columns(results: DataFrame, by: Sequence[str | Column]) -> None:
    if WEIGHT not in results.columns:
        raise InputError(
            f"results have no column {WEIGHT}: join with policy='sample' and weights=True, and select its columns"
        )
    for name in by:
        if isinstance(name, str) and name not in results.columns:
            raise InputError(f"by: results have no column {name!r}; they have {', '.join(results.columns)}")


def _check_names(groups: Sequence[str], made: Sequence[Aggregate]) -> None:
    names = [*groups, *(f"{one.name}{ending}" for one in made for ending in ("", *ENDINGS))]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"aggregates: there would be two columns {twice[0]!r}: give the aggregate another name")


# ------------------------------------------------------------------------------------------- one line a stored row and group


def _by_row(results: DataFrame, by: Sequence[str | Column], made: Sequence[Aggregate]) -> tuple[DataFrame, list[str]]:
    """Of each stored row and group the sums and their variances, and the names of the columns of groups.

    Results with a weight of 1 have no variance, and need not be listed.
    """
    from pyspark.sql import functions as fn

    weight, terms = fn.col(WEIGHT), _terms(made)
    listed = fn.when(
        weight > 1.0, fn.struct(weight.alias("w"), *(term.alias(f"y{name}") for name, term in terms.items()))
    )
    sure = [
        fn.sum(fn.when(weight == 1.0, term).otherwise(0.0)).alias(f"_sj_sure{name}") for name, term in terms.items()
    ]
    grouped = results.groupBy(*_keys(by), fn.col(ROW)).agg(fn.collect_list(listed).alias("_sj_listed"), *sure)
    followed = fn.aggregate(fn.array_sort("_sj_listed"), _start(made), lambda acc, x: _next(acc, x, made))
    groups = grouped.columns[: len(by)]
    _check_streaming(grouped, groups)
    lines = [column for place, one in enumerate(made) for column in _line(one, place)]
    lots = fn.size("_sj_listed").alias("_sj_lots")
    return grouped.withColumn("_sj_followed", followed).select(*map(quoted, groups), lots, *lines), groups


def _without_rows(
    results: DataFrame, by: Sequence[str | Column], made: Sequence[Aggregate]
) -> tuple[DataFrame, list[str]]:
    """The same where weights are those of several rows: sums are known, their variances are not."""
    from pyspark.sql import functions as fn

    sums = [fn.sum(fn.col(WEIGHT) * term).alias(f"_sj_t{name}") for name, term in _terms(made).items()]
    grouped = results.groupBy(*_keys(by)).agg(*sums)
    groups = grouped.columns[: len(by)]
    _check_streaming(grouped, groups)
    unknown = ["_sj_lots", *(name for place, one in enumerate(made) for name in _spread(place, one))]
    return grouped.withColumns(dict.fromkeys(unknown, fn.lit(0.0))), groups


def _keys(by: Sequence[str | Column]) -> list[Column]:
    from pyspark.sql import functions as fn

    return [fn.col(quoted(one)) if isinstance(one, str) else one for one in by]


def _terms(made: Sequence[Aggregate]) -> dict[str, Column]:
    """What is summed over results, by the place of the aggregate and of the term in it."""
    return {f"{place}_{part}": term for place, one in enumerate(made) for part, term in enumerate(one.terms())}


def _check_streaming(grouped: DataFrame, groups: Sequence[str]) -> None:
    """Append mode delivers a group when its window has ended, so there must be one."""
    if grouped.isStreaming and not any(DELAY in grouped.schema[name].metadata for name in groups):
        raise InputError(
            'by: results that stream need a window of event time, such as window("clicked_at", "10 minutes"), of a column with a '
            "watermark; without one use estimate in foreachBatch, or on results on disk"
        )


def _parts(one: Aggregate) -> range:
    return range(2 if one.kind == MEAN else 1)


def _start(made: Sequence[Aggregate]) -> Column:
    """Weighted sums (t), what the sum has too much so far (e), variances (v) and covariances."""
    from pyspark.sql import functions as fn

    return fn.struct(*(fn.lit(0.0).alias(name) for place, one in enumerate(made) for name in _fields(place, one)))


def _fields(place: int, one: Aggregate) -> list[str]:
    return [*(f"_sj_{name}{place}_{part}" for part in _parts(one) for name in "te"), *_variances(place, one)]


def _variances(place: int, one: Aggregate) -> list[str]:
    return [f"_sj_v{place}", f"_sj_vd{place}", f"_sj_dd{place}"] if one.kind == MEAN else [f"_sj_v{place}"]


def _spread(place: int, one: Aggregate) -> list[str]:
    """What a row says of the variance, and of how the variance of a sum grows with it."""
    return [*_variances(place, one), f"_sj_g{place}"]


def _next(acc: Column, x: Column, made: Sequence[Aggregate]) -> Column:
    """With one more result. The weights of a row rise: a later result is found only if the earlier ones were."""
    from pyspark.sql import functions as fn

    weight, fields = x["w"], []

    def risen(place: int, first: int, second: int) -> Column:
        y, z = x[f"y{place}_{first}"], x[f"y{place}_{second}"]
        return weight * (y * z * (weight - 1.0) + y * acc[f"_sj_e{place}_{second}"] + z * acc[f"_sj_e{place}_{first}"])

    for place, one in enumerate(made):
        for part in _parts(one):
            y, t, e = x[f"y{place}_{part}"], f"_sj_t{place}_{part}", f"_sj_e{place}_{part}"
            if one.kind == DISTINCT:  # only the first result of a row counts
                y = fn.when(acc[t] > 0.0, 0.0).otherwise(y)
            fields += [(acc[t] + weight * y).alias(t), (acc[e] + y * (weight - 1.0)).alias(e)]
        v, vd, dd = f"_sj_v{place}", f"_sj_vd{place}", f"_sj_dd{place}"
        if one.kind == DISTINCT:
            first = fn.when(acc[f"_sj_t{place}_0"] > 0.0, 0.0).otherwise(weight * (weight - 1.0))
            fields.append((acc[v] + first).alias(v))
        else:
            fields.append((acc[v] + risen(place, 0, 0)).alias(v))
        if one.kind == MEAN:
            fields += [(acc[vd] + risen(place, 0, 1)).alias(vd), (acc[dd] + risen(place, 1, 1)).alias(dd)]
    return fn.struct(*fields)


def _line(one: Aggregate, place: int) -> list[Column]:
    """The sums of one row."""
    from pyspark.sql import functions as fn

    followed = fn.col("_sj_followed")
    grown = followed[f"_sj_v{place}"] * followed[f"_sj_e{place}_0"]
    if one.kind == DISTINCT:  # a row with a result of weight 1 is certain
        sure = fn.col(f"_sj_sure{place}_0") > 0.0
        total = fn.when(sure, 1.0).otherwise(followed[f"_sj_t{place}_0"])
        return [
            total.alias(f"_sj_t{place}_0"),
            fn.when(sure, 0.0).otherwise(followed[f"_sj_v{place}"]).alias(f"_sj_v{place}"),
            fn.when(sure, 0.0).otherwise(grown).alias(f"_sj_g{place}"),
        ]
    totals = [
        (fn.col(f"_sj_sure{place}_{part}") + followed[f"_sj_t{place}_{part}"]).alias(f"_sj_t{place}_{part}")
        for part in _parts(one)
    ]
    return [*totals, *(followed[name].alias(name) for name in _variances(place, one)), grown.alias(f"_sj_g{place}")]


# ------------------------------------------------------------------------------------------------------ one line a group


def _sums(made: Sequence[Aggregate]) -> list[Column]:
    from pyspark.sql import functions as fn

    sums = [fn.max("_sj_lots").alias("_sj_lots")]
    for place, one in enumerate(made):
        part, risk = (1, "dd") if one.kind == MEAN else (0, "v")
        share = fn.when(fn.col(f"_sj_{risk}{place}") != 0.0, fn.col(f"_sj_t{place}_{part}")).otherwise(0.0)
        names = [*(f"_sj_t{place}_{part}" for part in _parts(one)), *_spread(place, one)]
        sums += [fn.sum(name).alias(name) for name in names]
        sums += [fn.sum(fn.abs(share)).alias(f"_sj_whole{place}"), fn.sum(share * share).alias(f"_sj_square{place}")]
    return sums


def _told(one: Aggregate, place: int, errors: float, sure: Column, by_row: bool) -> list[Column]:
    """Value, limits and effective rows; see `shedjoin.estimates` for the limits."""
    from pyspark.sql import functions as fn

    whole, square = fn.col(f"_sj_whole{place}"), fn.col(f"_sj_square{place}")
    value, spread, fewest = fn.col(f"_sj_t{place}_0"), fn.col(f"_sj_v{place}"), FEWEST_ROWS
    shift = fn.when(spread > 0.0, errors**2 / 2.0 * fn.col(f"_sj_g{place}") / spread).otherwise(0.0)
    if one.kind == MEAN:
        there, shift, fewest = fn.col(f"_sj_t{place}_1"), fn.lit(0.0), FEWEST_OF_RATIOS
        value = fn.when(there > 0.0, value / there)
        apart = spread - 2.0 * value * fn.col(f"_sj_vd{place}") + value * value * fn.col(f"_sj_dd{place}")
        spread = apart / (there * there)
    usual = errors * fn.sqrt(fn.greatest(spread, fn.lit(0.0)))
    reach = fn.hypot(usual, shift)
    rows = fn.when(square > 0.0, whole * whole / square).otherwise(0.0)
    known = (rows >= fewest) | sure
    low, high = value - fn.greatest(usual, reach - shift), value + fn.greatest(usual, reach + shift)
    nothing = fn.lit(None).cast("double")
    ends = (value, fn.when(known, low), fn.when(known, high), rows) if by_row else (value, nothing, nothing, nothing)
    return [end.alias(f"{one.name}{ending}") for end, ending in zip(ends, ("", *ENDINGS), strict=True)]
