"""Text files read by slow readers of their own, and as chunks say it: what fuzzing compares.

The slow readers go character by character and know nothing of blocks, plain ways or Arrow.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable

import pyarrow as pa

from weir.events.batch import ticks
from weir.events.types import BIGINT, STRING
from weir.events.value_text import parse_timestamps
from weir.files.chunks import Chunk, DataFile
from weir.files.json_nesting import MAX_NESTING

COLUMNS = (("vs", BIGINT), ("s", STRING))
Said = tuple[object, ...]
"""("row", offset, line, values), ("bad", offset, line) or ("cti", time)."""


def said_by(chunks: Iterable[Chunk]) -> list[Said]:
    """What a partition's chunks say: rows and CTIs in order, then the bad rows, which move
    nothing and so have no place among CTIs."""
    said: list[Said] = []
    bad: list[Said] = []
    for chunk in chunks:
        chunk.rows.validate(full=True)
        assert chunk.lines is not None
        places, values = (chunk.offsets.tolist(), chunk.lines.tolist()), chunk.rows.to_pylist()
        rows: list[Said] = [
            ("row", offset, line, *(row[name] for name, _ in COLUMNS))
            for offset, line, row in zip(*places, values, strict=True)
        ]
        ctis = list(zip(chunk.cti_indexes.tolist(), chunk.cti_times.tolist(), strict=True))
        for place in range(len(rows) + 1):
            said += [("cti", time) for at, time in ctis if at == place]
            said += rows[place : place + 1]
        bad += [("bad", row.offset, row.line) for row in chunk.bad]
    return said + bad


def read_as(kind: type[DataFile], path: str, size: int, start: int, limit: int) -> list[Said]:
    file = kind(path, COLUMNS, max_record=limit)
    return said_by(file.chunks(size, start))  # type: ignore[attr-defined]


# --- JSON lines ----------------------------------------------------------------------------


def slow_json(data: bytes, limit: int) -> list[Said]:
    """Each line by itself, by the json module."""
    said: list[Said] = []
    offset = 0
    data = data.removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        if len(line) <= limit and (line.isspace() or not line):
            continue
        what = None if len(line) > limit else _json_row(line)
        if isinstance(what, int):
            said.append(("cti", what))
            continue
        said.append(("bad", offset, number) if what is None else ("row", offset, number, *what))
        offset += 1
    return sorted(said, key=lambda what: what[0] == "bad")


def _json_row(line: bytes) -> tuple[int | None, str | None] | int | None:
    """The values of a line, the time of a CTI, or None where it is bad."""
    try:
        # Only these four are blanks to JSON.
        # Bytes of what is not declared are nobody's concern.
        text = line.decode(errors="surrogateescape").strip(" \t\r\n")
        if _depth(text) > MAX_NESTING:
            return None
        row = json.loads(text, parse_constant=_refuse, parse_int=_whole, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, _Pairs) or not all(_fits(name, value) for name, value in row):
        return None
    values = dict(row)
    if "$cti" in values:
        cti = values["$cti"]
        if isinstance(cti, str):
            return _time(cti)
        whole = cti is not None and cti == int(cti) and -(2**63) <= cti < 2**63
        return int(cti) if whole else None
    return values.get("vs"), values.get("s")


class _Pairs(list[tuple[str, object]]):
    """An object with all that it says, twice or not."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        for name, _ in pairs:
            # Bytes that are no text stand as \udc80 to \udcff.
            if any("\ud800" <= c < "\udc80" or "\udd00" <= c <= "\udfff" for c in name):
                raise ValueError("half a character, written as an escape")
        super().__init__(pairs)


def _fits(name: str, value: object) -> bool:
    if value is None or name not in ("vs", "s", "$cti"):
        return True
    if isinstance(value, str):
        return name != "vs" and _is_text(value)
    if type(value) is int:
        return name == "$cti" or (name == "vs" and -(2**63) <= value < 2**63)
    return name == "$cti" and isinstance(value, float) and math.isfinite(value)


def _time(text: str) -> int | None:
    try:
        return int(ticks(parse_timestamps(pa.array([text])))[0])
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(word)


def _whole(text: str) -> int:
    """A number, or one that is as far beyond all columns: Python reads no more than 4300 digits."""
    return int(text) if len(text) < 100 else 10**100


def _depth(text: str) -> int:
    deepest = depth = 0
    inside = escaped = False
    for c in text:
        if escaped:
            escaped = False
        elif inside:
            escaped, inside = c == "\\", c != '"'
        elif c == '"':
            inside = True
        else:
            depth += (c in "[{") - (c in "]}")
            deepest = max(deepest, depth)
    return deepest


# --- CSV -----------------------------------------------------------------------------------

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)


def slow_records(data: bytes, quoted: bool) -> list[tuple[int, bytes]]:
    """Records with the numbers of their first lines, byte by byte, with line ends."""
    records: list[tuple[int, bytes]] = []
    line = first = 1
    begin = 0
    is_open = False
    for i in range(len(data)):
        is_open ^= quoted and data[i] == ord('"')
        if data[i] == ord("\n"):
            line += 1
            if not is_open:
                records.append((first, data[begin : i + 1]))
                begin, first = i + 1, line
    if begin < len(data):
        records.append((first, data[begin:]))
    return records


def slow_csv(data: bytes, limit: int) -> list[Said] | None:
    """Records by state, fields by state; None where the header is no `vs,s`, or too long."""
    records = slow_records(data.removeprefix(b"\xef\xbb\xbf"), True)
    while records and not records[0][1].strip() and len(records[0][1]) <= limit:
        del records[0]
    if not records or records[0][1].rstrip(b"\r\n") != b"vs,s" or len(records[0][1]) > limit:
        return None
    said: list[Said] = []
    offset = 0
    for number, record in records[1:]:
        long = len(record.removesuffix(b"\n")) > limit
        if not long and record.isspace():
            continue
        what = None if long else _csv_row(record)
        said.append(("bad", offset, number) if what is None else ("row", offset, number, *what))
        offset += 1
    return sorted(said, key=lambda what: what[0] == "bad")


def _csv_row(record: bytes) -> tuple[int | None, str | None] | None:
    try:
        fields = _fields(record.decode().rstrip("\r\n"))
    except UnicodeDecodeError:
        return None
    if fields is None or len(fields) != 2:
        return None
    vs, s = fields
    if vs is None:
        return None, s
    digits = vs.lstrip("+-").lstrip("0") or "0"
    if not _WHOLE.fullmatch(vs) or len(digits) > 19:
        return None
    value = -int(digits) if vs.startswith("-") else int(digits)
    return (value, s) if -(2**63) <= value < 2**63 else None


def _fields(text: str) -> list[str | None] | None:
    fields: list[str | None] = []
    at = 0
    while True:
        if text[at : at + 1] == '"':
            value, at = "", at + 1
            while True:
                if at >= len(text):
                    return None
                if text[at] != '"':
                    value, at = value + text[at], at + 1
                elif text[at : at + 2] == '""':
                    value, at = value + '"', at + 2
                else:
                    at += 1
                    break
            fields.append(value)
        else:
            end = at
            while end < len(text) and text[end] not in ',"':
                end += 1
            fields.append(text[at:end] or None)
            at = end
        if at == len(text):
            return fields
        if text[at] != ",":
            return None
        at += 1
