"""Lays rows out as a text table for a terminal, with values written as in JSON lines."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from weir.files.sinks import json_values
from weir.wording import in_one_line

WIDEST = 40
"""The largest number of characters shown of a value."""


def text_lines(table: pa.Table) -> list[str]:
    """Return a line of names, then a line for each row. Numbers are aligned right, the rest left.

    >>> print("\\n".join(text_lines(pa.table({"n": [7, 12], "k": ["x", None]}))))
     n  k
     7  x
    12  NULL
    """
    numbers = [_is_number(field.type) for field in table.schema]
    columns = [[in_one_line(n), *cells(table.column(i))] for i, n in enumerate(table.column_names)]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]


def cells(column: pa.ChunkedArray) -> list[str]:
    """Return the values of a column as short texts, each on one line."""
    return [_shown(value) for chunk in column.chunks for value in json_values(chunk)]


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = in_one_line(text)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype))
