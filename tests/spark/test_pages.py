"""The pages' blocks that need Spark run, on streams where they say their data is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plans import large_plans

import test_docs

SECOND = 1_000_000


def write_streams(folder: Path, rows: int = 600) -> None:
    draw = np.random.default_rng(3)
    for name, time in (("impressions", "shown_at"), ("clicks", "clicked_at")):
        (folder / name).mkdir()
        at = pa.array(np.arange(rows) * SECOND, pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({"ad": draw.integers(0, 40, rows), time: at}), folder / name / "0.parquet")


@pytest.mark.parametrize(
    "page", ["README.md", "docs/start.md", "docs/spark.md", "docs/migrate.md", "docs/estimates.md"]
)
def test_python_blocks_on_spark_run(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], page: str
) -> None:
    write_streams(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    path = test_docs.ROOT / page
    found = [block for block in test_docs.blocks(path, "python") if block not in test_docs.plain_blocks(path)]
    # A small budget, so that there is something to refine; and the data where the test has it.
    found = [block.replace("/data/", f"{tmp_path}/").replace("200k tuples", "90 tuples") for block in found]
    with large_plans(spark):
        checked = sum(test_docs.run(block, f"{page}, block {place}", vars(module)) for place, block in enumerate(found))
    assert found
    assert checked == sum(block.count("  # -> ") for block in found)
    if page == "README.md":
        missed, _, rest = capsys.readouterr().out.partition(" ")
        assert int(missed) > 0
        assert rest.startswith("missed rows delivered")
