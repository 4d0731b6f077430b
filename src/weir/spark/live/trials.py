"""Runs conformance cases on the live runner: one job after the other, in one session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from weir.conform.cases import Outcome, Trial
from weir.events.batch import Batch
from weir.files.object_store import ObjectStore
from weir.job.commit_log import read_part
from weir.job.ledger import Ledger
from weir.job.output_reader import commits
from weir.reliable.digest import Digest
from weir.runtime.program_plan import plan_program
from weir.runtime.topology import vertex_name
from weir.spark.live.live_run import make_live
from weir.spark.live.live_settings import LiveSettings


def run_live_trials(spark: SparkSession, trials: Sequence[Trial], hosts: int) -> Iterator[Outcome]:
    """Run trials in one session, and give their outcomes in their order."""
    for trial in trials:
        with tempfile.TemporaryDirectory(prefix="weir-conform-") as folder:
            yield _outcome(spark, trial, ObjectStore(folder), LiveSettings(hosts=hosts))


def _outcome(
    spark: SparkSession, trial: Trial, objects: ObjectStore, settings: LiveSettings
) -> Outcome:
    planned = plan_program(trial.program, trial.parallelism)
    partitions = {name: tuple(parts) for name, parts in trial.partitions.items()}
    live = make_live(
        trial.program, planned, partitions, objects, ledger=Ledger(), cut=trial.cut, how=settings
    )
    ended, machine = live.drive(spark)
    if ended.error:
        return Outcome(error=ended.error)
    batches: list[Batch] = []
    digest = Digest()
    for link in commits(objects, vertex_name("sink", 0), machine.ledger):
        digest = link.commit.digest
        batches += [rows for _, rows in read_part(objects, link)]
    return Outcome(batches, str(digest))
