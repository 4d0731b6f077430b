"""Records, lines and nesting have limits: beyond them a row is bad, in bounded memory and time."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import InputError, PlanError, ScriptError
from weir.events.types import BIGINT, STRING
from weir.files.chunks import DataFile
from weir.files.csv import CsvFile
from weir.files.json_nesting import MAX_NESTING, has_too_deep, is_too_deep
from weir.files.jsonl import JsonLines
from weir.files.record_frames import Framer
from weir.plan.fluent.sources import stream
from weir.plan.operators.source import MAX_RECORD
from weir.plan.sizes import size_text
from weir.script.program import parse_program

COLUMNS = (("vs", BIGINT), ("s", STRING))


def read(kind, path, size=65_536, limit=MAX_RECORD, columns=COLUMNS):
    """Rows by offset, and the bad ones with what is said of them."""
    rows, bad = {}, {}
    for chunk in kind(str(path), columns, max_record=limit).chunks(size):
        rows |= dict(zip(chunk.offsets.tolist(), chunk.rows.to_pylist(), strict=True))
        bad |= {b.offset: (b.line, b.text, b.reason) for b in chunk.bad}
    return rows, bad


@pytest.mark.parametrize("size", [1, 65_536])
@pytest.mark.parametrize("block", [3, 64, 1 << 22])
@pytest.mark.parametrize("long", [20, 21, 22, 500])
def test_a_line_is_too_long_by_itself_and_not_by_how_it_is_cut(
    tmp_path, monkeypatch, size, block, long
):
    monkeypatch.setattr("weir.files.record_frames.BLOCK_BYTES", block)
    row = b'{"vs": 2}' + b" " * (long - 9)
    (tmp_path / "a.jsonl").write_bytes(b'{"vs": 1}\n' + row + b'\n{"vs": 3}')
    rows, bad = read(JsonLines, tmp_path / "a.jsonl", size, 21)
    assert sorted(rows) == ([0, 1, 2] if long <= 21 else [0, 2])
    expected = {1: (2, row[:22].decode(), "longer than 21 bytes, which is `max_record`")}
    assert bad == ({} if long <= 21 else expected)


@pytest.mark.parametrize("block", [3, 64, 1 << 22])
def test_lines_of_blanks_and_ctis_that_are_too_long_are_rows_too(tmp_path, monkeypatch, block):
    monkeypatch.setattr("weir.files.record_frames.BLOCK_BYTES", block)
    lines = [b" " * 30, b" " * 30 + b'{"vs": 1}', b'{"$cti": 5}' + b" " * 30, b" " * 20, b"{}"]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    rows, bad = read(JsonLines, tmp_path / "a.jsonl", limit=20)
    assert (sorted(rows), sorted(bad)) == ([3], [0, 1, 2])


@pytest.mark.parametrize("block", [3, 64, 1 << 22])
@pytest.mark.parametrize("size", [1, 65_536])
def test_a_quote_that_is_left_open_makes_one_bad_row(tmp_path, monkeypatch, block, size):
    monkeypatch.setattr("weir.files.record_frames.BLOCK_BYTES", block)
    lines = ["vs,s", "1,a", '2,"b', *("3,c" for _ in range(200)), '4,"d', "5,e"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    rows, bad = read(CsvFile, tmp_path / "a.csv", size, limit=50)
    assert rows == {0: {"vs": 1, "s": "a"}, 2: {"vs": 5, "s": "e"}}
    begin = ('2,"b\n' + "3,c\n" * 12)[:51].rstrip("\n")
    assert bad == {1: (3, begin, "longer than 50 bytes, which is `max_record`")}


def test_what_is_too_long_is_not_held(tmp_path):
    """30 MB behind one stray quote, with a limit of 1 MB."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'vs,s\n1,a\n2,"b\n' + b"3,cccccccccccccccccccccc\n" * 1_200_000)
    tracemalloc.start()
    try:
        rows, bad = read(CsvFile, path, limit=1 << 20)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(rows), len(bad)) == (1, 1)
    assert most < 32 << 20


def test_a_record_within_the_limit_is_split_in_linear_memory(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'vs,s\n1,"' + b'a""b,\n' * 700_000 + b'"\n2,"' + b"x" * 4_000_000 + b"\n")
    tracemalloc.start()
    try:
        rows, bad = read(CsvFile, path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows[0]["s"] == 'a"b,\n' * 700_000
    assert list(bad) == [1]
    assert most < 100 << 20


def test_a_header_has_the_limit_too(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'"vs,s\n' + b"x,y\n" * 100)
    with pytest.raises(InputError, match=r"a\.csv, line 1: the header row is longer than 50 bytes"):
        read(CsvFile, tmp_path / "a.csv", limit=50)
    (tmp_path / "b.csv").write_bytes(b"\n" * 100 + b"vs,s\n1,a\n")
    assert read(CsvFile, tmp_path / "b.csv", limit=50)[0] == {0: {"vs": 1, "s": "a"}}


# --- nesting -------------------------------------------------------------------------------


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("other", ["", '{"vs": 0, "l": [[]]}\n', "no row\n"])
@pytest.mark.parametrize("levels", [1, MAX_NESTING - 1, MAX_NESTING, 10_000, 100_000])
def test_json_of_many_levels_is_a_bad_row(tmp_path, levels, other):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{other}{{"vs": 1, "unknown": {nested(levels)}}}\n{{"vs": 2}}\n')
    rows, bad = read(JsonLines, path)
    is_good = levels < MAX_NESTING  # the row itself is a level
    came = [row["vs"] for row in rows.values() if row["vs"]]
    assert came == ([1, 2] if is_good else [2])
    deep = [reason for _, _, reason in bad.values() if "nested" in reason]
    assert deep == ([] if is_good else [f"nested deeper than {MAX_NESTING} levels"])


@pytest.mark.parametrize("between", ["", "\n"])
def test_nested_fields_of_csv_have_the_limit_too(tmp_path, between):
    columns = (("vs", BIGINT), ("r", pa.struct([("a", BIGINT)])))
    value = '{""a"": 1, ""x"": ' + (between + "[") * 5_000 + "]" * 5_000 + "}"
    (tmp_path / "a.csv").write_text(f'vs,r\n1,"{value}"\n2,"{{""a"": 2}}"\n')
    rows, bad = read(CsvFile, tmp_path / "a.csv", columns=columns)
    assert (list(rows), list(bad)) == ([1], [0])
    assert len(bad[0][2]) < 300


def test_brackets_in_texts_are_no_levels():
    text = ('{"a": "' + "[" * 500 + '\\"{{", "b": []}').encode()
    assert not is_too_deep(text)
    assert is_too_deep(b"[\n" * (MAX_NESTING + 1))
    lines = [b"[" * MAX_NESTING + b'"\n', b"[" * MAX_NESTING + b"\n"]
    ends = [len(lines[0]), len(lines[0]) + len(lines[1])]
    assert not has_too_deep(b"".join(lines), np.array(ends))


# --- the option ----------------------------------------------------------------------------


def option(value):
    text = f"STREAM A (vs BIGINT) FROM 'a.jsonl' WITH (max_record = {value}); OUTPUT A TO 'o.csv';"
    return parse_program(text)


@pytest.mark.parametrize(
    ("value", "size"),
    [("'64MB'", 64 << 20), ("'1 kb'", 1024), ("5000", 5000), ("'1GB'", 1 << 30), ("'7B'", 7)],
)
def test_sizes(value, size):
    program = option(value)
    assert program.sources[0].options.max_record == size
    assert f"max_record = '{size_text(size)}'" in program.sources[0].detail()


@pytest.mark.parametrize(
    "value", ["'64'MB", "0", "'2GB'", "'x'", "5s", "-1", "1.5", "vs", "'-1MB'"]
)
def test_what_is_no_size_is_refused(value):
    with pytest.raises(ScriptError):
        option(value)


def test_the_option_in_python():
    options = stream("A", {"vs": "BIGINT"}, "a.csv", vs="vs", max_record="2MB").node.options
    assert options.max_record == 2 << 20
    with pytest.raises(PlanError, match="from 1 byte to 1GB"):
        stream("A", {"vs": "BIGINT"}, "a.csv", vs="vs", max_record="2GB")
    assert DataFile("a", ()).max_record == MAX_RECORD == 16 << 20


def test_what_is_dropped_of_a_record_still_counts_in_the_file() -> None:
    framer = Framer(10)
    pieces = (b"x" * 60, b"y" * 40 + b"\n" + b"{}\n" + b"z" * 50, b"z" * 5 + b"\n")
    blocks = [block for piece in pieces for block in framer.feed(piece)]
    assert [block.stop for block in blocks] == [104, 160]
    assert [block.lines.tolist() for block in blocks] == [[1, 2], [3]]
    assert framer.feed(b"w" * 30) == [] and [block.stop for block in framer.end()] == [190]
