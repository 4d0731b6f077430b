"""Builds the streams that handlers emit: a filter and a projection per emit, and their union.

The columns of a stream are those of its emits, in order of first occurrence. Every emit of a stream
has all of its columns. The types are declared (`app.emits`), or follow from the values: INT widens
to BIGINT and to DOUBLE, an integer constant to DOUBLE where it is the same number. Other different
types are refused, because the serial loop would give an int for one row and a float for another.

Rows are in the order of the serial loop: by (the event's origin, block, element, order), as
accesses are. Union adds the order at the end. Where the other parts do not give this order, `Enter`
puts the block after the event's origin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BIGINT, DOUBLE, INT, NULL, type_name
from weir.handlers.api.declarations import EmitDeclaration
from weir.handlers.columns.column_values import Scope, column_of, type_of
from weir.handlers.planning.chains import EventChains
from weir.handlers.trees.accesses import CHECKS, EmitAccess
from weir.handlers.trees.scope import at
from weir.handlers.trees.values import Const, Tree
from weir.plan.expressions import Expr, Literal
from weir.plan.fluent.stream import Stream
from weir.plan.names import check_name
from weir.plan.operators import Enter, Filter, Node, Project, Union, schema
from weir.plan.schema import common_time

EmitTypes = tuple[tuple[str, pa.DataType], ...]


@dataclass(frozen=True, slots=True)
class EmitBranch:
    """The rows of one emit, or of all emits of a unit to one stream.

    `emits` are those that determine the types, with their scopes.
    """

    name: str
    place: tuple[int, int]
    """The number of the event type, and the order of the emit or unit."""
    block: int
    """The loop that the emit is in; outside of loops, its order."""
    has_elements: bool
    """Whether the origins of its rows contain the number of an element."""
    emits: tuple[tuple[EmitAccess, Scope], ...]
    where: str
    rows: Callable[[EmitTypes], Node]


def chain_branches(number: int, chains: EventChains) -> list[EmitBranch]:
    """Return a branch for each emit in columns, of one event type."""
    return [
        EmitBranch(
            access.name,
            (number, access.order),
            access.order if access.block is None else access.block,
            access.block is not None,
            ((access, chains.scope(access)),),
            at(chains.scope(access), access.line),
            _rows_of(chains, access),
        )
        for access in chains.flow.accesses
        if isinstance(access, EmitAccess) and access.name != CHECKS
    ]


def check_rows(chains: EventChains) -> list[Node]:
    """Return rows that never come, which are evaluated for an event type's checks."""
    nodes: list[Node] = []
    for access in chains.flow.accesses:
        if isinstance(access, EmitAccess) and access.name == CHECKS:
            point, condition = chains.point(access), chains.condition(access)
            assert point is not None and condition is not None
            nodes.append(Filter(point.node, condition))
    return nodes


def emitted_streams(
    branches: Sequence[EmitBranch],
    columns: Mapping[str, EmitTypes],
    depth: int,
    checks: Sequence[Node] = (),
) -> tuple[dict[str, Stream], list[Node]]:
    """Return the emitted streams by name, in order of their first emit, and the remaining checks.

    `depth` is the number of origin columns that identify an event. `checks` have no rows; each runs
    with the first stream that has the same kind of time. Those without such a stream are returned.
    """
    streams = {}
    waiting = list(checks)
    for name, emitting in by_name(branches).items():
        nodes = [branch.rows(columns[name]) for branch in emitting]
        if _mixes_elements(emitting):
            nodes = [
                Enter(node, branch.block, depth + 2, behind=depth)
                for node, branch in zip(nodes, emitting, strict=True)
            ]
        time = common_time([schema(node) for node in nodes])
        mine = [node for node in waiting if schema(node).time == time]
        waiting = [node for node in waiting if node not in mine]
        nodes += [Project(node, _no_values(columns[name])) for node in mine]
        streams[name] = Stream(nodes[0] if len(nodes) == 1 else Union(tuple(nodes)), name)
    return streams, waiting


def _no_values(columns: EmitTypes) -> tuple[tuple[str, Expr], ...]:
    return tuple((column, Literal(None, type=dtype)) for column, dtype in columns)


def _mixes_elements(branches: Sequence[EmitBranch]) -> bool:
    """Tell whether an event may have rows of a loop's elements and rows from outside that loop."""
    blocks: dict[int, set[int]] = {}
    for branch in branches:
        blocks.setdefault(branch.place[0], set()).add(branch.block)
    return any(b.has_elements and len(blocks[b.place[0]]) > 1 for b in branches)


def by_name(branches: Sequence[EmitBranch]) -> dict[str, list[EmitBranch]]:
    """Return the branches of each emitted stream, in order."""
    named: dict[str, list[EmitBranch]] = {}
    for branch in sorted(branches, key=lambda b: b.place):
        named.setdefault(branch.name, []).append(branch)
    return named


def _check_types_known(name: str, emits: Sequence[tuple[EmitAccess, Scope]]) -> None:
    """Raise PlanError that names all fields of an emitted stream whose types are not known."""
    unknown = {
        column: at(scope, emit.line)
        for emit, scope in emits
        for column, value in emit.fields
        if type_of(value, scope) is None
    }
    if not unknown:
        return
    names = ", ".join(f"`{column}`" for column in unknown)
    what, are, it = ("type", "is", "it") if len(unknown) == 1 else ("types", "are", "them")
    columns = ", ".join(f"{column} BIGINT" for column in unknown)
    raise PlanError(
        f"{next(iter(unknown.values()))}: the {what} of {names} of `{name}` {are} not known",
        hint=f"declare {it}: app.emits('{name}', '{columns}, …')",
    )


def emit_columns(
    name: str, branches: Sequence[EmitBranch], declared: EmitDeclaration | None
) -> EmitTypes:
    """Return the columns of an emitted stream; PlanError where emits do not fit together."""
    emits = [pair for branch in branches for pair in branch.emits]
    if declared is not None:
        declared_names = [column for column, _ in declared.columns]
        for emit, scope in emits:
            for column, _ in emit.fields:
                if column not in declared_names:
                    raise PlanError(
                        f"{at(scope, emit.line)}: `{name}` has no column `{column}`",
                        hint=f"app.emits declares {', '.join(declared_names)}",
                    )
            _check_whole(name, emit, scope, dict.fromkeys(declared_names, "app.emits declares"))
        return declared.columns
    unknown = next((branch for branch in branches if not branch.emits), None)
    if unknown is not None:
        raise PlanError(
            f"{unknown.where}: the columns of `{name}` are not known, as the handler runs whole",
            hint=f"declare them: app.emits('{name}', 'id BIGINT, …')",
        )
    types: dict[str, _Typed] = {}
    _check_types_known(name, emits)
    for emit, scope in emits:
        for column, value in emit.fields:
            check_name(column)
            dtype = type_of(value, scope)
            assert dtype is not None
            where = at(scope, emit.line)
            new = _Typed(dtype, where, value)
            types[column] = _common(name, column, types[column], new) if column in types else new
    for emit, scope in emits:
        known_from = {column: f"it has in {typed.where}" for column, typed in types.items()}
        _check_whole(name, emit, scope, known_from)
    return tuple((column, typed.type) for column, typed in types.items())


def _check_whole(name: str, emit: EmitAccess, scope: Scope, columns: Mapping[str, str]) -> None:
    """Check that an emit has all columns of its stream.

    `columns` has, for each column, the reason why the stream has it.
    """
    fields = dict(emit.fields)
    for column, where in columns.items():
        if column not in fields:
            raise PlanError(
                f"{at(scope, emit.line)}: this emit of `{name}` has no `{column}`, which {where}",
                hint=f"write {column}=None where there is none",
            )


@dataclass(frozen=True, slots=True)
class _Typed:
    type: pa.DataType
    where: str
    value: Tree


def _common(name: str, column: str, first: _Typed, second: _Typed) -> _Typed:
    if first.type == second.type or second.type == NULL:
        return first
    if first.type == NULL:
        return second
    if {first.type, second.type} == {INT, BIGINT}:
        return first if first.type == BIGINT else second
    if DOUBLE in (first.type, second.type):
        wide, narrow = (first, second) if first.type == DOUBLE else (second, first)
        if narrow.type == INT or (narrow.type == BIGINT and _same_as_double(narrow.value)):
            return wide
    raise PlanError(
        f"`{column}` of `{name}` is {type_name(first.type)} in {first.where}, and "
        f"{type_name(second.type)} in {second.where}",
        hint=f"declare which it is: app.emits('{name}', '{column} {type_name(first.type)}, …')",
    )


def _same_as_double(value: Tree) -> bool:
    if not isinstance(value, Const) or not isinstance(value.value, int):
        return False
    return abs(value.value) <= 2**53


def _rows_of(chains: EventChains, emit: EmitAccess) -> Callable[[EmitTypes], Node]:
    def rows(columns: EmitTypes) -> Node:
        point = chains.point(emit)
        assert point is not None, "an emit waits for a read that was never answered"
        condition = chains.condition(emit)
        kept = point.node if condition is None else Filter(point.node, condition)
        scope, fields = chains.scope(emit), dict(emit.fields)

        def value(column: str, dtype: pa.DataType) -> Expr:
            what = f"the field `{column}` of {emit.name}"
            return column_of(fields[column], scope, target=dtype, name=what)

        return Project(kept, tuple((column, value(column, dtype)) for column, dtype in columns))

    return rows
