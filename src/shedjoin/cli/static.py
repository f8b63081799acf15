"""`shedjoin static FILE FILE ...`: which tuples of whole relations to keep so that their join is largest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from shedjoin.cli.file_job import keys_as_text, load_file
from shedjoin.cli.options import as_typed, check_file
from shedjoin.errors import SpecError
from shedjoin.offline.static import Truncated, truncated_join, truncated_joins

SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Choose which tuples of two relations to keep so that their join is largest (optimal), or of more than two "
        "(an approximation)."
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE_OR_DIR",
        help="a .csv or .parquet file for each relation, or a directory of them",
    )
    parser.add_argument("--key", required=True, metavar="COLUMN", help="the column to join on")
    parser.add_argument(
        "--keep", required=True, nargs="+", type=int, metavar="N", help="tuples to keep: in all, or of each relation"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write the number of rows to keep of each key to this Parquet file"
    )
    parser.set_defaults(handler=handle)


def handle(args: argparse.Namespace) -> int:
    """Choose, and show."""
    if len(args.files) < 2:
        raise SpecError(f"static needs at least two files, not {len(args.files)}")
    check_file(args.out, "--out")
    tables = [load_file(str(path), path, key=args.key) for path in args.files]
    for path, table in zip(args.files, tables, strict=True):
        if args.key not in table.schema.names:
            raise SpecError(f"--key is {args.key!r}, but {path} has the columns {', '.join(table.schema.names)}")
    if len({table.schema.field(args.key).type for table in tables}) > 1:
        tables = [pa.table({args.key: keys}) for keys in keys_as_text(tables, args.key)]
    with as_typed("keep"):
        if len(tables) > 2:
            found = truncated_joins(tables, keep=args.keep, key=args.key)
        else:
            keep = args.keep[0] if len(args.keep) == 1 else tuple(args.keep)
            found = truncated_join(tables[0], tables[1], keep=keep, key=args.key)
    Console().print(summary(found, [path.name for path in args.files]))
    if args.out is not None:
        pq.write_table(found.to_arrow(), args.out)
    return 0


def summary(found: Truncated, names: Sequence[str]) -> Table:
    """The keys of which most is kept."""
    share = found.size / found.exact if found.exact else 1.0
    title = f"{found.size:,} of {found.exact:,} results ({share:.1%}); no choice gives more than {found.bound:,}"
    table = Table("key", *(f"kept of {name}" for name in names), "results", title=title)
    results = found.kept.prod(axis=0)
    for place in (-results).argsort(kind="stable")[:SHOWN]:
        pairs = zip(found.kept[:, place], found.counts[:, place], strict=True)
        table.add_row(
            str(found.keys[place]), *(f"{kept:,} of {count:,}" for kept, count in pairs), f"{results[place]:,}"
        )
    return table
