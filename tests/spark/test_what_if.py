"""Other memories on shards: one curve from the sums of all, which comes and goes while a checkpoint lives."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dict_store import DictStore
from shards import Shards, cut, job

import shedjoin as sj
from shedjoin.cli import main
from shedjoin.errors import SpecError
from shedjoin.spark.advice import what_if_lines
from shedjoin.spark.arguments import spec_of
from shedjoin.spark.exchange import METRIC
from shedjoin.spark.join import shed_join
from shedjoin.spark.join_args import complete
from shedjoin.spark.metrics import curve_of_rows, latest, summarise

ROWS, BATCHES = 6000, 20
SPEC = sj.JoinSpec(sj.TimeWindow(300), sj.Budget(tuples=200), sj.Prob())
TRYING = replace(SPEC, what_if=sj.WhatIf(tuples=10_000, memory=1e6, every=200))


def tables() -> Any:
    rng = np.random.default_rng(5)
    likely = 1.0 / np.arange(1, 151)
    keys = [rng.choice(150, ROWS, p=likely / likely.sum()) for _ in range(2)]
    return cut([(key, np.arange(ROWS)) for key in keys], BATCHES)


def test_shards_add_up_to_one_curve() -> None:
    shards = Shards(job(TRYING, 2))
    rows = [row for part in tables() for row in shards.batch(*part)[METRIC]]
    assert rows[0]["what_if_why"] == "no window has passed since the miniatures began"
    last = latest(rows)
    assert [row["what_if_why"] for row in last] == [None, None]
    whole, one = curve_of_rows(last), curve_of_rows(last[:1])
    assert whole is not None
    assert one is not None
    assert whole.rows > one.rows
    assert whole.recall[4.0].recall > whole.recall[1.0].recall > whole.recall[0.25].recall
    point, measured = whole.recall[1.0], summarise(rows)
    assert measured is not None
    assert measured.recall is not None
    assert point.recall == pytest.approx(measured.recall.recall, abs=0.05)
    twice = Shards(job(replace(SPEC, budget=sj.Budget(tuples=400)), 2))
    more = summarise([row for part in tables() for row in twice.batch(*part)[METRIC]])
    assert more is not None
    assert more.recall is not None
    assert whole.recall[2.0].low - 0.02 < more.recall.recall < whole.recall[2.0].high + 0.02
    assert what_if_lines(measured.what_if)[0].startswith("With twice the memory recall would be about")


def test_it_comes_and_goes_while_a_checkpoint_lives() -> None:
    stores, parts = [DictStore()], tables()
    alone = Shards(job(SPEC))
    expected = [alone.batch(*part)["result"] for part in parts]
    given = []
    for number, part in enumerate(parts):
        what_if = TRYING if 4 <= number < 16 else SPEC
        made = Shards(job(what_if, cache=False), stores).batch(*part)
        given.append(made["result"])
        if number == 15:
            assert curve_of_rows(made[METRIC]) is not None
        assert ("what_if" in made[METRIC][0]) == (4 <= number < 16)
    assert given == expected


def test_arguments_are_checked() -> None:
    common: Any = {"on": "k", "time": "t", "window": 5, "lateness": 0, "budget": "100 tuples"}
    args = complete({**common, "what_if": True}, shed_join)
    assert spec_of(args, ("left", "right"), lateness=0, shards=1).what_if == sj.WhatIf()
    args = complete({**common, "what_if": {"tuples": 64, "memory": 2.0}}, shed_join)
    assert spec_of(args, ("left", "right"), lateness=0, shards=1).what_if == sj.WhatIf(64, 2.0)
    for given, sentence in (("yes", "what_if must be True"), ({"tuples": 1}, r"WhatIf\.tuples")):
        with pytest.raises(SpecError, match=sentence):
            spec_of(complete({**common, "what_if": given}, shed_join), ("left", "right"), lateness=0, shards=1)
    args = complete({**common, "what_if": True, "how": "left_semi"}, shed_join)
    with pytest.raises(SpecError, match="what_if: A what-if curve counts pairs"):
        spec_of(args, ("left", "right"), lateness=0, shards=1)


JOB = """
[left]
path = "left"
options.maxFilesPerTrigger = 1
[right]
path = "right"
options.maxFilesPerTrigger = 1
[join]
on = "k"
time = "t"
window = 400
lateness = 0
suffixes = ["_l", "_r"]
budget = "150 tuples"
policy = "rand"
shards = 1
what_if = {tuples = 1000, memory = 100.0, every = 600}
[output]
path = "out"
"""


def test_a_run_says_what_more_memory_would_bring(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    rng = np.random.default_rng(1)
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        for part in range(2):
            ts = np.arange(2000) + 2000 * part
            rows = pa.table({"k": rng.zipf(1.3, 2000) % 500, "t": ts, "v": ts})
            pq.write_table(rows, tmp_path / name / f"{part}.parquet")
            os.utime(tmp_path / name / f"{part}.parquet", (1_600_000_000 + part,) * 2)  # the older file comes first
    (tmp_path / "job.toml").write_text(JOB)
    job, out = str(tmp_path / "job.toml"), str(tmp_path / "out")
    assert main(["explain", job]) == 0
    assert "miniatures with other memories take up to 10000% of the budget" in capsys.readouterr().out
    assert main(["run", job, "--available-now"]) == 0
    said = capsys.readouterr().out
    assert "With twice the memory recall would be about" in said
    assert "With the current memory" in said
    assert main(["top", out, "--once"]) == 0
    seen = capsys.readouterr().out
    assert "2 x the memory:" in seen
    assert "policy Prospect():" in seen
    assert main(["top", out, "--plot", str(tmp_path / "curve.png")]) == 0
    assert (tmp_path / "curve.png").stat().st_size > 1000
