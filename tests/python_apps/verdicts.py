"""Runs a drawn app both ways, and says what came of it."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from python_apps.apps import DrawnApp
from python_apps.python_loop import PythonLoop
from replay_oracle.differences import told
from replay_oracle.engine import emitted_row, failure_of
from replay_oracle.final_states import saved_values
from replay_oracle.loop import AppFailed, Comparable, Logs, comparable_answer
from replay_oracle.numbering import numbered as with_numbers
from weir.errors import PlanError, RunError, ScriptError, WeirError
from weir.events.batch import Batch
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import Compiled, compile_app
from weir.handlers.planning.dataflow import Flow
from weir.handlers.trees.accesses import EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.tree_walks import walk_tree
from weir.handlers.trees.values import ReadValue, Tree
from weir.local.runner import LocalRun
from weir.plan.states import UnplannedAccess
from weir.runtime.outputs import output_schema
from weir.runtime.programs import program_of
from weir.testing import batch_rows
from weir.testing.memory_runs import memory_partitions

LONGEST = 20
"""Seconds after which an app is given up: drawn code may grow a list that it goes through."""
_CUTS = (
    (None, 1),
    (None, 2),
    (None, 1),
    (7, 1),
    (None, 1),
    (None, 5),
    (None, 2),
    (7, 2),
    (None, 1),
    (1, 1),
    (None, 2),
    (None, 1),
    (None, 1),
)
RIGHT = ("same", "refused", "guard", "slow")
"""Kinds of verdicts that are no wrong answers."""


@dataclass(frozen=True)
class RunWay:
    """A `RunWay` says how the engine runs an app: its cuts and parts, whether fresh operators load
    a snapshot after each step, and whether the order of what is emitted is compared."""

    cut: int | None = None
    parallelism: int = 1
    renew: bool = False
    numbered: bool = False


def way_of(seed: int) -> RunWay:
    """Choose how a seed's app runs."""
    return RunWay(*_CUTS[seed % 13], renew=seed % 11 == 3, numbered=seed % 6 == 5)


@dataclass(frozen=True)
class Verdict:
    """A `Verdict` says what came of an app.

    `kind` is same, refused (before the run), guard (refused within it), slow, or wrong: order
    (handlers run in another order), other (another answer), other failure, failed (but the loop
    did not), went on (but the loop failed), crashed. `ways` are those of its handlers.
    """

    kind: str
    text: str = ""
    ways: frozenset[str] = frozenset()
    is_staged: bool = False
    has_failed: bool = False

    @property
    def is_wrong(self) -> bool:
        return self.kind not in RIGHT


def judge(drawn: DrawnApp, way: RunWay) -> Verdict:
    """Run an app both ways."""
    with (
        tempfile.TemporaryDirectory(prefix="weir-python-") as folder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        before = signal.signal(signal.SIGALRM, _give_up)
        signal.alarm(LONGEST)
        try:
            verdict = _judged(drawn, way, Path(folder))
            if verdict.kind == "other failure":
                # Of several failures a run has that which it comes upon first: leave one.
                verdict = _judged(_up_to_failure(drawn), way, Path(folder))
            return verdict
        except _Slow:
            return Verdict("slow")
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def _up_to_failure(drawn: DrawnApp) -> DrawnApp:
    """Return an app with the events up to the first on which the loop fails."""
    order = None if drawn.touches is not None else _engine_order(drawn)
    loop = PythonLoop(drawn.source, drawn.touches, order)
    with contextlib.suppress(AppFailed):
        loop.run(drawn.logs)
    kept = {id(row) for _, row in loop.in_log_order(drawn.logs)[: loop.taken]}
    logs = {
        name: [[row for row in rows if id(row) in kept] for rows in partitions]
        for name, partitions in drawn.logs.items()
    }
    return replace(drawn, logs=logs)


def _engine_order(drawn: DrawnApp) -> dict[str, tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="weir-python-") as folder:
        path = Path(folder) / "app.py"
        path.write_text(drawn.source, encoding="utf-8")
        flow = compile_app(load_app(path), final=True).flow
    return {of.event: of.handlers for of in flow.events}


class _Slow(BaseException):
    """A `_Slow` says that an app takes too long."""


def _give_up(*_: object) -> None:
    raise _Slow


def _judged(drawn: DrawnApp, way: RunWay, folder: Path) -> Verdict:
    path = folder / "app.py"
    path.write_text(drawn.source, encoding="utf-8")
    try:
        compiled = compile_app(load_app(path), final=True)
        emitted = with_numbers(compiled.emitted, folder) if way.numbered else compiled.emitted
        outputs = [s.to("", name=f"e.{n}") for n, s in emitted.items()]
        outputs += [s.to("", name=f"s.{n}") for n, s in compiled.final.items()]
        if not outputs:
            return Verdict("refused", "nothing is emitted or merged")  # as every command says
        program = program_of(outputs)
    except (PlanError, ScriptError) as error:
        return Verdict("refused", str(error))
    except Exception as error:
        return Verdict("crashed", f"before the run: {type(error).__name__}: {error}")
    ways, staged = frozenset(handler_ways(compiled)), is_staged(compiled.flow)
    order = {of.event: of.handlers for of in compiled.flow.events}

    def verdict(kind: str, text: str = "", *, failed: bool = False) -> Verdict:
        return Verdict(kind, text, ways, staged, failed)

    came: list[list[Batch]] = [[] for _ in program.outputs]
    failed: AppFailed | None = None
    try:
        run = LocalRun(
            program,
            memory_partitions(program, drawn.logs),
            [_keeper(batches) for batches in came],
            cut=way.cut,
            parallelism=way.parallelism,
            check=way.renew,
        )
        while way.renew and run.step():
            run.renew()
        run.run()
    except WeirError as error:
        if _is_guard(error):
            return verdict("guard", str(error))
        failed = failure_of(error)
    except Exception as error:
        return verdict("crashed", f"in the run: {type(error).__name__}: {error}")

    def compared(by: Mapping[str, Sequence[str]] | None) -> Verdict:
        loop = PythonLoop(drawn.source, drawn.touches, by)
        try:
            right = comparable_answer(loop.run(drawn.logs), numbered=way.numbered)
        except AppFailed as error:
            if failed is None:
                return verdict("went on", str(error))
            alike = error.is_like(failed) and _says_why(loop, failed, ways)
            # Handlers of one event may run at the same time: that of another may be found first.
            alike = alike or any(other.is_like(failed) for other in loop.later_failures)
            if alike:
                return verdict("same", failed=True)
            wanted = f"wanted the failure {error}, in {error.handler} on {error.event}"
            return verdict("other failure", f"{wanted}\ncame {failed}")
        if failed is not None:
            return verdict("failed", str(failed))
        rows = [
            [row for batch in batches for row in batch_rows(batch, output_schema(output))]
            for output, batches in zip(program.outputs, came, strict=True)
        ]
        answer = _answer(compiled, loop, rows, drawn.logs)
        return verdict("same") if right == answer else verdict("other", told(right, answer))

    first = compared(None if drawn.touches is not None else order)
    if first.is_wrong and drawn.touches is not None and compared(order).kind == "same":
        return verdict("order", f"the engine's order is {order}\n{first.kind}: {first.text}")
    return first


def _says_why(loop: PythonLoop, failed: AppFailed, ways: frozenset[str]) -> bool:
    """Tell whether the engine has the exception that the loop has. Columns have words of their own
    for it, and so has a value that does not fit."""
    assert loop.failure is None or loop.failure.handler
    if loop.failure is None or loop.failure.text is None or "columns" in ways:
        return True
    return loop.failure.text.split("\n")[0][:100] in str(failed)


def _answer(
    compiled: Compiled, loop: PythonLoop, rows: Sequence[list[dict[str, object]]], logs: Logs
) -> Comparable:
    emits = dict(zip(compiled.emitted, rows, strict=False))
    states = dict(zip(compiled.final, rows[len(compiled.emitted) :], strict=True))
    times = [row["ts"] for partitions in logs.values() for rows in partitions for row in rows]
    end: int = max(times, default=0)  # type: ignore[assignment,type-var]
    return (
        {name: Counter(map(emitted_row, found)) for name, found in emits.items() if found},
        {
            name: saved_values(kind, states.get(name, []), end)
            for name, kind in loop.store.kinds.items()
        },
    )


def _keeper(batches: list[Batch]) -> object:
    return lambda _, rows: batches.append(rows)


def _is_guard(error: BaseException) -> bool:
    """Tell whether the engine itself ended a run: by an access that was not planned, or as a
    handler has changed what is not its own."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, UnplannedAccess):
            return True
        at = at.__cause__ or at.__context__
    return type(error) is RunError and "which lives outside of it" in str(error)


# --- how it runs -------------------------------------------------------------------------------


def handler_ways(compiled: Compiled) -> Iterator[str]:
    """Return in which ways the handlers of an app run."""
    app, units = compiled.app, {unit.handler: unit.unit for unit in compiled.flow.units()}
    for name in app.handlers:
        if app.serial_group(name) is not None:
            yield "serial"
        else:
            yield "rows" if name in units else "columns"


def is_staged(flow: Flow) -> bool:
    """Tell whether an access follows from a read with another key, so that it has to wait for its
    answer."""
    return any(
        unit.unit.group is None and _has_stages(unit.unit.accesses) for unit in flow.units()
    ) or any(_waits(of.accesses) for of in flow.events)


Found = Sequence[GetAccess | MergeAccess | EmitAccess]


def _has_stages(accesses: Found) -> bool:
    """Tell whether a handler in rows touches a cell after it has read one with another key."""
    of_states = [a for a in accesses if not isinstance(a, EmitAccess)]
    return any(
        isinstance(read, GetAccess) and later.key != read.key
        for n, read in enumerate(of_states)
        for later in of_states[n + 1 :]
    )


def _waits(accesses: Found) -> bool:
    """Tell whether an access in columns is made of the answer to a read with another key."""
    keys = {a.order: a.key for a in accesses if isinstance(a, GetAccess)}
    for access in accesses:
        if isinstance(access, EmitAccess):
            continue
        trees: list[Tree | None] = [*access.key, access.guard]
        if isinstance(access, MergeAccess):
            trees += [*access.args, access.new]
        for tree in trees:
            for part in () if tree is None else walk_tree(tree):
                if isinstance(part, ReadValue) and keys.get(part.order, access.key) != access.key:
                    return True
    return False
