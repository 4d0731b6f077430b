"""The preparation of a live job, before Spark is there: its store, decisions, and checks.

Rules
1. A store holds one job. The run that begins a job decides and records what is to be decided
   (`JobRecord`); a run that resumes it takes those decisions, and samples nothing. A run that
   resumes "auto" resumes the store's job if there is one, and else begins it.
2. A program can resume a job only if its staged plan is that of the record. The user's code may
   have changed if that is accepted, and strategies may have changed in any case; the story says so.
3. A job that was once run with a check is checked before its outputs appear, whoever resumes it.
4. A program, inputs or a store that can be refused are refused before anything is written.
"""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from weir.errors import InputError, PlanError, RunError
from weir.files.chunks import SourcePartition
from weir.files.object_store import ObjectStore, existing_store, folder_of
from weir.files.readers import open_partition
from weir.ingress.connectors.registry import has_end, has_log, open_connector
from weir.ingress.connectors.tail import TailedFile
from weir.ingress.ingress_log import begin_log
from weir.job.job_identity import Decisions, JobRecord, encode_job, output_record, read_job
from weir.job.ledger import Ledger
from weir.job.record_reader import check_commits, job_ledger
from weir.plan.limits import MOST_VERTICES
from weir.plan.live_refusals import refuse_unbounded, refuse_unsaved
from weir.plan.plan_fingerprint import PlanFingerprint, plan_difference, plan_fingerprint
from weir.plan.program import DIRECT, Program
from weir.plan.stages import StagedPlan
from weir.plan.strategy import choose_strategies, default_strategy
from weir.plan.usercode.code_fingerprint import changes, program_code
from weir.reliable.object_names import JOB, UNCHECKED
from weir.reliable.store import ObjectExists
from weir.runtime.outputs import check_outputs, output_schema
from weir.runtime.partitions import Partitions, start_of
from weir.runtime.program_plan import PlannedProgram, plan_program
from weir.runtime.vertices import source_of
from weir.spark.frames import all_partitions, frame_sources
from weir.spark.live.live_check import refuse_endless
from weir.spark.live.live_run import LiveRun, make_live
from weir.spark.live.live_settings import LiveSettings
from weir.spark.live.loop_search import LoopSearch
from weir.spark.row_sample import remembering, repeating, rows_share_keys
from weir.spark.session import check_pandas

ResumeChoice: TypeAlias = bool | Literal["auto"]
"""Whether a run goes on with the job in its store; "auto": if there is one."""


def prepare_live(
    program: Program,
    store: str,
    *,
    directory: str | Path = ".",
    parallelism: int | None = None,
    cut: int | None = None,
    resume: ResumeChoice = False,
    accept_code_changes: bool = False,
    how: LiveSettings | None = None,
) -> LiveRun:
    """Check everything that can be checked without Spark, and make the store this job's, or resume
    the job in it. Without `parallelism` it is the number of hosts, each of which has one core, or
    that of the job that is resumed. What the program SETs for hosts overrides `how`."""
    check_pandas()
    in_files = tuple(o for o in program.outputs if o.path not in DIRECT)
    if in_files or not program.outputs:
        check_outputs(replace(program, outputs=in_files), directory)
    _refuse_frames(program)
    refuse_unsaved(program)
    location = store if folder_of(store) is None else str(folder_of(store))
    if resume not in (False, True, "auto"):
        raise PlanError(f"`resume` is True, False or 'auto', not {resume!r}")
    resumes = _holds_job(location) if resume == "auto" else resume
    resumed = _resumed(location, program, parallelism) if resumes else None
    if resumed is not None and resumed[0].get(UNCHECKED) is not None:
        how = replace(how or LiveSettings(), check=True)
    checks = how is not None and how.check
    opened: Partitions
    if resumed is not None and _is_finished(*resumed[:2]) and not checks:
        # Nothing is read of them any more, so they need not be there.
        opened = _recorded_partitions(program, directory, resumed[1].decisions.partitions)
    else:
        recorded = resumed[1].decisions.partitions if resumed is not None else {}
        opened = all_partitions(program, directory, recorded)
    refuse_unbounded(program, lambda source: not all(map(has_end, opened[source.name])))
    if checks:
        refuse_endless(opened)
    _warn_absent(opened)
    code = program_code(program)
    if resumed is None:
        cores = min((how or LiveSettings()).hosts, MOST_VERTICES)
        job, planned = _begun(program, parallelism or cores, opened, code)
        recovering = _recovering(program, planned.stages)
        objects = _taken_store(location, job)
    else:
        objects, job, planned = resumed
        recovering = _recovering(program, planned.stages)
    partitions = {
        name: _same_partitions(job.decisions.partitions[name], parts)
        for name, parts in opened.items()
    }
    ledger = job_ledger(objects, job)
    if ledger is not None:
        check_commits(objects, ledger)
    begun = ledger or Ledger(token=job.token)
    notes = _changed_code(
        location=objects.location, job=job, begun=begun, code=code, accept=accept_code_changes
    )
    notes += _changed_strategies(begun, recovering)
    if checks:
        objects.put(UNCHECKED, b"")
    live = make_live(
        program, planned, partitions, objects, ledger=begun, directory=directory, cut=cut, how=how
    )
    if ledger is None:
        # No manager has begun yet. Later, first records may be collected: never make them again.
        for vertex in _logged(live):
            begin_log(objects, vertex, job.token)
    return replace(
        live,
        parallelism=job.decisions.parallelism,
        log_token=job.token,
        notes=notes,
        loops=None if begun.finished else LoopSearch(program),
    )


def _holds_job(location: str) -> bool:
    folder = folder_of(location)
    if folder is not None and not folder.exists():
        return False
    with closing(existing_store(location)) as objects:
        return read_job(objects) is not None


def _recorded_partitions(
    program: Program, directory: str | Path, names: Mapping[str, Sequence[str]]
) -> Partitions:
    """Open the partitions of these names, whether or not their files are there."""
    sources = {source.name: source for source in program.sources}
    partitions: dict[str, Sequence[SourcePartition]] = {}
    for name, files in names.items():
        connector = open_connector(sources[name], start_of(directory))
        if connector is None:
            partitions[name] = [open_partition(sources[name], file) for file in files]
        else:
            partitions[name] = [connector]
    return partitions


def _is_finished(objects: ObjectStore, job: JobRecord) -> bool:
    ledger = job_ledger(objects, job, thorough=False)
    return ledger is not None and ledger.finished


def _begun(
    program: Program, parallelism: int, partitions: Partitions, code: dict[str, str]
) -> tuple[JobRecord, PlannedProgram]:
    """Decide what is to be decided for a new job; return its record and its plan."""
    answers: list[bool] = []
    pays = remembering(partial(rows_share_keys, partitions=partitions), answers)
    planned = plan_program(program, parallelism, pays=pays)
    names = {name: tuple(p.name for p in parts) for name, parts in partitions.items()}
    outputs = tuple(
        output_record(output, output_schema(output), kept=output.path not in DIRECT)
        for output in program.outputs
    )
    decisions = Decisions(parallelism, names, tuple(answers))
    fingerprint = plan_fingerprint(planned.stages)
    job = JobRecord(fingerprint, decisions, outputs, token=secrets.token_hex(16), code=code)
    return job, planned


def _taken_store(location: str, job: JobRecord) -> ObjectStore:
    """Make the store and write the job's record to it; PlanError if it holds a job already."""
    objects = ObjectStore(location)
    read_job(objects)  # a store of another format says so
    body = encode_job(job)
    try:
        objects.put(JOB, body, new=True)
    except ObjectExists:
        if objects.get(JOB) != body:  # else it is our own, and the answer to the first try was lost
            raise PlanError(
                f"the store '{objects.location}' holds a job already; go on with it by --resume, "
                "or give a folder of its own"
            ) from None
    objects.check_conditions(JOB, body)
    return objects


def _resumed(
    location: str, program: Program, parallelism: int | None
) -> tuple[ObjectStore, JobRecord, PlannedProgram]:
    """Check that the program is that of the store's job; return the store, the job's record and its
    plan."""
    objects = existing_store(location)
    job = read_job(objects)
    if job is None:
        raise RunError(f"the store '{objects.location}' holds no job to resume")
    decisions = job.decisions
    if parallelism not in (None, decisions.parallelism):
        raise PlanError(
            f"the job in '{objects.location}' was begun with --parallelism "
            f"{decisions.parallelism}, not {parallelism}",
            hint="go on with that one: it decides which vertices there are",
        )
    pays = repeating(decisions.two_phase)
    planned = plan_program(program, decisions.parallelism, pays=pays)
    _check_plan(objects.location, job.plan, plan_fingerprint(planned.stages))
    return objects, job, planned


def _check_plan(location: str, before: PlanFingerprint, now: PlanFingerprint) -> None:
    if before.format != now.format:
        raise PlanError(
            f"whether this is the program of the job in '{location}' cannot be told: its plan is "
            f"in format {before.format}, and this version of Weir writes format {now.format}",
            hint="use the version that began it, or start over with another store",
        )
    difference = plan_difference(before, now)
    if difference:
        raise PlanError(
            f"the store '{location}' holds the job of another program: {difference}",
            hint="put the program back as it was, or start over with another store",
        )


def _changed_code(
    location: str, job: JobRecord, begun: Ledger, code: dict[str, str], accept: bool
) -> tuple[str, ...]:
    """Check that the user's code is what the job ran with, or that a change is accepted, and note
    the code in the ledger; return what the story is to say of it."""
    before = job.code if begun.code is None else begun.code
    begun.code = code
    changed = changes(before, code) if before is not None else []
    if changed and not accept:
        raise PlanError(
            f"the user's code is not what the job in '{location}' ran with: {', '.join(changed)}",
            hint="rows before and after would come of different functions: put the code back, "
            "start over with another store, or go on with --accept-code-changes",
        )
    return (f"goes on with other code: {', '.join(changed)}",) if changed else ()


def _recovering(program: Program, plan: StagedPlan) -> dict[str, str]:
    """Choose the strategy of each stage, as a program would write it; PlanError where one does not
    suit."""
    chosen = choose_strategies(plan, default_strategy(program))
    return {str(stage): str(choice.strategy) for stage, choice in enumerate(chosen)}


def _changed_strategies(begun: Ledger, now: dict[str, str]) -> tuple[str, ...]:
    """Note the strategies in the ledger; return what the story is to say of those that changed."""
    before, begun.strategies = begun.strategies, now
    return tuple(
        f"goes on with another strategy: stage {stage} recovers by {said}, "
        f"before by {before[stage]}"
        for stage, said in now.items()
        if before.get(stage, said) != said
    )


def _same_partitions(
    names: Sequence[str], partitions: Sequence[SourcePartition]
) -> tuple[SourcePartition, ...]:
    by_name = {p.name: p for p in partitions}
    for name in names:
        if name not in by_name:
            message = "the job was begun with this file, and it is gone; put it back and resume"
            raise InputError(message, file=name)
    return tuple(by_name[name] for name in names)


def _logged(live: LiveRun) -> Iterator[str]:
    """Name the vertices whose sources have a log."""
    for spec in live.topology.sources:
        if has_log(live.partitions[source_of(live.plan, spec).name][spec.index]):
            yield spec.id


def _warn_absent(partitions: Partitions) -> None:
    """Warn of files to follow that are not there yet: perhaps nobody will ever make them."""
    for name, parts in partitions.items():
        for part in parts:
            if isinstance(part, TailedFile) and not os.path.exists(part.path):
                folder = os.path.dirname(part.path) or "."
                absent = part.name if os.path.isdir(folder) else f"{part.name} and its folder"
                verb = "is" if absent == part.name else "are"
                warnings.warn(
                    f"STREAM {name} waits for {absent}, which {verb} not there yet",
                    RuntimeWarning,
                    stacklevel=3,
                )


def _refuse_frames(program: Program) -> None:
    for source in frame_sources(program):
        raise PlanError(f"{source.name} is a DataFrame, which has an end: run it offline")
