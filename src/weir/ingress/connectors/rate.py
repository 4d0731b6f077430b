"""`rate://N?rows=M&start=T&keys=K` generates N rows a second, for trials and demonstrations.

Row i is a function of i. Its time is i / N seconds after T (in ticks; 1970 by default). A column
called `value` holds i, other numbers are spread over K values, and texts are made of such numbers.
`rows` is the number of rows; without it there is no end. A live run gives each row when its time
comes, other runs give all at once. Invalid options are rejected before the run begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pyarrow as pa

from weir.errors import PlanError
from weir.events.batch import LATEST, Int64s, times
from weir.events.hashing import hash_rows
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, type_name
from weir.files.chunks import CHUNK_ROWS, Chunk
from weir.ingress.connectors.connector import Connector
from weir.ingress.source_signals import Accept, Accepted, Finding, Finished, Quiet, Rows
from weir.plan.operators import Source

_RATE = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)
_SLOWEST, _FASTEST = 1e-6, 1e12
_INT_VALUES = 2**31
"""The number of INT values that are not negative."""
_OPTIONS = {"rows": (0, 2**53), "start": (0, LATEST), "keys": (1, _INT_VALUES)}
"""The options of a URL, with the least and the largest number for each."""
_SPREAD = (BIGINT, INT, DOUBLE, BOOLEAN, STRING)
_COUNTED = (*_SPREAD, TIMESTAMP)
"""The types of columns that can be generated, and of a column called `value`."""
_STEP, _LONGEST_STEP, _STEP_ROWS = 0.001, 0.01, 20
"""Rows come in steps, in which about `_STEP_ROWS` rows become due; these are the shortest and the
longest step, in seconds. Each step costs a live host the same, however few rows it brings."""


@dataclass(frozen=True, slots=True)
class GeneratedRows(Connector):
    """Rows that are a function of their number; without `rows` they have no end."""

    source: Source
    name: str
    per_second: float
    rows: int | None
    start: int
    keys: int
    has_log = False
    has_free_rows = True
    local_files = None

    @property
    def size(self) -> int:
        return self.rows or 0

    @property
    def has_end(self) -> bool:
        return self.rows is not None

    def rooted(self, root: str) -> Self:
        return self

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        if self.rows is None:
            raise PlanError(f"'{self.name}' has no end", hint="give ?rows=, or run it live")
        for first in range(start, self.rows, size):
            yield self.chunk(first, min(first + size, self.rows))

    def open(self, state: bytes | None, start: int) -> RateReading:
        return RateReading(self, start)

    def chunk(self, first: int, stop: int) -> Chunk:
        numbers = np.arange(first, stop)
        columns = {
            name: self._column(name, dtype, index, numbers)
            for index, (name, dtype) in enumerate(self.source.declared)
        }
        rows = pa.RecordBatch.from_pydict(columns)
        return Chunk(rows, numbers, stop, read=stop)

    def _column(self, name: str, dtype: pa.DataType, index: int, numbers: Int64s) -> pa.Array:
        if name == self.source.options.vs:
            ticks = self.start + (numbers * (1e6 / self.per_second)).astype(np.int64)
            return times(ticks, dtype)
        if name == "value":
            return pa.array(numbers).cast(dtype)
        word, _ = hash_rows(
            [pa.array(numbers), pa.array(np.full(len(numbers), index))], len(numbers)
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
                raise AssertionError(f"open_rate rejects {type_name(dtype)}")


class RateReading:
    """Gives rows as they become due by the clock, starting at the first poll."""

    def __init__(self, of: GeneratedRows, start: int) -> None:
        self._of, self._start = of, start
        self.offset = start
        self._began: float | None = None
        self._step = min(max(_STEP_ROWS / of.per_second, _STEP), _LONGEST_STEP)

    def poll(self, most: int, until: int | None, now: float) -> Finding:
        if self._began is None:
            self._began = now
        last = self._of.rows
        if last is not None and self.offset >= last:
            return Finished()
        steps = int((now - self._began) / self._step)
        due = self._start + int(steps * self._step * self._of.per_second)
        stop = min(due, self.offset + most) if last is None else min(due, self.offset + most, last)
        if stop <= self.offset:
            next_step = self._began + (steps + 1) * self._step
            return Quiet(self.offset, max(next_step - now, 0.0))
        first, self.offset = self.offset, stop
        return Rows(self._of.chunk(first, stop))

    def accept(self, accept: Accept) -> Accepted:
        raise AssertionError("generated rows have no log")

    def close(self) -> None:
        pass


def open_rate(source: Source) -> GeneratedRows:
    """Make the partition of a rate:// URL."""
    per_second, query = _rate(source.path)
    options = _options(source.path, query)
    rows, start = options.get("rows"), options.get("start", 0)
    if start + (rows or 0) * (1e6 / per_second) > LATEST:
        hint = "use fewer rows, more rows a second, or an earlier start"
        raise PlanError(f"'{source.path}' goes on beyond the largest time", hint=hint)
    if source.options.unit is not None:
        raise PlanError("rate:// makes its times itself", hint="leave `unit` out")
    if source.options.ve is not None:
        raise PlanError("rate:// rows have no end of their own", hint="use lifetime = …")
    _check_columns(source, rows)
    return GeneratedRows(
        source=source,
        name=source.path,
        per_second=per_second,
        rows=rows,
        start=start,
        keys=options.get("keys", 1000),
    )


def _rate(path: str) -> tuple[float, str]:
    """Read the rows per second and the options from a URL; raise PlanError if it is invalid."""
    hint = f"as in rate://1000?rows=50000&keys=100, from {_SLOWEST:g} to {_FASTEST:g} a second"
    wrong = PlanError(f"invalid rate '{path}'", hint=hint)
    try:
        url = urlsplit(path)
    except ValueError:
        raise wrong from None
    if not _RATE.fullmatch(url.netloc) or url.path.strip("/") or url.fragment:
        raise wrong
    per_second = float(url.netloc)
    if not _SLOWEST <= per_second <= _FASTEST:
        raise wrong
    return per_second, url.query


def _options(path: str, query: str) -> dict[str, int]:
    options: dict[str, int] = {}
    for key, text in parse_qsl(query, keep_blank_values=True):
        least, most = _OPTIONS.get(key, (0, -1))
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if key in options or not is_number or not least <= int(text) <= most:
            options_text = ", ".join(
                f"{name} from {low} to {high}" for name, (low, high) in _OPTIONS.items()
            )
            hint = f"rate:// knows {options_text}, each once"
            raise PlanError(f"'{path}': invalid option {key}={text}", hint=hint)
        options[key] = int(text)
    return options


def _check_columns(source: Source, rows: int | None) -> None:
    """Raise PlanError for columns that cannot be generated."""
    for name, dtype in source.declared:
        if name == source.options.vs:
            assert dtype in (BIGINT, TIMESTAMP)
            continue
        types = _COUNTED if name == "value" else _SPREAD
        if dtype not in types:
            hint = f"it makes {', '.join(map(type_name, types))}"
            raise PlanError(f"rate:// makes no {type_name(dtype)} for `{name}`", hint=hint)
        if name == "value" and dtype == INT and (rows is None or rows > _INT_VALUES):
            hint = f"make it BIGINT, or give ?rows= of at most {_INT_VALUES}"
            raise PlanError("`value` counts rows beyond what an INT holds", hint=hint)
