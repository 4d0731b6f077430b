"""Readers of what comes from outside, under mutated bytes: the rules for bad rows and nothing else.

Text is read as a whole, in any cut, and by a slow reader written apart: all three say the same.
Parquet and Arrow files are read in processes of their own (`native_fuzz.py`): each is rows or an
InputError that names the file, never a crash, a hang or growth. WEIR_FUZZ says how many
executions a target has; every one follows from its number alone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.mutating import LONGEST_SECONDS, no_hang
from property.mutations import mutated
from property.reading import Said, read_as, said_by, slow_csv, slow_json, slow_records
from weir.errors import InputError
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines
from weir.files.record_frames import Framer, TextChunk

EXECUTIONS = int(os.environ.get("WEIR_FUZZ", "0"))
LIMITS = (20, 60, 1 << 20)

JSON = (
    b'{"vs": 1, "s": "a"}\n{"vs": 2, "s": null}\n{"vs": 3}\n',
    b'{"s": "\\u00e9\\n", "vs": -5}\r\n{"vs": 1e2, "s": "x"}\r\n{"$cti": 7}\r\n{"vs": 9}',
    b'{"vs": 1, "other": [1, {"a": [true, null]}], "s": "\xc3\xa9"}\n\n  \n{"vs": 2}\n',
    b'\xef\xbb\xbf{"vs": 9223372036854775807, "s": ""}\n{"vs": 0, "vs": 1}\n'
    b'{"$cti": "2020-01-01"}\n',
    b'{"vs": 1, "deep": ' + b"[" * 120 + b"]" * 120 + b"}\n" + b'{"vs": 2, "s": "[[[["}\n',
)
JSON_PIECES = (
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"\\",
    b"\n",
    b"\r",
    b"\r\n",
    b" ",
    b"\t",
    b":",
    b",",
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\u0000",
    b"-",
    b"1e999",
    b"0",
    b"9" * 25,
    b"9" * 5000,
    b"NaN",
    b'"$cti"',
    b'"vs"',
    b'"s"',
    b"null",
    b"true",
    b"1.5",
    b"-0",
    b'{"vs": 4}\n',
    b"[[",
    b'{"a":',
    b"\xef\xbb\xbf",
    b"1.0",
    b"1e5",
    b"\x0c",
    b"\xe2\x80\xa8",
)
CSV = (
    b'vs,s\n1,a\n2,\n3,"b"\n',
    b'vs,s\r\n1,"a,""b"""\r\n2,"x\r\ny"\r\n\r\n3,""\r\n',
    b"\xef\xbb\xbfvs,s\n-5,\xc3\xa9\n , \n+7,z",
    b'\n\nvs,s\n1,"a\nb\nc"\n2,d\n' + b"3,eeeeeeeeeeeeeeeeeeeee\n" * 3,
)
CSV_PIECES = (
    b'"',
    b'""',
    b'"""',
    b",",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\x00",
    b"\xff",
    b"1",
    b"-",
    b"0x1f",
    b"9" * 25,
    b"+",
    b'"\n"',
    b"a",
    b",,",
    b"\n\n",
    b'","',
    b"\xef\xbb\xbf",
    b"1.0",
    b"\xe2\x80\xa8",
    b"\x0c",
    b"vs,s\n",
)


def executions(small: int) -> range:
    return range(EXECUTIONS or small)


def outcome(kind: type[JsonLines | CsvFile], path: Path, size: int, limit: int) -> list[Said] | str:
    signal.alarm(LONGEST_SECONDS)
    try:
        return read_as(kind, str(path), size, 0, limit)
    except InputError as error:
        assert error.file == str(path)
        return "not readable"


def test_json_lines(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.jsonl", 0
    with no_hang():
        for seed in executions(800):
            rng = random.Random(seed)
            data, limit = mutated(rng, JSON, JSON_PIECES), rng.choice(LIMITS)
            path.write_bytes(data)
            whole = outcome(JsonLines, path, 65_536, limit)
            assert whole == slow_json(data, limit), (seed, data)
            assert outcome(JsonLines, path, rng.randint(1, 3), limit) == whole, (seed, data)
            rows += sum(what[0] == "row" for what in whole)
    assert rows > len(executions(800))


def test_csv(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.csv", 0
    with no_hang():
        for seed in executions(800):
            rng = random.Random(seed)
            data, limit = mutated(rng, CSV, CSV_PIECES), rng.choice(LIMITS)
            path.write_bytes(data)
            whole = outcome(CsvFile, path, 65_536, limit)
            slow = slow_csv(data, limit)
            if slow is not None:
                assert whole == slow, (seed, data)
                rows += sum(what[0] == "row" for what in slow)
            assert outcome(CsvFile, path, rng.randint(1, 3), limit) == whole, (seed, data)
    assert rows > len(executions(800))


def test_lines_that_come_in_pieces() -> None:
    """As from a socket or a growing file: the framing, then the reader."""
    for seed in executions(1_500):
        rng = random.Random(seed)
        quoted = rng.random() < 0.3
        corpus, pieces = (CSV, CSV_PIECES) if quoted else (JSON, JSON_PIECES)
        data, limit = mutated(rng, corpus, pieces), rng.choice((0, 1, 5, 20, 1 << 20))
        position, first = rng.choice((0, 7)), rng.choice((1, 40))
        framer = Framer(limit, quoted=quoted, line=first, position=position)
        text_chunks: list[TextChunk] = []
        at = 0
        while at < len(data):
            cut = at + rng.choice((1, 2, 3, 10, 100))
            text_chunks += framer.feed(data[at:cut])
            at = cut
        text_chunks += framer.end()
        slow = slow_records(data, quoted)
        came = [one for text_chunk in text_chunks for one in came_of(text_chunk, limit)]
        kept = [(line + first - 1, shortened(text, limit)) for line, text in slow]
        assert came == [one for one in kept if one[1][1] or not one[1][0].isspace()], (seed, data)
        assert not text_chunks or text_chunks[-1].stop == position + len(data)
        assert all(len(b.data) <= limit + 103 for b in text_chunks if len(b) == 1)


def came_of(text_chunk: TextChunk, limit: int) -> Iterator[tuple[int, tuple[bytes, bool]]]:
    numbers, texts, too_long = text_chunk.records(limit)
    for i, (number, text) in enumerate(zip(numbers, texts, strict=True)):
        yield number, (text, i in too_long)


def shortened(text: bytes, limit: int) -> tuple[bytes, bool]:
    long = len(text.removesuffix(b"\n")) > limit
    return (text[: limit + 1] if long else text), long


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_of_native_libraries(tmp_path: Path, kind: str) -> None:
    count = EXECUTIONS or 150
    done = subprocess.run(
        [sys.executable, "-m", "property.native_fuzz", kind, "0", str(count), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def test_what_chunks_say_is_in_order() -> None:
    assert said_by([]) == []
