"""Warns where a handler changes a copy that a state returned: the change is lost.

`seen.get(e.user).append(e.page)` changes no state, here or in the serial loop. The correct code is
`seen.append(e.user, e.page)`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.reading.sources import FunctionSource
from weir.plan.advice.plan_warnings import warn

_WARNED: WeakKeyDictionary[App, set[tuple[str, int]]] = WeakKeyDictionary()
"""The lines that were warned about, because an app is analysed more than once."""


def warn_of_changed_copies(
    app: App, source: FunctionSource, resolve: Callable[[str], object]
) -> None:
    """Warn of each statement in a function that only changes a copy from a state."""
    for statement in ast.walk(source.node):
        for changed in _changed(statement):
            state = _read_state(changed, resolve)
            if state is None:
                continue
            assert isinstance(statement, ast.stmt)
            place = (source.file.name, statement.lineno)
            if place not in _WARNED.setdefault(app, set()):
                _WARNED[app].add(place)
                warn(
                    f"{place[0]}:{place[1]}: `{ast.unparse(statement)[:60]}` changes a copy of "
                    f"what `{state.name}` holds, not the state; write "
                    f"{state.name}.append(key, x), .set(key, x), … to change it"
                )


def _changed(statement: ast.AST) -> Iterator[ast.expr]:
    """Yield values that a statement changes in place.

    That includes a method call whose result is not used.
    """
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
            yield value
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            yield from (t.value for t in targets if isinstance(t, ast.Attribute | ast.Subscript))
        case ast.AugAssign(target=ast.Attribute(value=value) | ast.Subscript(value=value)):
            yield value


def _read_state(value: ast.expr, resolve: Callable[[str], object]) -> State | None:
    """Return the state if a value is (a part of) the direct answer of its `get`, or None."""
    while isinstance(value, ast.Attribute | ast.Subscript):
        value = value.value
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")):
            thing = resolve(name)
            return thing if isinstance(thing, State) else None
    return None
