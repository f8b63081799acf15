"""Advice at the end of a run: problems that its numbers do not show, and settings to change."""

from __future__ import annotations

from shedjoin.cli.stream_job import StreamJob
from shedjoin.parse import format_lateness
from shedjoin.spark.advice import idle_memory, what_if_lines
from shedjoin.spark.metrics import Summary


def advice(done: Summary, job: StreamJob) -> list[str]:
    """The lines to print at the end of a run."""
    lines = []
    if done.late:
        later = (
            f"shedjoin refine {job.output.path} adds the pairs that they missed"
            if job.output.archive
            else "with archive = true, refine adds the pairs that they missed"
        )
        lines.append(
            f'{done.late:,} rows were later than join.lateness = "{format_lateness(job.spec.lateness)}" and joined only rows '
            f"that were still stored: raise it; {later}."
        )
        if job.spec.how != "inner":
            lines.append(
                "A row that was delivered as unmatched stays so, also if its partner came late: a larger lateness avoids that."
            )
    if done.unknown:
        lines.append(
            f"{done.unknown:,} unmatched rows are unknown: a partner of theirs may have been shed. They are not in the results; "
            f"{'shedjoin refine settles them' if job.output.archive else 'with archive = true, refine settles them'}."
        )
    lines += what_if_lines(done.what_if)
    if (idle := idle_memory(done, job.spec.budget)) is not None:
        lines.append(idle)
    return lines
