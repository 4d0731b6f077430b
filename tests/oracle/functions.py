"""Functions of non-null values, and conversions between types.

The names are those of `weir.plan.functions`; calendar functions and hashes have tests of
their own and are not here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa

from oracle.rows import OracleError, value_key


def convert(value: object, dtype: pa.DataType, *, lenient: bool) -> object:
    """CAST, or TRY_CAST where lenient; the binder's widenings are casts too."""
    try:
        return None if value is None else _converted(value, dtype)
    except (ValueError, OverflowError) as error:
        if lenient:
            return None
        raise OracleError("cast") from error


def _converted(value, dtype: pa.DataType) -> object:
    if pa.types.is_floating(dtype):
        return float(value)
    if pa.types.is_integer(dtype):
        return fitting(int(value), dtype)
    if pa.types.is_decimal(dtype) and isinstance(value, int | Decimal):
        return Decimal(value)
    if pa.types.is_list(dtype):
        return [None if v is None else _converted(v, dtype.value_type) for v in value]
    if pa.types.is_struct(dtype):
        return {
            f.name: None if value[f.name] is None else _converted(value[f.name], f.type)
            for f in dtype
        }
    if pa.types.is_string(dtype) and isinstance(value, int | str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise NotImplementedError(dtype)


def fitting(value: object, dtype: pa.DataType | None) -> object:
    """The value, unless it is an integer too large for its type."""
    if dtype is not None and pa.types.is_integer(dtype) and isinstance(value, int):
        half = 1 << dtype.bit_width - 1
        if not -half <= value < half:
            raise OracleError("overflow")
    return value


def _compared(test: Callable[[tuple, tuple], bool]) -> Callable[[object, object], bool]:
    return lambda a, b: test(value_key(a), value_key(b))


def _divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _floor_divided(a: int, b: int) -> int:
    if b == 0:
        raise OracleError("zero")
    return a // b


def _remainder(a: int, b: int) -> int:
    if b == 0:
        raise OracleError("zero")
    return a % b


def _rounded(value, digits: int = 0) -> object:
    """Half away from zero."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    scale = Fraction(10) ** digits
    units = math.floor(abs(Fraction(value)) * scale + Fraction(1, 2))
    exact = Fraction(units) / scale * (-1 if value < 0 else 1)
    return type(value)(exact.numerator / exact.denominator) if digits else type(value)(exact)


def _like(text: str, pattern: str) -> bool:
    regex = ""
    characters = iter(pattern)
    for c in characters:
        if c == "\\":
            regex += re.escape(next(characters))
        else:
            regex += ".*" if c == "%" else "." if c == "_" else re.escape(c)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else max(len(text) + start, 0) if start < 0 else 0
    return text[begin:] if length is None else text[begin : begin + max(length, 0)]


def _element_at(values: list, place: int) -> object:
    index = place - 1 if place > 0 else len(values) + place
    return values[index] if place and 0 <= index < len(values) else None


def _array_contains(values: list, wanted: object) -> bool | None:
    if value_key(wanted) in map(value_key, values):
        return True
    return None if None in values else False


STRICT: dict[str, Callable[..., object]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divided,
    "floordiv": _floor_divided,
    "mod": _remainder,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: type(a)((a > 0) - (a < 0)),
    "round": _rounded,
    "floor": lambda a: type(a)(math.floor(a)) if math.isfinite(a) else a,
    "ceil": lambda a: type(a)(math.ceil(a)) if math.isfinite(a) else a,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "eq": _compared(lambda a, b: a == b),
    "ne": _compared(lambda a, b: a != b),
    "lt": _compared(lambda a, b: a < b),
    "le": _compared(lambda a, b: a <= b),
    "gt": _compared(lambda a, b: a > b),
    "ge": _compared(lambda a, b: a >= b),
    "not": lambda a: not a,
    "like": _like,
    "length": len,
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
    "reverse": lambda text: text[::-1],
    "concat": lambda *parts: "".join(parts),
    "substring": _substring,
    "replace": str.replace,
    "split": str.split,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda text, part: part in text,
    "array_length": len,
    "array_contains": _array_contains,
    "element_at": _element_at,
    "field": lambda struct, name: struct[name],
}
