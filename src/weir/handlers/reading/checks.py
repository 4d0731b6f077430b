"""Adds checks for values that may fail and that no access computes.

In columns a value is computed only where an access needs it, under the access's condition. Python
computes it where it stands. So if a value can fail, some access must compute it under the same
condition. Otherwise the value becomes a *check*, which is evaluated only because it may fail. A
check stands in front of the guard of an access, or is the condition of an emit that never happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from weir.handlers.reading.execution import Evaluated, Execution, FailingCheck
from weir.handlers.reading.frames import Conditions, all_of
from weir.handlers.reading.symbols import negated, op
from weir.handlers.trees.accesses import CHECKS, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.tree_walks import changed_access, conjunction, conjuncts_of, reads_in
from weir.handlers.trees.values import (
    Const,
    Element,
    Field,
    Instant,
    Old,
    Op,
    ReadValue,
    Tree,
    bottom_up,
    children,
)

Noted = GetAccess | MergeAccess | EmitAccess
Computed = tuple[Conditions, Tree]
"""A value, and the conditions under which it is computed."""

_LEAVES = (Field, Instant, Const, ReadValue, Element, Old)
_NEVER_FAIL = frozenset(("is", "isnot", "not", "and", "or", "if", "tuple", "list", "eq", "ne"))
_LAZY = frozenset(("and", "or", "if"))


def with_checks(run: Execution) -> list[Noted]:
    """Return the accesses with all checks; note if the handler must run in rows."""
    accesses = list(run.accesses)
    apart: list[FailingCheck] = []
    placed: dict[int, list[Tree]] = {}
    for check in sorted((*run.checks, *_missing(run)), key=lambda check: check.at):
        if any(isinstance(part, Old) for part in bottom_up(check.tree)):
            run.note_rows(check.node, "it may fail, by the old value of a merge")
            return run.accesses
        at = _place(check, accesses)
        if at is None:
            apart.append(check)
        else:
            placed.setdefault(at, []).append(check.tree)
    for at, trees in placed.items():
        accesses[at] = replace(accesses[at], guard=_guarded(trees, accesses[at].guard))
    return _with_apart(run, accesses, apart)


def _guarded(checks: Sequence[Tree], guard: Tree | None) -> Tree | None:
    return conjunction([*checks, *(() if guard is None else conjuncts_of(guard))])


def _place(check: FailingCheck, accesses: Sequence[Noted]) -> int | None:
    """Return the number of an access whose guard can hold a check, or None."""
    block = _block(check)
    plain = [n for n, a in enumerate(accesses) if a.block == block and not isinstance(a, GetAccess)]
    after = [n for n in plain if n >= check.at]
    needed = max(reads_in((check.tree,)), default=-1)
    before = [n for n in plain if n > needed]
    return after[0] if after else next(iter(before), None)


def _block(check: FailingCheck) -> int | None:
    return None if check.loop is None else check.loop.block


def _with_apart(
    run: Execution, accesses: list[Noted], checks: Sequence[FailingCheck]
) -> list[Noted]:
    """Return the accesses with emits that never happen, whose conditions are these checks.

    A check in a loop comes after the loop's accesses, because these stay together.
    """
    for check in checks:
        block = _block(check)
        inside = [n for n, access in enumerate(accesses) if access.block == block]
        if block is not None and not inside:
            run.note_rows(check.node, "it may fail in a loop that touches nothing")
            return run.accesses
        place = len(accesses) if block is None else inside[-1] + 1
        never = Op("not", (check.tree,), line=check.tree.line)
        emit = EmitAccess(
            order=place,
            handler=run.handler,
            line=getattr(check.node, "lineno", 0),
            guard=never,
            name=CHECKS,
            fields=(),
            is_hidden=True,
            block=block,
            over=None if check.loop is None else check.loop.over,
        )
        accesses = [*accesses[:place], emit, *_renumbered(accesses[place:], place)]
    return accesses


def _renumbered(accesses: Sequence[Noted], start: int) -> list[Noted]:
    """Return accesses with the numbers from `start` on increased by one."""
    shared: dict[int, Tree] = {}

    def raised(tree: Tree) -> Tree:
        if isinstance(tree, ReadValue) and tree.order >= start:
            return replace(tree, order=tree.order + 1)
        return tree

    return [changed_access(access, access.order + 1, raised, shared) for access in accesses]


# --- what no access computes -------------------------------------------------------------------


def _missing(run: Execution) -> list[FailingCheck]:
    """Return checks for the values that Python computes and no access does."""
    computed = _Computed(_computed_by(run))
    functions = {
        part
        for a in run.accesses
        if isinstance(a, MergeAccess) and a.new is not None
        for part in bottom_up(a.new)
    }
    missing: list[FailingCheck] = []
    for one in reversed(run.evaluated):  # the parts of a value come before it
        if _never_fails(one.tree) or computed.has(one.conditions, one.tree):
            continue
        if one.in_merge and one.tree in functions:
            continue  # always computed when the function gets there
        computed.add(one.conditions, one.tree)
        missing.append(_check(one))
    return missing[::-1]


def _check(one: Evaluated) -> FailingCheck:
    tree: Tree = Op("checked", (one.tree,), line=one.tree.line)
    whole = all_of(one.conditions)
    if whole is not None:
        tree = op("if", whole, tree, Const(True), line=one.tree.line)
    return FailingCheck(one.at, tree, one.node, one.loop)


def _computed_by(run: Execution) -> list[Computed]:
    """Return the values that accesses and checks compute.

    A read counts only where its answer is used.
    """
    accesses = run.accesses
    values = [pair for a in accesses if not isinstance(a, GetAccess) for pair in _values_of(a)]
    values += [(_conditions(()), check.tree) for check in run.checks]
    used: set[int] = set()
    waiting = set(reads_in(tree for _, tree in values))
    while waiting:
        order = waiting.pop()
        used.add(order)
        more = list(_values_of(accesses[order]))
        values += more
        waiting |= reads_in(tree for _, tree in more) - used
    return values


def _values_of(access: Noted) -> Iterator[Computed]:
    conditions = _conditions(() if access.guard is None else (access.guard,))
    for number, condition in enumerate(conditions):
        yield conditions[:number], condition
    if access.over is not None:
        yield conditions, access.over
    match access:
        case GetAccess(key=key):
            trees: Iterable[Tree] = key
        case MergeAccess(key=key, args=args, new=new):
            trees = (*key, *args, *(() if new is None else (new,)))
        case EmitAccess(fields=fields):
            trees = (value for _, value in fields)
    for tree in trees:
        yield conditions, tree


def _conditions(conditions: Conditions) -> Conditions:
    return tuple(part for condition in conditions for part in conjuncts_of(condition))


class _Computed:
    """The values that are always computed under some conditions."""

    def __init__(self, values: Iterable[Computed]) -> None:
        self._values: dict[Conditions, set[Tree]] = {}
        self._branches: dict[Conditions, dict[Tree, list[Computed]]] = {}
        """Values that operations compute only under further conditions.

        They are by the operation's conditions, then by the first further one. A value is added to
        `_values` when it is first needed.
        """
        for conditions, tree in values:
            self.add(conditions, tree)

    def add(self, conditions: Conditions, tree: Tree) -> None:
        whole = _conditions(conditions)
        parts = list(_always(tree))
        self._values.setdefault(whole, set()).update(parts)
        branches = self._branches.setdefault(whole, {})
        for part in parts:
            for more, branch in _lazy_parts(part):
                branches.setdefault(more[0], []).append((more, branch))

    def _follow(self, whole: Conditions) -> None:
        """Add the values of branches that are computed under these conditions."""
        for count in range(len(whole)):
            before, rest = whole[:count], whole[count:]
            branches = self._branches.get(before, {}).get(rest[0], [])
            entered = [branch for branch in branches if branch[0] == rest[: len(branch[0])]]
            for branch in entered:
                branches.remove(branch)
                self.add((*before, *branch[0]), branch[1])

    def has(self, conditions: Conditions, tree: Tree) -> bool:
        """Tell whether a value is computed under these conditions, or under fewer of them."""
        whole = _conditions(conditions)
        self._follow(whole)
        if any(tree in self._values.get(whole[:count], ()) for count in range(len(whole), -1, -1)):
            return True
        if not isinstance(tree, Op) or tree.name != "and":
            return False
        # Each part of a condition is a condition for the parts after it.
        return all(
            _never_fails(part) or self.has((*whole, *tree.args[:number]), part)
            for number, part in enumerate(tree.args)
        )


def _always(tree: Tree) -> Iterator[Tree]:
    """Yield the parts of a value that are computed whenever the value is."""
    seen: set[int] = set()
    stack = [tree]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        stack += _always_below(part)


def _always_below(part: Tree) -> Sequence[Tree]:
    """Return the parts that are computed whenever a value is.

    These are children, and parts that both branches of a condition use: `score` in `score + 1 if …
    else score`.
    """
    below = children(part)
    if not _is_lazy(part):
        return below
    if not isinstance(part, Op) or part.name != "if":
        return below[:1]
    condition, *branches = below
    then, otherwise = ((b, *(() if _is_lazy(b) else children(b))) for b in branches)
    return (condition, *(one for one in then if any(one is other for other in otherwise)))


def _is_lazy(tree: Tree) -> bool:
    return isinstance(tree, Op) and tree.name in _LAZY


def _lazy_parts(part: Tree) -> Iterator[Computed]:
    """Yield the parts of an operation that it computes only under further conditions."""
    match part:
        case Op(name="if", args=(condition, then, otherwise)):
            yield _conditions((condition,)), then
            yield _conditions((negated(condition),)), otherwise
        case Op(name="and" | "or" as name, args=args):
            before = args if name == "and" else tuple(map(negated, args))
            for number in range(1, len(args)):
                yield _conditions(before[:number]), args[number]


def _never_fails(tree: Tree) -> bool:
    """Tell whether computing a value never fails, whatever its parts are."""
    return all(isinstance(part, _LEAVES) or _is_total(part) for part in bottom_up(tree))


def _is_total(part: Tree) -> bool:
    match part:
        case Op(name="dict", args=keys_and_values):
            keys = keys_and_values[::2]
            return all(isinstance(key, Const) and isinstance(key.value, str) for key in keys)
        case Op(name=name):
            return name in _NEVER_FAIL
    return False
