"""Compressed texts and folders are read as the files that they hold; what is wrong is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

import weir
from weir.errors import InputError, PlanError
from weir.events.types import BIGINT, STRING, TIMESTAMP
from weir.files.chunks import FilePlace
from weir.files.readers import open_source, source_files
from weir.files.stream_inference import inferred_stream
from weir.ingress.source_integrity import FileMark, marked_chunks
from weir.plan.operators import Source, SourceOptions

LINES = b"".join(b'{"vs": %d, "s": "x%d"}\n' % (i, i) for i in range(3000))


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


def source(path: str, **columns: pa.DataType) -> Source:
    declared = columns or {"vs": BIGINT, "s": STRING}
    return Source("A", tuple(declared.items()), path, SourceOptions("vs"), 0)


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("ZST", zstd)])
def test_a_compressed_text_has_the_same_rows(tmp_path: Path, ending: str, pack) -> None:
    (tmp_path / "a.jsonl").write_bytes(LINES)
    (tmp_path / f"b.jsonl.{ending}").write_bytes(pack(LINES[:40000]) + pack(LINES[40000:]))
    [plain] = open_source(source("a.jsonl"), tmp_path)
    [packed] = open_source(source("b.jsonl.*"), tmp_path)
    for start in (0, 1, 2999):
        wanted = [(c.rows.to_pylist(), c.stop, c.read) for c in plain.chunks(700, start)]
        assert [(c.rows.to_pylist(), c.stop, c.read) for c in packed.chunks(700, start)] == wanted
    from dataclasses import replace

    place = FilePlace(700, next(plain.chunks(700)).read)
    later = replace(packed, since=place)
    assert next(later.chunks(700)).rows.to_pylist()[0]["vs"] == 700


def test_csv_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"vs,s\n1,a\n2,b\n"))
    [partition] = open_source(source("a.csv.gz"), tmp_path)
    [chunk] = partition.chunks()
    assert chunk.rows.to_pylist() == [{"vs": 1, "s": "a"}, {"vs": 2, "s": "b"}]


@pytest.mark.parametrize(
    ("ending", "data"),
    [
        ("gz", gzip.compress(LINES)[:-9]),
        ("gz", gzip.compress(LINES) + b"x"),
        ("gz", b"no"),
        ("gz", b""),
        ("zst", zstd(LINES)[:-9]),
        ("zst", b"no"),
        ("zst", b""),
    ],
)
def test_a_damaged_one_is_named(tmp_path: Path, ending: str, data: bytes) -> None:
    (tmp_path / f"a.jsonl.{ending}").write_bytes(data)
    [partition] = open_source(source(f"a.jsonl.{ending}"), tmp_path)
    with pytest.raises(InputError, match=rf"a\.jsonl\.{ending}: damaged"):
        list(partition.chunks())


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstd)])
def test_an_empty_text_has_no_rows(tmp_path: Path, ending: str, pack) -> None:
    (tmp_path / f"a.jsonl.{ending}").write_bytes(pack(b""))
    [partition] = open_source(source(f"a.jsonl.{ending}"), tmp_path)
    assert list(partition.chunks()) == []


def test_a_live_source_knows_a_compressed_file_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(LINES))
    [partition] = open_source(source(str(path)))
    [(_, mark), *_] = marked_chunks(partition, 700, 0, FileMark())
    assert mark is not None
    rest = [chunk.stop for chunk, _ in marked_chunks(partition, 700, 700, mark)]
    assert rest[-1] == 3000
    path.write_bytes(gzip.compress(LINES.replace(b"x1", b"y1")))
    with pytest.raises(InputError, match="another file now"):
        list(marked_chunks(partition, 700, 700, mark))


def test_a_folder_is_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("b.jsonl", "a.jsonl.gz", "_SUCCESS", ".hidden", "c.csv.digest"):
        (folder / name).write_text("")
    (folder / "inner").mkdir()
    found = source_files("data", tmp_path)
    assert [Path(f).name for f in found] == ["a.jsonl.gz", "b.jsonl"]
    (folder / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"notes\.txt: every file in a folder is read"):
        source_files("data", tmp_path)


def test_an_output_in_a_folder_that_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_bytes(LINES)
    text = "STREAM A (vs BIGINT, s STRING) FROM 'data'; OUTPUT A TO 'data/out.jsonl';"
    with pytest.raises(PlanError, match="which STREAM A reads"):
        weir.run(text, directory=tmp_path)


def test_what_is_missing_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "orders.jsonl").write_text("")
    (tmp_path / "empty").mkdir()
    for path, why in (
        ("order.jsonl", "no file matches; did you mean `orders.jsonl`?"),
        ("dta/a.jsonl", "no file matches: there is no folder"),
        ("empty", "the folder has no files"),
        ("*.csv", "no file matches"),
    ):
        with pytest.raises(InputError) as told:
            source_files(path, tmp_path)
        assert why in str(told.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("vs;s\n1;a\n", "the header has `;` between its fields; expected commas"),
        ("vs\ts\n1\ta\n", "the header has tabs between its fields"),
        ("vs,S\n1,a\n", "the header has no such column, but vs, S; did you mean `S`?"),
        ("vs,other\n1,a\n", "the header has no such column, but vs, other"),
        ("vs,ß\n1,a\n", "the header is not UTF-8"),
        ("vs,s,s\n1,a,b\n", "the header has this name 2 times, not once"),
    ],
)
def test_headers(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="latin-1")
    [partition] = open_source(source("a.csv"), tmp_path)
    with pytest.raises(InputError) as told:
        list(partition.chunks())
    assert why in str(told.value)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.jsonl.gz"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_told(tmp_path: Path, name: str, encoding: str) -> None:
    text = "\ufeff" * (encoding != "utf-16")
    text += '{"vs": 1, "s": "a"}\n' if "jsonl" in name else "vs,s\n1,a\n"
    data = text.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    told = r"UTF-8; write it in UTF-8, as by iconv -f UTF-16 -t UTF-8"
    program = f"STREAM A (vs BIGINT, s STRING) FROM '{name}'; OUTPUT A TO 'out.csv';"
    with pytest.raises(InputError, match=told):
        weir.run(program, directory=tmp_path)
    with pytest.raises(InputError, match=told):
        inferred_stream(str(tmp_path / name))


def test_utf16_without_a_mark_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("vs,s\n1,a\n".encode("utf-16-le"))
    [partition] = open_source(source("a.csv"), tmp_path)
    with pytest.raises(InputError, match="iconv -f UTF-16"):
        list(partition.chunks())
    with pytest.raises(InputError, match="iconv -f UTF-16"):
        inferred_stream(str(tmp_path / "a.csv"))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_number_as_a_timestamp(tmp_path: Path, name: str) -> None:
    row = json.dumps({"vs": 1700000000}) if name == "a.jsonl" else "vs,x\n1700000000,1"
    (tmp_path / name).write_text(row)
    [partition] = open_source(source(name, vs=TIMESTAMP), tmp_path)
    [chunk] = partition.chunks()
    assert "wanted TIMESTAMP" in chunk.bad[0].reason
    assert "declared as BIGINT, and WITH (vs = column, unit = 's')" in chunk.bad[0].reason
