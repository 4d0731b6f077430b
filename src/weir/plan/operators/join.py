"""Joins pair the rows of two inputs by keys, by a condition or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, assert_never

from weir.plan.expressions import Expr, all_of, columns_of, conjuncts
from weir.plan.functions.failures import can_fail
from weir.plan.operators.abstract import schema
from weir.plan.operators.facts import (
    HorizonStep,
    Meeting,
    Names,
    Predicates,
    Pushed,
    bounded,
    endless,
    last_instant,
    meeting_by,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import Stateful
from weir.plan.operators.spans import NONE, Span
from weir.plan.render import render_part
from weir.plan.schema import Schema, common_time

if TYPE_CHECKING:
    from weir.plan.operators import Node

JoinKind: TypeAlias = Literal[
    "inner", "left", "right", "full", "semi", "anti", "clip", "asof", "left_asof"
]

# Joins where a later predicate on the columns of one side may filter that side instead.
_LEFT_ROWS = ("inner", "left", "semi", "anti", "clip", "asof", "left_asof")
_RIGHT_ROWS = ("inner", "right")
# Joins where a row of one side that fails its part of ON is not needed any more.
_LEFT_ON = ("inner", "right", "semi", "asof")
_RIGHT_ON = ("inner", "left", "semi", "anti", "clip", "asof", "left_asof")


@node_class
class Join(Stateful):
    """Brings together rows of two inputs that are valid at the same time.

    `keys` are pairs of (left column, right column) of equal type; without keys, it is a theta or
    cross join. The two sides have disjoint column names: the builder qualifies them (`A.k`),
    including the inputs' lifetimes (`A.vs`, `A.ve`). `condition` reads both sides' columns, but
    never bare `vs` or `ve`, which are the node's own lifetime.
    """

    left: Node
    right: Node
    kind: JoinKind
    keys: tuple[tuple[str, str], ...]
    condition: Expr | None = None

    by_position = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def over(self, inputs: Sequence[Node]) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        left, right = below
        columns = left.columns if self._shows_left_only else left.columns + right.columns
        return Schema(columns, common_time(below))

    def passed_columns(self, port: int) -> Mapping[str, str]:
        """Return the columns that come from the input.

        Unmatched rows of an outer join have NULL instead."""
        match self.kind:
            case "inner":
                whole = True
            case "left" | "semi" | "anti" | "clip" | "asof" | "left_asof":
                whole = port == 0
            case "right":
                whole = port == 1
            case "full":
                whole = False
            case never:
                assert_never(never)
        return {name: name for name in schema(self.inputs[port]).names} if whole else {}

    def meeting(self) -> Meeting:
        return meeting_by(tuple(a for a, _ in self.keys), tuple(b for _, b in self.keys))

    def sees_order(self, port: int) -> bool:
        return self.kind in ("asof", "left_asof") and port == 1

    # --- time ----------------------------------------------------------------------------

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        left, right = lives
        match self.kind:
            case "inner":
                return min(left, right)
            case "right":
                return right
            case "full":
                return max(left, right)
            case "left" | "semi" | "anti" | "clip" | "asof" | "left_asof":
                return left
        assert_never(self.kind)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        left, right = lives
        match self.kind:
            case "left" | "semi" | "anti" | "clip":
                return left
            case "right":
                return right
            case "full":
                return max(left, right)
            case "inner" | "asof" | "left_asof":
                return NONE
        assert_never(self.kind)

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        left, right = lives
        name, longer = f"{self.kind.upper()} JOIN", max(left, right)
        match self.kind:
            case "asof" | "left_asof":
                return endless(
                    "ASOF JOIN: the newest right row counts, however old it is",
                    "an INNER or LEFT JOIN with right rows whose lifetime the program bounds",
                )
            case "clip":
                # Right rows are used at once and not held.
                return bounded(name, left, lambda life: HorizonStep(0, life))
            case "inner":
                # The older row of a pair counts.
                return bounded(name, longer, lambda life: HorizonStep(last_instant(life)))
            # Pieces begin where a match ends.
            case "left" | "semi" | "anti":
                return bounded(name, longer, lambda life: HorizonStep(life, left.ticks))
            case "right":
                return bounded(name, longer, lambda life: HorizonStep(life, right.ticks))
            case "full":
                return bounded(name, longer, lambda life: HorizonStep(life, life))
        assert_never(self.kind)

    # --- rewrites ------------------------------------------------------------------------

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        reads = wanted if self.condition is None else wanted | columns_of(self.condition)
        left = frozenset(a for a, _ in self.keys) | (reads & _names(self.left))
        right = frozenset(b for _, b in self.keys) | (reads & _names(self.right))
        return left, right

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        on = () if self.condition is None else conjuncts(self.condition)
        if any(can_fail(p) for p in on):
            return none_sinks(self, arriving)
        left, right = _names(self.left), _names(self.right)
        above, left_rows, right_rows = _by_side(
            arriving,
            left if self.kind in _LEFT_ROWS else None,
            right if self.kind in _RIGHT_ROWS else None,
        )
        rest, left_on, right_on = _by_side(
            on,
            left if self.kind in _LEFT_ON else None,
            right if self.kind in _RIGHT_ON else None,
        )
        same = self if rest == on else replace(self, condition=all_of(rest) if rest else None)
        return Pushed(same, above, (left_on + left_rows, right_on + right_rows))

    # --- words ---------------------------------------------------------------------------

    def kept(self) -> str:
        match self.kind:
            case "asof" | "left_asof":
                each = "every key" if self.keys else "all"
                if self.condition is None:
                    return f"the newest right row of {each}, permanently"
                return f"all right rows of {each}, permanently: the condition may reject the newest"
            case "clip":
                return "left rows until they end or are clipped"
            case "inner" | "left" | "right" | "full" | "semi" | "anti":
                return "left and right rows until they end"
        assert_never(self.kind)

    def detail(self) -> str:
        on = [f"{a} = {b}" for a, b in self.keys]
        if self.condition is not None:
            on.append(render_part(self.condition))
        return f"{self.kind.upper().replace('_', ' ')} ON {' AND '.join(on) or 'TRUE'}"

    @property
    def _shows_left_only(self) -> bool:
        return self.kind in ("semi", "anti", "clip")


def _names(node: Node) -> Names:
    return frozenset(schema(node).names)


def _by_side(
    predicates: Predicates, left: Names | None, right: Names | None
) -> tuple[Predicates, Predicates, Predicates]:
    """Split predicates into those that stay, those of the left side and those of the right.

    A side that is None takes none."""
    sides: tuple[list[Expr], list[Expr], list[Expr]] = ([], [], [])
    for predicate in predicates:
        reads = columns_of(predicate)
        side = 0
        if reads and left is not None and reads <= left:
            side = 1
        elif reads and right is not None and reads <= right:
            side = 2
        sides[side].append(predicate)
    return tuple(sides[0]), tuple(sides[1]), tuple(sides[2])
