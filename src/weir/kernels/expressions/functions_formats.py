"""DATE_FORMAT and STRFTIME, which write times as text by a format, in UTC with English names.

A year before 0000 or after 9999 has a sign, as in ISO 8601. A fraction of a second is cut, not
rounded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.types import STRING
from weir.kernels.expressions.evaluation import ArrayFunction, Builder, Datum, Site
from weir.kernels.expressions.functions_time import calendar_field
from weir.plan.functions.time_formats import TimePart, code_format, letter_format

_MONTHS = pa.array(
    [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ]
)
_DAYS = pa.array(["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"])
_HALVES = pa.array(["AM", "PM"])
_FIELDS = {"day_of_year": "doy"}


def _formatted(site: Site) -> ArrayFunction:
    form, style = str(site.constant(1)), str(site.constant(2))
    parts = letter_format(form) if style == "letters" else code_format(form)

    def run(column: pa.Array, *_: Datum) -> pa.Array:
        texts = [p if isinstance(p, str) else _written(column, p) for p in parts]
        if all(isinstance(text, str) for text in texts):
            constant = pa.repeat("".join(map(str, texts)), len(column))
            return pc.if_else(column.is_valid(), constant, pa.scalar(None, STRING))
        return pc.binary_join_element_wise(*texts, "")

    return run


def _written(column: pa.Array, part: TimePart) -> pa.Array:
    match part.field:
        case "month_name":
            return _named(_MONTHS, pc.subtract(calendar_field("month", column), 1), part.digits)
        case "day_name":
            return _named(_DAYS, calendar_field("dow", column), part.digits)
        case "half":
            return _HALVES.take(pc.divide(calendar_field("hour", column), 12))
        case "half_hour":
            hour = calendar_field("hour", column)
            from_one = pc.add(_within(pc.add(hour, 11), 12), 1)
            return _padded(from_one, part.digits)
        case "short_year":
            return _padded(_within(calendar_field("year", column), 100), part.digits)
        case "year":
            return _year(calendar_field("year", column), part.digits)
        case "fraction":
            ticks = calendar_field("microsecond", column)
            return _padded(pc.divide(ticks, 10 ** (6 - part.digits)), part.digits)
    field = _FIELDS.get(part.field, part.field)
    return _padded(calendar_field(field, column), part.digits)


def _named(names: pa.Array, indexes: pa.Array, letters: int) -> pa.Array:
    full_names = names.take(indexes)
    return pc.utf8_slice_codeunits(full_names, 0, letters) if letters else full_names


def _within(values: pa.Array, size: int) -> pa.Array:
    """Return the remainders of a division that rounds down."""
    filled = np.asarray(pc.fill_null(values, 0)) % size
    return pa.array(filled, mask=np.asarray(values.is_null()))


def _padded(values: pa.Array, digits: int) -> pa.Array:
    return pc.utf8_lpad(values.cast(STRING), digits, "0")


def _year(years: pa.Array, digits: int) -> pa.Array:
    signs = pc.if_else(pc.less(years, 0), "-", pc.if_else(pc.greater(years, 9999), "+", ""))
    return pc.binary_join_element_wise(signs, _padded(pc.abs(years), digits), "")


FUNCTIONS: Mapping[str, Builder] = {"formatted_time": _formatted}
