"""Turns the source of handlers into accesses: `analyse_app` for an app, `analyse` for a handler.

Contract
1. Forbidden code raises ScriptError, which names file, line, reason and a way out
   (`code_reach.py`).
2. A handler reads and writes all states that its text does, on any branch (`state_uses.py`). So no
   value of a parameter changes the order of handlers.
3. The accesses are those on the branches that remain with these parameters, including those in
   helpers, in the order in which Python may do them. Each is among the states that the text reads
   and writes. `why_rows` says why a handler does not run in columns; its accesses are then all that
   may happen.
4. A handler that analysis cannot follow has `Analysed.refused`: the reason, the line, and the
   advice to use `app.serial()`. Its text then determines what it may emit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from types import FunctionType

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.api.declarations import EventHandler, EventType
from weir.handlers.reach.code_reach import Reach, resolver
from weir.handlers.reach.event_columns import reached_columns
from weir.handlers.reach.held_values import StateUses
from weir.handlers.reach.state_uses import state_uses
from weir.handlers.reading import calls, expressions, opaque_code, statements
from weir.handlers.reading.arguments import CallArguments, bound_arguments, default_values
from weir.handlers.reading.certain_parts import certain_parts
from weir.handlers.reading.checks import with_checks
from weir.handlers.reading.execution import Execution, HandleLost
from weir.handlers.reading.frames import Exits, Frame, Path
from weir.handlers.reading.symbols import ANY_VALUE, TheEvent, known
from weir.handlers.trees.accesses import Analysed, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.values import Opaque


class _Steps:
    """The modules that run the parts of a handler."""

    evaluate = staticmethod(expressions.evaluate)
    visit = staticmethod(opaque_code.visit)
    escape = staticmethod(opaque_code.escape)
    call = staticmethod(calls.call)
    apply = staticmethod(calls.apply)
    execute = staticmethod(statements.execute)


def analyse_app(app: App, params: Mapping[str, object] | None = None) -> tuple[Analysed, ...]:
    """Analyse all handlers of an app, each for all its event types, and check that keys agree."""
    reach = Reach(app)
    values = app.param_values(params)
    analysed = [
        _analysed(app, handler, event, values, reach)
        for handler in app.handlers.values()
        for event in handler.events
    ]
    check_keys(app, analysed)
    return tuple(analysed)


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
    reach.check_kept(function)
    node = reach.source(function).node
    assert isinstance(node, ast.FunctionDef)
    reached = reached_columns(node, [name for name, _ in event.columns])
    run = Execution(app, event, handler.name, params, reach, _Steps())
    uses = _uses(app, handler, event, reach)
    try:
        _run(run, function)
        accesses = run.accesses if run.why_rows else with_checks(run)
    except HandleLost as refused:
        error = refused.error()
        return Analysed(
            handler.name,
            event.name,
            (),
            *uses,
            frozenset(touched.emits),
            refused=str(error),
            refused_line=error.line,
            event_columns=reached,
        )
    except RecursionError as error:
        raise PlanError(f"the handler `{handler.name}` is nested too deeply") from error
    _check_uses(accesses, uses, function.__code__.co_filename)
    emits = frozenset(a.name for a in accesses if isinstance(a, EmitAccess) and not a.is_hidden)
    return Analysed(
        handler.name,
        event.name,
        tuple(accesses),
        *uses,
        emits,
        run.why_rows,
        event_columns=reached,
    )


def _uses(app: App, handler: EventHandler, event: EventType, reach: Reach) -> StateUses:
    """Return the states that a handler reads and writes on any branch, for any parameters.

    They come from its text, and from an analysis in which no parameter has a value.
    """
    function = handler.function
    assert isinstance(function, FunctionType)
    text = state_uses(function, reach)
    run = Execution(app, event, handler.name, dict.fromkeys(app.params, ANY_VALUE), reach, _Steps())
    try:
        _run(run, function)
    except HandleLost:  # the runner reports it
        return text
    reads = {a.state for a in run.accesses if isinstance(a, GetAccess)}
    writes = {a.state for a in run.accesses if isinstance(a, MergeAccess)}
    return StateUses(text.reads | reads, text.writes | writes)


def _check_uses(
    accesses: Iterable[GetAccess | MergeAccess | EmitAccess], uses: StateUses, file: str
) -> None:
    """Check that the order of handlers takes every access into account; two walks found them."""
    for access in accesses:
        if isinstance(access, EmitAccess):
            continue
        reads = isinstance(access, GetAccess)
        if access.state not in (uses.reads if reads else uses.writes):
            raise PlanError(
                f"{access.handler} ({file}:{access.line}): it {'reads' if reads else 'writes'} "
                f"the state `{access.state}` in a way that the order of handlers does not take "
                "into account",
                hint="use it by its name there, or pass it to the function that uses it",
            )


def _run(run: Execution, function: FunctionType) -> None:
    source = run.reach.source(function)
    node = source.node
    assert isinstance(node, ast.FunctionDef)
    frame = Frame.of(node, function.__name__, source.file, resolver(function), function.__globals__)
    values = {n: known(v, 0, run.params) for n, v in default_values(function).items()}
    event = CallArguments((TheEvent(run.event),))
    variables = bound_arguments(node, event, values, function.__name__, frame, node)
    frame.variables = variables
    run.certain = certain_parts(node)
    run.stack.append(node)
    run.frames.append(frame)
    exits: Exits = run.steps.execute(run, frame, node.body, Path((), variables))
    run.stack.pop()
    run.frames.pop()
    assert not exits.breaks


def check_keys(app: App, analysed: Iterable[Analysed]) -> None:
    """Raise PlanError if a state is used with keys of different lengths."""
    first: dict[str, GetAccess | MergeAccess] = {}
    for one in analysed:
        for access in one.accesses:
            if isinstance(access, EmitAccess):
                continue
            other = first.setdefault(access.state, access)
            counts = len(other.key), len(access.key)
            if counts[0] == counts[1]:
                continue
            hint = "a state has one kind of key; use two states"
            if any(len(key) == 1 and isinstance(key[0], Opaque) for key in (other.key, access.key)):
                types = ", ".join("…" for _ in range(max(counts)))
                hint += (
                    f", or say that what Python computes is a tuple: "
                    f"app.state({access.state!r}, …, key=({types}))"
                )
            raise PlanError(
                f"the key of the state `{access.state}` has {counts[0]} parts in "
                f"`{other.handler}` (line {other.line}) and {counts[1]} in `{access.handler}` "
                f"(line {access.line})",
                hint=hint,
            )
