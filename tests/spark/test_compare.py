"""A few of the jobs of `make compare`: ours gives the rows of Spark's own join."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compare.jobs import all_jobs, pairs_of, possible
from compare.runs import Different, check, compare

JOBS = all_jobs()
#: Of these there are results, whatever the rows.
FULL = [job for job in JOBS if job.where in ("none", "compared") and job.interval in ("wide", "everything", "around")]
#: One of each form, with another join type each, and one with late rows.
TYPES_OF = {
    "batch": "right_outer", "stream": "left_semi", "both streams": "left_outer", "start": "full_outer", "budget": "left_anti",
}  # fmt: skip
SAMPLE = {
    **{form: next(job for job in FULL if (job.form, job.how) == (form, how)) for form, how in TYPES_OF.items()},
    "late": next(job for job in FULL if job.order == "late"),
}


@pytest.mark.parametrize("name", SAMPLE)
def test_rows_are_those_of_sparks_own_join(spark: Any, tmp_path: Path, name: str) -> None:
    assert compare(spark, SAMPLE[name], tmp_path) > 0


def test_any_two_values_meet_in_some_job() -> None:
    assert len(JOBS) >= 300
    assert {pair for job in JOBS for pair in pairs_of(job)} == possible()
    assert all_jobs(20) == JOBS[:20]


def test_a_difference_is_told_with_an_example() -> None:
    with pytest.raises(Different, match=r"ours differ: 1 rows missing, 2 too many: - \(1, 'a'\); \+ \(2, 'b'\)"):
        check("ours", Counter({(2, "b"): 2}), Counter({(1, "a"): 1}))
