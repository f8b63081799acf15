"""What a user should know of a run beside its numbers, and what to set."""

from __future__ import annotations

from shedjoin.budget import Budget
from shedjoin.cli.stream_job import StreamJob
from shedjoin.parse import format_lateness
from shedjoin.spark.metrics import Summary

#: A budget of which less than this is used while rows are evicted is badly shared.
USED = 0.8


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
            f'{done.late:,} rows were later than join.lateness = "{format_lateness(job.spec.lateness)}" and met only rows that '
            f"were still stored: raise it; {later}."
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
    if (idle := idle_memory(done, job.spec.budget)) is not None:
        lines.append(idle)
    return lines


def idle_memory(done: Summary, budget: Budget | None) -> str | None:
    """A sentence if one stream evicts while the share of another lies idle."""
    if budget is None or budget.allocation != "fixed" or not done.evicted:
        return None
    used = (done.resident if budget.unit == "tuples" else done.stored_bytes) / budget.total
    if used >= USED:
        return None
    return (
        f"Rows are evicted while {1 - used:.0%} of the budget lies idle: the streams need unequal memory. Set allocation = "
        '"variable", or other shares.'
    )
