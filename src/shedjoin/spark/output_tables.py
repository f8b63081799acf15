"""The tables below an output directory: their places, their columns, and which of them shards can write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shedjoin.spark.archive import LEFT_OUT_DDL, shed_columns, shed_ddl
from shedjoin.spark.exchange import LEFT_OUT, METRIC, RESULT, SHED, inputs_of
from shedjoin.spark.keys import is_number
from shedjoin.spark.output_files import Table
from shedjoin.spark.plan import JoinPlan

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

#: The number of the micro-batch, as readers of results and archive see it. (Most ignore directories whose names begin with
#: an underscore, without a word.)
BATCH = "sj_batch"
#: Where Spark finds its own types in a Parquet file, and which version wrote it: dates need it.
ROW_TYPES, VERSION = "org.apache.spark.sql.parquet.row.metadata", "org.apache.spark.version"
#: Types that Arrow writes to Parquet as Spark does. Rows with others are written by Spark.
PLAIN = {"boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date", "timestamp"}
PLAIN |= {"timestamp_ntz", "decimal"}
#: Of these, those whose values are equal where Arrow says so: Spark says that NaN is equal to NaN.
COMPARED = PLAIN - {"float", "double"}
CODEC = "spark.sql.parquet.compression.codec"
#: Arrow's names of Spark's codecs, where they differ.
CODECS = {"uncompressed": "none", "lz4_raw": "lz4", "lz4raw": "lz4", "lzo": "snappy"}


def tables_of(plan: JoinPlan, *, archive: bool) -> tuple[Table, ...]:
    """What a query writes, in the order in which it comes into place."""
    made = _Maker(plan)
    return (
        made.results(),
        made.shed(),
        made.left_out(),
        *(made.archive() if archive else ()),
        made.metrics(),
    )


class _Maker:
    def __init__(self, plan: JoinPlan) -> None:
        self.plan = plan
        given = str(plan.sides[0].sparkSession.conf.get(CODEC, "snappy")).lower()
        self.codec = CODECS.get(given, given)

    def _table(
        self, kind: str, place: str, column: str, types: StructType, chosen: Sequence[tuple[str, ...]], **more: Any
    ) -> Table:
        plain = more.pop("plain", True) and all(_is_plain(one.dataType) for one in types)
        schema = _schema(types) if plain else b""
        return Table(kind, place, column, schema, tuple(chosen), codec=self.codec, **more)

    def results(self) -> Table:
        """Rows with a filter after the join, or with keys that only Spark compares, are written by Spark."""
        layout, names = self.plan.layout(), {}
        for one in layout.schema:
            names[one.name] = one.dataType
        chosen = [sources for sources, _ in layout.chosen]
        alike = all(len({names[name].json() for name in group}) == 1 for group in (*chosen, *layout.equal))
        compared = all(names[one].typeName().partition("(")[0] in COMPARED for one, _ in layout.equal)
        types = _struct((given, names[sources[0]]) for sources, given in layout.chosen)
        return self._table(
            RESULT,
            "results",
            BATCH,
            types,
            chosen,
            equal=tuple(layout.equal),
            alone=layout.alone,
            plain=alike and compared and not layout.where,
        )

    def shed(self) -> Table:
        keys = self.plan.condition.key_columns
        types = _from_ddl(shed_ddl(self.plan.names, keys))
        columns = [(name,) for name in shed_columns(self.plan.names)]
        hashed = not is_number([kind for _, kind in keys])
        columns += [(name if hashed else "key",) for name, _ in keys]
        return self._without_batch(SHED, "shed", types, columns)

    def left_out(self) -> Table:
        return self._without_batch(LEFT_OUT, "left_out", _from_ddl(LEFT_OUT_DDL))

    def metrics(self) -> Table:
        return self._without_batch(METRIC, "metrics", self.plan.metrics)

    def _without_batch(
        self, kind: str, place: str, types: StructType, columns: Sequence[tuple[str, ...]] | None = None
    ) -> Table:
        """A table whose directories say the batch."""
        chosen = columns or [(one.name,) for one in types]
        kept = [(one, names) for one, names in zip(types, chosen, strict=True) if one.name != "batch"]
        return self._table(
            kind, place, "batch", _struct((one.name, one.dataType) for one, _ in kept), [names for _, names in kept]
        )

    def archive(self) -> Iterator[Table]:
        plan = self.plan
        for name, kind, side in zip(plan.names, inputs_of(plan.names), plan.sides, strict=True):
            types = archived_types(plan, side.schema)
            yield self._table(kind, f"archive/{name}", BATCH, types, [(f"a{place}",) for place in range(len(types))])


def archived_types(plan: JoinPlan, schema: StructType) -> StructType:
    """The columns of an archived stream. Spark's readers know none that is never null."""
    from pyspark.sql.types import DataType

    own = [(name, DataType.fromDDL(kind)) for name, kind in plan.archived]
    return _struct([*((one.name, one.dataType) for one in schema), *own])


def _struct(fields: Any) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(name, kind) for name, kind in fields])


def _from_ddl(ddl: str) -> StructType:
    from pyspark.sql.types import DataType, StructType

    made = DataType.fromDDL(ddl)
    assert isinstance(made, StructType)
    return made


def _is_plain(kind: DataType) -> bool:
    """Whether a type, with all that is in it, is among the plain ones."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    match kind:
        case ArrayType():
            return _is_plain(kind.elementType)
        case MapType():
            return _is_plain(kind.keyType) and _is_plain(kind.valueType)
        case StructType():
            return all(_is_plain(one.dataType) for one in kind)
        case StringType():  # one with a collation, or of a certain length, is a type of its own
            return kind.simpleString() == "string"
    return str(kind.typeName()).partition("(")[0] in PLAIN


def _schema(types: StructType) -> bytes:
    """The schema of a file, and what Spark looks for in it."""
    import pyspark
    from pyspark.sql.pandas.types import to_arrow_schema

    notes = {ROW_TYPES: types.json(), VERSION: pyspark.__version__}
    return bytes(to_arrow_schema(types, timezone="UTC").with_metadata(notes).serialize().to_pybytes())
