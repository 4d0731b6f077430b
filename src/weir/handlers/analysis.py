"""Handlers' source is turned into accesses: `analyse_app` for an app, `analyse` for one handler.

Contract
1. What no handler may do raises ScriptError: file, line, reason, way out (`reach.py`).
2. What a handler reads and writes is that of its text, on all branches (`state_uses.py`), so that
   no value of a parameter changes the order of handlers.
3. A handler that has no form as accesses has `Analysed.refused`: why, where, and that
   `app.serial()` runs it row by row. What it may emit is then that of its text.
4. Otherwise the accesses are those on the branches that these parameters leave, helpers included,
   in the order in which Python would do them. Each is among what the text reads and writes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import FunctionType

from weir.errors import PlanError
from weir.handlers import calling, evaluating, executing
from weir.handlers.accesses import Analysed, EmitAccess, GetAccess, MergeAccess, access_place
from weir.handlers.app import App
from weir.handlers.arguments import CallArguments, bound_arguments, default_values
from weir.handlers.bindings import bound_names
from weir.handlers.declarations import EventHandler, EventType
from weir.handlers.execution import Execution, FailingCheck, NotAccesses
from weir.handlers.frames import Exits, Frame, Path
from weir.handlers.held_values import StateUses
from weir.handlers.reach import Reach, resolver
from weir.handlers.sources import FunctionSource
from weir.handlers.state_uses import state_uses
from weir.handlers.symbols import TheEvent, known
from weir.handlers.trees import reads_in
from weir.handlers.values import Op, Tree


class _Steps:
    """The modules that run the parts of a handler."""

    evaluate = staticmethod(evaluating.evaluate)
    call = staticmethod(calling.call)
    apply = staticmethod(calling.apply)
    execute = staticmethod(executing.execute)


def analyse_app(app: App, params: Mapping[str, object] | None = None) -> tuple[Analysed, ...]:
    """Analyse all handlers of an app, each for all its event types; check that keys agree."""
    reach = Reach(app)
    values = app.param_values(params)
    found = [
        _analysed(app, handler, event, values, reach)
        for handler in app.handlers.values()
        for event in handler.events
    ]
    check_keys(app, found)
    return tuple(found)


def analyse(
    app: App,
    handler: EventHandler | str,
    event: EventType | str,
    params: Mapping[str, object] | None = None,
) -> Analysed:
    """Analyse one handler for one of its event types, with these values of parameters."""
    one = app.handlers[handler] if isinstance(handler, str) else handler
    of = app.event_types[event] if isinstance(event, str) else event
    return _analysed(app, one, of, app.param_values(params), Reach(app))


def _analysed(
    app: App, handler: EventHandler, event: EventType, params: Mapping[str, object], reach: Reach
) -> Analysed:
    function = handler.function
    assert isinstance(function, FunctionType)
    touched = reach.of_function(function, handler=True)
    if not touched.emits and not touched.writes:
        _refuse_failing(handler.name, reach.source(function))
    run = Execution(app, event, handler.name, params, reach, _Steps())
    try:
        uses = state_uses(function, reach)
        _run(run, function)
        accesses = _with_checks(run)
    except NotAccesses as refused:
        error = refused.error(handler.name)
        return Analysed(
            handler.name, event.name, (), *uses, frozenset(touched.emits), str(error), error.line
        )
    except RecursionError as error:
        raise PlanError(f"the handler `{handler.name}` is nested too deeply") from error
    _check_uses(accesses, uses, function.__code__.co_filename)
    emits = frozenset(a.name for a in accesses if isinstance(a, EmitAccess))
    return Analysed(handler.name, event.name, tuple(accesses), *uses, emits)


def _refuse_failing(handler: str, source: FunctionSource) -> None:
    """Refuse `raise` and `assert` in a handler without effects: nobody would run it."""
    for node in ast.walk(source.node):
        if isinstance(node, ast.Raise | ast.Assert):
            raise source.file.error(
                f"`{handler}` neither emits nor merges, so it is not run, and this never fails",
                node,
                hint='give out what is wrong: app.emit("broken", …); or fail in a handler that '
                "emits or merges",
            )


def _check_uses(
    accesses: Iterable[GetAccess | MergeAccess | EmitAccess], uses: StateUses, file: str
) -> None:
    """Check that the order of handlers counts with every access: two walks have found them."""
    for access in accesses:
        if isinstance(access, EmitAccess):
            continue
        reads = isinstance(access, GetAccess)
        if access.state not in (uses.reads if reads else uses.writes):
            place = access_place(access, file)
            raise PlanError(
                f"{place}: it {'reads' if reads else 'writes'} the state `{access.state}` in a way "
                "that the order of handlers does not count with",
                hint="call it by its name there, or hand it to the function that uses it",
            )


def _run(run: Execution, function: FunctionType) -> None:
    source = run.reach.source(function)
    node = source.node
    assert isinstance(node, ast.FunctionDef)
    frame = Frame(
        function.__name__, source.file, bound_names(node), resolver(function),
        function.__globals__,
    )  # fmt: skip
    values = {n: known(v, 0, run.params) for n, v in default_values(function).items()}
    given = CallArguments((TheEvent(run.event),))
    variables = bound_arguments(node, given, values, function.__name__, frame, node)
    run.stack.append(node)
    exits: Exits = run.steps.execute(run, frame, node.body, Path((), variables))
    run.stack.pop()
    assert not exits.breaks


def _with_checks(run: Execution) -> list[GetAccess | MergeAccess | EmitAccess]:
    """Put what fails on purpose in front of the guard of an access, where it is evaluated."""
    accesses = list(run.accesses)
    for check in run.checks:
        at = _place(check, accesses)
        if at is None:
            raise NotAccesses(
                "nothing comes behind that the failure could stop", check.node, check.frame
            )
        guard = accesses[at].guard
        parts = (check.tree,) if guard is None else (check.tree, guard)
        whole: Tree = parts[0] if len(parts) == 1 else Op("and", parts, line=check.tree.line)
        accesses[at] = replace(accesses[at], guard=whole)
    return accesses


def _place(check: FailingCheck, accesses: list[GetAccess | MergeAccess | EmitAccess]) -> int | None:
    """Return the number of an access whose guard a check may stand in."""
    plain = [n for n, a in enumerate(accesses) if a.block is None and not isinstance(a, GetAccess)]
    behind = [n for n in plain if n >= check.at]
    needed = max(reads_in((check.tree,)), default=-1)
    before = [n for n in plain if n > needed]
    return behind[0] if behind else next(iter(before), None)


def check_keys(app: App, analysed: Iterable[Analysed]) -> None:
    """Raise PlanError if a state is used with keys of different lengths."""
    first: dict[str, tuple[int, str, int]] = {}
    for one in analysed:
        for access in one.accesses:
            if isinstance(access, EmitAccess):
                continue
            here = (len(access.key), access.handler, access.line)
            there = first.setdefault(access.state, here)
            if there[0] != here[0]:
                raise PlanError(
                    f"the key of the state `{access.state}` has {there[0]} parts in `{there[1]}` "
                    f"(line {there[2]}) and {here[0]} in `{here[1]}` (line {here[2]})",
                    hint="a state has one kind of key; use two states",
                )
