"""A program run from files to files.

Contract
1. Every output is checked before a file is touched: a path without a known format or one that
   a STREAM reads, or a program without an OUTPUT, is a PlanError.
2. All or nothing: outputs are put in their places when all of them are whole, by renames one
   right after the other. A run that fails leaves what stood there before; if one of the renames
   fails (the disk is gone), the error says which outputs are in place.
3. Inputs that no output needs are not opened; columns that none needs are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from weir.errors import DeterminismViolation
from weir.events.batch import Batch
from weir.files.chunks import CHUNK_ROWS
from weir.files.writers import OutputWriter, put_all_in_place
from weir.local.runner import Emit, LocalRun
from weir.local.second_run import second_checksums
from weir.plan.program import Program
from weir.runtime.outputs import check_outputs, output_writer
from weir.runtime.partitions import open_partitions
from weir.runtime.reports import InputReport, OutputReport, Progress, RunReport

Report = Callable[[Progress], None]


def run_files(
    program: Program,
    *,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int = 1,
    check: bool = False,
    report: Report | None = None,
) -> RunReport:
    """Run a program on the files it names; relative paths start at `directory`.

    `check` runs it a second time before the outputs are put in their places, cut elsewhere and in
    another process (`second_run.py`): if any stream then has other rows, a DeterminismViolation
    says which.
    """
    check_outputs(program, directory)
    partitions = open_partitions(program, directory)
    writers: list[OutputWriter] = []
    emits = [_emit_to(writers, i) for i in range(len(program.outputs))]
    run = LocalRun(program, partitions, emits, cut=cut, parallelism=parallelism, check=check)
    with ExitStack() as aborting:
        for sink in run.plan.sinks:
            vertices = sum(len(run.vertices[stage]) for stage in run.plan.stages_of(sink))
            writers.append(output_writer(sink.output, Path(directory), vertices))
            aborting.callback(writers[-1].abort)
        run.run(report)
        if check:
            again = second_checksums(
                program, directory, cut=other_cut(cut, run.events), parallelism=parallelism
            )
            check_same(run.checksums, again)
        digests = [egress.digest for egress in run.egress]
        put_all_in_place([w.finish(digest) for w, digest in zip(writers, digests, strict=True)])
    return _run_report(run, directory)


def other_cut(cut: int | None, events: int | None = None) -> int:
    """The cut of a second run; if the first read few events, one that cuts them still."""
    smaller = max(1, (cut or CHUNK_ROWS) // 3)
    return smaller if events is None else min(smaller, max(1, events // 5))


def check_same(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """The ordered checksums of two runs are the same, stream by stream."""
    for name in sorted(before):
        if before[name] != after.get(name):
            raise DeterminismViolation(
                f"{name}: a second run gave other rows ({before[name]}, then {after.get(name)}); "
                "is a user function not deterministic? It must not depend on hash(), the order of "
                "a set, calls before, state that it does not declare, the clock, the time zone"
            )


def _emit_to(writers: Sequence[OutputWriter], number: int) -> Emit:
    # The writers are opened when the plan says how many vertices each output has.
    def emit(vertex: int, rows: Batch) -> None:
        writers[number].write(vertex, rows)

    return emit


def _run_report(run: LocalRun, directory: str | Path) -> RunReport:
    inputs: dict[str, InputReport] = {}
    for vertex in run.sources:
        ingress = vertex.ingress
        name = ingress.source.name
        known = inputs.get(name, InputReport(name, 0, 0, 0))
        inputs[name] = InputReport(
            name,
            known.partitions + 1,
            known.late + ingress.late_count,
            known.bad + ingress.bad_count,
        )
    outputs = tuple(
        OutputReport(
            egress.sink.output.name,
            egress.sink.output.kind,
            str(Path(directory) / egress.sink.output.path),
            egress.digest.count,
            str(egress.digest),
        )
        for egress in run.egress
    )
    return RunReport(run.events, tuple(inputs.values()), outputs)
