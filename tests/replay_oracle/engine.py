"""The one place where the oracle's tests touch the engine.

`run_app` compiles an app's text and runs it by the local runner on rows in memory. What Weir
refuses before it runs is `Refused`, what fails while it runs is `AppFailed`, as the loop's are.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from replay_oracle.cells import comparable, copied
from replay_oracle.final_states import saved_values
from replay_oracle.loop import AppFailed, Comparable, Logs, Loop
from replay_oracle.numbering import numbered as with_numbers
from weir.errors import OperatorFailed, PlanError, ScriptError, WeirError
from weir.events.batch import Batch
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app
from weir.local.runner import LocalRun
from weir.plan.fluent.stream import Stream
from weir.plan.operators import Source, SourceOptions
from weir.plan.program import Program
from weir.replay.batch_programs import FIRST_INDEX
from weir.runtime.outputs import output_schema
from weir.runtime.programs import program_of
from weir.testing import batch_rows
from weir.testing.memory_runs import memory_partitions

Rows = list[dict[str, object]]
Came = list[list[Batch]]


class Refused(Exception):
    """A `Refused` says that the engine does not take an app."""


@dataclass(frozen=True)
class Prepared:
    """A `Prepared` app is compiled: its outputs are emits, then final states."""

    program: Program
    emits: tuple[str, ...]
    states: tuple[str, ...]


@dataclass(frozen=True)
class Half:
    """A `Half` is a part of a run: before a time, or from it on and from saved states."""

    end: int | None = None
    start: int | None = None
    saved: tuple[tuple[str, Stream], ...] = ()


def prepare(
    source: str,
    params: Mapping[str, object] | None = None,
    *,
    vectorise: bool = True,
    half: Half = Half(),
    numbered: bool = False,
) -> Prepared:
    """Compile an app's text; raise Refused when the engine does not take it.

    With `numbered`, another app numbers what is emitted, in the order in which it sees it.
    """
    with tempfile.TemporaryDirectory(prefix="weir-oracle-") as folder:
        path = Path(folder) / "app.py"
        path.write_text(source, encoding="utf-8")
        try:
            app = load_app(path)
            compiled = compile_app(
                app,
                params=params,
                final=True,
                vectorise=vectorise,
                start=half.start,
                end=half.end,
                restored=dict(half.saved),
            )
            emitted = compiled.emitted
            if numbered:
                emitted = with_numbers(emitted, Path(folder))
            outputs = [s.to("", name=f"e.{n}") for n, s in emitted.items()]
            outputs += [s.to("", name=f"s.{n}") for n, s in compiled.final.items()]
            program = program_of(outputs)
        except (PlanError, ScriptError) as error:
            raise Refused(str(error)) from error
    return Prepared(program, tuple(compiled.emitted), tuple(compiled.final))


def run_app(
    source: str,
    logs: Logs,
    params: Mapping[str, object] | None = None,
    *,
    cut: int | None = None,
    parallelism: int = 1,
    vectorise: bool = True,
    renew: bool = False,
    halves: bool = False,
    begin: int | None = None,
    numbered: bool = False,
) -> Comparable:
    """Run an app; return its emits and final state, ready to compare with the loop's.

    With `renew`, fresh operators load a snapshot after each step. With `halves`, the second half
    of the time is a run of its own, from the state that the first one saved; `begin` says from
    which time on. `numbered` is that of `prepare`; each run numbers from 1.
    """

    def run_half(half: Half, logs: Logs) -> tuple[Prepared, Came]:
        prepared = prepare(source, params, vectorise=vectorise, half=half, numbered=numbered)
        came: Came = [[] for _ in prepared.program.outputs]
        try:
            run = LocalRun(
                prepared.program,
                memory_partitions(prepared.program, logs),
                [_kept(batches) for batches in came],
                cut=cut,
                parallelism=parallelism,
                check=True,
            )
            while renew and run.step():
                run.renew()
            run.run()
        except WeirError as error:
            raise failure_of(error) from error
        return prepared, came

    if not halves:
        return answered(*run_half(Half(), logs), source, logs)
    at = _middle(source, logs) if begin is None else begin
    first, came = run_half(Half(end=at), logs)
    emits, _ = answered(first, came, source, logs)
    begun, tables = _saved(first, came)
    more, cells = answered(*run_half(Half(start=at, saved=begun), {**logs, **tables}), source, logs)
    return {n: emits.get(n, Counter()) + more.get(n, Counter()) for n in {*emits, *more}}, cells


def failure_of(error: WeirError) -> AppFailed:
    """Return the failure of a run as one of the loop's would be."""
    if isinstance(error, OperatorFailed) and isinstance(error.event, Mapping):
        event = {name: copied(value) for name, value in error.event.items()}
        return AppFailed(str(error), error.function, event)
    return AppFailed(str(error))


def _middle(source: str, logs: Logs) -> int:
    times = sorted(event_times(Loop(source), logs))
    return times[len(times) // 2] if times else 0


def _saved(prepared: Prepared, came: Came) -> tuple[tuple[tuple[str, Stream], ...], Logs]:
    """Return the states that a run has saved as streams, and their rows by the streams' names."""
    streams, tables = [], {}
    outputs = prepared.program.outputs[len(prepared.emits) :]
    for number, (name, output) in enumerate(zip(prepared.states, outputs, strict=True)):
        shape = output_schema(output)
        columns = (("vs", shape.time), ("ve", shape.time), *shape.columns)
        options = SourceOptions("vs", "ve")
        source = Source(f"saved {name}", columns, "", options, FIRST_INDEX + number)
        streams.append((name, Stream(source, source.name)))
        rows = [r for b in came[len(prepared.emits) + number] for r in batch_rows(b, shape)]
        tables[f"saved {name}"] = [sorted(rows, key=itemgetter("vs"))]
    return tuple(streams), tables


def _kept(batches: list[Batch]) -> object:
    return lambda _, rows: batches.append(rows)


def answered(
    prepared: Prepared, came: Sequence[Sequence[Batch]], source: str, logs: Logs
) -> Comparable:
    """Return what came out, in the form of `comparable_answer`."""
    rows = [
        [row for batch in batches for row in batch_rows(batch, output_schema(output))]
        for output, batches in zip(prepared.program.outputs, came, strict=True)
    ]
    emits = dict(zip(prepared.emits, rows, strict=False))
    states = dict(zip(prepared.states, rows[len(prepared.emits) :], strict=True))
    return (
        {name: Counter(emitted_row(r) for r in found) for name, found in emits.items() if found},
        cells_of(states, source, logs),
    )


def emitted_row(row: Mapping[str, object]) -> tuple[object, ...]:
    fields = {n: v for n, v in row.items() if n not in ("vs", "ve")}
    return (row["vs"], row["ve"], comparable(fields))


# --- final states ------------------------------------------------------------------------------


def cells_of(
    states: Mapping[str, Rows], source: str, logs: Logs, to: int | None = None
) -> dict[str, dict[object, object]]:
    """Return the values as of `to`, else of the largest vs, of saved cells and merges."""
    loop = Loop(source)
    end = max(event_times(loop, logs), default=0) if to is None else to
    found: dict[str, dict[object, object]] = {}
    for name, kind in loop.store.kinds.items():
        found[name] = saved_values(kind, states.get(name, []), end)
    return found


def event_times(loop: Loop, logs: Logs) -> list[int]:
    vs = {kind.name: kind.vs for kind in loop.kinds}
    """Return the times of all events."""
    return [row[vs[n]] for n in vs for rows in logs[n] for row in rows]  # type: ignore[misc]
