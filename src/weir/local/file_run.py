"""Runs a program from files to files.

Contract
1. Every output is checked before a file is touched: a path without a known format or one that
   a STREAM reads, or a program without an OUTPUT, is a PlanError.
2. All or nothing: outputs are renamed to their paths when all of them are whole, one right after
   the other. A run that fails leaves what stood there before; if one of the renames fails (the
   disk is gone), the error says which outputs are in place.
3. Inputs that no output needs are not opened; columns that none needs are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from weir.events.batch import Batch, concat_batches, empty_batch, times
from weir.events.order import in_order
from weir.files.writers import OutputWriter, put_all_in_place
from weir.local.runner import Emit, LocalRun
from weir.local.second_run import kept_traces, other_cut, second_differences
from weir.loops.interrupts import plain_interrupts
from weir.plan.program import CONSOLE, Output, Program
from weir.runtime.outputs import check_outputs, output_schema, output_writer
from weir.runtime.partitions import Partitions, open_partitions
from weir.runtime.reports import OnProgress, RunReport, run_report
from weir.runtime.vertices import check_same


@plain_interrupts()
def run_files(
    program: Program,
    *,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int = 1,
    check: bool = False,
    progress: OnProgress | None = None,
    partitions: Partitions | None = None,
    first: FirstRows | None = None,
) -> RunReport:
    """Run a program on the files it names; relative paths start at `directory`. `partitions` are
    read in place of those files. `first` gets the rows too, and alone those of outputs TO
    'console:'.

    `check` runs it a second time before the outputs are renamed to their paths, cut elsewhere and
    in another process (`second_run.py`): if any stream then has other rows, a DeterminismViolation
    names the first of them.
    """
    check_outputs(program, directory, console=first is not None)
    opened = open_partitions(program, directory) if partitions is None else partitions
    writers: dict[int, OutputWriter] = {}
    emits = [_emit_to(writers, i, first) for i in range(len(program.outputs))]
    with ExitStack() as undo:
        kept = undo.enter_context(kept_traces()) if check else None
        run = LocalRun(program, opened, emits, cut=cut, parallelism=parallelism, traces=kept)
        sinks = zip(run.plan.sinks, run.topology.sinks, strict=True)
        for number, (sink, spec) in enumerate(sinks):
            if sink.output.path != CONSOLE:
                writer = output_writer(sink.output, Path(directory), len(spec.inputs))
                writers[number] = writer
                undo.callback(writer.abort)
        run.run(progress)
        if kept is not None:
            kept.close()
            other = other_cut(cut, run.events)
            again = second_differences(
                program,
                directory,
                kept.folder,
                cut=other,
                parallelism=parallelism,
                partitions=partitions,
            )
            check_same(run.plan, run.topology, again)
        put_all_in_place([w.finish(run.egress[n].digest) for n, w in writers.items()])
    return run_report(directory, run.read, run.written)


def _emit_to(writers: Mapping[int, OutputWriter], number: int, first: FirstRows | None) -> Emit:
    # The writers are opened when the plan says how many vertices each output has.
    def emit(vertex: int, rows: Batch) -> None:
        if number in writers:
            writers[number].write(vertex, rows)
        if first is not None:
            first.take(number, rows)

    return emit


class FirstRows:
    """Holds the first rows of each output, in the order in which a file would have them."""

    def __init__(self, outputs: Sequence[Output], limit: int) -> None:
        self._outputs, self._limit = outputs, limit
        self._rows = [empty_batch(output_schema(o).types) for o in outputs]

    def take(self, number: int, rows: Batch) -> None:
        """Take rows of an output, of which only those that may be among the first are kept."""
        plain = Batch(rows.vs, rows.ve, rows.columns)
        together = in_order(concat_batches([self._rows[number], plain]))
        self._rows[number] = together.slice(0, min(self._limit, len(together)))

    def table(self, number: int) -> pa.Table:
        """Return the first rows of an output: vs, ve, then the payload (bad rows have no times)."""
        output, rows = self._outputs[number], self._rows[number]
        shape = output_schema(output)
        names, columns = list(shape.names), list(rows.columns)
        if output.kind != "bad":
            names = ["vs", "ve", *names]
            columns = [times(rows.vs, shape.time), times(rows.ve, shape.time), *columns]
        return pa.Table.from_arrays(columns, names=names)
