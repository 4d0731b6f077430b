"""An aggregation computes one column of a window's result from columns of its rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from weir.errors import Position
from weir.events.types import is_integer
from weir.plan.functions.aggregates import AGGREGATES
from weir.plan.schema import Schema
from weir.plan.usercode.functions import AggregateFunction, FoldingAggregate


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of an `Aggregate` node.

    `function` is the name of a built-in (`functions/aggregates.py`), or `user`, with the user's
    aggregate in `user`. MEDIAN is quantile_cont with params ("0.5",).

    In two phases, the first phase computes `moments` (with params ("squares",) if squares are
    needed): the counts and sums from which sums, means and variances are computed. The second phase
    reads that column; then `of` is the type of the values that the moments are of.
    """

    function: str
    args: tuple[str, ...]
    type: pa.DataType
    filter: str | None = None
    params: tuple[str, ...] = ()
    user: AggregateFunction | None = None
    of: pa.DataType | None = None
    position: Position | None = field(default=None, compare=False, repr=False)
    """Its place in the program."""

    @property
    def sees_order(self) -> bool:
        """Tell whether the order of rows within an instant can change the value."""
        if self.function in AGGREGATES:
            return AGGREGATES[self.function].sees_order
        return self.function == "user"

    @property
    def keeps_values(self) -> bool:
        """Tell whether it needs the values themselves, in addition to a row of sums."""
        if self.function in AGGREGATES:
            return AGGREGATES[self.function].keeps_values
        return self.function == "user" and not self.keeps_state

    @property
    def keeps_state(self) -> bool:
        """Tell whether it is the user's and keeps a state of a declared type instead of values."""
        return isinstance(self.user, FoldingAggregate)

    @property
    def columns_read(self) -> frozenset[str]:
        return frozenset(c for c in (*self.args, self.filter) if c is not None)

    def can_fail(self, below: Schema) -> bool:
        """Tell whether it can fail.

        The value may not fit its type, or the user's code may raise."""
        if self.function == "user":
            return True
        if self.function not in ("sum", "avg"):
            return False
        dtype = self.of or below.type_of(self.args[0])
        return bool(pa.types.is_decimal(dtype)) or (self.function == "sum" and is_integer(dtype))

    def __str__(self) -> str:
        arguments = ", ".join((*self.args, *self.params))
        match self.function:
            case "count_star":
                text = "COUNT(*)"
            case "count_distinct":
                text = f"COUNT(DISTINCT {arguments})"
            case "user" if self.user is not None:
                text = f"{self.user.name}({arguments})"
            case name:
                text = f"{name.upper()}({arguments})"
        return text if self.filter is None else f"{text} FILTER ({self.filter})"


Aggregations = tuple[tuple[str, Aggregation], ...]
"""Aggregates with the names of their columns."""
