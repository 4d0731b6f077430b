"""Reads calls: methods of states and `app.emit` become accesses, helpers are read in place.

Listed functions and methods become parts of trees.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Sequence
from types import FunctionType, MethodType

from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.reach.code_reach import resolver
from weir.handlers.reach.object_contents import is_users
from weir.handlers.reach.static_attributes import DYNAMIC, HiddenObject, attribute, name_of
from weir.handlers.reading import state_calls
from weir.handlers.reading.arguments import (
    CallArguments,
    bound_arguments,
    called_with,
    default_values,
)
from weir.handlers.reading.built_in import call_built_in
from weir.handlers.reading.column_constructs import is_listed_function, is_listed_method
from weir.handlers.reading.execution import Execution, HandleLost, NotListed, shown
from weir.handlers.reading.expressions import column
from weir.handlers.reading.frames import RETURNED, Frame, Path, join_all
from weir.handlers.reading.symbols import (
    BoundMethod,
    Known,
    LocalFunction,
    OneOf,
    Symbol,
    TheEvent,
    Unusable,
    WrittenOut,
    known,
)
from weir.handlers.trees.values import Const, Method, Python, Tree
from weir.plan.usercode.decorators import result_type
from weir.plan.usercode.imported_files import carried

_DEEPEST = 60


def call(run: Execution, frame: Frame, node: ast.Call) -> Symbol:
    """Return the result of a call, and note its accesses."""
    if isinstance(node.func, ast.Attribute):
        return _call_attribute(run, frame, node.func, node)
    callee = run.value(frame, node.func)
    match callee:
        case Known(thing=thing) if thing is super and not node.args:
            return _super(run, frame, node)
        case BoundMethod(of=Known(thing=State() | App())):
            return call_method(run, frame, callee, node)
    return _call(run, frame, callee, node)


def call_method(run: Execution, frame: Frame, method: BoundMethod, node: ast.Call) -> Symbol:
    """Call a method of a state or of the app."""
    assert isinstance(method.of, Known)
    if isinstance(method.of.thing, State):
        return state_calls.call_state(run, frame, method.of.thing, method.name, node)
    return state_calls.call_app(run, frame, method.name, node)


def _super(run: Execution, frame: Frame, node: ast.Call) -> Symbol:
    """Return `super()` in a method that is read with a known object."""
    definition = run.stack[-1]
    cls = frame.resolve("__class__")
    if isinstance(definition, ast.FunctionDef) and isinstance(cls, type) and definition.args.args:
        first = frame.variables.get(definition.args.args[0].arg)
        if isinstance(first, Known) and not isinstance(first.thing, HiddenObject):
            return Known(super(cls, first.thing))
    raise NotListed("`super()` of an object that is not known", node)


def _call_attribute(run: Execution, frame: Frame, func: ast.Attribute, node: ast.Call) -> Symbol:
    base, name = run.value(frame, func.value), func.attr
    match base:
        case Known(thing=State() as state):
            return state_calls.call_state(run, frame, state, name, node)
        case Known(thing=App()):
            return state_calls.call_app(run, frame, name, node)
        case TheEvent():
            column(run, frame, name, func)
            raise NotListed(f"`{shown(func)}` is a value, not a function", node)
        case OneOf():
            raise NotListed("what is called depends on the event", node)
        case Known(thing=thing):
            method = attribute(thing, name)
            if method is DYNAMIC:
                raise NotListed(f"`{shown(func)}` cannot be looked up before the run", node)
            callee = known(method, node.lineno, run.params)
            if isinstance(callee, BoundMethod):
                return call_method(run, frame, callee, node)
            return _call(run, frame, callee, node)
    return _method(run, frame, run.data(frame, base, func.value), name, node)


def _call(run: Execution, frame: Frame, callee: Symbol, node: ast.Call) -> Symbol:
    built_in = call_built_in(run, frame, callee, node)
    if built_in is not None:
        return built_in
    return _apply(run, frame, callee, called_with(run, frame, node), node)


def apply(
    run: Execution, frame: Frame, callee: Symbol, args: Sequence[Symbol], node: ast.AST
) -> Symbol:
    """Call a function that was passed as an argument, with these arguments."""
    return _apply(run, frame, callee, CallArguments(tuple(args)), node)


def _apply(
    run: Execution, frame: Frame, callee: Symbol, args: CallArguments, node: ast.AST
) -> Symbol:
    match callee:
        case LocalFunction():
            bound = bound_arguments(callee.node, args, callee.defaults, callee.name, frame, node)
            home = Frame.of(
                callee.node,
                callee.name,
                callee.frame.file,
                callee.frame.resolve,
                callee.frame.globals,
                callee.frame,
            )
            return _read(run, callee.node, home, bound, node, frame)
        case Known(thing=FunctionType() as function) if is_users(function):
            return _users(run, frame, function, args, node)
        case Known(thing=MethodType() as method) if _is_users_method(method):
            with_self = args.after(known(method.__self__, 0, run.params))
            return _users(run, frame, method.__func__, with_self, node)  # type: ignore[arg-type]
        case Known(thing=functools.partial() as partial):
            before = [known(a, 0, run.params) for a in partial.args]
            named = {n: known(v, 0, run.params) for n, v in partial.keywords.items()}
            inner = args.after(*before, keywords=named)
            return _apply(run, frame, known(partial.func, 0, run.params), inner, node)
        case Known(thing=thing) if is_listed_function(thing):
            return _listed(run, frame, thing, args, node)
        case BoundMethod(of=of, name=name):
            return _method_of(run, run.data(frame, of, node), name, args, frame, node)
    raise NotListed(f"`{_name(callee)}` is not on the list of functions in columns", node)


def _name(callee: Symbol) -> str:
    if isinstance(callee, Known):
        return name_of(callee.thing)
    return "what is called here"


def _is_users_method(method: MethodType) -> bool:
    return isinstance(method.__func__, FunctionType) and is_users(method.__func__)


# --- functions on the list --------------------------------------------------------------------


def _listed(
    run: Execution, frame: Frame, function: object, args: CallArguments, node: ast.AST
) -> Symbol:
    assert callable(function)
    trees, keywords = args.data(run, frame, node)
    if getattr(function, "__module__", "") == "re" and not isinstance(trees[0], Const):
        raise NotListed("a pattern that depends on the event", node)
    line = getattr(node, "lineno", 0)
    return Python(
        carried(function, run.app.imported), trees, keywords, result_type(function), line=line
    )


def _method(run: Execution, frame: Frame, of: Tree, name: str, node: ast.Call) -> Symbol:
    """Return the call of a value's method."""
    if name == "join" and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
        generator = node.args[0]
        listed = ast.copy_location(ast.ListComp(generator.elt, generator.generators), generator)
        node = ast.copy_location(ast.Call(node.func, [listed], node.keywords), node)
    return _method_of(run, of, name, called_with(run, frame, node), frame, node)


def _method_of(
    run: Execution, of: Tree, name: str, args: CallArguments, frame: Frame, node: ast.AST
) -> Symbol:
    constant = of.value if isinstance(of, Const) else None
    if not is_listed_method(run.static_type(of), constant, name):
        raise NotListed(f"`.{name}()` of such a value is not on the list", node)
    trees, keywords = args.data(run, frame, node)
    return Method(of, name, trees, keywords, line=getattr(node, "lineno", 0))


# --- functions of the user's ------------------------------------------------------------------


def _users(
    run: Execution, frame: Frame, function: FunctionType, args: CallArguments, node: ast.AST
) -> Symbol:
    source = run.reach.source(function)
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise NotListed(f"`{function.__name__}` is a generator or a coroutine", node)
    defaults = {n: known(v, 0, run.params) for n, v in default_values(function).items()}
    bound = bound_arguments(source.node, args, defaults, function.__name__, frame, node)
    home = Frame.of(
        source.node, function.__name__, source.file, resolver(function), function.__globals__
    )
    return _read(run, source.node, home, bound, node, frame)


def _read(
    run: Execution,
    definition: ast.FunctionDef | ast.Lambda,
    home: Frame,
    bound: dict[str, Symbol],
    node: ast.AST,
    frame: Frame,
) -> Symbol:
    """Read a function at the place of its call."""
    name = definition.name if isinstance(definition, ast.FunctionDef) else "lambda"
    if definition in run.stack:
        raise NotListed(f"`{name}` calls itself", node)
    if len(run.stack) > _DEEPEST:
        raise NotListed(f"more than {_DEEPEST} functions call each other", node)
    if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(definition)):
        raise NotListed(f"`{name}` is a generator", node)
    home.variables = dict(bound)
    conditions = run.conditions
    run.stack.append(definition)
    run.frames.append(home)
    if isinstance(definition, ast.Lambda):
        result = run.value(home, definition.body)
    else:
        result = _returned(run, home, definition)
    run.stack.pop()
    run.frames.pop()
    run.conditions = conditions
    return result


def _returned(run: Execution, home: Frame, definition: ast.FunctionDef) -> Symbol:
    path = Path(run.conditions, home.variables)
    exits = run.steps.execute(run, home, definition.body, path)
    ends = exits.returns
    if exits.falls is not None:
        nothing = Const(None, line=definition.lineno)
        ends += (Path(exits.falls.conditions, {RETURNED: nothing}),)
    if len(ends) > 1 and any(_has_closure(end.variables[RETURNED], home) for end in ends):
        raise NotListed("what a returned function sees depends on the event", definition)
    joined = join_all(ends)
    return Const(None) if joined is None else joined.variables[RETURNED]


def _has_closure(symbol: Symbol, home: Frame) -> bool:
    """Tell whether a symbol is, or contains, a function that sees the variables of a frame."""
    match symbol:
        case LocalFunction(frame=frame):
            return frame.is_inside(home)
        case WrittenOut(parts=parts) | Unusable(choices=parts) | OneOf(choices=parts):
            return any(_has_closure(part, home) for part in parts)
        case BoundMethod(of=of):
            return _has_closure(of, home)
    return False


def check_refused(run: Execution, frame: Frame, thing: object, node: ast.AST) -> None:
    """Refuse to pass a thing to code that is not read, if that code could then touch states."""
    if run.touches_thing(thing):
        name = name_of(thing)
        raise HandleLost(
            f"`{name}` leads to states or the app, and is used by code that is not read",
            node,
            frame,
            "call it here",
        )
