"""Lists the constructs that handlers in columns may use.

Everything here changes nothing and always gives the same result for the same values. If there is no
column expression for it (`column_values.py`), CPython computes it. So its meaning is always
CPython's. A test compares each entry with CPython (`test_column_constructs.py`).

A *plain* value is one of Python's own immutable values, or a list, dict or set of them. None of the
user's code runs when it is compared, added or shown.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa

from weir.events.types import BINARY, BOOLEAN, DOUBLE, STRING, is_integer
from weir.plan.usercode.functions import ScalarFunction

_PLAIN = frozenset(
    (
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(None),
        type(Ellipsis),
        range,
        Decimal,
        re.Pattern,
        re.RegexFlag,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        datetime.timezone,
    )
)
_CONTAINERS = frozenset((tuple, list, set, frozenset))

LISTED_FUNCTIONS: frozenset[Callable[..., object]] = frozenset(
    (
        abs,
        all,
        any,
        ascii,
        bin,
        bool,
        chr,
        dict,
        divmod,
        float,
        format,
        frozenset,
        hex,
        int,
        isinstance,
        len,
        list,
        max,
        min,
        oct,
        ord,
        pow,
        repr,
        round,
        set,
        sorted,
        str,
        sum,
        tuple,
        *(f for f in vars(math).values() if callable(f)),
        re.search,
        re.match,
        re.fullmatch,
        re.sub,
        re.split,
        re.findall,
    )
)
"""Functions of plain values; those of `re` only with a constant pattern."""

_STR = """capitalize casefold center count encode endswith expandtabs find format index isalnum
isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper
join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust rpartition
rsplit rstrip split splitlines startswith strip swapcase title translate upper zfill"""
_BYTES = "count decode endswith find hex index startswith"
LISTED_METHODS: Mapping[str, frozenset[str]] = {
    "str": frozenset(_STR.split()),
    "bytes": frozenset(_BYTES.split()),
    "int": frozenset(["bit_count", "bit_length"]),
    "float": frozenset(["as_integer_ratio", "hex", "is_integer"]),
    "bool": frozenset(["bit_count", "bit_length"]),
    "list": frozenset(["copy", "count", "index"]),
    "dict": frozenset(["copy", "get"]),
    "re.Pattern": frozenset(["findall", "fullmatch", "match", "search", "split", "sub"]),
}
"""Methods by the Python type of the value."""


def is_plain_constant(value: object) -> bool:
    """Tell whether a constant of the program is plain.

    >>> is_plain_constant(("a", 1)), is_plain_constant([object()])
    (True, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind in _CONTAINERS:
        return all(map(is_plain_constant, value))  # type: ignore[call-overload]
    if kind is dict:
        return all(map(is_plain_constant, value)) and all(  # type: ignore[call-overload]
            map(is_plain_constant, value.values())  # type: ignore[attr-defined]
        )
    return kind is type and value in _PLAIN | _CONTAINERS | {dict}


def is_listed_function(function: object) -> bool:
    """Tell whether a function is on the list."""
    if isinstance(function, ScalarFunction):
        return True  # `@weir.udf` declares it pure
    try:
        return function in LISTED_FUNCTIONS
    except TypeError:  # not hashable
        return False


def is_listed_method(dtype: pa.DataType | None, constant: object, name: str) -> bool:
    """Tell whether a method of a constant, or of a value of this type, is on the list."""
    if isinstance(constant, re.Pattern):
        return name in LISTED_METHODS["re.Pattern"]
    kind = _python_kind(dtype)
    if kind is None:
        # The type is unknown: the method must be listed for every type that has it.
        having = [kind for kind in LISTED_METHODS if hasattr(_KINDS[kind], name)]
        return bool(having) and all(name in LISTED_METHODS[kind] for kind in having)
    return name in LISTED_METHODS[kind]


_KINDS = {
    "str": str,
    "bytes": bytes,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "re.Pattern": re.Pattern,
}


def _python_kind(dtype: pa.DataType | None) -> str | None:
    if dtype is None:
        return None
    if pa.types.is_list(dtype):
        return "list"
    if pa.types.is_struct(dtype):
        return "dict"
    if is_integer(dtype):
        return "int"
    return {STRING: "str", BINARY: "bytes", DOUBLE: "float", BOOLEAN: "bool"}.get(dtype)
