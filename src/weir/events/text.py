"""Values are written as text and read from it the same way in casts and in text files.

    TIMESTAMP   ISO 8601, `2024-05-01T12:00:00.000000Z`; UTC unless an offset is given
    DOUBLE      shortest digits that read back; NaN, Infinity, -Infinity

Parsing raises `pa.ArrowInvalid` for a text that is no such value; the caller finds the row.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from weir.events.types import TIMESTAMP

_NAIVE = pa.timestamp("us")
_ZONED = r"[0-9](Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_DATE_ONLY_LENGTH = len("2024-05-01")
_DOUBLE_NAMES = (("nan", "NaN"), ("-nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity"))


def parse_timestamps(texts: pa.Array) -> pa.Array:
    """Parse ISO 8601 texts as TIMESTAMP; NULL stays NULL.

    >>> times = parse_timestamps(pa.array(["1970-01-01T01:00+01:00", "1970-01-01"]))
    >>> times.cast(pa.int64()).to_pylist()
    [0, 0]
    """
    for dtype in (TIMESTAMP, _NAIVE):
        # Arrow takes offsets in all texts or in none, which is how nearly all columns are.
        with suppress(pa.ArrowInvalid):
            return _as_utc(texts.cast(dtype))
    zoned = pc.match_substring_regex(texts, _ZONED)
    # The end of a plain date looks like an offset: 2024-05-01 ends in -01.
    zoned = pc.and_(zoned, pc.greater(pc.binary_length(texts), _DATE_ONLY_LENGTH))
    nothing = pa.scalar(None, texts.type)
    with_zone = pc.if_else(zoned, texts, nothing).cast(TIMESTAMP)
    without = pc.if_else(zoned, nothing, texts).cast(_NAIVE)
    return pc.coalesce(with_zone, _as_utc(without))


def format_timestamps(times: pa.Array) -> pa.Array:
    """Write TIMESTAMPs as ISO 8601 in UTC with six decimals.

    >>> format_timestamps(pa.array([1], TIMESTAMP)).to_pylist()
    ['1970-01-01T00:00:00.000001Z']
    """
    # As a time without a zone: Arrow looks up the rules of UTC for every value.
    texts = times.view(_NAIVE).cast(pa.string())
    return pc.binary_join_element_wise(
        pc.replace_substring(texts, " ", "T", max_replacements=1), "Z", ""
    )


def format_doubles(values: pa.Array) -> pa.Array:
    """Write DOUBLEs as text, the special values as JSON files have them.

    >>> format_doubles(pa.array([0.5, float("inf")])).to_pylist()
    ['0.5', 'Infinity']
    """
    texts = values.cast(pa.string())
    if pc.all(pc.is_finite(values)).as_py() is not False:
        return texts
    for arrow_name, name in _DOUBLE_NAMES:
        texts = pc.if_else(pc.equal(texts, arrow_name), name, texts)
    return texts


def _as_utc(times: pa.Array) -> pa.Array:
    return times.cast(pa.int64()).cast(TIMESTAMP)
