"""`weir.run` and `weir.collect`: programs and streams run from Python.

>>> import weir
>>> a = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
>>> sums = a.window(weir.tumbling(10)).agg(total=weir.col("v").sum())
>>> weir.collect(sums, inputs={"A": [{"vs": 1, "v": 2}, {"vs": 4, "v": 5}]}).to_pylist()
[{'vs': 0, 've': 10, 'total': 7}]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from weir.errors import PlanError
from weir.events.batch import Batch, concat_batches, empty_batch, times
from weir.events.order import in_order
from weir.ingress.memory import MemoryPartition
from weir.local.files import check_same, other_cut, run_files
from weir.local.runner import LocalRun
from weir.local.second_run import checksums_here
from weir.plan.operators import Node, Source, schema
from weir.plan.program import Output, Program
from weir.plan.stream import Stream
from weir.plan.traversal import ordered_nodes
from weir.runtime.partitions import open_partitions
from weir.runtime.reports import Progress, RunReport
from weir.script.program import parse_program

Rows = Sequence[Mapping[str, object]]


def run(
    program: str | Path | Program,
    *,
    params: Mapping[str, str] | None = None,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int = 1,
    check: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> RunReport:
    """Run a program from files to files: a text, a `Path` to one, or a checked program.

    `params` override DECLAREs; relative paths in STREAM and OUTPUT start at `directory`. `cut`
    and `parallelism` change nothing in what is written; `check` runs everything a second time
    and compares.
    """
    if not isinstance(program, Program):
        program = parsed(program, params, Path(directory))
    return run_files(
        program, directory=directory, cut=cut, parallelism=parallelism, check=check, report=report
    )


def parsed(program: str | Path, params: Mapping[str, str] | None, directory: Path) -> Program:
    """The checked program of a text, or of a file; IMPORT starts at the file's folder."""
    if isinstance(program, str):
        return parse_program(program, params=params, directory=directory)
    text = program.read_text(encoding="utf-8")
    return parse_program(text, params=params, directory=program.parent, name=str(program))


def collect(
    stream: Stream,
    *,
    inputs: Mapping[str, Rows] | None = None,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int = 1,
    check: bool = False,
) -> pa.Table:
    """The rows of a stream as a table, in the order in which a file would have them.

    Sources read their files, or the rows that `inputs` has under their names (a row
    `{"$cti": T}` is an explicit CTI). The columns are vs, ve, then the payload.
    """
    program = program_of(stream)
    partitions = (
        open_partitions(program, directory)
        if inputs is None
        else {s.name: [_memory(s, inputs)] for s in program.sources}
    )
    batches: list[Batch] = []
    local = LocalRun(
        program, partitions, [lambda _, rows: batches.append(rows)],
        cut=cut, parallelism=parallelism, check=check,
    )  # fmt: skip
    local.run()
    if check:
        other = other_cut(cut, local.events)
        check_same(local.checksums, checksums_here(program, partitions, other, parallelism))
    return _table(batches, stream)


def program_of(stream: Stream) -> Program:
    """The program whose only output is this stream."""
    return Program(_sources(stream.node), (), (Output("Out", stream.node, ""),))


def _sources(node: Node) -> tuple[Source, ...]:
    """The plan's sources in order of declaration; two with one number would have no order."""
    ordered = sorted(
        (n for n in ordered_nodes([node]) if isinstance(n, Source)), key=lambda s: s.index
    )
    names = Counter(source.name for source in ordered)
    for name, count in names.items():
        if count > 1:
            raise PlanError(f"{count} inputs are called {name}", hint="give each its own name")
    for one, other in pairwise(s for s in ordered if s.has_origins):
        if one.index == other.index:
            hint = "stream(…, index=0), stream(…, index=1), in order of declaration"
            raise PlanError(f"inputs {one.name} and {other.name} have the same index", hint=hint)
    return tuple(ordered)


def _memory(source: Source, inputs: Mapping[str, Rows]) -> MemoryPartition:
    if source.name not in inputs:
        raise PlanError(f"`inputs` has no rows for {source.name}")
    return MemoryPartition(source.name, inputs[source.name], source.declared)


def _table(batches: Sequence[Batch], stream: Stream) -> pa.Table:
    shape = schema(stream.node)
    plain = [Batch(b.vs, b.ve, b.columns) for b in batches]
    rows = concat_batches([empty_batch(shape.types), *plain])
    rows = in_order(rows)
    fields = pa.schema([("vs", shape.time), ("ve", shape.time), *shape.columns])
    columns = [times(rows.vs, shape.time), times(rows.ve, shape.time), *rows.columns]
    return pa.Table.from_arrays(columns, schema=fields)
