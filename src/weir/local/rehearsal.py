"""A rehearsal runs a program on a few made-up rows, so that all loops that it needs are compiled.

Rules
1. It reads no input, writes no output, and calls none of the user's code: something that returns a
   value of the same type stands in for it. Files of its own lie in a temporary folder.
2. Most rows pass every filter, so that the operators after it are reached. Loops that made-up
   values do not reach, or that an error cuts off, are compiled when the program runs.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from weir.events.batch import Batch
from weir.events.types import BOOLEAN
from weir.files.chunks import SourcePartition
from weir.files.readers import open_partition
from weir.files.sinks import JsonLinesForm
from weir.files.writers import OutputWriter
from weir.local.runner import LocalRun
from weir.loops.code_cache import (
    PACKAGE,
    Need,
    count_compiled,
    forget_used,
    remember,
    remembered,
    stamp,
    used,
)
from weir.loops.dry_runs import dry_run
from weir.plan.expressions import UserCall
from weir.plan.operators import Filter, Node, RowScan, Source
from weir.plan.operators.abstract import Operator
from weir.plan.plan_fingerprint import plan_fingerprint
from weir.plan.program import Output, Program
from weir.plan.states import MergeFunction, RowCode, RowRun
from weir.plan.traversal import rebuilt, with_inputs
from weir.plan.usercode.functions import (
    AggregateFunction,
    FoldingAggregate,
    OperatorFunction,
    ScalarFunction,
)
from weir.runtime.outputs import output_writer
from weir.runtime.program_plan import plan_program

FEW = range(12)
"""Numbers of rows that share a few values."""
MANY = range(12, 60)
"""Numbers of rows that share none, and are more than tables hold before they grow."""
CUT = 5
_STEPS = (0, 1, 1, 0, 1000, 1, 10**6, 1, 60 * 10**6, 1, 3600 * 10**6, 1)
"""Ticks between rows: some fall into one window, whatever its length, others into the next."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a rehearsal found: the loops that a program needs, and the errors of rule 2."""

    needs: tuple[Need, ...]
    errors: tuple[str, ...]


def rehearsed(program: Program) -> Rehearsed:
    """Find the loops that a program needs. They are compiled now, unless they are known from an
    earlier rehearsal on this machine, or one that shares its folder."""
    name = _name_of(program)
    earlier = remembered(name)
    if isinstance(earlier, Rehearsed):
        return earlier
    compiled = count_compiled()
    forget_used()
    errors = rehearse(program)
    if count_compiled() > compiled:  # see `used`
        forget_used()
        rehearse(program)
    result = Rehearsed(used(), tuple(map(str, errors)))
    remember(name, result)
    return result


def _name_of(program: Program) -> str:
    """Name a program by what its loops depend on: its plan, wherever that writes to, and the text
    of the package, which may use other loops in another version."""
    elsewhere = replace(program, outputs=_own_outputs(program))
    plan = plan_fingerprint(plan_program(elsewhere).stages)
    everything = repr((stamp(PACKAGE, "*.py"), [part.hash for part in plan.parts]))
    return f"program-{hashlib.sha256(everything.encode()).hexdigest()[:24]}"


def _own_outputs(program: Program) -> tuple[Output, ...]:
    return tuple(replace(o, path=f"{n}.jsonl") for n, o in enumerate(program.outputs))


def rehearse(program: Program) -> list[Exception]:
    """Run a program on made-up rows by the module's rules; return the errors that they caused."""
    errors: list[Exception] = []
    plans = [plan_program(program).program, plan_program(program, pays=lambda node: True).program]
    for plan in plans[:1] if plans[0] == plans[1] else plans:
        for numbers, parallelism in ((FEW, 2), (MANY, 1)):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    _run(_with_stand_ins(plan), Path(folder), numbers, parallelism)
                except Exception as error:  # rule 2: the program itself may have no such rows
                    errors.append(error)
    return errors


def guessed_needs(program: Program, parallelism: int, *, many: bool) -> list[Need]:
    """Guess which loops a local run of a program needs for few or many rows, of those that this
    process has not loaded; none is compiled."""
    plan = _with_stand_ins(plan_program(program).program)
    with tempfile.TemporaryDirectory() as folder, dry_run() as needs, suppress(Exception):
        # Any error may come: see what is said of dry runs.
        _run(plan, Path(folder), MANY if many else FEW, min(parallelism, 2), restarts=False)
    is_json = any(".json" in source.path.lower() for source in program.sources)
    return [n for n in needs if is_json or not n.module.startswith("weir.files.json_scan")]


def _run(
    program: Program, folder: Path, numbers: range, parallelism: int, *, restarts: bool = True
) -> None:
    outputs = _own_outputs(program)
    partitions = {s.name: [_partition(s, numbers, folder)] * parallelism for s in program.sources}
    writers: list[OutputWriter] = []
    run = LocalRun(
        program,
        partitions,
        [partial(_emit, writers, n) for n in range(len(outputs))],
        cut=CUT if parallelism > 1 else None,
        parallelism=parallelism,
        optimise=False,
        keep=True,
    )
    with ExitStack() as undo:
        for output, spec in zip(outputs, run.topology.sinks, strict=True):
            writers.append(output_writer(output, folder, len(spec.inputs)))
            undo.callback(writers[-1].abort)
        while run.step():
            for vertex in run.vertices if restarts else ():
                run.restart(vertex)
        for writer, egress in zip(writers, run.egress, strict=True):
            writer.finish(egress.digest)


def _emit(writers: list[OutputWriter], number: int, vertex: int, rows: Batch) -> None:
    writers[number].write(vertex, rows)


# --- rows ----------------------------------------------------------------------------------------


def _partition(source: Source, numbers: range, folder: Path) -> SourcePartition:
    """Write made-up rows of a source to a file."""
    starts = [sum(_STEPS[: i % len(_STEPS) + 1]) for i in numbers]
    ends = [start + 1 + i % 3 for i, start in zip(numbers, starts, strict=True)]
    times = {source.options.ve: sorted(ends), source.options.vs: sorted(starts)}
    names = [name for name, _ in source.declared]
    columns = [
        pa.array(times.get(name) or [value_of(dtype, i) for i in numbers], dtype)
        for name, dtype in source.declared
    ]
    path = folder / f"source-{source.index}.jsonl"
    rows = pa.RecordBatch.from_arrays(columns, names=names)
    path.write_bytes(JsonLinesForm(names).encode(rows))
    return open_partition(source, str(path))


def value_of(dtype: pa.DataType, number: int) -> Any:
    """Make up the value of a row: no zeros, texts that are numbers; now and then NULL.

    >>> [value_of(pa.string(), i) for i in (0, 1, 2, 3, 4, 12, 13)]
    ['1', '2', '3', '1', None, '000000000012', '000000000013']
    """
    value = 1 + number % 3 if number in FEW else number
    if number in (4, 40) or pa.types.is_null(dtype):
        return None
    if pa.types.is_list(dtype):
        return [value_of(dtype.value_type, i) for i in range(number % 3)]
    if pa.types.is_struct(dtype):
        return {f.name: value_of(f.type, number) for f in dtype}
    text = str(value) if number in FEW else f"{value:012}"
    if pa.types.is_string(dtype):
        return text
    if pa.types.is_binary(dtype):
        return text.encode()
    if pa.types.is_floating(dtype):
        return math.inf if number == MANY[-1] else value + 0.5
    if pa.types.is_decimal(dtype):
        return Decimal(value % 10).scaleb(-dtype.scale)
    return pa.scalar(bool(number % 2) if dtype == BOOLEAN else value, dtype).as_py()


# --- stand-ins -----------------------------------------------------------------------------------


def _with_stand_ins(program: Program) -> Program:
    """Replace the user's code and the predicates of filters, in all streams that are written."""
    three_of_four = itertools.cycle((True, True, True, False))
    some = ScalarFunction("some", lambda: next(three_of_four), (), BOOLEAN)

    def rebuild(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Filter):
            return Filter(inputs[0], UserCall(some, (), type=BOOLEAN))
        if isinstance(node, RowScan):
            node = replace(node, code=_row_code(node))
        return with_inputs(_rebuilt_part(node), inputs)

    return rebuilt(program, rebuild)


def _stand_in(value: Any) -> Any:
    """Replace the user's code in a part of an operator; what has none is returned itself."""
    match value:
        case ScalarFunction(result=dtype):
            result = value_of(dtype, 1)
            return replace(value, function=lambda *_: result, vectorised=False, imported=None)
        case AggregateFunction(result=dtype):
            state = value.state if isinstance(value, FoldingAggregate) else pa.int64()
            implementation = _aggregate(state, value_of(dtype, 1))
            return replace(value, implementation=implementation, imported=None)
        case OperatorFunction(columns=columns, state=state):
            row = {name: value_of(dtype, 1) for name, dtype in columns}
            held = {name: value_of(dtype, 1) for name, dtype in state}
            return replace(value, implementation=_operator(row, held), imported=None)
        case MergeFunction():
            return replace(value, function=lambda old, *_: old, imported=None)
        case tuple():
            parts = tuple(map(_stand_in, value))
            return value if all(map(_is, parts, value)) else parts
    is_part = is_dataclass(value) and not isinstance(value, Operator | type)
    return _rebuilt_part(value) if is_part else value


def _rebuilt_part(value: Any) -> Any:
    parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    other = {n: new for n, old in parts.items() if (new := _stand_in(old)) is not old}
    return replace(value, **other) if other else value


def _is(one: object, other: object) -> bool:
    return one is other


@dataclass(frozen=True, slots=True)
class _IdleRunner:
    """An `_IdleRunner` stands in for handler code: it does nothing, and gives nothing out."""

    node: RowScan

    @property
    def runs(self) -> Sequence[Sequence[RowRun]]:
        return [[self._run] * len(places) for places in self.node.places]

    def _run(self, values: tuple[Any, ...]) -> None:
        """Do nothing."""

    def loop(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Do nothing."""

    def bound(self) -> AbstractContextManager[None]:
        return nullcontext()

    def check(self) -> None:
        """Do nothing."""


def _row_code(node: RowScan) -> RowCode:
    return RowCode(node.code.name, lambda *_: _IdleRunner(node))


def _aggregate(held: pa.DataType, answer: object) -> type:
    class AggregateStandIn:
        def zero(self) -> object:
            return value_of(held, 1)

        def add(self, state: object, *values: object) -> object:
            return state

        remove = add

        def merge(self, state: object, other: object) -> object:
            return state

        def result(self, state: object) -> object:
            return answer

    return AggregateStandIn


def _operator(row: dict[str, Any], held: dict[str, Any]) -> type:
    class OperatorStandIn:
        def __init__(self, *args: object) -> None:
            for name, value in held.items():
                setattr(self, name, value)

        def on_event(self, event: object, ctx: Any) -> None:
            ctx.emit(**row)

    return OperatorStandIn
