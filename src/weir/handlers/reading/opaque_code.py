"""Visits code that is not on the list, for the accesses in it; CPython runs the code.

Rules
1. Every part is visited in the order in which Python may evaluate it. Its result is `Opaque`; so
   are the variables that it may set.
2. Code that may run any number of times (loops, comprehensions, functions that others may call,
   generators) is visited once, as *repeated* code. All variables that it sets are opaque from its
   start.
3. Analysis must not lose track of a handle: a state, the app, or an object that leads to one. A
   user's function that touches states and is passed on is visited as one that others may call.
4. The code may change lists and other containers that the handler made; after it they are opaque.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import FunctionType, MethodType

import pyarrow as pa

from weir.events.types import BIGINT
from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.handlers.reach.code_reach import resolver
from weir.handlers.reach.object_contents import is_users
from weir.handlers.reach.static_attributes import DYNAMIC, attribute, getter_of, static_attribute
from weir.handlers.reading.arguments import CallArguments, bound_arguments, default_values
from weir.handlers.reading.bindings import argument_names, assigned_names
from weir.handlers.reading.calls import call_method, check_refused
from weir.handlers.reading.column_constructs import is_listed_function, is_listed_method
from weir.handlers.reading.execution import Execution, HandleLost
from weir.handlers.reading.filled_containers import (
    element_type,
    fill_by_call,
    fill_by_key,
    held,
)
from weir.handlers.reading.frames import RETURNED, Exits, Frame, Path
from weir.handlers.reading.local_imports import imported_things
from weir.handlers.reading.state_calls import check_fields
from weir.handlers.reading.symbols import (
    BoundMethod,
    Known,
    LocalFunction,
    OneOf,
    Symbol,
    TheEvent,
    Unusable,
    WrittenOut,
    as_tree,
    known,
)
from weir.handlers.trees.static_types import widened
from weir.handlers.trees.tree_walks import walk_tree
from weir.handlers.trees.values import (
    Attribute,
    Const,
    Element,
    Field,
    Method,
    Old,
    Opaque,
    Python,
    ReadValue,
    Tree,
)
from weir.plan.usercode.decorators import result_type

# --- expressions ------------------------------------------------------------------------------


def visit(run: Execution, frame: Frame, node: ast.expr, why: str) -> Symbol:
    """Visit an expression that is not on the list."""
    run.note_rows(node, why)
    match node:
        case ast.Name(id=name):
            home = frame.binds(name)
            symbol = home.variables.get(name) if home is not None else None
            if isinstance(symbol, Unusable):
                for choice in symbol.choices:
                    escape(run, frame, choice, node)
            return run.opaque(node, why)
        case ast.Attribute(value=of):
            base = run.value(frame, of)
            if isinstance(base, Known):
                return _property(run, frame, base.thing, node, why)
            if isinstance(base, OneOf):
                return OneOf(tuple(BoundMethod(one, node.attr) for one in base.choices))
            escape(run, frame, base, of)
            return run.opaque(node, why)
        case ast.Call():
            return _call(run, frame, node, why)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _comprehension(run, frame, node, why)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            home = frame.binds(name) or frame
            symbol = home.variables[name] = run.value(frame, value)
            return symbol
        case ast.IfExp(test=test, body=body, orelse=orelse):
            _parts(run, frame, [test])
            one, other = (run.value(frame, part) for part in (body, orelse))
            for symbol, part in ((one, body), (other, orelse)):
                escape(run, frame, symbol, part)
            dtype = widened(run.type_of(one), run.type_of(other))
            return run.opaque(node, why, dtype, is_exact=False)
        case ast.Lambda():
            raise AssertionError("a lambda is a symbol of its own")
    _parts(run, frame, ast.iter_child_nodes(node))
    return run.opaque(node, why)


def _parts(run: Execution, frame: Frame, nodes: Iterable[ast.AST]) -> None:
    """Visit the parts of an expression that is opaque as a whole."""
    for node in nodes:
        if isinstance(node, ast.expr):
            if isinstance(node, ast.Starred):
                node = node.value
            escape(run, frame, run.value(frame, node), node)
        elif isinstance(node, ast.keyword):
            _parts(run, frame, [node.value])


def escape(run: Execution, frame: Frame, symbol: Symbol, node: ast.AST) -> None:
    """Pass a symbol to code that is not read; raise HandleLost for a handle."""
    match symbol:
        case TheEvent():
            run.uses_whole_event = True
            for name, _ in run.event.columns:
                run.hand_on(Field(name))
        case Tree():
            run.hand_on(symbol)
        case WrittenOut(parts=parts) | Unusable(choices=parts) | OneOf(choices=parts):
            for part in parts:
                escape(run, frame, part, node)
        case Known(thing=State(name=name)) | BoundMethod(of=Known(thing=State(name=name))):
            raise HandleLost(
                f"the state `{name}` gets into code that is not read",
                node,
                frame,
                f"use it by its name: {name}.get(…)",
            )
        case Known(thing=App()) | BoundMethod(of=Known(thing=App())):
            raise HandleLost(
                "the app gets into code that is not read", node, frame, "call app.emit(…) here"
            )
        case Known(thing=FunctionType() as function) if is_users(function):
            if run.touches_thing(function):
                with run.deferred():
                    _visit_function(run, frame, function, None, node)
        case Known(thing=thing):
            check_refused(run, frame, thing, node)
        case LocalFunction():
            _hand_on_variables(run, symbol)
            if run.touches(symbol.frame, [symbol.node]).accesses:
                with run.deferred():
                    _visit_local(run, symbol)
        case BoundMethod(of=of):
            escape(run, frame, of, node)


def _hand_on_variables(run: Execution, function: LocalFunction) -> None:
    """Note that others may call a function, which may change the values of its variables."""
    for node in ast.walk(function.node):
        if isinstance(node, ast.Name):
            home = function.frame.binds(node.id)
            symbol = None if home is None else home.variables.get(node.id)
            tree = None if symbol is None else as_tree(symbol)
            if isinstance(symbol, TheEvent):
                escape(run, function.frame, symbol, node)
            elif tree is not None:
                run.hand_on(tree)


def _property(run: Execution, frame: Frame, thing: object, node: ast.Attribute, why: str) -> Symbol:
    """Visit an attribute that is a property, and so runs code."""
    getter = getter_of(static_attribute(thing, node.attr))
    if isinstance(getter, FunctionType) and is_users(getter) and run.touches_thing(getter):
        with run.repeated():
            _visit_function(run, frame, getter, [Known(thing)], node)
    elif getter is None:
        check_refused(run, frame, thing, node)
    return run.opaque(node, why, None if getter is None else result_type(getter))


# --- calls ------------------------------------------------------------------------------------


def _call(run: Execution, frame: Frame, node: ast.Call, why: str) -> Symbol:
    dtype: pa.DataType | None = None
    if isinstance(node.func, ast.Attribute):
        base = run.value(frame, node.func.value)
        match base:
            case Known(thing=State(name=name)):
                raise HandleLost(f"the arguments of `{name}` cannot be told", node, frame)
            case Known(thing=App()):
                return _emit(run, frame, node.func.attr, node, why)
            case OneOf(choices=choices):
                methods = tuple(BoundMethod(one, node.func.attr) for one in choices)
                return _call_any(run, frame, methods, node, why)
        callee: Symbol = BoundMethod(base, node.func.attr)
        if isinstance(base, Known):
            part = attribute(base.thing, node.func.attr)
            callee = base if part is DYNAMIC or not callable(part) else Known(part)
        else:
            escape(run, frame, base, node.func)
    else:
        callee = run.value(frame, node.func)
        if isinstance(callee, OneOf):
            return _call_any(run, frame, callee.choices, node, why)
    passes = node in run.iterated and isinstance(callee, Known) and _passes_on(callee.thing)
    if passes:
        run.iterated.update(node.args)
    if _uses_up(callee, node):
        run.used_up.update(node.args)
    args = [run.value(frame, a.value if isinstance(a, ast.Starred) else a) for a in node.args]
    named = [(k.arg, run.value(frame, k.value)) for k in node.keywords]
    if isinstance(callee, Known):
        dtype = result_type(callee.thing) if callable(callee.thing) else None
    before = held(run, frame, node.func.value) if isinstance(node.func, ast.Attribute) else None
    if passes:
        for symbol in (*(a for a in args if as_tree(a) is None), *(value for _, value in named)):
            escape(run, frame, symbol, node)
    elif not _visit_callee(run, frame, callee, args, named, node):
        for symbol in (*args, *(value for _, value in named)):
            escape(run, frame, symbol, node)
    listed = _listed_call(run, callee, args, node)
    if listed is not None:
        return listed
    forget_changeable(run)
    fill_by_call(run, frame, node, before, args)
    same = _same_call(run, callee, args, node)
    if same is None:
        return run.opaque(node, why, dtype)
    if same not in run.calls:
        run.calls[same] = run.opaque(node, why, dtype)
    return run.calls[same]


def _emit(run: Execution, frame: Frame, method: str, node: ast.Call, why: str) -> Symbol:
    """Visit a call of `app.emit(name, **fields)`.

    Its fields are checked only when it runs, so the stream's columns must be declared.
    """
    match node.args:
        case [ast.Constant(value=str(name))] if method == "emit":
            declared = run.app.emit_declarations.get(name)
        case _:
            raise HandleLost("what is emitted cannot be told", node, frame)
    if run.merging is not None:
        message = f"app.emit() inside of a merge function of `{run.merging.name}`"
        raise frame.file.error(message, node, "emit before or after the merge")
    if declared is None:
        hint = f"declare its columns: app.emits('{name}', 'id BIGINT, …')"
        raise HandleLost(f"the columns of `{name}` cannot be told", node, frame, hint)
    written: dict[str, Tree | None] = {}
    for keyword in node.keywords:
        symbol = run.value(frame, keyword.value)
        escape(run, frame, symbol, keyword.value)
        if keyword.arg is not None:
            written[keyword.arg] = as_tree(symbol)
    check_fields(run, frame, name, list(written), node)
    fields = [
        (column, written.get(column) or run.opaque(node, why, dtype))
        for column, dtype in declared.columns
    ]
    run.emit(name, fields, node)
    forget_changeable(run)
    return Const(None, line=node.lineno)


def _call_any(
    run: Execution, frame: Frame, choices: Sequence[Symbol], node: ast.Call, why: str
) -> Symbol:
    """Visit a call of one of several functions, as if each were called."""
    types = []
    for choice in choices:
        if isinstance(choice, BoundMethod) and _is_handle(choice.of):
            result: Symbol = call_method(run, frame, choice, node)
            types.append(run.type_of(result))
            continue
        args = [run.value(frame, a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        named = [(k.arg, run.value(frame, k.value)) for k in node.keywords]
        if not _visit_callee(run, frame, choice, args, named, node):
            for symbol in (*args, *(value for _, value in named)):
                escape(run, frame, symbol, node)
    forget_changeable(run)
    alike = len(set(types)) == 1 and len(types) == len(choices)
    return run.opaque(node, why, types[0] if alike else None)


def _visit_callee(
    run: Execution,
    frame: Frame,
    callee: Symbol,
    args: Sequence[Symbol],
    named: Sequence[tuple[str | None, Symbol]],
    node: ast.Call,
) -> bool:
    """Visit a called function; return whether it got the arguments as they are."""
    function = callee.thing if isinstance(callee, Known) else None
    if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
        args, function = [known(function.__self__, 0, run.params), *args], function.__func__
    if isinstance(function, FunctionType) and is_users(function):
        if not run.touches_thing(function) and not any(map(_is_handle, args)):
            return False
        spread = any(isinstance(a, ast.Starred) for a in node.args)
        known_names = all(name is not None for name, _ in named)
        given = None if spread or not known_names else list(args)
        keywords = {name: value for name, value in named if name is not None}
        with _at_call(run, run.reach.source(function).node):
            _visit_function(run, frame, function, given, node, keywords)
        return given is not None
    if isinstance(callee, LocalFunction):
        if run.touches(callee.frame, [callee.node]).accesses:
            with _at_call(run, callee.node):
                _visit_local(run, callee)
        return False
    escape(run, frame, callee, node)
    return False


def _at_call(
    run: Execution, definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
) -> AbstractContextManager[None]:
    """Return the context in which a called function's body runs: that of a generator runs later."""
    later = (ast.Yield, ast.YieldFrom, ast.AsyncFunctionDef)
    return run.deferred() if any(isinstance(n, later) for n in ast.walk(definition)) else _NOW


_NOW: AbstractContextManager[None] = nullcontext()


def _is_handle(symbol: Symbol) -> bool:
    return isinstance(symbol, Known) and isinstance(symbol.thing, State | App)


def _listed_call(
    run: Execution, callee: Symbol, args: Sequence[Symbol], node: ast.Call
) -> Tree | None:
    """Return a call of a listed function with opaque values, because its type is known."""
    plain = not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
    trees = [as_tree(arg) for arg in args]
    if not plain or any(tree is None for tree in trees):
        return None
    given = tuple(tree for tree in trees if tree is not None)
    match callee:
        case Known(thing=function) if is_listed_function(function) and callable(function):
            return Python(function, given, line=node.lineno)
        case BoundMethod(of=Tree() as of, name=name):
            constant = of.value if isinstance(of, Const) else None
            if is_listed_method(run.static_type(of), constant, name):
                return Method(of, name, given, line=node.lineno)
    return None


def _same_call(
    run: Execution, callee: Symbol, args: Sequence[Symbol], node: ast.Call
) -> tuple[object, ...] | None:
    """Return an identity for a call of the user's function with values of the event alone.

    Two such calls have the same result, because handlers and all that they call are deterministic.
    """
    if not isinstance(callee, Known) or not isinstance(callee.thing, FunctionType):
        return None
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    for arg in args:
        if not isinstance(arg, Tree) or _can_change(run, arg):
            return None
        if any(isinstance(t, Opaque | ReadValue | Element | Old) for t in walk_tree(arg)):
            return None
    return callee.thing, *args


def _visit_function(
    run: Execution,
    frame: Frame,
    function: FunctionType,
    args: Sequence[Symbol] | None,
    node: ast.AST,
    named: dict[str, Symbol] | None = None,
) -> None:
    """Visit a user's function that may be called any number of times.

    Without `args`, it may be called with any arguments.
    """
    source = run.reach.source(function)
    definition = source.node
    if definition in run.stack:
        raise HandleLost(f"`{function.__name__}` touches states and calls itself", node, frame)
    home = Frame.of(
        definition, function.__name__, source.file, resolver(function), function.__globals__
    )
    defaults = {n: known(v, 0, run.params) for n, v in default_values(function).items()}
    if args is None:
        bound: dict[str, Symbol] = {
            name: run.opaque(node, "a function is called by others")
            for name in argument_names(definition.args)
        }
        bound |= {n: d for n, d in defaults.items() if _is_handle(d)}
    else:
        given = CallArguments(tuple(args), named or {})
        bound = bound_arguments(definition, given, defaults, function.__name__, frame, node)
    _visit_body(run, definition, home, bound)


def _visit_local(run: Execution, function: LocalFunction) -> None:
    if function.node in run.stack:
        return
    home = Frame.of(
        function.node,
        function.name,
        function.frame.file,
        function.frame.resolve,
        function.frame.globals,
        function.frame,
    )
    bound: dict[str, Symbol] = {
        name: run.opaque(function.node, "a function is called by others")
        for name in argument_names(function.node.args)
    }
    _visit_body(run, function.node, home, bound | dict(function.defaults))


def _visit_body(
    run: Execution,
    definition: ast.FunctionDef | ast.Lambda,
    home: Frame,
    bound: dict[str, Symbol],
) -> None:
    conditions = run.conditions
    home.variables = bound
    run.stack.append(definition)
    run.frames.append(home)
    with run.repeated(), run.shielded():
        if isinstance(definition, ast.Lambda):
            escape(run, home, run.value(home, definition.body), definition.body)
        else:
            start = Path(conditions, home.variables)
            exits = run.steps.execute(run, home, definition.body, start)
            for path in exits.returns:
                escape(run, home, path.variables[RETURNED], definition)
    run.stack.pop()
    run.frames.pop()
    run.conditions = conditions


def forget_changeable(run: Execution) -> None:
    """Make variables opaque if some code may have changed their values in place."""
    for frame in run.frames:
        for name, symbol in list(frame.variables.items()):
            if _can_change(run, symbol) and not _is_own(run, symbol):
                dtype = run.type_of(symbol)
                frame.variables[name] = run.opaque(ast.Pass(), "it may be changed in place", dtype)
            elif (
                isinstance(symbol, Opaque)
                and symbol.elements is not None
                and symbol in run.handed_on
            ):
                frame.variables[name] = replace(symbol, type=None, elements=None)


def _can_change(run: Execution, symbol: Symbol) -> bool:
    if isinstance(symbol, WrittenOut):
        return symbol.kind == "list" or any(_can_change(run, part) for part in symbol.parts)
    if not isinstance(symbol, Tree) or isinstance(symbol, Opaque):
        return False
    dtype = run.static_type(symbol)
    return dtype is None or pa.types.is_nested(dtype)


def _is_own(run: Execution, symbol: Symbol) -> bool:
    """Tell whether only code that is read has had access to a list or struct.

    It is part of the event or of a state's answer, and no other code can have changed it.
    """
    return (
        isinstance(symbol, Field | Element | ReadValue | Attribute)
        and run.static_type(symbol) is not None
        and not run.may_be_changed(symbol)
    )


# --- comprehensions ---------------------------------------------------------------------------


def _comprehension(
    run: Execution,
    frame: Frame,
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
    why: str,
) -> Symbol:
    names = assigned_names(generator.target for generator in node.generators)
    home = Frame(frame.name, frame.file, names, frame.resolve, frame.globals, frame)
    run.frames.append(home)
    run.iterated.update(generator.iter for generator in node.generators)
    over = run.value(frame, node.generators[0].iter)
    is_later = isinstance(node, ast.GeneratorExp) and node not in run.used_up
    with run.repeated(), run.deferred() if is_later else _NOW:
        dtype: pa.DataType | None = None
        is_exact = True
        for number, generator in enumerate(node.generators):
            if number:
                over = run.value(home, generator.iter)
            bind_elements(run, home, generator.target, generator.iter, over)
            _parts(run, home, generator.ifs)
        if isinstance(node, ast.DictComp):
            _parts(run, home, [node.key, node.value])
        else:
            element = run.value(home, node.elt)
            escape(run, home, element, node.elt)
            tree = as_tree(element)
            static = None if tree is None else run.static_type(tree)
            inner = static or run.type_of(element)
            dtype = None if inner is None else pa.list_(inner)
            is_exact = static is not None
    run.frames.pop()
    return run.opaque(node, why, dtype, is_exact=is_exact)


_IN_ANY_ORDER = (sorted, reversed, list, tuple, set, frozenset, iter)
"""Functions whose results have the elements of their argument."""
_IN_GROUPS = (itertools.combinations, itertools.permutations, itertools.pairwise)
"""Functions whose results have tuples of their argument's elements."""


def bind_elements(
    run: Execution, frame: Frame, target: ast.expr, node: ast.expr, over: Symbol
) -> None:
    """Bind the names of a loop's target to any element of `over`, which is written as `node`."""
    callee, args = _called(run, node)
    match target, args:
        case ast.Name(id=name), _:
            source = _source(run, node, over)
            element = None if source is None else run.element(source, node.lineno)
            if element is not None:
                frame.variables[name] = element
                return
        case ast.Tuple(elts=[number, inner]), [first, *_] if callee is enumerate:
            bind_opaque(run, frame, number, BIGINT)
            bind_elements(run, frame, inner, first, run.values[first])
            return
        case ast.Tuple(elts=targets), [*parts] if callee is zip and len(parts) == len(targets):
            for inner, part in zip(targets, parts, strict=True):
                bind_elements(run, frame, inner, part, run.values[part])
            return
        case ast.Tuple(elts=targets), [first, *_] if _is_any(callee, _IN_GROUPS):
            _hand_on_parts(run, node)
            source = _source(run, first, run.values[first])
            for inner in targets:
                dtype = None if source is None else element_type(run, source)
                bind_opaque(run, frame, inner, dtype)
            return
    escape(run, frame, over, node)
    _hand_on_parts(run, node)
    bind_opaque(run, frame, target, element_type(run, over))


def _hand_on_parts(run: Execution, node: ast.expr) -> None:
    """Note that other code may have the parts of an expression."""
    for part in ast.walk(node):
        symbol = run.values.get(part) if isinstance(part, ast.expr) else None
        tree = None if symbol is None else as_tree(symbol)
        if tree is not None:
            run.hand_on(tree)


def _called(run: Execution, node: ast.expr) -> tuple[object, list[ast.expr]]:
    """Return the function of a call that was visited, and its plain arguments."""
    if not isinstance(node, ast.Call):
        return None, []
    plain = [arg for arg in node.args if arg in run.values]
    callee = run.values.get(node.func)
    if isinstance(node.func, ast.Attribute):
        base = run.values.get(node.func.value)
        callee = Known(attribute(base.thing, node.func.attr)) if isinstance(base, Known) else None
    if not isinstance(callee, Known) or len(plain) < len(node.args):
        return None, []
    return callee.thing, plain


_USES_UP = (any, all, sum, min, max, sorted, list, tuple, set, frozenset, dict, next)
"""Functions that consume an iterator at once; `next` consumes as much as it ever will."""


def _uses_up(callee: Symbol, node: ast.Call) -> bool:
    """Tell whether a call uses up a generator at once, without other calls in between."""
    varying = [arg for arg in node.args if not isinstance(arg, ast.Constant)]
    if len(varying) != 1 or any(
        keyword.arg not in ("default", "start") for keyword in node.keywords
    ):
        return False
    match callee:
        case Known(thing=thing):
            return _is_any(thing, _USES_UP)
        case BoundMethod(of=Const(value=str()), name="join"):
            return True
    return False


def _passes_on(function: object) -> bool:
    """Tell whether a loop over a function's result is a loop over the elements of its arguments."""
    return _is_any(function, (*_IN_ANY_ORDER, *_IN_GROUPS, enumerate, zip))


def _is_any(thing: object, functions: Iterable[object]) -> bool:
    return any(thing is function for function in functions)


def _source(run: Execution, node: ast.expr, over: Symbol) -> Tree | None:
    """Return a list with all elements that a loop over a value may get."""
    callee, args = _called(run, node)
    if _is_any(callee, _IN_ANY_ORDER) and args:
        return _source(run, args[0], run.values[args[0]])
    tree = as_tree(over)
    while isinstance(tree, Python) and tree.args and _is_any(tree.function, _IN_ANY_ORDER):
        tree = tree.args[0]
    return tree


def bind_opaque(
    run: Execution, frame: Frame, target: ast.expr, dtype: pa.DataType | None = None
) -> None:
    """Bind the names of a target to values that only CPython knows; visit the target's parts."""
    match target:
        case ast.Name(id=name):
            frame.variables[name] = run.opaque(
                target, f"`{name}` is set by code that is not read", dtype
            )
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for one in targets:
                bind_opaque(run, frame, one)
        case ast.Starred(value=one):
            bind_opaque(run, frame, one)
        case ast.Attribute(value=of):
            escape(run, frame, run.value(frame, of), of)
            forget_changeable(run)
        case ast.Subscript(value=of, slice=index):
            before = held(run, frame, of)
            _parts(run, frame, [of, index])
            forget_changeable(run)
            fill_by_key(run, frame, of, before, run.values[index])


# --- statements -------------------------------------------------------------------------------


def visit_statement(run: Execution, frame: Frame, node: ast.stmt, why: str) -> Exits:
    """Visit a statement that is not on the list."""
    before = dict(frame.variables)
    conditions = run.conditions
    run.note_rows(node, why)
    returned = _Returns()
    match node:
        case ast.For() | ast.AsyncFor():
            run.iterated.add(node.iter)
            over = run.value(frame, node.iter)
            _loop(run, frame, [*node.body], returned, loop=(node, over))
            _block(run, frame, node.orelse, returned)
        case ast.While():
            _loop(run, frame, [*node.body], returned, test=node.test)
            _block(run, frame, node.orelse, returned)
        case ast.Try() | ast.TryStar():
            _try(run, frame, node, returned)
        case ast.With() | ast.AsyncWith():
            with run.shielded():
                for item in node.items:
                    _parts(run, frame, [item.context_expr])
                    if item.optional_vars is not None:
                        bind_opaque(run, frame, item.optional_vars)
                _block(run, frame, node.body, returned)
        case ast.If(test=test):
            _parts(run, frame, [test])
            _branches(run, frame, [node.body, node.orelse], returned)
        case ast.Match():
            _match(run, frame, node, returned)
        case ast.Assign(targets=targets, value=value):
            symbol = run.value(frame, value)
            for target in targets:
                if isinstance(target, ast.Name):
                    frame.variables[target.id] = symbol
                else:
                    escape(run, frame, symbol, value)
                    bind_opaque(run, frame, target)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            escape(run, frame, run.value(frame, value), value)
            bind_opaque(run, frame, target)
        case ast.AugAssign(target=target, value=value):
            _parts(run, frame, [value])
            old = frame.variables.get(target.id) if isinstance(target, ast.Name) else None
            dtype = run.type_of(old)
            if old is not None:
                escape(run, frame, old, target)
            bind_opaque(run, frame, target, dtype)
            forget_changeable(run)
        case ast.Return(value=ast.expr() as value):
            symbol = run.value(frame, value)
            return Exits(returns=(Path(conditions, {RETURNED: symbol}),))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _definition(run, frame, node)
        case ast.ClassDef():
            _class(run, frame, node)
        case ast.Import() | ast.ImportFrom():
            _import(run, frame, node)
        case ast.Nonlocal():
            pass  # `Frame.is_volatile`
        case ast.Expr(value=value):
            _parts(run, frame, [value])
        case ast.Raise() | ast.Assert() | ast.Delete():
            _parts(run, frame, ast.iter_child_nodes(node))
            for name in assigned_names([node]):
                frame.variables.pop(name, None)
            forget_changeable(run)
            if isinstance(node, ast.Raise):
                return Exits()
        case _:
            raise AssertionError(f"{type(node).__name__} is visited as opaque code")
    _settle(run, frame, before, assigned_names([node]))
    run.conditions = conditions
    after = Path(conditions, frame.variables)
    if not returned.paths:
        return Exits(falls=after, breaks=returned.breaks, continues=returned.continues)
    dtype = returned.type(run)
    result = run.opaque(node, why, dtype, is_exact=False)
    return Exits(
        falls=after,
        returns=(Path(conditions, {RETURNED: result}),),
        breaks=returned.breaks,
        continues=returned.continues,
    )


class _Returns:
    """Collects the paths that leave a statement early."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.breaks: tuple[Path, ...] = ()
        self.continues: tuple[Path, ...] = ()

    def type(self, run: Execution) -> pa.DataType | None:
        types = [run.type_of(path.variables[RETURNED]) for path in self.paths]
        dtype = types[0]
        for other in types[1:]:
            dtype = widened(dtype, other)
        return dtype


def _block(
    run: Execution,
    frame: Frame,
    body: Sequence[ast.stmt],
    returned: _Returns,
    *,
    loop: bool = False,
) -> None:
    """Run statements of opaque code; afterwards their variables keep the values that they have."""
    conditions = run.conditions
    exits = run.steps.execute(run, frame, body, Path(conditions, frame.variables))
    returned.paths += exits.returns
    for path in exits.returns:
        escape(run, frame, path.variables[RETURNED], body[0])
    if not loop:
        returned.breaks += exits.breaks
        returned.continues += exits.continues
    run.conditions = conditions
    if exits.falls is not None:
        frame.variables = dict(exits.falls.variables)


def _loop(
    run: Execution,
    frame: Frame,
    body: Sequence[ast.stmt],
    returned: _Returns,
    *,
    loop: tuple[ast.For | ast.AsyncFor, Symbol] | None = None,
    test: ast.expr | None = None,
) -> None:
    """Visit a loop, with the value that a `for` iterates over, or with the test of a `while`."""
    names = assigned_names([*body, *([] if test is None else [test])])
    before = dict(frame.variables)
    with run.repeated():
        for name in names:
            old = before.get(name)
            dtype = run.type_of(old)
            frame.variables[name] = run.opaque(ast.Pass(), f"`{name}` is set in a loop", dtype)
        if loop is not None:
            node, over = loop
            bind_elements(run, frame, node.target, node.iter, over)
        if test is not None:
            _parts(run, frame, [test])
        _block(run, frame, body, returned, loop=True)


def _try(run: Execution, frame: Frame, node: ast.Try | ast.TryStar, returned: _Returns) -> None:
    if _catches_all(frame, node):
        with run.shielded():
            _block(run, frame, node.body, returned)
    else:
        _block(run, frame, node.body, returned)
    _make_opaque(run, frame, assigned_names(node.body))
    for handler in node.handlers:
        if handler.type is not None:
            _parts(run, frame, [handler.type])
        if handler.name is not None:
            frame.variables[handler.name] = run.opaque(handler, "an exception is caught")
        _block(run, frame, handler.body, returned)
        _make_opaque(run, frame, assigned_names(handler.body))
    _block(run, frame, node.orelse, returned)
    _block(run, frame, node.finalbody, returned)


def _catches_all(frame: Frame, node: ast.Try | ast.TryStar) -> bool:
    """Tell whether a `try` may stop any exception."""
    jumps = (ast.Return, ast.Break, ast.Continue)
    if any(isinstance(n, jumps) for s in node.finalbody for n in ast.walk(s)):
        return True
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            thing = frame.thing(kind.id) if isinstance(kind, ast.Name) else None
            if not (isinstance(thing, type) and issubclass(thing, Exception)):
                return True
    return False


def _branches(
    run: Execution, frame: Frame, bodies: Sequence[Sequence[ast.stmt]], returned: _Returns
) -> None:
    before = dict(frame.variables)
    ends = []
    for body in bodies:
        frame.variables = dict(before)
        _block(run, frame, body, returned)
        ends.append(frame.variables)
    frame.variables = {}
    for name in dict.fromkeys(name for end in ends for name in end):
        symbols = [end.get(name) for end in ends]
        if all(symbol is symbols[0] for symbol in symbols):
            assert symbols[0] is not None
            frame.variables[name] = symbols[0]
        else:
            frame.variables[name] = _joined(run, frame, name, symbols)


def _joined(run: Execution, frame: Frame, name: str, symbols: Sequence[Symbol | None]) -> Symbol:
    for symbol in symbols:
        if symbol is not None:
            escape(run, frame, symbol, ast.Pass())
    dtype = run.type_of(symbols[0])
    for symbol in symbols[1:]:
        dtype = widened(dtype, run.type_of(symbol))
    return run.opaque(
        ast.Pass(), f"`{name}` is set by code that is not read", dtype, is_exact=False
    )


def _match(run: Execution, frame: Frame, node: ast.Match, returned: _Returns) -> None:
    _parts(run, frame, [node.subject])
    for case in node.cases:
        for name in assigned_names([case.pattern]):
            frame.variables[name] = run.opaque(case.pattern, f"`{name}` is set by a pattern")
        for part in ast.walk(case.pattern):
            if isinstance(part, ast.MatchValue):
                _parts(run, frame, [part.value])
            elif isinstance(part, ast.MatchClass):
                _parts(run, frame, [part.cls])
        if case.guard is not None:
            _parts(run, frame, [case.guard])
    _branches(run, frame, [*(case.body for case in node.cases), []], returned)


def _definition(run: Execution, frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Visit a function that is decorated, a generator or a coroutine."""
    _parts(run, frame, node.decorator_list)
    _parts(run, frame, [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None])
    frame.variables[node.name] = run.opaque(node, f"`{node.name}` is decorated, or runs later")
    if isinstance(node, ast.AsyncFunctionDef):
        if run.touches(frame, [node]).accesses:
            raise HandleLost("a coroutine touches states", node, frame)
        return
    if run.touches(frame, [node]).accesses:
        with run.deferred():
            _visit_local(run, LocalFunction(node, frame, {}))


def _class(run: Execution, frame: Frame, node: ast.ClassDef) -> None:
    """Visit a class inside a function; other code calls its methods."""
    _parts(run, frame, [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)])
    frame.variables[node.name] = run.opaque(node, f"the class `{node.name}`")
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            if run.touches(frame, [statement]).accesses:
                if statement.name == "__del__":
                    message = "`__del__` touches states, and may run after the event, or never"
                    raise HandleLost(message, statement, frame)
                with run.deferred():
                    _visit_local(run, LocalFunction(statement, frame, {}))
        elif run.touches(frame, [statement]).accesses:
            raise HandleLost("the body of a class touches states", statement, frame)


def _import(run: Execution, frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    for name, thing in imported_things(node, frame.file):
        frame.variables[name] = Known(thing)


def _make_opaque(run: Execution, frame: Frame, names: Iterable[str]) -> None:
    for name in names:
        old = frame.variables.get(name)
        if isinstance(old, Opaque | Known | LocalFunction):
            continue
        why = f"`{name}` is set by code that is not read"
        frame.variables[name] = run.opaque(ast.Pass(), why, run.type_of(old), is_exact=False)


def _settle(run: Execution, frame: Frame, before: dict[str, Symbol], names: Iterable[str]) -> None:
    """Make the variables opaque that a statement may have set.

    Each gets a type that fits its values before and after the statement.
    """
    for name in names:
        old, new = before.get(name), frame.variables.get(name)
        if new is None or old is new:
            continue
        if isinstance(new, Known | LocalFunction | Element) and old is None:
            continue  # its only value, whichever element it is
        dtype = run.type_of(new)
        if old is not None:
            dtype = widened(run.type_of(old), dtype)
        elif isinstance(new, Opaque):
            continue
        why = f"`{name}` is set by code that is not read"
        for symbol in (old, new):
            if symbol is not None:
                escape(run, frame, symbol, ast.Pass())
        frame.variables[name] = run.opaque(ast.Pass(), why, dtype, is_exact=False)
