"""Functions of STRING. Characters are Unicode code points; regular expressions are RE2's.

TRIM removes blanks (U+0020) only, as SQL does. SUBSTRING counts from 1, or from the end if the
start is negative; characters outside the text are left out. LPAD and RPAD cut longer texts, and
make texts of at most 16 MiB. LIKE has `%`, `_`, and `\\` as the escape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import PlanError
from weir.events.python_lists import python_list
from weir.events.types import BIGINT, STRING
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    Datum,
    RowFailure,
    Site,
    by_value,
    plain,
)
from weir.kernels.expressions.substrings import contains, split

_LAST = 2**62
_WIDEST = 2**24
"""The most bytes of a text that LPAD or RPAD makes: Arrow crashes on more than memory can hold."""
# A quoted run; an escape; a class (a bracket right after the opening one stands for itself); a
# named group; a plain group; anything else.
_TOKEN = re.compile(
    r"\\Q.*?\\E|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|(?P<group>\(\?P?<\w+>|\((?!\?))|.",
    re.DOTALL,
)


def _length(site: Site) -> ArrayFunction:
    count = pc.utf8_length if site.arg_types[0] == STRING else pc.binary_length
    return lambda column: count(column).cast(BIGINT)


def _trim(function: ArrayFunction) -> Builder:
    return plain(lambda column: function(column, characters=" "))


def _concat(*parts: Datum) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _substring(column: pa.Array, start: int, length: int = _LAST) -> pa.Array:
    if length <= 0:
        return pc.utf8_slice_codeunits(column, 0, 0)
    if start >= 0:
        # A start of 0 is the position before the first character, and takes one off the length.
        first, stop = max(start - 1, 0), start - 1 + length
        return pc.utf8_slice_codeunits(column, first, max(first, min(stop, _LAST)))
    if length == _LAST:
        return pc.utf8_slice_codeunits(column, start, _LAST)
    return _from_the_end(column, start, length)


def _from_the_end(column: pa.Array, start: int, length: int) -> pa.Array:
    # Row by row: where a negative start lies depends on each text's length.
    def cut(text: str) -> str:
        first = len(text) + start
        return text[max(first, 0) : max(first + length, 0)]

    return _each(column, cut)


def _each(
    column: pa.Array, function: Callable[[str], object], dtype: pa.DataType = STRING
) -> pa.Array:
    return pa.array([None if t is None else function(t) for t in python_list(column)], dtype)


def _replace(column: pa.Array, old: str, new: str) -> pa.Array:
    # Arrow never returns from a replacement of the empty text.
    return pc.replace_substring(column, old, new) if old else column


def _split(column: pa.Array, separator: str) -> pa.Array:
    if not separator:
        return _each(column, list, pa.list_(STRING))
    return split(column, separator)


def _split_part(column: pa.Array, separator: str, ordinal: int) -> pa.Array:
    if ordinal == 0:
        rows = column.is_valid()
        if pc.any(rows).as_py():
            raise RowFailure(pc.index(rows, True).as_py(), "SPLIT_PART counts from 1, not 0")
        return column
    index = ordinal - 1 if ordinal > 0 else ordinal

    def part(text: str) -> str:
        parts = text.split(separator) if separator else list(text)
        return parts[index] if -len(parts) <= index < len(parts) else ""

    return _each(column, part)


def _pad(column: pa.Array, width: int, fill: str, *, left: bool) -> pa.Array:
    width = max(width, 0)
    _check_width(column, width, fill)
    if len(fill) == 1 and 4 * width * len(column) < 2**31:  # what Arrow allocates
        pad = pc.utf8_lpad if left else pc.utf8_rpad
        return pc.utf8_slice_codeunits(pad(column, width, fill), 0, width)

    def padded(text: str) -> str:
        missing = max(width - len(text), 0)
        filling = (fill * (missing // max(len(fill), 1) + 1))[:missing]
        return (filling + text if left else text + filling)[:width]

    return _each(column, padded)


def _check_width(column: pa.Array, width: int, fill: str) -> None:
    """Raise RowFailure if padding makes a text of more than `_WIDEST` bytes."""
    size = max((len(letter.encode()) for letter in fill), default=0)
    if width * size <= _WIDEST:
        return
    filled = pc.less(pc.utf8_length(column), width)
    if pc.any(filled).as_py():
        why = f"padding to {width} characters makes a text of more than {_WIDEST} bytes"
        raise RowFailure(pc.index(filled, True).as_py(), why)


def _lpad(column: pa.Array, width: int, fill: str) -> pa.Array:
    return _pad(column, width, fill, left=True)


def _rpad(column: pa.Array, width: int, fill: str) -> pa.Array:
    return _pad(column, width, fill, left=False)


# --- patterns ------------------------------------------------------------------------------


def _pattern(site: Site) -> str:
    pattern = site.constant(1)
    assert isinstance(pattern, str)
    return pattern


def _regex(site: Site) -> str:
    pattern = _pattern(site)
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        raise PlanError(f"{site.function}: bad regular expression {pattern!r}: {error}") from None
    return pattern


def _like(site: Site) -> ArrayFunction:
    pattern = _pattern(site)
    inside = re.fullmatch(r"%([^%_\\]+)%", pattern)
    if inside is not None:
        return lambda column, _: contains(column, inside.group(1))
    if "\\" in pattern:  # Arrow treats some backslashes as its own
        regex = like_regex(pattern)
        return lambda column, _: pc.match_substring_regex(column, regex)
    return lambda column, _: pc.match_like(column, pattern)


def like_regex(pattern: str) -> str:
    r"""Return a regular expression that matches the whole texts that a LIKE pattern matches.

    >>> like_regex(r"\a_5\%%")
    '(?s)\\Aa.5%.*\\z'
    """
    parts = (
        {"%": ".*", "_": "."}.get(token) or re.escape(token[-1])
        for token in re.findall(r"\\.|.", pattern, re.DOTALL)
    )
    return rf"(?s)\A{''.join(parts)}\z"


def _rlike(site: Site) -> ArrayFunction:
    pattern = _regex(site)
    return lambda column, _: pc.match_substring_regex(column, pattern)


def _regexp_extract(site: Site) -> ArrayFunction:
    pattern, group = _regex(site), site.constant(2)
    named, groups = name_groups(pattern)
    if not isinstance(group, int) or not 0 <= group <= groups:
        raise PlanError(f"regexp_extract: {pattern!r} has {groups} group(s), no group {group}")
    whole = f"(?P<g0>{named})"

    def run(column: pa.Array, *_: Datum) -> pa.Array:
        extracted = pc.struct_field(pc.extract_regex(column, whole), [group])
        return pc.if_else(column.is_valid(), pc.fill_null(extracted, ""), pa.scalar(None, STRING))

    return run


def name_groups(pattern: str) -> tuple[str, int]:
    """Return the pattern with its groups named g1, g2, …, as Arrow needs them, and their count.

    >>> name_groups(r"(a)[(](?:b)(?P<x>c)")
    ('(?P<g1>a)[(](?:b)(?P<g2>c)', 2)
    """
    groups = 0

    def named(token: re.Match[str]) -> str:
        nonlocal groups
        if token["group"] is None:
            return token[0]
        groups += 1
        return f"(?P<g{groups}>"

    return _TOKEN.sub(named, pattern), groups


def _regexp_replace(site: Site) -> ArrayFunction:
    pattern = _regex(site)
    replace = by_value(lambda column, new: pc.replace_substring_regex(column, pattern, new))(site)
    return lambda column, _, new: replace(column, new)


FUNCTIONS: Mapping[str, Builder] = {
    "length": _length,
    "lower": plain(pc.utf8_lower),
    "upper": plain(pc.utf8_upper),
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "reverse": plain(pc.utf8_reverse),
    "concat": plain(_concat),
    "substring": by_value(_substring),
    "replace": by_value(_replace),
    "split": by_value(_split),
    "split_part": by_value(_split_part),
    "starts_with": by_value(pc.starts_with),
    "ends_with": by_value(pc.ends_with),
    "contains": by_value(contains),
    "like": _like,
    "rlike": _rlike,
    "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace,
    "lpad": by_value(_lpad),
    "rpad": by_value(_rpad),
}
