"""Runs programs on rows in memory, cut and restarted as a test wants it.

>>> text = '''
...     STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
...     Out = SELECT SUM(v) AS total FROM A WITH TUMBLING(10);
... '''
>>> run(text, {"A": [{"vs": 1, "v": 2}, {"vs": 4, "v": 5}]}).rows
[{'vs': 0, 've': 10, 'total': 7}]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from weir.events.batch import OPEN, START, Batch
from weir.events.python_lists import readable_list
from weir.handlers.api.app import App
from weir.ingress.memory_partitions import MemoryPartition
from weir.local.run import Items
from weir.local.runner import LocalRun
from weir.plan.fluent.stream import Stream
from weir.plan.limits import check_numbers
from weir.plan.program import Program
from weir.plan.schema import Schema
from weir.reliable.memory_stream import MemoryStream
from weir.reliable.stream import Entry
from weir.runtime.outputs import output_schema
from weir.runtime.partitions import Partitions
from weir.runtime.programs import Runnable
from weir.testing.trial_inputs import program_given, rows_given


@dataclass(frozen=True, slots=True)
class Result:
    """The result for one stream: its rows in order, its digest, the ordered checksums of all
    streams of the run, and the largest number of rows held at once.

    `vs` and `ve` are ticks. Python has no values for times before the year 1 and after 9999; they
    are texts, as in files."""

    rows: list[dict[str, object]]
    digest: str
    checksums: Mapping[str, str] = field(default_factory=dict)
    most_state_rows: int = 0


def run(
    program: Runnable | Stream | App,
    inputs: Mapping[str, object],
    *,
    stream: str = "Out",
    params: Mapping[str, object] | None = None,
    directory: str | Path = ".",
    cut: int | None = None,
    parallelism: int = 1,
    snapshot_at: int | None = None,
    duplicate_writes: int | None = None,
    optimise: bool = True,
) -> Result:
    """Run a program over rows in memory, and return the result of one of its streams.

    The program and `inputs` are as for `check`; IMPORT starts at `directory`. `snapshot_at`: after
    this step, every vertex is replaced by a fresh one that loads its snapshot. `duplicate_writes`:
    a random seed; vertices return to earlier snapshots and write rows again, and entries are
    written to every stream again.
    """
    check_numbers(cut=cut, parallelism=parallelism)
    chosen = program_given(program, stream, params, directory)
    return run_program(
        chosen,
        rows_given(chosen, inputs),
        cut=cut,
        parallelism=parallelism,
        snapshot_at=snapshot_at,
        duplicate_writes=duplicate_writes,
        optimise=optimise,
    )


def run_program(
    program: Program,
    inputs: Mapping[str, Sequence[Items]],
    *,
    cut: int | None = None,
    parallelism: int = 1,
    snapshot_at: int | None = None,
    duplicate_writes: int | None = None,
    optimise: bool = True,
    check: bool = True,
) -> Result:
    """Run a parsed program with one output; the options are those of `run`."""
    answer = run_all(
        program,
        memory_partitions(program, inputs),
        cut=cut,
        parallelism=parallelism,
        restarts=lambda step: step == snapshot_at,
        keep=snapshot_at is not None,
        duplicate_writes=duplicate_writes,
        optimise=optimise,
        check=check,
    )
    shape = output_schema(program.outputs[0])
    rows = [row for batch in answer.batches[0] for row in batch_rows(batch, shape)]
    return Result(rows, answer.digests[0], answer.checksums, answer.most_state_rows)


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of all outputs of a run, each with its batches in order."""

    batches: tuple[list[Batch], ...]
    digests: tuple[str, ...]
    checksums: Mapping[str, str]
    most_state_rows: int


def memory_partitions(
    program: Program, inputs: Mapping[str, Sequence[Items]]
) -> dict[str, list[MemoryPartition]]:
    """Make the partitions of a program's sources from rows."""
    return {
        s.name: [
            MemoryPartition(f"{s.name}[{i}]", items, s.declared)
            for i, items in enumerate(inputs[s.name])
        ]
        for s in program.sources
    }


def run_all(
    program: Program,
    partitions: Partitions,
    *,
    cut: int | None = None,
    parallelism: int = 1,
    restarts: Callable[[int], bool] = lambda step: False,
    keep: bool = False,
    duplicate_writes: int | None = None,
    optimise: bool = True,
    check: bool = True,
) -> Answers:
    """Run a program with all its outputs. After each step for which `restarts` returns true, every
    vertex is replaced by one that loads its snapshot; this requires `keep`. The other options are
    those of `run`."""
    batches: tuple[list[Batch], ...] = tuple([] for _ in program.outputs)
    local = LocalRun(
        program,
        partitions,
        [partial(_take, kept) for kept in batches],
        cut=cut,
        parallelism=parallelism,
        check=check,
        optimise=optimise,
        keep=keep or duplicate_writes is not None,
    )
    chance = random.Random(duplicate_writes)
    number = most = 0
    while local.step():
        most = max(most, local.state_rows)
        if restarts(number) or (duplicate_writes is not None and chance.random() < 0.3):
            restart_vertices(local)
        if duplicate_writes is not None:
            write_again(list(local.streams.values()), chance)
            local.work_off()
        number += 1
    digests = tuple(str(egress.digest) for egress in local.egress)
    return Answers(batches, digests, local.checksums if check else {}, most)


def _take(batches: list[Batch], _: int, rows: Batch) -> None:
    batches.append(rows)


def restart_vertices(run: LocalRun) -> None:
    """Replace every vertex by a new one that loads its snapshot."""
    for vertex in run.vertices:
        run.restart(vertex)


def write_again(streams: Iterable[MemoryStream], chance: random.Random) -> None:
    """Write some of the content of every stream again, cut differently."""
    for stream in streams:
        for entry in stream.entries:
            if chance.random() < 0.3:
                start = chance.randint(0, len(entry.rows))
                stop = chance.randint(start, len(entry.rows))
                claim = entry.cti if stop == len(entry.rows) else START
                stream.write(Entry(entry.seq + start, entry.rows.slice(start, stop), claim))


def batch_rows(batch: Batch, shape: Schema) -> list[dict[str, object]]:
    """Return events as plain dicts: vs, ve (None if open), payload. A time that Python has no value
    for is a text, such as `+10000-01-01T00:00:00.000000Z`."""
    columns = {n: readable_list(c) for n, c in zip(shape.names, batch.columns, strict=True)}
    rows = []
    for i, (vs, ve) in enumerate(zip(batch.vs.tolist(), batch.ve.tolist(), strict=True)):
        values = {name: column[i] for name, column in columns.items()}
        rows.append({"vs": vs, "ve": None if ve == OPEN else ve, **values})
    return rows
