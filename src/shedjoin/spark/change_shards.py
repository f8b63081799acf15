"""`shedjoin reshard`: change the number of shards of a query, with only its output directory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from shedjoin.errors import InputError, SpecError
from shedjoin.spark import arguments, reshard
from shedjoin.spark.budget_split import least_of
from shedjoin.spark.exchange import shard_labels
from shedjoin.spark.hypercube import HyperCube
from shedjoin.spark.inputs import PARTITIONS
from shedjoin.spark.job import Job
from shedjoin.spark.lock import Owner
from shedjoin.spark.start import check_shards, checkpoint_of, found, going_on, has_batches, read_job, write_job
from shedjoin.spec import JoinSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def job_with(output: str, shards: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The job of an output directory as it is, and as it would be with another number of shards; SpecError: it cannot be."""
    if type(shards) is not int:
        raise SpecError(f"shards must be a whole number from 1 to {arguments.MOST_SHARDS}, not {shards!r}")
    arguments.check_shards(shards)
    before = _as_it_is(output)
    if before is None or not has_batches(output):
        raise InputError(
            f"{output} has no query with a finished micro-batch: give the output directory of `start` or `shedjoin run`"
        )
    if "signature" not in before:
        raise InputError(
            f"the query in {output} was started by a version that did not save what a change of shards needs: start it once "
            "more with this version, or pass shards to start"
        )
    spec = JoinSpec.from_dict(before["spec"])
    has_groups = arguments.has_groups(spec.on)
    if not has_groups and shards > 1 and spec.counts_partners:
        raise SpecError(
            "shards: rows that a join on a predicate with how or matches has stored in one shard cannot be copied to others: "
            "start with a new output directory"
        )
    if spec.budget is not None:
        least_of(spec.budget, shards, len(before["streams"]))
    counted = has_groups and shards > 1 and arguments.are_counted_elsewhere(spec.windows, spec.policy)
    now = before | {"shards": shards, "spec": before["spec"] | {"counted_elsewhere": counted}}
    check_shards(before, now, checkpoint_of(output, before["checkpoint"]))
    return before, now


def _as_it_is(output: str) -> dict[str, Any] | None:
    """The job of a directory, after an earlier change that a crash has stopped."""
    job = read_job(output)
    return None if job is None else found(output, job["checkpoint"])


def partitions_for(output: str, shards: int) -> int:
    """The number of partitions of the new state: as many as now, or one for each shard."""
    before = _as_it_is(output) or {"checkpoint": None}
    return max(shards, reshard.partitions_of(checkpoint_of(output, before["checkpoint"])) or 1)


def change_shards(spark: SparkSession, output: str, shards: int) -> int:
    """Give the query of an output directory another number of shards while it does not run; returns how many it had."""
    before, now = job_with(output, shards)
    if before["shards"] == shards:
        return shards
    owner = Owner.of(output)
    try:
        if read_job(output) != before:
            raise InputError(f"the query in {output} was started in between: run the command again")
        now["labels"] = list(shard_labels(shards, int(spark.conf.get(PARTITIONS) or 1)))
        now = going_on(before, now)
        checkpoint = checkpoint_of(output, before["checkpoint"])
        reshard.move(spark, _stored(before), _stored(now), checkpoint, now)
        reshard.swap(checkpoint, partial(write_job, output))
    finally:
        owner.release()
    return int(before["shards"])


def _stored(job: dict[str, Any]) -> Job:
    """What reads and writes the state of a query."""
    streams, shards, spec = tuple(job["streams"]), int(job["shards"]), job["spec"]
    everywhere = not arguments.has_groups(JoinSpec.from_dict(spec).on)
    return Job(
        spec=spec,
        labels=tuple(job["labels"]),
        cube=HyperCube.of_copies(shards) if everywhere else HyperCube.of_key(len(streams), shards),
        seed=job["seed"],
        kept=((),) * len(streams),
        signature=job["signature"],
        kinds=(),
        cache=False,
        names=streams,
        timestamps=job["timestamps"],
    )
