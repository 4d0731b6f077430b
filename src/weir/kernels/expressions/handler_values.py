"""Settles values that handler code merges or emits: checks them, and copies mutable ones.

Handlers are Python, so every Python number is accepted as one: a bool is an int. Otherwise, a value
is converted as all values of user code are (`user_values.py`): exactly, or not at all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa

from weir.events.types import BIGINT, DOUBLE, INT
from weir.kernels.expressions.user_values import ConvertValue, settler


@lru_cache(maxsize=1024)
def settled_value(dtype: pa.DataType) -> ConvertValue:
    """Return a function that settles a value of this type, or raises `Misfit`.

    >>> settled_value(pa.int64())(True), settled_value(pa.float64())(2)
    (1, 2.0)
    """
    settle = settler(dtype)
    if dtype not in (BIGINT, INT, DOUBLE):
        return settle

    def run(value: Any) -> Any:
        return settle(int(value) if value is True or value is False else value)

    return run
