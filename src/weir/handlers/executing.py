"""Statements of a handler are run on paths: branches are both taken, loops over constants are
written out, loops over lists of the event are run once for any element."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from weir.handlers import outlining
from weir.handlers.bindings import assigned_names
from weir.handlers.changes import is_shared
from weir.handlers.evaluating import BINARY, local_function
from weir.handlers.execution import EventLoop, Execution, FailingCheck, NotAccesses
from weir.handlers.failing import is_listed, raised
from weir.handlers.frames import RETURNED, Exits, Frame, Path, all_of, join, join_all
from weir.handlers.iterators import gives_iterator
from weir.handlers.matching import as_conditions
from weir.handlers.reads_before import reads_before
from weir.handlers.symbols import Known, Symbol, Unusable, WrittenOut, negated, op, truth
from weir.handlers.targets import bind, spread_out
from weir.handlers.values import Const, Element, Op, Python, Tree

_PLAIN = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete)
_LIST = "list of a state"
_FROM_ROUND_TO_ROUND = (
    "it goes from one round of a loop with accesses to the next; a loop of its own can compute it"
)
MOST_ROUNDS = 200
"""Rounds of a loop over constants that are written out."""


def execute(run: Execution, frame: Frame, body: Sequence[ast.stmt], path: Path) -> Exits:
    """Run statements on a path; return the paths that leave them."""
    exits = Exits(falls=path)
    for statement in body:
        if exits.falls is None:
            break  # nothing comes here
        run.conditions, frame.variables = exits.falls.conditions, dict(exits.falls.variables)
        made = _statement(run, frame, statement)
        exits.jumped(made)
        exits.falls = made.falls
    return exits


def _here(run: Execution, frame: Frame) -> Path:
    return Path(run.conditions, frame.variables)


def _statement(run: Execution, frame: Frame, node: ast.stmt) -> Exits:
    if isinstance(node, _PLAIN) and _changes_own(run, frame, node):
        return _outlined(run, frame, node)
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
            given: Symbol = Const(None) if value is None else run.value(frame, value)
            return Exits(returns=(Path(run.conditions, {RETURNED: given}),))
        case ast.Break():
            return Exits(breaks=(_here(run, frame),))
        case ast.Continue():
            return Exits(continues=(_here(run, frame),))
        case ast.Assert() | ast.Raise():
            return _fail(run, frame, node)
        case ast.FunctionDef(name=name, decorator_list=decorators):
            if decorators:
                raise NotAccesses(f"`{name}` has a decorator", node, frame, "define it outside")
            frame.variables[name] = local_function(run, frame, node)
            return Exits(falls=_here(run, frame))
        case ast.Delete(targets=targets) if all(isinstance(t, ast.Name) for t in targets):
            for name in assigned_names([node]):
                frame.variables.pop(name, None)
            return Exits(falls=_here(run, frame))
        case ast.Pass():
            return Exits(falls=_here(run, frame))
    return _outlined(run, frame, node)


def _outlined(run: Execution, frame: Frame, node: ast.stmt) -> Exits:
    """Run a statement as Python functions; refuse one that accesses states."""
    word = type(node).__name__.lower()
    node = reads_before(run, frame, node)
    touched = run.touches(frame, [node])
    if touched.accesses:
        names = ", ".join(sorted({*touched.reads, *touched.writes, *touched.emits}))
        raise NotAccesses(f"`{word}` with accesses in it ({names})", node, frame)
    hidden = [f for f in touched.calls if run.reach.of_function(f).params]
    if hidden:
        why = f"`{hidden[0].__name__}` uses a parameter inside of `{word}`"
        raise NotAccesses(why, node, frame, "give it the parameter as an argument")
    for name in assigned_names([node]):
        if isinstance(frame.variables.get(name), Known):
            raise NotAccesses(f"`{name}` is a state or function, and set in `{word}`", node, frame)
    if any(isinstance(n, ast.Raise | ast.Assert) for n in ast.walk(node)):
        _note_failures(run, frame, node)
    return outlining.statement(run, frame, node, _here(run, frame))


def _note_failures(run: Execution, frame: Frame, node: ast.stmt) -> None:
    """Let what is raised in code that is called as a whole fail the run, also if nobody uses what
    the code computes."""
    if run.loop is not None:
        raise NotAccesses("a failure inside of a loop with accesses", node, frame)
    if run.merging is None:
        done = op("ge", outlining.exit_code(run, frame, node), Const(0), line=node.lineno)
        whole = all_of(run.conditions)
        check = done if whole is None else op("if", whole, done, Const(True), line=node.lineno)
        run.checks.append(FailingCheck(len(run.accesses), check, node, frame))


# --- plain statements -------------------------------------------------------------------------


def _changes_own(run: Execution, frame: Frame, node: ast.stmt) -> bool:
    """Tell whether a statement changes values of the handler's own in place: `xs.append(x)`."""
    changed = outlining.changed_in_place(run, frame, [node])
    names = [ast.copy_location(ast.Name(n, ast.Load()), node) for n in changed]
    return bool(names) and all(_is_own(run, frame, name) for name in names)


def _is_own(run: Execution, frame: Frame, of: ast.expr) -> bool:
    """Tell whether a value is the handler's own, under one name: it may change it."""
    while isinstance(of, ast.Subscript | ast.Attribute):
        of = of.value
    if not isinstance(of, ast.Name) or of.id not in frame.local_names:
        return False
    symbol = frame.variables.get(of.id)
    fresh = isinstance(symbol, WrittenOut) or (
        isinstance(symbol, Op | Python)
        and (isinstance(symbol, Python) or symbol.name in ("list", "dict", "set", "add"))
    )
    if not fresh:
        return False
    others = [n for n, s in frame.variables.items() if s is symbol and n != of.id]
    if others:
        why = f"`{of.id}` is changed in place, and is `{others[0]}` too"
        raise NotAccesses(why, of, frame, "make a copy")
    if is_shared(run.stack[-1], of.id):
        why = f"`{of.id}` is changed in place, and may be part of another value"
        raise NotAccesses(why, of, frame, "make a copy")
    return True


def _assign(
    run: Execution, frame: Frame, node: ast.stmt, targets: list[ast.expr], value: ast.expr
) -> Exits:
    unpacks = not isinstance(targets[0], ast.Name)
    if unpacks and (_has_star(targets) or gives_iterator(frame, value)):
        return _outlined(run, frame, node)
    symbol = run.value(frame, value)
    for target in targets:
        bind(run, frame, target, symbol, node)
    return Exits(falls=_here(run, frame))


def _has_star(targets: list[ast.expr]) -> bool:
    return any(isinstance(n, ast.Starred) for t in targets for n in ast.walk(t))


def _augmented(run: Execution, frame: Frame, node: ast.AugAssign) -> Exits:
    if not isinstance(node.target, ast.Name):
        raise NotAccesses(f"`{ast.unparse(node.target)[:40]}` is changed in place", node, frame)
    name = node.target.id
    load = ast.copy_location(ast.Name(name, ast.Load()), node.target)
    before = run.value(frame, load)
    if isinstance(before, WrittenOut) and before.kind == "list":
        _is_own(run, frame, load)
    a = run.data(frame, before, node.target)
    b = run.tree(frame, node.value)
    frame.variables[name] = op(BINARY[type(node.op)], a, b, line=node.lineno)
    return Exits(falls=_here(run, frame))


def _fail(run: Execution, frame: Frame, node: ast.Assert | ast.Raise) -> Exits:
    """Note where the run must fail; what comes behind is reached only where it does not."""
    here = _here(run, frame)
    if isinstance(node, ast.Assert):
        condition = run.tree(frame, node.test)
        fails, holds = negated(condition), here.when(condition)
        text: Tree = Const("") if node.msg is None else run.tree(frame, node.msg)
        tree: Tree = Python(raised, (Const(AssertionError), text), line=node.lineno)
        conditions, falls = (*here.conditions, fails), Exits(falls=holds)
        if truth(condition):
            return Exits(falls=here)
    else:
        tree, conditions, falls = _raised(run, frame, node), here.conditions, Exits()
    if run.loop is not None or run.merging is not None:
        raise NotAccesses("a failure inside of a loop or a merge", node, frame)
    whole = all_of(conditions)
    check = tree if whole is None else op("if", whole, tree, Const(True), line=node.lineno)
    run.checks.append(FailingCheck(len(run.accesses), check, node, frame))
    return falls


def _raised(run: Execution, frame: Frame, node: ast.Raise) -> Tree:
    match node.exc:
        case ast.Call(func=kind, args=args, keywords=[]) if len(args) < 2:
            made = run.value(frame, kind)
            text = run.tree(frame, args[0]) if args else Const("")
        case ast.Name() as kind:
            made, text = run.value(frame, kind), Const("")
        case _:
            raise NotAccesses("`raise` of something else than a new exception", node, frame)
    if not isinstance(made, Known):
        raise NotAccesses("which exception is raised depends on the event", node, frame)
    return Python(raised, (Const(made.thing), text), line=node.lineno)


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
        return _outlined(run, frame, node)

    def further(number: int, path: Path) -> Exits:
        if number == len(cases):
            return Exits(falls=path)
        run.conditions, frame.variables = path.conditions, dict(path.variables)
        case = cases[number]
        for name in case.captures:
            frame.variables[name] = subject
        condition = case.condition
        if case.guard is not None:
            test = run.tree(frame, case.guard)
            condition = test if condition is None else Op("and", (condition, test))
        here = _here(run, frame)
        decided = True if condition is None else truth(condition)
        if decided is not None:
            return execute(run, frame, case.body, here) if decided else further(number + 1, here)
        assert condition is not None
        then = execute(run, frame, case.body, here.when(condition))
        otherwise = further(number + 1, here.when(negated(condition)))
        then.jumped(otherwise)
        then.falls = join(then.falls, otherwise.falls)
        return then

    return further(0, _here(run, frame))


# --- loops --------------------------------------------------------------------------------


def _for(run: Execution, frame: Frame, node: ast.For) -> Exits:
    inside = run.touches(frame, [*node.body, *node.orelse]).accesses
    if not inside and not run.touches(frame, [node.iter]).accesses:
        elements = _elements(run, frame, node)
        if elements is None or len(elements) > MOST_ROUNDS:
            return _outlined(run, frame, node)
        return _written_out(run, frame, node, elements)
    over = _listed(run, frame, node.iter)
    elements = spread_out(run, over, node.lineno)
    if elements is not None and len(elements) <= MOST_ROUNDS:
        return _written_out(run, frame, node, elements)
    if inside:
        return _over_event(run, frame, node, run.data(frame, over, node.iter))
    return _over_read(run, frame, node, over)


def _elements(run: Execution, frame: Frame, node: ast.For) -> list[Symbol] | None:
    try:
        with run.attempt(frame):
            return spread_out(run, run.value(frame, node.iter), node.lineno)
    except NotAccesses:  # as a generator is, which a function may go through
        return None


def _listed(run: Execution, frame: Frame, node: ast.expr) -> Symbol:
    """Evaluate what a loop goes through; an iterator is made a list."""
    try:
        with run.attempt(frame):
            return run.value(frame, node)
    except NotAccesses:
        if not gives_iterator(frame, node):
            raise
    listed = ast.List([ast.Starred(reads_before(run, frame, node), ast.Load())], ast.Load())
    return outlining.expression(run, frame, ast.copy_location(listed, node))


def _over_read(run: Execution, frame: Frame, node: ast.For, over: Symbol) -> Exits:
    """Run a loop without accesses over a list that comes from a state."""
    frame.local_names |= {_LIST}
    frame.variables[_LIST] = over
    name = ast.copy_location(ast.Name(_LIST, ast.Load()), node.iter)
    loop = ast.For(node.target, name, node.body, node.orelse)
    return _outlined(run, frame, ast.copy_location(loop, node))


def _written_out(run: Execution, frame: Frame, node: ast.For, elements: list[Symbol]) -> Exits:
    """Run a loop over constants, one round after the other."""
    path: Path | None = _here(run, frame)
    before, failures = run.conditions, len(run.checks)
    left = Exits()
    broken: list[Path] = []
    for element in elements:
        if path is None:
            break
        run.conditions, frame.variables = path.conditions, dict(path.variables)
        bind(run, frame, node.target, element, node)
        made = execute(run, frame, node.body, _here(run, frame))
        left.returns += made.returns
        broken += made.breaks
        path = join_all([*made.continues, *([made.falls] if made.falls is not None else [])])
        if path is not None and not (left.returns or broken or len(run.checks) > failures):
            path = Path(before, path.variables)  # all rounds come here
    if path is not None and node.orelse:
        after = execute(run, frame, node.orelse, path)
        left.jumped(after)
        path = after.falls
    left.falls = join_all([*broken, *([path] if path is not None else [])])
    if left.falls is not None and not (left.returns or len(run.checks) > failures):
        left.falls = Path(before, left.falls.variables)
    return left


def _over_event(run: Execution, frame: Frame, node: ast.For, over: Tree) -> Exits:
    """Run a loop over a list of the event, for any element of it."""
    if run.loop is not None:
        raise NotAccesses("accesses in a loop inside of another loop", node, frame)
    if run.merging is not None:
        raise NotAccesses("a loop with accesses inside of a merge function", node, frame)
    here = _here(run, frame)
    block, run.blocks = run.blocks, run.blocks + 1
    run.loop = EventLoop(block, over)
    frame.variables = dict(here.variables)
    for name in assigned_names(node.body):
        frame.variables[name] = Unusable(_FROM_ROUND_TO_ROUND)
    bind(run, frame, node.target, Element(block, line=node.lineno), node)
    made = execute(run, frame, node.body, _here(run, frame).when(is_listed(over)))
    run.loop = None
    if made.returns or made.breaks:
        raise NotAccesses("`return` or `break` in a loop with accesses", node, frame)
    after = dict(here.variables)
    for name in (*assigned_names(node.body), *assigned_names([node.target])):
        after[name] = Unusable("it is set in a loop with accesses")
    return execute(run, frame, node.orelse, Path(here.conditions, after))
