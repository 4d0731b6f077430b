"""Chains: the path of an event type's rows through its scans.

Contract
1. Every event type has one main chain. The rows of a loop, one for each element, have chains of
   their own, which begin at a point of the main chain.
2. Each point of a chain has more answered reads than the one before. Its rows have the event's
   columns, the answers so far (`$r3` is that of the read with order 3) and the conditions that can
   be decided there (`$g5.2`: the first two parts of the condition of the access with order 5).
   Rewrites prune columns that are not needed later.
3. An access takes place at the first point with all answers that it waits for.
4. A condition is a list of parts that are tried in order (`a and b and c`). Accesses under the same
   `if` begin with the same parts. As soon as the first parts of a condition can be decided they
   become a column, so a part that calls the user's code or reads a wide column is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BOOLEAN, STRING, type_name
from weir.handlers.api.declarations import State
from weir.handlers.columns.column_values import column_of, truth_of, type_of
from weir.handlers.planning.dataflow import is_plain, waits_for
from weir.handlers.planning.handler_order import EventFlow
from weir.handlers.trees.accesses import Access, GetAccess
from weir.handlers.trees.scope import Scope, at
from weir.handlers.trees.tree_walks import conjunction, conjuncts_of, reads_in, walk_tree
from weir.handlers.trees.values import Element, Field, Tree
from weir.plan.binding.projection import with_columns
from weir.plan.expressions import Call, Column, Expr, Literal
from weir.plan.operators import Explode, Node, schema
from weir.plan.schema import Schema


@dataclass(frozen=True, slots=True)
class ChainPoint:
    """The rows at a point of a chain, and the reads that are answered there."""

    node: Node
    answered: frozenset[int]


@dataclass(slots=True)
class RowChain:
    """The points of a chain so far; `block` is the loop that its rows belong to."""

    block: int | None
    points: list[ChainPoint] = field(default_factory=list)
    conditions: dict[Parts, str] = field(default_factory=dict)
    """The conditions, or first parts of them, that are columns of the newest rows."""

    def point_with(self, reads: frozenset[int]) -> int | None:
        """Return the first point at which these reads are answered, or None."""
        return next((n for n, p in enumerate(self.points) if reads <= p.answered), None)


class EventChains:
    """All chains of one event type: the main one, and those of loops.

    A loop has a chain for each point of the main chain that its accesses start from. `ring_waits`
    has the reads that a ring's read waits for, by order. `function_names` has the names of merge
    functions. `key_parts` has the types of key parts that units compute. A ring of the main chain
    may have reads in loops: their answers lie in a LIST beside the elements (`$b4` for the loop 4),
    and the loop's rows are made from that.
    """

    def __init__(
        self,
        flow: EventFlow,
        entrance: Node,
        ring_waits: Mapping[int, frozenset[int]],
        main_ring: frozenset[int],
        function_names: Mapping[int, str],
        states: Mapping[str, State],
        files: Mapping[str, str],
        key_parts: Mapping[int, pa.DataType],
        *,
        vectorise: bool,
    ) -> None:
        self.flow, self.function_names = flow, function_names
        self._files = files
        self._reads = {a.order: a for a in flow.accesses if isinstance(a, GetAccess)}
        self._waits = {o: ring_waits.get(o, waits_for(r)) for o, r in self._reads.items()}
        self._on_main = {o for o, r in self._reads.items() if r.block is None} | main_ring
        scope = scope_of(flow.accesses, schema(entrance), states, files, vectorise)
        parts = {token: (f"$r{token}", dtype) for token, dtype in key_parts.items()}
        self._scope = replace(scope, answers={**scope.answers, **parts})
        self._needed: list[Access] = []
        self.main = RowChain(None)
        self._loops: dict[tuple[int, int], RowChain] = {}
        self.entrance = entrance

    def begin(self, needed: Iterable[Access]) -> None:
        """Begin the main chain; `needed` are the accesses that will take place."""
        self._needed = sorted(needed, key=lambda a: a.order)
        self.add_point(self.main, self.entrance, frozenset())

    # --- values ----------------------------------------------------------------------------

    @property
    def event_columns(self) -> tuple[tuple[str, pa.DataType], ...]:
        return schema(self.entrance).columns

    def unit_scope(self, handler: str) -> Scope:
        """Return the scope of the keys and answers that a unit gets."""
        return in_handler(self._scope, handler, self._files)

    def scope(self, access: Access) -> Scope:
        """Return the scope of an access's values."""
        return in_handler(self._scope, access.handler, self._files)

    def answer(self, order: int) -> str:
        """Return the column with the answer of a read."""
        return self._scope.answers[order][0]

    def answer_column(self, read: GetAccess) -> tuple[str, pa.DataType]:
        """Return the column with the answer of a read, and its type."""
        return self._scope.answers[read.order]

    def gathered_keys(self, read: GetAccess) -> tuple[str, ...]:
        """Return the LIST columns with the keys of a read by the elements of a list."""
        return tuple(f"$q{read.order}.{n}" for n in range(len(read.key)))

    def gathered_answers(self, read: GetAccess) -> str:
        """Return the column with a read's answers by the elements of a list, in the keys' order."""
        return f"$q{read.order}"

    def element_column(self, block: int) -> tuple[str, pa.DataType]:
        """Return the column with the element of a loop, and its type."""
        return self._scope.elements[block]

    def condition(self, access: Access) -> Expr | None:
        """Return the condition of an access, for rows of its chain; None if it has none."""
        if access.guard is None:
            return None
        chain = self.home(access)
        assert chain is not None
        parts = conjuncts_of(access.guard)
        return self._truth(parts, known_prefix(parts, chain.conditions), chain, self.scope(access))

    def known_guard(self, access: Access) -> tuple[Tree | None, Scope]:
        """Return an access's condition, as a column if it is one, and a scope to evaluate it in."""
        scope, condition = self.scope(access), self.condition(access)
        if not isinstance(condition, Column):
            return access.guard, scope
        name = condition.name
        return Field(name), replace(scope, fields={**scope.fields, name: (name, BOOLEAN)})

    def _truth(self, parts: Parts, base: Parts, chain: RowChain, scope: Scope) -> Expr:
        """Return the truth of a condition whose first parts are already a column."""
        if not base:
            return truth_of(_all_of(parts), scope)
        column = chain.conditions[base]
        if base == parts:
            return Column(column, type=BOOLEAN)
        fields = {**scope.fields, column: (column, BOOLEAN)}
        rest = (Field(column), *parts[len(base) :])
        return truth_of(_all_of(rest), replace(scope, fields=fields))

    # --- where accesses take place ---------------------------------------------------------

    def home(self, access: Access, reads: frozenset[int] | None = None) -> RowChain | None:
        """Return the chain of an access; None if it cannot begin yet.

        `reads` are the reads that it waits for, if not just its own.
        """
        if access.block is None:
            return self.main
        needed = self._all_reads(waits_for(access) if reads is None else reads)
        start = self.main.point_with(needed & self._on_main)
        return None if start is None else self._loop(access, start)

    def point(self, access: Access, reads: frozenset[int] | None = None) -> ChainPoint | None:
        """Return the point at which an access takes place; None if there is none yet."""
        chain = self.home(access, reads)
        if chain is None:
            return None
        number = chain.point_with(waits_for(access) if reads is None else reads)
        return None if number is None else chain.points[number]

    def pending(self, access: Access) -> list[GetAccess]:
        """Return the reads of its own chain that an access still waits for, in order."""
        chain = self.home(access)
        if chain is None:
            return []
        needed = self._all_reads(waits_for(access)) & self._reads.keys()
        inner = {o for o in needed if self._reads[o].block == chain.block}
        return [self._reads[o] for o in sorted(inner - chain.points[-1].answered)]

    def is_on_main(self, read: GetAccess) -> bool:
        """Tell whether a read is answered on the main chain."""
        return read.order in self._on_main

    def _all_reads(self, reads: frozenset[int]) -> frozenset[int]:
        """Return these reads, and what those of them in loops wait for."""
        all_reads = set(reads)
        stack = list(all_reads)
        while stack:
            order = stack.pop()
            if order not in self._reads:  # a key part that a unit computes
                continue
            read = self._reads[order]
            new = self._waits[read.order] - all_reads if not self.is_on_main(read) else frozenset()
            all_reads |= new
            stack += new
        return frozenset(all_reads)

    def _loop(self, access: Access, start: int) -> RowChain:
        block = access.block
        assert block is not None and access.over is not None
        chain = self._loops.get((block, start))
        if chain is None:
            chain = self._loops[block, start] = RowChain(block)
            begin = self.main.points[start]
            inside = self._ring_reads(block) & begin.answered
            rows = self._ring_elements(block, begin, inside) or self._elements(access, begin)
            gathered = {o for o, r in self._reads.items() if r.block == block} - self._on_main
            answered = begin.answered - gathered
            self.add_point(chain, rows, answered, conditions=self.main.conditions)
        return chain

    def _elements(self, access: Access, begin: ChainPoint) -> Node:
        """Return a row for each element of a loop's list."""
        block = access.block
        assert block is not None and access.over is not None
        element = self._scope.elements[block][0]
        guard = self.loop_guard(block, begin.answered)
        over = column_of(access.over, self.scope(access), guard=guard)
        return Explode(with_columns(begin.node, [(element, over)]), element)

    def _ring_elements(self, block: int, begin: ChainPoint, inside: frozenset[int]) -> Node | None:
        """Return a loop's elements with the answers that a ring of the main chain has for them."""
        column = f"$b{block}"
        if not inside:
            return None
        rows = Explode(begin.node, column)
        whole = Column(column, type=schema(rows).type_of(column))
        names = [self._scope.elements[block], *(self._scope.answers[o] for o in sorted(inside))]
        fields = [
            (name, Call("field", (whole, Literal(name, type=STRING)), type=dtype))
            for name, dtype in names
        ]
        return with_columns(rows, fields)

    def _ring_reads(self, block: int) -> frozenset[int]:
        return frozenset(o for o in self._on_main if self._reads[o].block == block)

    def loop_guard(self, block: int, answered: frozenset[int]) -> Tree | None:
        """Return the condition of a loop, as far as these reads decide it.

        It is the first parts that the conditions of all its accesses share.
        """
        inside = [a.guard for a in self.flow.accesses if a.block == block]
        parts = [() if guard is None else conjuncts_of(guard) for guard in inside]
        common = []
        for together in zip(*parts, strict=False):
            first = together[0]
            if any(part != first for part in together) or has_element(first):
                break
            if not reads_in((first,)) <= answered:
                break
            common.append(first)
        return conjunction(common)

    # --- growing -----------------------------------------------------------------------------

    def add_point(
        self,
        chain: RowChain,
        node: Node,
        answered: frozenset[int],
        *,
        conditions: Mapping[Parts, str] | None = None,
    ) -> None:
        """Add a point: rows with more answered reads; decided conditions become columns there."""
        names = set(schema(node).names)
        chain.conditions |= {
            parts: name for parts, name in (conditions or {}).items() if name in names
        }
        guards = {
            access.order: access
            for access in self._needed
            if access.block == chain.block
            and access.guard is not None
            # Reads have no effect: one whose key cannot fail is answered for every row.
            and not (isinstance(access, GetAccess) and is_plain(access.key))
        }
        guarded = [(order, a.guard) for order, a in guards.items() if a.guard is not None]
        for layer in new_conditions(guarded, chain.conditions, answered):
            columns = []
            for new in layer:
                scope = self.scope(guards[int(new.column[2:].partition(".")[0])])
                columns.append((new.column, self._truth(new.parts, new.base, chain, scope)))
            chain.conditions |= {new.parts: new.column for new in layer}
            node = with_columns(node, columns)
        chain.points.append(ChainPoint(node, answered))


def _all_of(parts: Parts) -> Tree:
    whole = conjunction(parts)
    assert whole is not None
    return whole


def has_element(tree: Tree) -> bool:
    """Tell whether a value depends on the element of a loop."""
    return any(isinstance(part, Element) for part in walk_tree(tree))


def scope_of(
    accesses: Sequence[Access],
    rows: Schema,
    states: Mapping[str, State],
    files: Mapping[str, str],
    vectorise: bool,
) -> Scope:
    """Return the scope of the values of these accesses, over rows of an event type."""
    scope = Scope(
        fields={name: (name, dtype) for name, dtype in rows.columns},
        answers={
            a.order: (f"$r{a.order}", states[a.state].type)
            for a in accesses
            if isinstance(a, GetAccess)
        },
        time=rows.time,
        vectorise=vectorise,
    )
    elements: dict[int, tuple[str, pa.DataType]] = {}
    for access, block, over in _loops(accesses):
        if block in elements:
            continue
        inside = in_handler(scope, access.handler, files)
        dtype = type_of(over, inside)
        if dtype is None or not pa.types.is_list(dtype):
            what = "unknown type" if dtype is None else f"type {type_name(dtype)}"
            raise PlanError(
                f"{at(inside, access.line)}: the loop goes over a value of {what}",
                hint=f"loop over a LIST, or use app.serial({access.handler})",
            )
        elements[block] = (f"$x{block}", dtype.value_type)
    return replace(scope, elements=elements)


def _loops(accesses: Iterable[Access]) -> Iterator[tuple[Access, int, Tree]]:
    """Yield the block and list of each loop that an access is in, or whose elements it uses."""
    for access in accesses:
        if access.block is not None:
            assert access.over is not None
            yield access, access.block, access.over
        for block, over in access.lists:
            yield access, block, over


def in_handler(scope: Scope, handler: str, files: Mapping[str, str]) -> Scope:
    """Return the scope with a handler for messages to name."""
    return replace(scope, handler=handler, where=files.get(handler, ""))


Parts = tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class KnownParts:
    """A planned column: the first parts of a condition, of which `base` are already a column."""

    column: str
    parts: Parts
    base: Parts


def known_prefix(parts: Parts, columns: Mapping[Parts, str]) -> Parts:
    """Return the longest beginning of a condition that is a column."""
    lengths = range(len(parts), 0, -1)
    return next((parts[:n] for n in lengths if parts[:n] in columns), ())


def new_conditions(
    guards: Sequence[tuple[int, Tree]], columns: Mapping[Parts, str], answered: frozenset[int]
) -> list[list[KnownParts]]:
    """Return the columns that conditions need at a point, in layers: later ones use earlier ones.

    `guards` come with the orders of their accesses, which name the columns.
    """
    orders: dict[Parts, int] = {}
    for order, guard in guards:
        parts = conjuncts_of(guard)
        count = next(
            (n for n, part in enumerate(parts) if not reads_in((part,)) <= answered), len(parts)
        )
        if count:
            orders.setdefault(parts[:count], order)
    needed = dict(orders)
    for parts, order in orders.items():
        for n in range(1, len(parts)):
            # Two conditions differ from here on: their shared part is a column of its own.
            followers = {other[n : n + 1] for other in orders if other[:n] == parts[:n]}
            if len(followers) > 1:
                needed.setdefault(parts[:n], order)
    layers: list[list[KnownParts]] = []
    layer_of: dict[Parts, int] = {}
    named: dict[Parts, str] = dict(columns)
    for parts in sorted(needed, key=lambda p: (len(p), needed[p])):
        if parts in named:
            continue
        base = known_prefix(parts, named)
        layer = layer_of.get(base, -1) + 1
        order = needed[parts]
        name = f"$g{order}.{len(parts)}"
        if layer == len(layers):
            layers.append([])
        layers[layer].append(KnownParts(name, parts, base))
        layer_of[parts], named[parts] = layer, name
    return layers
