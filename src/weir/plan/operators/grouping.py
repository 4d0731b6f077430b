"""What both phases of an aggregate share: keys, aggregates and a window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weir.plan.aggregations import Aggregation, Aggregations
from weir.plan.operators.facts import Names
from weir.plan.operators.roles import OneInput, Stateful
from weir.plan.schema import Schema
from weir.plan.windows import Window, window_text


class Grouping(Stateful, OneInput):
    """An operator whose rows are the key columns, followed by the aggregates."""

    keys: tuple[str, ...]
    aggregates: Aggregations
    window: Window
    by_position = False

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        (rows,) = below
        grouped = tuple((k, rows.type_of(k)) for k in self.keys)
        return Schema((*grouped, *((n, a.type) for n, a in self.aggregates)), rows.time)

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {key: key for key in self.keys}

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return (frozenset(self.keys).union(*(a.columns_read for _, a in self.aggregates)),)

    def detail(self) -> str:
        listed = ", ".join(f"{a} AS {n}" for n, a in self.aggregates)
        by = f"BY {', '.join(self.keys)}" if self.keys else ""
        return " ".join(p for p in (listed, by, f"WITH {window_text(self.window)}") if p)

    def kept_panes(self) -> str:
        """Return a text with what is kept of open hopping windows."""
        each = "each key and" if self.keys else "each"
        return f"panes of open windows: one row of sums for {each} pane{self.kept_values()}"

    def kept_values(self) -> str:
        """Return words to append, which say what is kept in addition to a row of sums.

        They name the aggregates that need the values themselves, or a state of their own."""
        valued = self._names(a for _, a in self.aggregates if a.keeps_values)
        stated = self._names(a for _, a in self.aggregates if a.keeps_state)
        words = f", and the values for {valued}" if valued else ""
        return f"{words}, and the states of {stated}" if stated else words

    @staticmethod
    def _names(aggregations: Iterable[Aggregation]) -> str:
        return ", ".join(dict.fromkeys(a.user.name if a.user else a.function for a in aggregations))
