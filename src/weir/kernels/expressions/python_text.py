"""Text functions on columns, with the results that CPython gives.

The contract is that of `python_numbers.py`. Where Python and Arrow agree on ASCII texts only, Arrow
computes those, and Python's own method computes the others one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.events.hashing import binary_buffers
from weir.events.python_lists import python_list
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, STRING
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Datum,
    Mask,
    Site,
    as_array,
    assemble,
    length_of,
    plain,
)
from weir.kernels.expressions.python_numbers import asks_python, equal, present, refuse_none
from weir.kernels.expressions.substrings import contains, split

_SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""The characters for which `str.isspace` is true."""
_TRIMS = {"strip": pc.utf8_trim, "lstrip": pc.utf8_ltrim, "rstrip": pc.utf8_rtrim}
_LAST = 1 << 40


def ascii_rows(column: pa.Array) -> Mask | None:
    """Return the mask of the texts that are all ASCII, or None if all texts are."""
    return None if all_ascii(column) else np.asarray(pc.string_is_ascii(column))


def all_ascii(column: pa.Array) -> bool:
    offsets, data = binary_buffers(column)
    used = data[offsets[0] : offsets[-1]]
    return not len(used) or bool(used.max() < 128)


def by_ascii(
    column: pa.Array,
    fast: ArrayFunction,
    slow: Callable[[str], object],
    dtype: pa.DataType,
) -> pa.Array:
    """Compute ASCII texts by `fast`, and the others one by one by `slow`."""
    fits = ascii_rows(column)
    if fits is None:
        return fast(column).cast(dtype)
    rows, others = np.flatnonzero(fits), np.flatnonzero(~fits)
    values = [slow(text) for text in python_list(column.take(pa.array(others)))]
    parts = [(rows, fast(column.take(pa.array(rows)))), (others, pa.array(values, dtype))]
    return assemble(len(column), dtype, parts)


def _method(name: str, fast: ArrayFunction, dtype: pa.DataType) -> Builder:
    """Make a builder for a method of str without arguments."""
    slow: Callable[[str], object] = getattr(str, name)
    return plain(present(lambda column: by_ascii(column, fast, slow, dtype)))


def _trim(name: str) -> Builder:
    trim = _TRIMS[name]

    def build(site: Site) -> ArrayFunction:
        characters = site.constant(1) if len(site.constants) == 2 else _SPACES
        if not characters:
            return present(lambda column, *_: column)
        return present(lambda column, *_: trim(column, characters=characters))

    return build


def _constant_text(function: ArrayFunction) -> Builder:
    """Make a builder for a function of a column and a literal text."""

    def build(site: Site) -> ArrayFunction:
        text = site.constant(1)
        return present(lambda column, _: function(column, text))

    return build


def _contains(text: Datum, sought: Datum) -> pa.Array:
    if isinstance(text, pa.Array) and isinstance(sought, pa.Scalar):
        return contains(text, sought.as_py())
    length = length_of((text, sought))
    pairs = zip(
        python_list(as_array(sought, length)), python_list(as_array(text, length)), strict=True
    )
    return pa.array([a in b for a, b in pairs], BOOLEAN)


def _find(column: pa.Array, sought: str) -> pa.Array:
    def slow(text: str) -> int:
        return text.find(sought)

    return by_ascii(column, lambda c: pc.find_substring(c, sought).cast(BIGINT), slow, BIGINT)


def _count(column: pa.Array, sought: str) -> pa.Array:
    if not sought:
        return pc.add(pc.utf8_length(column).cast(BIGINT), 1)
    return pc.count_substring(column, sought).cast(BIGINT)


def _replace(site: Site) -> ArrayFunction:
    old, new = site.constant(1), site.constant(2)
    assert isinstance(old, str) and isinstance(new, str)
    if not old:
        return present(
            lambda column, *_: pa.array([t.replace("", new) for t in python_list(column)], STRING)
        )
    return present(lambda column, *_: pc.replace_substring(column, old, new))


def _slice(site: Site) -> ArrayFunction:
    start = site.constant(1)
    assert isinstance(start, int)
    bound = site.constants[2]
    stop = bound.as_py() if bound is not None else None
    cut = slice(start, stop)

    def fast(column: pa.Array) -> pa.Array:
        return pc.utf8_slice_codeunits(column, start, _LAST if stop is None else stop)

    same_side = (start >= 0 and (stop is None or stop >= start)) or (start < 0 and stop is None)
    if same_side:

        def run(column: pa.Array, *_: Datum) -> pa.Array:
            refuse_none(column)
            return fast(column)

        return run

    def by_python(column: pa.Array, *_: Datum) -> pa.Array:
        refuse_none(column)
        return pa.array([t[cut] for t in python_list(column)], STRING)

    return by_python


def _character(site: Site) -> ArrayFunction:
    index = site.constant(1)
    assert isinstance(index, int)
    least = index + 1 if index >= 0 else -index
    stop = index + 1 if index != -1 else _LAST

    def run(column: pa.Array, _: Datum) -> pa.Array:
        if pc.any(pc.less(pc.utf8_length(column), least)).as_py():
            raise asks_python("index out of range")
        return pc.utf8_slice_codeunits(column, index, stop)

    return present(run)


def _item(site: Site) -> ArrayFunction:
    index = site.constant(1)
    assert isinstance(index, int)

    def run(column: pa.Array, _: Datum) -> pa.Array:
        lengths = np.asarray(pc.list_value_length(column)).astype(np.int64)  # as wide as an index
        at = index if index >= 0 else lengths + index
        if bool((lengths <= at).any()) or bool(np.any(np.asarray(at) < 0)):
            raise asks_python("index out of range")
        starts = np.asarray(column.offsets)[:-1].astype(np.int64)
        return column.values.take(pa.array(starts + at))

    return present(run)


def _in_list(sought: Datum, lists: Datum) -> pa.Array:
    refuse_none(lists)
    length = length_of((sought, lists))
    values, column = as_array(sought, length), as_array(lists, length)
    rows = pc.list_parent_indices(column)
    same = np.asarray(equal(column.flatten(), values.take(rows)))
    is_member = np.zeros(length, dtype=np.bool_)
    is_member[np.asarray(rows)[same]] = True
    return pa.array(is_member)


def _length(site: Site) -> ArrayFunction:
    if site.arg_types[0] != STRING:
        return present(lambda column: pc.list_value_length(column).cast(BIGINT))

    def run(column: pa.Array) -> pa.Array:
        count = pc.binary_length if all_ascii(column) else pc.utf8_length
        return count(column).cast(BIGINT)

    return present(run)


def _str(site: Site) -> ArrayFunction:
    dtype = site.arg_types[0]
    if dtype == STRING:
        return lambda column: pc.fill_null(column, "None")
    if dtype == BIGINT:
        return lambda column: pc.fill_null(column.cast(STRING), "None")
    if dtype == BOOLEAN:
        return lambda column: pc.fill_null(pc.if_else(column, "True", "False"), "None")
    assert dtype == DOUBLE
    return lambda column: pa.array(list(map(str, python_list(column))), STRING)


def _concat(*parts: Datum) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _matches(site: Site) -> ArrayFunction:
    written, source, flags, how, needle = (site.constant(i) for i in range(1, 6))
    assert isinstance(source, str) and isinstance(flags, int) and isinstance(how, str)
    assert isinstance(needle, str)
    finds = getattr(re.compile(source, flags), how)

    def slow(text: str) -> bool:
        return finds(text) is not None

    def fast(column: pa.Array) -> pa.Array:
        if not needle:
            return pc.match_substring_regex(column, written)
        # Every match contains a fixed part. Searching for that is much faster and finds the
        # candidates.
        rows = np.flatnonzero(np.asarray(contains(column, needle)))
        is_match = np.zeros(len(column), dtype=np.bool_)
        is_match[rows] = pc.match_substring_regex(column.take(pa.array(rows)), written)
        return pa.array(is_match)

    return present(lambda column, *_: by_ascii(column, fast, slow, BOOLEAN))


def _field(site: Site) -> ArrayFunction:
    name = site.constant(1)
    return present(lambda column, _: pc.struct_field(column, [name]))


FUNCTIONS: Mapping[str, Builder] = {
    "py_lower": _method("lower", pc.ascii_lower, STRING),
    "py_upper": _method("upper", pc.ascii_upper, STRING),
    "py_casefold": _method("casefold", pc.ascii_lower, STRING),
    "py_isdigit": _method("isdigit", pc.ascii_is_decimal, BOOLEAN),
    "py_isdecimal": _method("isdecimal", pc.ascii_is_decimal, BOOLEAN),
    "py_isnumeric": _method("isnumeric", pc.ascii_is_decimal, BOOLEAN),
    "py_isalpha": _method("isalpha", pc.ascii_is_alpha, BOOLEAN),
    "py_isalnum": _method("isalnum", pc.ascii_is_alnum, BOOLEAN),
    "py_isupper": _method("isupper", pc.ascii_is_upper, BOOLEAN),
    "py_islower": _method("islower", pc.ascii_is_lower, BOOLEAN),
    "py_isspace": _method(
        "isspace", lambda c: pc.match_substring_regex(c, r"\A[\t-\r\x1c- ]+\z"), BOOLEAN
    ),
    "py_isascii": plain(present(pc.string_is_ascii)),
    **{f"py_{name}": _trim(name) for name in _TRIMS},
    "py_startswith": _constant_text(pc.starts_with),
    "py_endswith": _constant_text(pc.ends_with),
    "py_find": _constant_text(_find),
    "py_count": _constant_text(_count),
    "py_split": _constant_text(split),
    "py_replace": _replace,
    "py_contains": plain(present(_contains)),
    "py_slice": _slice,
    "py_character": _character,
    "py_item": _item,
    "py_in_list": plain(_in_list),
    "py_len": _length,
    "py_str": _str,
    "py_concat": plain(present(_concat)),
    "py_matches": _matches,
    "py_field": _field,
}
