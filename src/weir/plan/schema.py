"""Schemas: the columns of nodes' rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Schema:
    """The payload columns in order, and the type of the time columns (BIGINT or TIMESTAMP)."""

    columns: tuple[tuple[str, pa.DataType], ...]
    time: pa.DataType

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return tuple(dtype for _, dtype in self.columns)

    def type_of(self, name: str) -> pa.DataType:
        if name in ("vs", "ve"):
            return self.time
        return dict(self.columns)[name]

    def index(self, name: str) -> int:
        return self.names.index(name)


def common_time(schemas: Sequence[Schema]) -> pa.DataType:
    """Return the type of the time if rows of several inputs are combined.

    It is TIMESTAMP only if every input's is, since a plain tick count has no calendar.
    """
    return schemas[0].time if all(s.time == schemas[0].time for s in schemas) else pa.int64()
