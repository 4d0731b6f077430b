"""STREAM declares an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import pyarrow as pa

from weir.events.types import TIMESTAMP
from weir.plan.durations import duration_text
from weir.plan.operators.abstract import Operator
from weir.plan.operators.facts import (
    NO_STEP,
    HorizonStep,
    Meet,
    Meeting,
    Names,
    Predicates,
    Pushed,
    none_sinks,
)
from weir.plan.operators.node_class import node_class
from weir.plan.operators.spans import LONGEST_LIFETIME, NONE, TICK, Span
from weir.plan.schema import Schema
from weir.plan.sizes import size_text

if TYPE_CHECKING:
    from weir.plan.operators import Node

MAX_RECORD, LARGEST_RECORD = 16 << 20, 1 << 30
"""The default and the largest limit for a record of a text source, in bytes.

Arrow counts the bytes of a column's texts in 31 bits."""

UNITS_OF_TIME = ("s", "ms", "us", "ns", "tick")
LATER = {"later": True}
"""Marks a field that was added later; None means the same as in plans without it."""

SOURCE_ORIGIN_DEPTH = 2
"""How many columns the origin of a source's row has: source with partition, and offset."""

PARTITION_BITS = 40
"""How many bits the partition has in the first origin column.

The column is source.index << PARTITION_BITS | partition."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The WITH options of STREAM; durations are in ticks."""

    vs: str
    ve: str | None = None
    lifetime: int | None = None
    delay: int = 0
    late: Literal["fail", "drop", "adjust"] = "fail"
    idle: int | None = None
    bad: Literal["fail", "skip"] = "fail"
    max_record: int = MAX_RECORD
    """The largest record, in bytes."""
    unit: Literal["s", "ms", "us", "ns", "tick"] | None = field(default=None, metadata=LATER)
    """What the numbers of a BIGINT time count since 1970; this makes it a TIMESTAMP.

    With `tick`, or without a unit, they are plain ticks."""

    @property
    def is_calendar(self) -> bool:
        """Tell whether the unit converts numbers to TIMESTAMPs."""
        return self.unit not in (None, "tick")

    def __str__(self) -> str:
        parts = [f"vs = {self.vs}"]
        if self.ve is not None:
            parts.append(f"ve = {self.ve}")
        elif self.lifetime is not None:
            parts.append(f"lifetime = {duration_text(self.lifetime)}")
        if self.delay:
            parts.append(f"delay = {duration_text(self.delay)}")
        if self.late != "fail":
            parts.append(f"late = '{self.late}'")
        if self.idle is not None:
            parts.append(f"idle = {duration_text(self.idle)}")
        if self.bad != "fail":
            parts.append(f"bad = '{self.bad}'")
        if self.max_record != MAX_RECORD:
            parts.append(f"max_record = '{size_text(self.max_record)}'")
        if self.unit is not None:
            parts.append(f"unit = '{self.unit}'")
        return f"({', '.join(parts)})"


@node_class
class Source(Operator):
    """A declared input.

    `declared` are the columns of the data; a column called `vs` or `ve` is used as the time and is
    not in the payload. `index` is its number among the program's STREAM statements, from 0: the
    first part of every origin. A DataFrame is in `data`, only in this process, and its rows have no
    origins.
    """

    name: str
    declared: tuple[tuple[str, pa.DataType], ...]
    path: str
    options: SourceOptions
    index: int
    has_origins: bool = True
    data: object | None = field(default=None, compare=False, repr=False)

    stateless = True
    by_position = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def over(self, inputs: Sequence[Node]) -> Self:
        return self

    def schema_over(self, below: Sequence[Schema]) -> Schema:
        payload = tuple((n, t) for n, t in self.declared if n not in ("vs", "ve"))
        time = dict(self.declared)[self.options.vs]
        return Schema(payload, TIMESTAMP if self.options.is_calendar else time)

    def passed_columns(self, port: int) -> Mapping[str, str]:
        return {}

    def meeting(self) -> Meeting:
        return Meet.NEVER

    def sees_order(self, port: int) -> bool:
        return False

    def origin_depth(self, below: Sequence[int]) -> int:
        return SOURCE_ORIGIN_DEPTH if self.has_origins else 0

    def longest_lifetime(self, lives: Sequence[Span]) -> Span:
        if self.options.ve is not None:
            return LONGEST_LIFETIME
        return TICK if self.options.lifetime is None else Span(0, self.options.lifetime)

    def longest_hold(self, lives: Sequence[Span]) -> Span:
        return NONE

    def horizon_step(self, lives: Sequence[Span]) -> HorizonStep:
        return NO_STEP

    def columns_read(self, wanted: Names) -> tuple[Names, ...]:
        return ()

    def slimmed(self, wanted: Names) -> Self:
        return self

    def pushed(self, arriving: Predicates, lives: Sequence[Span]) -> Pushed:
        return none_sinks(self, arriving)

    def kept(self) -> str:
        return ""

    def detail(self) -> str:
        return f"{self.name} FROM '{self.path}' {self.options}"
