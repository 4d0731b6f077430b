"""Runs the statements of a handler symbolically, on paths.

Both branches of an `if` are run, loops over constants are unrolled, and loops over lists of the
event are run once, for any element. A statement that is not on the list is visited as opaque code.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pyarrow as pa

from weir.handlers.reading import opaque_code
from weir.handlers.reading.bindings import assigned_names
from weir.handlers.reading.execution import Execution, FailingCheck, NotListed, shown
from weir.handlers.reading.expressions import local_function, under
from weir.handlers.reading.frames import (
    RETURNED,
    Exits,
    Frame,
    Path,
    all_of,
    chosen_variables,
    join,
    join_all,
)
from weir.handlers.reading.match_cases import MatchCase, as_conditions
from weir.handlers.reading.raised_failures import is_listed, raised
from weir.handlers.reading.symbols import Known, Symbol, Unusable, negated, op, truth
from weir.handlers.reading.targets import bind, spread_out
from weir.handlers.trees.accesses import GetAccess
from weir.handlers.trees.operations import NAMES
from weir.handlers.trees.tree_walks import conjunction
from weir.handlers.trees.values import Const, Element, Op, Python, Tree

_FROM_ROUND_TO_ROUND = (
    "it goes from one round of a loop with accesses to the next; a loop of its own can compute it"
)
MOST_ROUNDS = 200
"""The most rounds of a loop over constants that are written out."""


def execute(run: Execution, frame: Frame, body: Sequence[ast.stmt], path: Path) -> Exits:
    """Run statements on a path; return the paths that leave them."""
    exits = Exits(falls=path)
    for statement in body:
        if exits.falls is None:
            break  # no path gets here
        run.conditions, frame.variables = exits.falls.conditions, dict(exits.falls.variables)
        try:
            with run.attempt(frame):
                left = _statement(run, frame, statement)
        except NotListed as reason:
            left = opaque_code.visit_statement(run, frame, statement, reason.why)
        exits.jumped(left)
        exits.falls = left.falls
    return exits


def _here(run: Execution, frame: Frame) -> Path:
    return Path(run.conditions, frame.variables)


def _statement(run: Execution, frame: Frame, node: ast.stmt) -> Exits:
    match node:
        case ast.Expr(value=value):
            run.value(frame, value)
            return Exits(falls=_here(run, frame))
        case ast.Assign(targets=targets, value=value):
            return _assign(run, frame, node, targets, value)
        case ast.AnnAssign(target=target, value=value):
            if value is None:
                return Exits(falls=_here(run, frame))
            return _assign(run, frame, node, [target], value)
        case ast.AugAssign():
            return _augmented(run, frame, node)
        case ast.If(test=test, body=body, orelse=orelse):
            return _branch(run, frame, run.tree(frame, test), body, orelse)
        case ast.Match():
            return _match(run, frame, node)
        case ast.For():
            return _for(run, frame, node)
        case ast.Return(value=value):
            result: Symbol = Const(None) if value is None else run.value(frame, value)
            return Exits(returns=(Path(run.conditions, {RETURNED: result}),))
        case ast.Break():
            return Exits(breaks=(_here(run, frame),))
        case ast.Continue():
            return Exits(continues=(_here(run, frame),))
        case ast.Assert() | ast.Raise():
            return _fail(run, frame, node)
        case ast.FunctionDef(name=name, decorator_list=[]) if not _runs_later(node):
            frame.variables[name] = local_function(run, frame, node)
            return Exits(falls=_here(run, frame))
        case ast.Delete(targets=targets) if all(isinstance(t, ast.Name) for t in targets):
            for name in assigned_names([node]):
                frame.variables.pop(name, None)
            return Exits(falls=_here(run, frame))
        case ast.Pass():
            return Exits(falls=_here(run, frame))
    raise NotListed(f"`{_word(node)}`", node)


def _word(node: ast.stmt) -> str:
    words = {
        "AsyncFor": "async for",
        "AsyncWith": "async with",
        "FunctionDef": "def",
        "AsyncFunctionDef": "async def",
        "ClassDef": "class",
        "TryStar": "try",
        "ImportFrom": "import",
        "Delete": "del",
    }
    kind = type(node).__name__
    return words.get(kind, kind.lower())


def _runs_later(node: ast.FunctionDef) -> bool:
    """Tell whether a function is a generator, or sets variables of functions around it."""
    later = (ast.Yield, ast.YieldFrom, ast.Nonlocal)
    return any(isinstance(inner, later) for inner in ast.walk(node))


# --- plain statements -------------------------------------------------------------------------


def _assign(
    run: Execution, frame: Frame, node: ast.stmt, targets: list[ast.expr], value: ast.expr
) -> Exits:
    symbol = run.value(frame, value)
    for target in targets:
        bind(run, frame, target, symbol, node)
    return Exits(falls=_here(run, frame))


def _augmented(run: Execution, frame: Frame, node: ast.AugAssign) -> Exits:
    if not isinstance(node.target, ast.Name):
        raise NotListed(f"`{shown(node.target)}` is changed in place", node)
    if type(node.op) not in NAMES:
        raise NotListed(f"`{shown(node)}` has no form in columns", node)
    name = node.target.id
    load = ast.copy_location(ast.Name(name, ast.Load()), node.target)
    a = run.tree(frame, load)
    dtype = run.static_type(a)
    if isinstance(a, Op) and a.name in ("list", "dict", "set"):
        raise NotListed(f"`{name}` is changed in place", node)
    if dtype is None or (pa.types.is_nested(dtype) and not _is_tuple(a)):
        raise NotListed(f"`{name}` may be changed in place", node)
    b = run.tree(frame, node.value)
    frame.variables[name] = op(NAMES[type(node.op)], a, b, line=node.lineno)
    run.note_evaluated(_as_tree(frame.variables[name]), node)
    return Exits(falls=_here(run, frame))


def _as_tree(symbol: Symbol) -> Tree:
    assert isinstance(symbol, Tree)
    return symbol


def _is_tuple(tree: Tree) -> bool:
    return (isinstance(tree, Op) and tree.name == "tuple") or (
        isinstance(tree, Const) and isinstance(tree.value, tuple)
    )


def _fail(run: Execution, frame: Frame, node: ast.Assert | ast.Raise) -> Exits:
    """Note where the run must fail; the code after it runs only where it does not fail."""
    here = _here(run, frame)
    if isinstance(node, ast.Assert):
        condition = run.tree(frame, node.test)
        here = _here(run, frame)
        if truth(condition):
            return Exits(falls=here)
        fails, falls = negated(condition), Exits(falls=here.when(condition))
        text = _message(run, frame, node.msg, fails)
        tree: Tree = Python(raised, (Const(AssertionError), text), line=node.lineno)
        conditions = (*here.conditions, fails)
    else:
        tree, conditions, falls = _raised(run, frame, node), here.conditions, Exits()
    if run.merging is not None:
        raise NotListed("a failure inside of a merge", node)
    whole = all_of(conditions)
    check = tree if whole is None else op("if", whole, tree, Const(True), line=node.lineno)
    run.checks.append(FailingCheck(len(run.accesses), check, node, run.loop))
    return falls


def _message(run: Execution, frame: Frame, node: ast.expr | None, fails: Tree) -> Tree:
    """Return the message of an assertion, computed only where the assertion fails."""
    if node is None:
        return Const("")
    text = under(run, frame, fails, lambda: run.tree(frame, node))
    return _as_tree(text)


def _raised(run: Execution, frame: Frame, node: ast.Raise) -> Tree:
    match node.exc:
        case ast.Call(func=called, args=args, keywords=[]) if len(args) < 2:
            symbol = run.value(frame, called)
            text = run.tree(frame, args[0]) if args else Const("")
        case ast.Name() as name:
            symbol, text = run.value(frame, name), Const("")
        case _:
            raise NotListed("`raise` of something else than a new exception", node)
    if not isinstance(symbol, Known) or node.cause is not None:
        raise NotListed("which exception is raised depends on the event", node)
    kind = symbol.thing
    if not (
        isinstance(kind, type) and issubclass(kind, BaseException) and kind.__module__ == "builtins"
    ):
        raise NotListed("an exception that is not one of Python's own", node)
    return Python(raised, (Const(kind), text), line=node.lineno)


# --- branches -----------------------------------------------------------------------------


def _branch(
    run: Execution,
    frame: Frame,
    condition: Tree,
    body: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
) -> Exits:
    here = _here(run, frame)
    decided = truth(condition)
    if decided is not None:
        return execute(run, frame, body if decided else orelse, here)
    then = execute(run, frame, body, here.when(condition))
    otherwise = execute(run, frame, orelse, here.when(negated(condition)))
    then.jumped(otherwise)
    then.falls = join(then.falls, otherwise.falls)
    return then


def _match(run: Execution, frame: Frame, node: ast.Match) -> Exits:
    """Run a match whose patterns are constants, as a chain of ifs."""
    subject = run.value(frame, node.subject)
    cases = as_conditions(run, frame, subject, node)
    if cases is None:
        raise NotListed("`match` with such patterns", node)

    def further(number: int, path: Path) -> Exits:
        if number == len(cases):
            return Exits(falls=path)
        case = cases[number]
        condition, then_path, else_path = _case_paths(run, frame, subject, case, path)
        decided = truth(condition)
        if decided is not None:
            return (
                execute(run, frame, case.body, then_path)
                if decided
                else further(number + 1, else_path)
            )
        then = execute(run, frame, case.body, then_path.when(condition))
        otherwise = further(number + 1, else_path.when(negated(condition)))
        then.jumped(otherwise)
        then.falls = join(then.falls, otherwise.falls)
        return then

    return further(0, _here(run, frame))


def _case_paths(
    run: Execution, frame: Frame, subject: Symbol, case: MatchCase, path: Path
) -> tuple[Tree, Path, Path]:
    """Return the condition of a case, the path to its body, and the path past it.

    A pattern that matches binds its names before its guard is computed.
    """
    pattern = case.condition
    fits = path if pattern is None else path.when(pattern)
    run.conditions, frame.variables = fits.conditions, dict(path.variables)
    for name in case.captures:
        frame.variables[name] = subject
    guard = None if case.guard is None else run.tree(frame, case.guard)
    run.conditions, after = path.conditions, frame.variables
    parts = [part for part in (pattern, guard) if part is not None]
    condition = conjunction(parts) or Const(True)
    past = path.variables
    if guard is not None:
        past = after if pattern is None else chosen_variables(pattern, after, past)
    return condition, Path(path.conditions, after), Path(path.conditions, past)


# --- loops --------------------------------------------------------------------------------


def _for(run: Execution, frame: Frame, node: ast.For) -> Exits:
    over = run.value(frame, node.iter, consumed=True)
    elements = spread_out(run, over, node.lineno)
    if elements is not None and len(elements) <= MOST_ROUNDS:
        return _written_out(run, frame, node, elements)
    if not run.touches(frame, [*node.body, *node.orelse]).accesses:
        raise NotListed("a loop over values of the event", node)
    listed = run.data(frame, over, node.iter)
    dtype = run.static_type(listed)
    if dtype is None or (pa.types.is_list(dtype) and pa.types.is_null(dtype.value_type)):
        raise NotListed("a loop over a list of values whose type is not known", node)
    return _over_event(run, frame, node, listed)


def _written_out(run: Execution, frame: Frame, node: ast.For, elements: list[Symbol]) -> Exits:
    """Run a loop over constants, round by round."""
    path: Path | None = _here(run, frame)
    before, failures = run.conditions, len(run.checks)
    left = Exits()
    broken: list[Path] = []
    for element in elements:
        if path is None:
            break
        run.conditions, frame.variables = path.conditions, dict(path.variables)
        bind(run, frame, node.target, element, node)
        exits = execute(run, frame, node.body, _here(run, frame))
        left.returns += exits.returns
        broken += exits.breaks
        path = join_all([*exits.continues, *([exits.falls] if exits.falls is not None else [])])
        if path is not None and not (left.returns or broken or len(run.checks) > failures):
            path = Path(before, path.variables)  # every round gets here
    if path is not None and node.orelse:
        after = execute(run, frame, node.orelse, path)
        left.jumped(after)
        path = after.falls
    left.falls = join_all([*broken, *([path] if path is not None else [])])
    has_jumped = left.returns or left.breaks or left.continues or len(run.checks) > failures
    if left.falls is not None and not has_jumped:
        left.falls = Path(before, left.falls.variables)
    return left


def _over_event(run: Execution, frame: Frame, node: ast.For, over: Tree) -> Exits:
    """Run a loop over a list of the event once, for any element."""
    if run.loop is not None:
        raise NotListed("accesses in a loop inside of another loop", node)
    if run.merging is not None:
        raise NotListed("a loop with accesses inside of a merge function", node)
    here, first = _here(run, frame), len(run.accesses)
    loop = run.begin_loop(over)
    frame.variables = dict(here.variables)
    for name in assigned_names(node.body):
        frame.variables[name] = Unusable(_FROM_ROUND_TO_ROUND)
    bind(run, frame, node.target, Element(loop.block, line=node.lineno), node)
    left = execute(run, frame, node.body, _here(run, frame).when(is_listed(over)))
    run.loop = None
    if run.why_rows:
        raise NotListed("a loop over values of the event", node)  # it is run as it is, as a whole
    if left.returns or left.breaks:
        raise NotListed("`return` or `break` in a loop with accesses", node)
    if all(isinstance(access, GetAccess) for access in run.accesses[first:]):
        # Even if no answer is used, the loop fails where the list is None.
        check = is_listed(over, here.conditions)
        run.checks.append(FailingCheck(first, check, node))
    after = dict(here.variables)
    for name in (*assigned_names(node.body), *assigned_names([node.target])):
        after[name] = Unusable("it is set in a loop with accesses")
    return execute(run, frame, node.orelse, Path(here.conditions, after))
