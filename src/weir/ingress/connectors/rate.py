"""`rate://N?rows=M&start=T&keys=K`: N generated rows a second, for trials and demonstrations.

Row i is a function of i: its time is T + i / N seconds (from the epoch unless T ticks are given), a
column called `value` holds i, other numbers are spread over K values, texts are made of such
numbers. `rows` is how many there are (without it there is no end). A live run hands the rows out as
the clock goes, others at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pyarrow as pa

from weir.errors import PlanError
from weir.events.batch import Int64s, times
from weir.events.hashing import hash_rows
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, type_name
from weir.files.chunks import CHUNK_ROWS, Chunk
from weir.ingress.ingress_log import IngressLog
from weir.plan.operators import Source

_OPTIONS = ("rows", "start", "keys")
_STEP = 0.001
"""Seconds between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class GeneratedRows:
    """See the module's docstring."""

    source: Source
    name: str
    per_second: float
    rows: int | None
    start: int
    keys: int

    @property
    def size(self) -> int:
        return self.rows or 0

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        if self.rows is None:
            raise PlanError(f"'{self.name}' has no end", hint="give ?rows=, or run it live")
        for first in range(start, self.rows, size):
            yield self._chunk(first, min(first + size, self.rows))

    def follow(
        self, size: int, start: int, log: IngressLog, stopped: Callable[[], bool]
    ) -> Iterator[Chunk]:
        began, first = time.monotonic(), start
        last = self.rows if self.rows is not None else 2**62
        while first < last and not stopped():
            due = start + int((time.monotonic() - began) * self.per_second)
            stop = min(due, last, first + size)
            if stop <= first:
                time.sleep(_STEP)
                continue
            yield self._chunk(first, stop)
            first = stop

    def _chunk(self, first: int, stop: int) -> Chunk:
        numbers = np.arange(first, stop)
        columns = {
            name: self._column(name, dtype, place, numbers)
            for place, (name, dtype) in enumerate(self.source.declared)
        }
        rows = pa.RecordBatch.from_pydict(columns)
        return Chunk(rows, numbers, stop, read=stop)

    def _column(self, name: str, dtype: pa.DataType, place: int, numbers: Int64s) -> pa.Array:
        if name == self.source.options.vs:
            ticks = self.start + (numbers * (1e6 / self.per_second)).astype(np.int64)
            return times(ticks, dtype)
        if name == "value":
            return pa.array(numbers).cast(dtype)
        word, _ = hash_rows(
            [pa.array(numbers), pa.array(np.full(len(numbers), place))], len(numbers)
        )
        spread = pa.array((word % np.uint64(self.keys)).astype(np.int64))
        match dtype:
            case _ if dtype in (BIGINT, INT):
                return spread.cast(dtype)
            case _ if dtype == DOUBLE:
                return pa.array((word >> np.uint64(11)).astype(np.float64) / 2.0**53)
            case _ if dtype == BOOLEAN:
                return pa.array((word & np.uint64(1)).astype(np.bool_))
            case _ if dtype == STRING:
                return pa.compute.binary_join_element_wise(name, spread.cast(STRING), "-")
            case _:
                raise PlanError(f"rate:// makes no {type_name(dtype)} ({name})")


def open_rate(source: Source) -> GeneratedRows:
    """The partition of a rate:// URL."""
    url = urlsplit(source.path)
    try:
        per_second = float(url.netloc)
        given = {
            key: int(value) for key, value in parse_qsl(url.query, strict_parsing=bool(url.query))
        }
    except ValueError:
        raise _wrong(source) from None
    if per_second <= 0 or not set(given) <= set(_OPTIONS) or min(given.values(), default=1) < 0:
        raise _wrong(source)
    ends = source.options.ve
    if ends is not None:
        raise PlanError("rate:// rows have no end of their own", hint="use lifetime = …")
    dtype = dict(source.declared)[source.options.vs]
    assert dtype in (BIGINT, TIMESTAMP)
    return GeneratedRows(
        source, source.path, per_second, given.get("rows"), given.get("start", 0),
        max(given.get("keys", 1000), 1),
    )  # fmt: skip


def _wrong(source: Source) -> PlanError:
    hint = "as in rate://1000?rows=50000&keys=100"
    return PlanError(f"'{source.path}' is no rate", hint=hint)
