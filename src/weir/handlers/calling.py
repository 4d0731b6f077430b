"""Calls: a state's methods and `app.emit` become accesses, helpers are run in their place, other
functions are called as they are.

A helper of the user's is *inlined* if it touches states, emits or parameters (or what it calls
does), if it takes something that is no data (the event, a state, a function), or if it is made of
assignments, `if` and `return` only. Else it is a function that the run calls.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType

from weir.handlers import outlining, state_calls
from weir.handlers.app import App
from weir.handlers.arguments import CallArguments, bound_arguments, called_with, default_values
from weir.handlers.bindings import bound_names
from weir.handlers.built_in import call_built_in
from weir.handlers.changes import IN_PLACE, MUTATORS, changed_arguments, changed_around
from weir.handlers.declarations import State
from weir.handlers.evaluating import column
from weir.handlers.execution import Execution, NotAccesses
from weir.handlers.forbidden import full_name
from weir.handlers.frames import RETURNED, Frame, Path, join_all
from weir.handlers.insides import is_users
from weir.handlers.iterators import gives_iterator, is_iterator
from weir.handlers.reach import DYNAMIC, attribute, resolver
from weir.handlers.reads_before import reads_before
from weir.handlers.sources import FunctionNode
from weir.handlers.symbols import (
    BoundMethod,
    Known,
    LocalFunction,
    Symbol,
    TheEvent,
    WrittenOut,
    as_tree,
    known,
)
from weir.handlers.values import Const, Element, Field, Method, Old, Python, ReadValue, Tree
from weir.plan.decorators import result_type
from weir.plan.imported_files import carried
from weir.plan.user_code import ScalarFunction

_DEEPEST = 60
_REMEMBER = "what a handler remembers lies in states: app.state(…)"
_SIMPLE = (ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Pass)
_NOT_SIMPLE = (
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.Yield,
    ast.YieldFrom, ast.Await, ast.Starred, ast.NamedExpr,
)  # fmt: skip
_DATA_MODULES = ("builtins", "re", "datetime", "decimal")


def call(run: Execution, frame: Frame, node: ast.Call) -> Symbol:
    """Return what a call gives; note the accesses that it makes."""
    if isinstance(node.func, ast.Attribute):
        base = run.value(frame, node.func.value)
        name = node.func.attr
        match base:
            case Known(thing=State() as state):
                return state_calls.call_state(run, frame, state, name, node)
            case Known(thing=App()):
                return state_calls.call_app(run, frame, name, node)
            case TheEvent():
                column(run, frame, name, node.func)
                raise NotAccesses(
                    f"`{ast.unparse(node.func)}` is a value, no function", node, frame
                )
            case Known(thing=thing):
                return _call_attribute(run, frame, thing, name, node)
            case Const(value=value) if type(value).__module__ not in _DATA_MODULES:
                return _call_attribute(run, frame, value, name, node)
        return _method(run, frame, run.data(frame, base, node.func.value), name, node)
    callee = run.value(frame, node.func)
    match callee:
        case BoundMethod(of=Known(thing=State() as state), name=name):
            return state_calls.call_state(run, frame, state, name, node)
        case BoundMethod(of=Known(thing=App()), name=name):
            return state_calls.call_app(run, frame, name, node)
    return _call(run, frame, callee, node)


def _is_outlined(callee: LocalFunction, frame: Frame) -> bool:
    """Tell whether a function inside of another is rather called than run in its place."""
    if callee.frame is not frame or _is_simple(callee.node) or _gives_function(callee.node):
        return False
    return not changed_arguments(callee.node) and not changed_around(callee.node)


def _call_attribute(
    run: Execution, frame: Frame, thing: object, name: str, node: ast.Call
) -> Symbol:
    found = attribute(thing, name)
    if found is DYNAMIC:
        return _method(run, frame, Const(thing), name, node)
    return _call(run, frame, known(found, node.lineno, run.params), node)


def _call(run: Execution, frame: Frame, callee: Symbol, node: ast.Call) -> Symbol:
    if isinstance(callee, LocalFunction) and _is_outlined(callee, frame):
        try:
            with run.attempt(frame):
                if not run.touches(frame, [node]):
                    return outlining.expression(run, frame, node)
        except NotAccesses:  # it may still have a form where it is called
            pass
    if _needs_outline(frame, callee, node):
        unrolled = _unrolled(run, frame, callee, node)
        if unrolled is not None:
            return unrolled
        changed = reads_before(run, frame, node)
        if not run.touches(frame, [changed]).accesses:
            return outlining.expression(run, frame, changed)
    found = call_built_in(run, frame, callee, node)
    if found is not None:
        return found
    try:
        with run.attempt(frame):
            return _apply(run, frame, callee, called_with(run, frame, node), node)
    except NotAccesses:
        if not isinstance(callee, LocalFunction) or run.touches(frame, [node]):
            raise
        if changed_arguments(callee.node) or changed_around(callee.node):
            raise
    return outlining.expression(run, frame, node)


def _unrolled(run: Execution, frame: Frame, callee: Symbol, node: ast.Call) -> Symbol | None:
    try:
        with run.attempt(frame):
            return call_built_in(run, frame, callee, node)
    except NotAccesses:  # as an iterator is, which a function may go through
        return None


def _needs_outline(frame: Frame, callee: Symbol, node: ast.Call) -> bool:
    """Tell whether a call takes iterators, or a foreign function functions that are written in
    its arguments."""
    args = [*node.args, *(k.value for k in node.keywords)]
    if any(gives_iterator(frame, arg) for arg in args):
        return True
    if isinstance(callee, LocalFunction) or (
        isinstance(callee, Known)
        and isinstance(callee.thing, FunctionType)
        and is_users(callee.thing)
    ):
        return False
    return any(isinstance(a, ast.Lambda | ast.GeneratorExp) for a in args)


def apply(
    run: Execution, frame: Frame, callee: Symbol, args: Sequence[Symbol], node: ast.AST
) -> Symbol:
    """Call a function that was passed to something, with these arguments."""
    return _apply(run, frame, callee, CallArguments(tuple(args)), node)


def _apply(
    run: Execution, frame: Frame, callee: Symbol, args: CallArguments, node: ast.AST
) -> Symbol:
    match callee:
        case LocalFunction():
            given = bound_arguments(callee.node, args, callee.defaults, callee.name, frame, node)
            _refuse_changes(run, frame, callee.node, callee.name, given, node)
            return _inline(run, callee.node, callee.frame, given, node, frame)
        case Known(thing=FunctionType() as function) if is_users(function):
            return _users(run, frame, function, args, node)
        case Known(thing=MethodType() as method) if isinstance(method.__func__, FunctionType):
            if is_users(method.__func__):
                with_self = args.after(known(method.__self__, 0, run.params))
                return _users(run, frame, method.__func__, with_self, node)
        case Known(thing=functools.partial() as partial):
            before = [known(a, 0, run.params) for a in partial.args]
            named = {n: known(v, 0, run.params) for n, v in partial.keywords.items()}
            inner = args.after(*before, keywords=named)
            return _apply(run, frame, known(partial.func, 0, run.params), inner, node)
        case Known(thing=ScalarFunction() as udf):
            return _as_it_is(run, frame, udf, args, node)
        case Known(thing=thing) if callable(thing):
            if run.touches_thing(thing):
                why = f"`{getattr(thing, '__name__', thing)}` touches states, and is no function"
                raise NotAccesses(why, node, frame, "write it as a function")
            return _as_it_is(run, frame, thing, args, node)
        case BoundMethod(of=of, name=name):
            trees, keywords = args.data(run, frame, node)
            line = getattr(node, "lineno", 0)
            return Method(run.data(frame, of, node), name, trees, keywords, line=line)
    raise NotAccesses("which function is called depends on the event", node, frame)


def _refuse_changes(
    run: Execution,
    frame: Frame,
    definition: FunctionNode,
    name: str,
    given: Mapping[str, Symbol],
    node: ast.AST,
) -> None:
    """Refuse a function that changes values in place which are not its own."""
    for around in changed_around(definition):
        if isinstance(frame.variables.get(around), Tree | WrittenOut):
            raise NotAccesses(f"`{name}` changes `{around}` of the function around it", node, frame)
    for argument in sorted(changed_arguments(definition)):
        match given.get(argument):
            case Known(thing=State()):
                continue  # its methods are merges
            case Known() | Const():
                message = f"`{name}()` changes what lives outside of the handler"
                raise frame.file.error(message, node, _REMEMBER)
            case Old() | TheEvent() as symbol:
                what = "the event" if isinstance(symbol, TheEvent) else "the old value of a state"
                message = f"`{name}()` changes its argument in place, {what}"
                raise frame.file.error(message, node, "values are immutable: return a new one")
            case _:
                raise _changes(name, node, frame)


def _changes(name: str, node: ast.AST, frame: Frame) -> NotAccesses:
    why = f"`{name}` changes its argument in place"
    return NotAccesses(why, node, frame, "return a new value")


def _method(run: Execution, frame: Frame, of: Tree, name: str, node: ast.Call) -> Symbol:
    """Return a call of a method of a value."""
    if name in MUTATORS and not isinstance(of, Const):
        shown = ast.unparse(node.func)[:40]
        if isinstance(of, Field | ReadValue | Element | Old):
            what = "a state" if isinstance(of, ReadValue | Old) else "the event"
            message = f"`{shown}()` changes a value of {what} in place"
            raise frame.file.error(message, node, "values are immutable: make a new one")
        raise NotAccesses(f"`{shown}()` changes a value in place", node, frame, "make a new value")
    foreign = (a for a in node.args if isinstance(a, ast.Lambda | ast.GeneratorExp))
    if any(foreign) or any(gives_iterator(frame, a) for a in node.args):
        unrolled = _joined(run, frame, of, name, node)
        return outlining.expression(run, frame, node) if unrolled is None else unrolled
    trees, keywords = called_with(run, frame, node).data(run, frame, node)
    return Method(of, name, trees, keywords, line=node.lineno)


def _joined(run: Execution, frame: Frame, of: Tree, name: str, node: ast.Call) -> Symbol | None:
    """Return `", ".join(f(x) for x in CONSTANTS)`; None if it cannot be written out."""
    from weir.handlers.comprehensions import unrolled

    if name != "join" or len(node.args) != 1 or not isinstance(node.args[0], ast.GeneratorExp):
        return None
    items = unrolled(run, frame, node.args[0])
    tree = None if items is None else as_tree(items, node.lineno)
    return None if tree is None else Method(of, name, (tree,), line=node.lineno)


# --- functions of the user's ------------------------------------------------------------------


def _users(
    run: Execution, frame: Frame, function: FunctionType, args: CallArguments, node: ast.AST
) -> Symbol:
    source = run.reach.source(function)
    touches = bool(run.reach.of_function(function))
    defaults = {n: known(v, 0, run.params) for n, v in default_values(function).items()}
    given = bound_arguments(source.node, args, defaults, function.__name__, frame, node)
    _refuse_changes(run, frame, source.node, function.__name__, given, node)
    inlined = _is_simple(source.node) or _gives_function(source.node)
    if not touches and args.is_data and not inlined:
        return _as_it_is(run, frame, function, args, node)
    home = Frame(
        function.__name__, source.file, bound_names(source.node), resolver(function),
        function.__globals__,
    )  # fmt: skip
    try:
        with run.attempt(frame):
            return _inline(run, source.node, home, given, node, frame, function)
    except NotAccesses:
        if touches or not args.is_data:
            raise
        return _as_it_is(run, frame, function, args, node)


def _is_simple(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Tell whether a function is made of assignments, `if` and `return` only."""
    if isinstance(node, ast.Lambda):
        return not any(isinstance(n, _NOT_SIMPLE) for n in ast.walk(node.body))
    for inner in (n for statement in node.body for n in ast.walk(statement)):
        if isinstance(inner, _NOT_SIMPLE):
            return False
        docstring = isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant)
        if isinstance(inner, ast.stmt) and not isinstance(inner, _SIMPLE) and not docstring:
            return False
    return True


def _gives_function(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Tell whether a function returns a function that stands in it."""
    if isinstance(node, ast.Lambda):
        return isinstance(node.body, ast.Lambda)
    inner = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    for returned in (n.value for n in ast.walk(node) if isinstance(n, ast.Return)):
        if isinstance(returned, ast.Lambda):
            return True
        if isinstance(returned, ast.Name) and returned.id in inner:
            return True
    return False


def _inline(
    run: Execution,
    definition: ast.FunctionDef | ast.Lambda,
    where: Frame,
    given: dict[str, Symbol],
    node: ast.AST,
    frame: Frame,
    function: FunctionType | None = None,
) -> Symbol:
    """Run a function in the place of its call; `where` is its frame, or that which it stands in."""
    name = definition.name if isinstance(definition, ast.FunctionDef) else "lambda"
    if definition in run.stack:
        raise NotAccesses(f"`{name}` calls itself", node, frame, "write it as a loop")
    if len(run.stack) > _DEEPEST:
        raise NotAccesses(f"more than {_DEEPEST} functions call each other", node, frame)
    home = where
    if function is None:
        names = bound_names(definition)
        home = Frame(name, where.file, names, where.resolve, where.globals, where)
    home.variables = dict(given)
    conditions = run.conditions
    run.stack.append(definition)
    if isinstance(definition, ast.Lambda):
        result = run.value(home, definition.body)
    else:
        result = _returned(run, home, definition)
    run.stack.pop()
    run.conditions = conditions
    return result


def _returned(run: Execution, home: Frame, definition: ast.FunctionDef) -> Symbol:
    if any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(definition)):
        raise NotAccesses(f"`{definition.name}` is a generator", definition, home, "return a list")
    path = Path(run.conditions, home.variables)
    exits = run.steps.execute(run, home, definition.body, path)
    ends = exits.returns
    if exits.falls is not None:
        nothing = Const(None, line=definition.lineno)
        ends += (Path(exits.falls.conditions, {RETURNED: nothing}),)
    joined = join_all(ends)
    return Const(None) if joined is None else joined.variables[RETURNED]


def _as_it_is(
    run: Execution, frame: Frame, function: object, args: CallArguments, node: ast.AST
) -> Symbol:
    """Return a call of a function that analysis does not look into."""
    assert callable(function)
    if full_name(function) in IN_PLACE:
        raise _changes(str(getattr(function, "__name__", function)), node, frame)
    if is_iterator(function):
        name = getattr(function, "__name__", function)
        raise NotAccesses(f"`{name}` gives an iterator", node, frame, "list(…) makes a list of it")
    trees, keywords = args.data(run, frame, node)
    given = carried(function, run.app.imported)
    line = getattr(node, "lineno", 0)
    return Python(given, trees, keywords, result_type(function), line=line)
