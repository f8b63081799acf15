"""The static join of das2003 3.1: which tuples of whole relations to keep so that their join is largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shedjoin.batch import arrow_column
from shedjoin.errors import InputError, SpecError
from shedjoin.offline import knapsack
from shedjoin.offline.timeline import Ints

#: Entries of the tables of choices, and steps of the dynamic program, that are refused beyond.
MOST_CHOICES = 500_000_000
MOST_STEPS = 100_000_000_000


@dataclass(frozen=True, slots=True)
class Truncated:
    """What to keep of each relation.

    Attributes
    ----------
    keys
        The keys that all relations have.
    counts, kept
        For each relation (row) and key (column), how many tuples there are and how many to keep.
    size, exact
        Results of the truncated join, and of the whole one.
    bound
        What no choice can exceed: the size itself where the choice is optimal.
    """

    keys: pa.Array
    counts: Ints
    kept: Ints
    size: int
    exact: int
    bound: int

    def to_arrow(self) -> pa.Table:
        """One row a key: key, count_0, kept_0, count_1, kept_1, ..."""
        columns: dict[str, Any] = {"key": self.keys}
        for place, (count, kept) in enumerate(zip(self.counts, self.kept, strict=True)):
            columns |= {f"count_{place}": count, f"kept_{place}": kept}
        return pa.table(columns)

    def rows(self, relation: int, keys: Any) -> NDArray[np.bool_]:
        """Which rows of a relation to keep, given its key column: the first of each key."""
        code = pc.index_in(_cast(_array(keys), self.keys.type, "keys"), self.keys).fill_null(-1).to_numpy()
        order = np.argsort(code, kind="stable")
        begin = np.searchsorted(code[order], code[order])
        rank = np.empty(code.size, np.int64)
        rank[order] = np.arange(code.size) - begin
        room = np.append(self.kept[relation], 0)  # the last is for keys that have no partner
        return np.asarray(rank < room[code])


def truncated_join(left: Any, right: Any, *, keep: int | tuple[int, int], key: str = "key") -> Truncated:
    """The largest join of so many tuples of two relations.

    Parameters
    ----------
    left, right
        Arrow tables, DataFrames, dicts of arrays, or Spark DataFrames (which Spark then counts by key).
    keep
        How many tuples to keep in all, from either; or a pair, how many of each.
    key
        The column to join on. Nulls join nothing.

    Examples
    --------
    Three tuples make the most of the key that both have twice.

    >>> best = truncated_join({"key": ["a", "a", "b"]}, {"key": ["a", "a", "b", "c"]}, keep=3)
    >>> best.size, best.exact, best.rows(0, ["a", "a", "b"]).tolist()
    (2, 5, [True, True, False])
    >>> truncated_join({"key": [1, 1, 2]}, {"key": [1, 2, 2]}, keep=(2, 1)).size
    2
    """
    return best_of_two(*_histograms([left, right], key), keep)


def best_of_two(keys: pa.Array, counts: Ints, keep: int | tuple[int, int]) -> Truncated:
    """The largest join of two relations, from their counts of the keys that both have, in the order of the keys."""
    m, n = counts
    if isinstance(keep, tuple):
        kept = _each(m, n, *_numbers("keep", keep, 2))
    else:
        kept = _in_all(m, n, _numbers("keep", (keep,), 1)[0])
    size = int((kept[0] * kept[1]).sum())
    return Truncated(keys, counts, kept, size, int((m * n).sum()), size)


def truncated_joins(relations: Sequence[Any], *, keep: Sequence[int], key: str = "key") -> Truncated:
    """So many tuples of each of several relations joined on one key: an approximation, for the best is NP-hard to find.

    Each relation by itself drops the tuples that are part of the fewest results. Where that loses p_i results for relation i, any
    choice loses at least max(p_i) and this one at most their sum: an m-approximation of what is lost.

    Examples
    --------
    >>> a, b, c = {"key": [1, 1, 2]}, {"key": [1, 2, 2]}, {"key": [1, 2, 2]}
    >>> found = truncated_joins([a, b, c], keep=[2, 2, 2])
    >>> found.exact, found.size, found.bound
    (6, 4, 4)
    """
    if len(relations) < 2:
        raise SpecError(f"relations must be at least two, not {len(relations)}")
    _numbers("keep", keep, len(relations))
    return approximate(*_histograms(list(relations), key), keep)


def approximate(keys: pa.Array, counts: Ints, keep: Sequence[int]) -> Truncated:
    """A large join of several relations, from their counts of the keys that all have, in the order of the keys."""
    numbers = _numbers("keep", keep, len(counts))
    results = counts.prod(axis=0)
    kept = np.empty_like(counts)
    lost = 0
    for place, (count, number) in enumerate(zip(counts, numbers, strict=True)):
        each = results // np.maximum(count, 1)  # results that one tuple is part of
        # Of tuples that count the same, all relations prefer the same keys: what one keeps should meet what the others keep.
        order = np.lexsort((-results, -each))
        before = np.cumsum(count[order]) - count[order]
        kept[place, order] = np.clip(number - before, 0, count[order])
        lost = max(lost, int(((count - kept[place]) * each).sum()))
    size, exact = int(kept.prod(axis=0).sum()), int(results.sum())
    return Truncated(keys, counts, kept, size, exact, exact - lost)


def _in_all(m: Ints, n: Ints, keep: int) -> Ints:
    keep = min(keep, int((m + n).sum()))
    _afford(m.size * (keep + 1), keep * float((m + n).sum()), "keep")
    chosen = np.zeros((m.size, keep + 1), np.int32)
    knapsack.fill(m, n, keep, chosen)
    kept, left = np.zeros((2, m.size), np.int64), keep
    for i in range(m.size - 1, -1, -1):
        p = int(chosen[i, left])
        few = min(p // 2, int(m[i]), int(n[i]))
        kept[:, i] = (p - few, few) if m[i] >= n[i] else (few, p - few)
        left -= p
    return kept


def _each(m: Ints, n: Ints, left: int, right: int) -> Ints:
    left, right = min(left, int(m.sum())), min(right, int(n.sum()))
    size = m.size * (left + 1) * (right + 1)
    _afford(2 * size, float(left * right) * float((np.minimum(m, left) * np.minimum(n, right)).sum()), "keep")
    chosen = np.zeros((2, m.size, left + 1, right + 1), np.int32)
    knapsack.fill_two(m, n, left, right, chosen[0], chosen[1])
    kept = np.zeros((2, m.size), np.int64)
    for i in range(m.size - 1, -1, -1):
        kept[:, i] = chosen[:, i, left, right]
        left, right = left - int(kept[0, i]), right - int(kept[1, i])
    return kept


def _afford(choices: int, steps: float, name: str) -> None:
    if choices > MOST_CHOICES or steps > MOST_STEPS:
        raise SpecError(
            f"{name} is too large for the dynamic program: it would need {choices:,} choices in memory and {steps:.1e} steps, "
            f"and {MOST_CHOICES:,} and {MOST_STEPS:.0e} are allowed. Keep fewer tuples, or join a sample"
        )


def _numbers(name: str, values: Any, count: int) -> list[int]:
    numbers = list(values)
    fits = [not isinstance(x, bool) and isinstance(x, int | np.integer) and x >= 0 for x in numbers]
    if len(numbers) != count or not all(fits):
        what = "a whole number of at least 0" if count == 1 else f"{count} whole numbers of at least 0"
        raise SpecError(f"{name} must be {what}, not {numbers[0] if count == 1 else tuple(numbers)!r}")
    return [int(x) for x in numbers]


def _histograms(relations: list[Any], key: str) -> tuple[pa.Array, Ints]:
    """The keys that all relations have, and how many tuples each relation has of them."""
    tables = [_histogram(place, relation, key) for place, relation in enumerate(relations)]
    try:
        schemas = [pa.schema([table.schema.field("key")]) for table in tables]
        kind = pa.unify_schemas(schemas, promote_options="permissive").field("key").type
        kind = pa.int64() if pa.types.is_null(kind) else kind  # all are empty
    except pa.ArrowTypeError as reason:
        raise InputError(f"the columns {key!r} cannot be compared: {reason}") from None
    tables = [table.set_column(0, "key", _cast(table.column("key"), kind, key)) for table in tables]
    joined = tables[0]
    for table in tables[1:]:
        joined = joined.join(table, "key", join_type="inner")
    joined = joined.sort_by("key")
    counts = [joined.column(f"count_{place}").to_numpy().astype(np.int64) for place in range(len(relations))]
    return _array(joined.column("key")), np.array(counts, np.int64)


def _histogram(place: int, relation: Any, key: str) -> pa.Table:
    """How often each key comes, by Spark where the relation is Spark's."""
    if type(relation).__module__.startswith("pyspark."):
        if key not in relation.columns:
            raise InputError(f"relation {place} needs a column {key!r}; it has {', '.join(relation.columns)}")
        counted = relation.where(relation[key].isNotNull()).groupBy(key).count().toArrow()
        return pa.table({"key": counted.column(0), f"count_{place}": counted.column(1)})
    names = relation.schema.names if isinstance(relation, pa.Table) else list(relation)
    if key not in names:
        raise InputError(f"relation {place} needs a column {key!r}; it has {', '.join(map(str, names)) or 'none'}")
    column = _array(relation.column(key) if isinstance(relation, pa.Table) else relation[key]).drop_null()
    counted = column.value_counts()
    return pa.table({"key": counted.field("values"), f"count_{place}": counted.field("counts")})


def _array(values: Any) -> pa.Array:
    """One array of any column; a dictionary is decoded."""
    array = arrow_column("key", values)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _cast(values: Any, kind: pa.DataType, name: str) -> Any:
    """The same values as another type, such as that of an empty column as the others'."""
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        raise InputError(f"{name!r} cannot be compared with the other keys: {reason}") from None
