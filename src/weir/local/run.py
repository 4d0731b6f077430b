"""`weir.run` and `weir.collect` run programs and streams from Python.

>>> import weir
>>> a = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
>>> sums = a.window(weir.tumbling(10)).agg(total=weir.col("v").sum())
>>> weir.collect(sums, inputs={"A": [{"vs": 1, "v": 2}, {"vs": 4, "v": 5}]}).to_pylist()
[{'vs': 0, 've': 10, 'total': 7}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pyarrow as pa

from weir.errors import PlanError
from weir.events.batch import Batch, concat_batches, empty_batch, times
from weir.events.order import in_order
from weir.events.python_lists import readable_list
from weir.files.memory_rows import table_of
from weir.ingress.memory_partitions import MemoryPartition
from weir.local.file_run import run_files
from weir.local.runner import LocalRun
from weir.local.second_run import differences_here, kept_traces, other_cut
from weir.plan.fluent.stream import Stream, as_stream
from weir.plan.limits import check_numbers
from weir.plan.operators import Source, schema
from weir.runtime.input_warnings import MOST_ROWS, warn_of_fields
from weir.runtime.partitions import open_partitions
from weir.runtime.programs import Runnable, as_program, program_of
from weir.runtime.reports import OnProgress, RunReport
from weir.runtime.vertices import check_same

Items = Sequence[Mapping[str, object]]


def run(
    program: Runnable,
    *,
    params: Mapping[str, str] | None = None,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int = 1,
    check: bool = False,
    progress: OnProgress | None = None,
) -> RunReport:
    """Run a program from files to files: a text, a `Path` to one, a checked program, or streams
    with where they go (`stream.to("path")`).

    `params` override DECLAREs; relative paths of inputs and outputs start at `directory`. `cut`
    and `parallelism` change nothing in what is written; `check` runs everything a second time
    and compares. `progress` is called now and then with a `Progress`.

    >>> from tempfile import TemporaryDirectory
    >>> text = '''
    ...     STREAM R (t BIGINT, value BIGINT) FROM 'rate://10?rows=30' WITH (vs = t);
    ...     OUTPUT R TO 'rows.jsonl';
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     run(text, directory=folder).events
    30
    """
    check_numbers(cut=cut, parallelism=parallelism)
    return run_files(
        as_program(program, params=params, directory=directory),
        directory=directory,
        cut=cut,
        parallelism=parallelism,
        check=check,
        progress=progress,
    )


def collect(
    stream: Stream,
    *,
    inputs: Mapping[str, object] | None = None,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int = 1,
    check: bool = False,
) -> pa.Table:
    """Return the rows of a stream as a table, in the order in which a file would have them.

    Sources read their files, or the rows that `inputs` has under their names: dicts (one that is
    `{"$cti": T}` is an explicit CTI), or a table of Arrow, Pandas or Polars. The columns are vs,
    ve, then the payload.

    >>> from weir import stream
    >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    >>> collect(a.duration(5), inputs={"A": [{"vs": 1, "v": 7}]}).to_pylist()
    [{'vs': 1, 've': 6, 'v': 7}]
    """
    check_numbers(cut=cut, parallelism=parallelism)
    program = program_of([as_stream(stream).to("", name="Out")])
    partitions = (
        open_partitions(program, directory)
        if inputs is None
        else {s.name: [_memory(s, inputs)] for s in program.sources}
    )
    batches: list[Batch] = []
    with kept_traces() if check else nullcontext() as kept:
        local = LocalRun(
            program,
            partitions,
            [lambda _, rows: batches.append(rows)],
            cut=cut,
            parallelism=parallelism,
            traces=kept,
        )
        local.run()
        if kept is not None:
            kept.close()
            other = other_cut(cut, local.events)
            again = differences_here(
                program=program,
                partitions=partitions,
                traces=kept.folder,
                cut=other,
                parallelism=parallelism,
            )
            check_same(local.plan, local.topology, again)
    return table_of_rows(batches, stream)


def _memory(source: Source, inputs: Mapping[str, object]) -> MemoryPartition:
    if source.name not in inputs:
        raise PlanError(f"`inputs` has no rows for {source.name}")
    rows = items_of(inputs[source.name])
    warn_of_fields(source, islice(rows, MOST_ROWS), "the rows")
    return MemoryPartition(source.name, rows, source.declared)


def items_of(rows: Items | object) -> Items:
    """Return rows as dicts, whatever they were given as."""
    if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        return rows
    table = table_of(rows)
    columns = [readable_list(column.combine_chunks()) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def table_of_rows(batches: Sequence[Batch], stream: Stream) -> pa.Table:
    """Return the rows of a stream as a table, in order."""
    shape = schema(stream.node)
    plain = [Batch(b.vs, b.ve, b.columns) for b in batches]
    rows = concat_batches([empty_batch(shape.types), *plain])
    rows = in_order(rows)
    fields = pa.schema([("vs", shape.time), ("ve", shape.time), *shape.columns])
    columns = [times(rows.vs, shape.time), times(rows.ve, shape.time), *rows.columns]
    return pa.Table.from_arrays(columns, schema=fields)
