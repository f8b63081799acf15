"""The static join against exhaustive search; its bound; Spark's histograms; the command."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.offline import truncated_join, truncated_joins
from shedjoin.offline.knapsack import edges


def relations(random: Random, count: int, most: int) -> list[dict[str, Any]]:
    keys = ["a", "a", "b", "c", None]
    return [{"key": pa.array(random.choices(keys, k=random.randint(0, most)), pa.string())} for _ in range(count)]


def size(*sides: Any) -> int:
    """Results of a join, counted one by one."""
    return sum(1 for row in itertools.product(*sides) if row[0] is not None and len(set(row)) == 1)


def chosen(keys: list[Any], number: int) -> list[tuple[Any, ...]]:
    return list(itertools.combinations(keys, min(number, len(keys))))


@pytest.mark.parametrize("seed", range(10))
def test_truncated_joins_are_the_largest(seed: int) -> None:
    random = Random(seed)
    for _ in range(6):
        left, right = relations(random, 2, 5)
        keep = random.randint(0, 8)
        a, b = left["key"].to_pylist(), right["key"].to_pylist()
        ways = {(x, y) for p in range(keep + 1) for x in chosen(a, p) for y in chosen(b, keep - p)}
        best = truncated_join(left, right, keep=keep)
        assert best.size == max(size(*way) for way in ways)
        assert best.exact == size(a, b)
        assert best.kept.sum() <= keep
        rows = [np.array(side, dtype=object)[best.rows(place, side)] for place, side in enumerate((a, b))]
        assert size(*rows) == best.size
        pair = (random.randint(0, 4), random.randint(0, 4))
        ways = set(itertools.product(chosen(a, pair[0]), chosen(b, pair[1])))
        assert truncated_join(left, right, keep=pair).size == max(size(*way) for way in ways)


@pytest.mark.parametrize("seed", range(5))
def test_several_relations_lose_no_more_than_m_times_the_least(seed: int) -> None:
    random = Random(seed)
    for _ in range(4):
        tables = relations(random, 3, 5)
        keys = [table["key"].to_pylist() for table in tables]
        keep = [random.randint(0, 4) for _ in tables]
        ways = itertools.product(*(set(chosen(side, number)) for side, number in zip(keys, keep, strict=True)))
        best = max(size(*way) for way in ways)
        found = truncated_joins(tables, keep=keep)
        assert found.size <= best <= found.bound
        assert found.exact - found.size <= 3 * (found.exact - best)


def test_edges_are_as_printed() -> None:
    for m, n in itertools.product(range(1, 6), repeat=2):
        for p in range(m + n + 1):
            best = max(x * (p - x) for x in range(p + 1) if x <= m and p - x <= n)
            assert edges(m, n, p) == best


def test_refusals() -> None:
    left = {"key": [1, 2]}
    with pytest.raises(sj.InputError, match="relation 1 needs a column 'key'; it has id"):
        truncated_join(left, {"id": [1]}, keep=1)
    with pytest.raises(sj.SpecError, match="keep must be a whole number of at least 0, not -1"):
        truncated_join(left, left, keep=-1)
    with pytest.raises(sj.SpecError, match="keep must be 3 whole numbers"):
        truncated_joins([left] * 3, keep=[1, 2])
    many = {"key": np.arange(100_000) % 50_000}
    with pytest.raises(sj.SpecError, match="too large for the dynamic program"):
        truncated_join(many, many, keep=100_000)


def test_static_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"id": ["x", "x", "y"]}), tmp_path / "a.parquet")
    pyarrow.csv.write_csv(pa.table({"id": ["x", "x", "z"]}), tmp_path / "b.csv")
    files = [str(tmp_path / "a.parquet"), str(tmp_path / "b.csv")]
    out = tmp_path / "kept.parquet"
    assert main(["static", *files, "--key", "id", "--keep", "3", "--out", str(out)]) == 0
    assert "2 of 4 results (50.0%)" in capsys.readouterr().out
    assert pq.read_table(out).num_rows == 1
    assert main(["static", *files, files[0], "--key", "id", "--keep", "1", "2", "2"]) == 0
    assert main(["static", files[0], "--key", "id", "--keep", "1"]) == 2
    assert "at least two files" in capsys.readouterr().err
    for options, words in (
        (["--keep", "-1"], "--keep must be a whole number of at least 0, not -1"),
        (["--keep", "1", "2", "3"], "--keep must be "),
        (["--keep", "3", "--out", f"{tmp_path}/nowhere/x"], "--out must be a file in an existing directory, not "),
        (["--keep", "3", "--out", str(tmp_path)], "--out must be a file in an existing directory, not "),
    ):
        assert main(["static", *files, "--key", "id", *options]) == 2
        said = capsys.readouterr()
        assert said.err.startswith(f"shedjoin: {words}")
        assert said.out == ""


def test_a_relation_may_be_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As Spark writes it, with files that are not data."""
    for folder in ("a/day=1", "a/day=2", "b", "mixed", "empty"):
        (tmp_path / folder).mkdir(parents=True)
    pq.write_table(pa.table({"id": ["01", "01"]}), tmp_path / "a/day=1/part-0.parquet")
    pq.write_table(pa.table({"id": ["y"]}), tmp_path / "a/day=2/part-0.parquet")
    (tmp_path / "a/_SUCCESS").touch()
    (tmp_path / "a/.part-0.parquet.crc").touch()
    for place, rows in enumerate((["01", "1"], ["01"])):
        pyarrow.csv.write_csv(pa.table({"id": rows}), tmp_path / "b" / f"{place}.csv")
    (tmp_path / "mixed" / "x.csv").touch()
    (tmp_path / "mixed" / "x.parquet").touch()
    assert main(["static", str(tmp_path / "a"), str(tmp_path / "b"), "--key", "id", "--keep", "3"]) == 0
    assert "2 of 4 results (50.0%)" in capsys.readouterr().out
    for folder, has in (("mixed", "both"), ("empty", "none")):
        assert main(["static", str(tmp_path / "a"), str(tmp_path / folder), "--key", "id", "--keep", "3"]) == 2
        assert f"must have .csv or .parquet files, and has {has}" in capsys.readouterr().err
