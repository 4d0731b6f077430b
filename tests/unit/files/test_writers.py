"""Outputs: sorted, complete, byte-identical, and never half written."""

import json
import math
import os
from datetime import date
from decimal import Decimal as D
from functools import cmp_to_key
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import InputError, PlanError, RunError
from weir.events.batch import OPEN, Batch
from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP
from weir.files import sorted_runs as runs
from weir.files import writers
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines
from weir.files.readers import open_source
from weir.files.sidecar import read_sidecar, sidecar_schema
from weir.files.sinks import SINKS
from weir.files.writers import OutputWriter
from weir.plan.operators import Source, SourceOptions
from weir.plan.schema import Schema
from weir.reliable.digest import Digest, digest

SCHEMA = Schema((("x", DOUBLE), ("s", STRING)), BIGINT)
ENDINGS = ("jsonl", "csv", "parquet", "arrow")

rows_of = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([5, 6, OPEN]),
        st.one_of(st.none(), st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5])),
        st.one_of(st.none(), st.sampled_from(["", "a", "é", 'b,"\n', "z"])),
    ),
    max_size=30,
)


def batch_of(rows):
    return Batch(
        np.array([r[0] for r in rows], np.int64),
        np.array([r[1] for r in rows], np.int64),
        (pa.array([r[2] for r in rows], DOUBLE), pa.array([r[3] for r in rows], STRING)),
    )


def compare(a, b):
    for p, q in zip(a, b, strict=True):
        if p is None or q is None:
            c = (p is not None) - (q is not None)
        elif isinstance(p, float):
            left, right = (math.isnan(p), p if p == p else 0), (math.isnan(q), q if q == q else 0)
            c = (left > right) - (left < right)
        else:
            p, q = (p.encode(), q.encode()) if isinstance(p, str) else (p, q)
            c = (p > q) - (p < q)
        if c:
            return c
    return 0


def plain(rows):
    """Comparable: NaN as text, −0 apart from 0."""
    return [tuple(repr(v) for v in row) for row in rows]


def read_back(path):
    time = [("vs", BIGINT), ("ve", BIGINT)]
    [partition] = open_source(
        Source("A", (*time, *SCHEMA.columns), str(path), SourceOptions(vs="vs"), 0)
    )
    rows = []
    for chunk in partition.chunks():
        assert not chunk.bad
        for row in chunk.rows.to_pylist():
            end = OPEN if row["ve"] is None else row["ve"]
            rows.append((row["vs"], end, row["x"], row["s"]))
    return rows


def write(path, parts, memory=1 << 30, schema=SCHEMA):
    writer = OutputWriter(path, schema, len(parts), memory=memory)
    for vertex, batches in enumerate(parts):
        for rows in batches:
            writer.write(vertex, batch_of(rows))
    every = [row for batches in parts for rows in batches for row in rows]
    writer.close(digest(batch_of(every)))


@settings(max_examples=40, deadline=None)
@given(rows_of, st.data())
def test_files_are_sorted_and_do_not_depend_on_arrival(tmp_path_factory, rows, data):
    folder = tmp_path_factory.mktemp("out")
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    memory = data.draw(st.sampled_from([0, 200, 1 << 30]))
    expected = sorted(rows, key=cmp_to_key(compare))
    for ending in ENDINGS:
        write(folder / f"one.{ending}", [[rows]])
        write(folder / f"two.{ending}", [[shuffled[:cut]], [shuffled[cut:], []]], memory)
        got = read_back(folder / f"one.{ending}")
        assert [compare(g, e) for g, e in zip(got, expected, strict=True)] == [0] * len(rows)
        assert sorted(plain(got)) == sorted(plain(rows))
        for name in (ending, f"{ending}.digest"):
            same = (folder / f"two.{name}").read_bytes()
            assert (folder / f"one.{name}").read_bytes() == same
    files = [f"{name}.{ending}" for name in ("one", "two") for ending in ENDINGS]
    assert sorted(os.listdir(folder)) == sorted([*files, *(f"{file}.digest" for file in files)])


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_equal_rows_that_are_not_identical_have_one_order(tmp_path, memory):
    rows = [(1, 2, -0.0, "a"), (1, 2, 0.0, "a"), (1, 2, -0.0, "b"), (1, 2, 0.0, "b")]
    seen = set()
    for i, arrival in enumerate(permutations(rows)):
        write(tmp_path / f"{i}.jsonl", [[arrival[:2]], [arrival[2:]]], memory)
        seen.add((tmp_path / f"{i}.jsonl").read_bytes())
    write(tmp_path / "one.jsonl", [[rows[::-1]]], memory)
    assert seen == {(tmp_path / "one.jsonl").read_bytes()}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_spilled_runs_merge_block_by_block(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(runs, "BLOCK_ROWS", 7)
    monkeypatch.setattr(writers, "GROUP_ROWS", 50)
    random = np.random.default_rng(3)
    rows = [
        (int(t), int(t) + 1, float(x), f"k{x}")
        for t, x in zip(random.integers(0, 90, 1203), random.integers(0, 5, 1203), strict=True)
    ]
    parts = [[rows[i : i + 37] for i in range(begin, 1203, 111)] for begin in (0, 37, 74)]
    write(tmp_path / f"small.{kind}", parts, memory=5_000)
    write(tmp_path / f"large.{kind}", [[rows]])
    assert (tmp_path / f"small.{kind}").read_bytes() == (tmp_path / f"large.{kind}").read_bytes()
    assert read_back(tmp_path / f"small.{kind}") == sorted(rows)
    if kind == "parquet":
        file = pq.ParquetFile(tmp_path / "small.parquet").metadata
        groups = [file.row_group(i).num_rows for i in range(file.num_row_groups)]
    else:
        reader = pa.ipc.open_file(tmp_path / "small.arrow")
        groups = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
    assert groups == [50] * 24 + [3]


def test_merging_holds_some_blocks_only(monkeypatch):
    monkeypatch.setattr(runs, "BLOCK_ROWS", 10)

    def run(first):
        for start in range(first, 3000, 30):
            vs = np.arange(start, start + 30, 3, dtype=np.int64)
            drawn.append(start)
            yield Batch(vs, vs + 1, ())

    drawn: list[int] = []
    seen = 0
    for batch in runs.merge_runs([run(0), run(1), run(2)], ""):
        assert batch.vs.tolist() == list(range(seen, seen + len(batch)))
        seen += len(batch)
        assert 10 * len(drawn) - seen <= 60
    assert seen == 3000


def test_text_forms(tmp_path):
    schema = Schema(
        (
            ("t", TIMESTAMP),
            ("d", DATE),
            ("n", pa.decimal128(20, 10)),
            ("x", BINARY),
            ("b", BOOLEAN),
            ("l", pa.list_(DOUBLE)),
            ("r", pa.struct([("p", TIMESTAMP), ("q", BIGINT)])),
            ("f", DOUBLE),
        ),
        TIMESTAMP,
    )
    columns = [
        pa.array([0, None], TIMESTAMP),
        pa.array([date(2020, 2, 29), None]),
        pa.array([D("0.0000000001"), None], pa.decimal128(20, 10)),
        pa.array([b"hi", None]),
        pa.array([True, None]),
        pa.array([[1.0, math.nan, None], None]),
        pa.array([{"p": 5, "q": 6}, None], schema.type_of("r")),
        pa.array([-math.inf, None]),
    ]
    batch = Batch(np.array([1, 2]), np.array([2, OPEN]), tuple(columns))
    for ending in ("jsonl", "csv"):
        writer = OutputWriter(tmp_path / f"a.{ending}", schema)
        writer.write(0, batch)
        writer.close(digest(batch))
    first, second = (json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines())
    assert list(first) == ["vs", "ve", *schema.names]
    assert first == {
        "vs": "1970-01-01T00:00:00.000001Z",
        "ve": "1970-01-01T00:00:00.000002Z",
        "t": "1970-01-01T00:00:00.000000Z",
        "d": "2020-02-29",
        "n": "0.0000000001",
        "x": "aGk=",
        "b": True,
        "l": [1.0, "NaN", None],
        "r": {"p": "1970-01-01T00:00:00.000005Z", "q": 6},
        "f": "-Infinity",
    }
    assert second == {**dict.fromkeys(first), "vs": "1970-01-01T00:00:00.000002Z"}
    header, line, empty = (tmp_path / "a.csv").read_text().splitlines()
    assert header == "vs,ve,t,d,n,x,b,l,r,f"
    assert line == (
        "1970-01-01T00:00:00.000001Z,1970-01-01T00:00:00.000002Z,1970-01-01T00:00:00.000000Z,"
        '2020-02-29,0.0000000001,aGk=,true,"[1.0,""NaN"",null]",'
        '"{""p"":""1970-01-01T00:00:00.000005Z"",""q"":6}",-Infinity'
    )
    assert empty == "1970-01-01T00:00:00.000002Z,,,,,,,,,"
    # What is written is read back.
    for ending, form in (("jsonl", JsonLines), ("csv", CsvFile)):
        [chunk] = form(str(tmp_path / f"a.{ending}"), schema.columns).chunks()
        assert not chunk.bad
        for name, column in zip(schema.names, columns, strict=True):
            assert chunk.rows.column(name).type == column.type
            assert repr(chunk.rows.column(name).to_pylist()) == repr(column.to_pylist())


def test_a_folder_has_a_sorted_part_for_each_vertex(tmp_path):
    one, two = [(3, 5, 1.0, "a"), (1, 5, 1.0, "a")], [(2, 5, 1.0, "a")]
    for _ in range(2):  # the second time it replaces the first
        write(f"{tmp_path}/out/", [[one], [two], []])
    assert sorted(os.listdir(tmp_path)) == ["out"]
    names = [f"part-0000{i}.parquet" for i in range(3)]
    assert sorted(os.listdir(tmp_path / "out")) == ["_digest", *names]
    parts = [pq.read_table(tmp_path / "out" / n)["vs"].to_pylist() for n in names]
    assert parts == [[1, 3], [2], []]


def test_nothing_is_seen_before_the_end(tmp_path):
    path = tmp_path / "deep" / "a.jsonl"
    writer = OutputWriter(path, SCHEMA, memory=0)
    writer.write(0, batch_of([(1, 2, 1.0, "a")]))
    assert not path.exists()
    writer.close(Digest(1, 1))
    before = path.read_bytes()
    second = OutputWriter(path, SCHEMA)
    second.write(0, batch_of([(7, 8, 1.0, "b")]))
    second.abort()
    assert path.read_bytes() == before
    assert read_sidecar(str(path)).digest == str(Digest(1, 1))
    assert sorted(os.listdir(path.parent)) == ["a.jsonl", "a.jsonl.digest"]


def test_what_an_output_carries(tmp_path):
    rows = [(1, 2, 1.0, "a")]
    for path in (f"{tmp_path}/a.csv", f"{tmp_path}/out/"):
        write(path, [[rows]])
        sidecar = read_sidecar(path.rstrip("/"))
        assert sidecar.digest == str(digest(batch_of(rows)))
        assert sidecar_schema(path, sidecar) == SCHEMA
    assert (tmp_path / "a.csv.digest").read_bytes() == (tmp_path / "out/_digest").read_bytes()
    assert (tmp_path / "a.csv.digest").read_text() == (
        f'{{"digest":"{digest(batch_of(rows))}","rows":1,"time":"BIGINT","lifetime":true,'
        '"columns":[["x","DOUBLE"],["s","STRING"]]}\n'
    )


def test_every_type_is_read_back_from_what_an_output_carries(tmp_path):
    struct = pa.struct([("p", TIMESTAMP), ("q", pa.list_(INT))])
    decimals = pa.list_(pa.decimal128(20, 10))
    types = (BIGINT, INT, DOUBLE, BOOLEAN, STRING, BINARY, TIMESTAMP, DATE, NULL, struct, decimals)
    schema = Schema(tuple((f"c{i}", t) for i, t in enumerate(types)), TIMESTAMP)
    OutputWriter(tmp_path / "a.jsonl", schema, lifetime=False).close(Digest())
    sidecar = read_sidecar(str(tmp_path / "a.jsonl"))
    assert sidecar_schema("a.jsonl", sidecar) == schema
    assert not sidecar.lifetime
    for text in ("{", '{"digest": 1}', ""):
        (tmp_path / "a.jsonl.digest").write_text(text)
        with pytest.raises(InputError, match=r"a\.jsonl\.digest: not a digest file"):
            read_sidecar(str(tmp_path / "a.jsonl"))


@pytest.mark.parametrize("failing", [1, 2])
def test_an_old_digest_never_stands_beside_a_new_output(tmp_path, monkeypatch, failing):
    """Whichever of the renames fails."""
    path = tmp_path / "a.csv"
    write(path, [[[(1, 2, 1.0, "old")]]])
    replaces = 0

    def replace(*paths):
        nonlocal replaces
        replaces += 1
        if replaces == failing:
            raise OSError("no luck")
        rename(*paths)

    rename = os.replace
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(RunError, match="no luck"):
        write(path, [[[(1, 2, 1.0, "new")]]])
    assert ("new" in path.read_text()) == (failing == 2)
    assert not (tmp_path / "a.csv.digest").exists()


def test_rows_without_a_lifetime(tmp_path):
    writer = OutputWriter(tmp_path / "bad.jsonl", SCHEMA, lifetime=False)
    writer.write(0, batch_of([(2, 3, 1.0, "b"), (1, 2, 2.0, "a")]))
    writer.close(Digest())
    lines = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert lines == ['{"x":2.0,"s":"a"}', '{"x":1.0,"s":"b"}']


def test_unknown_endings_are_refused(tmp_path):
    with pytest.raises(PlanError, match="format"):
        OutputWriter(tmp_path / "a.xls", SCHEMA)
    assert not os.listdir(tmp_path)


# --- what the system refuses ---------------------------------------------------------------


def test_errors_name_the_output_and_no_temporary_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    long = "x" * 300 + ".csv"
    with pytest.raises(RunError, match=f"^cannot write '{long}': File name too long$"):
        OutputWriter(long, SCHEMA)
    (tmp_path / "file").write_text("")
    with pytest.raises(
        RunError, match=r"^cannot write 'file/a\.csv': a part of its path is a file"
    ):
        OutputWriter("file/a.csv", SCHEMA)

    def full(*_):
        raise OSError(28, "No space left on device", "/tmp/.a.csv.xyz/run-0")

    writer = OutputWriter("a.csv", SCHEMA, memory=0)
    told = r"^cannot write 'a\.csv': No space left on device$"
    with monkeypatch.context() as patched:
        patched.setattr(runs.SortedRuns, "spill", full)
        with pytest.raises(RunError, match=told):
            writer.write(0, batch_of([(1, 2, 0.5, "a")]))
    for place, function in ((runs.SortedRuns, "run_iterators"), (os, "replace")):
        with monkeypatch.context() as patched:
            patched.setattr(place, function, full)
            with pytest.raises(RunError, match=told):
                writer.close(Digest())
    writer.abort()
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


# --- what stood there before ---------------------------------------------------------------


def written(path, rows):
    writer = OutputWriter(path, SCHEMA)
    writer.write(0, rows)
    writer.close(digest(rows))


def test_a_folder_with_other_files_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letters.txt").write_text("dear")
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(RunError, match=r"the folder has other files, such as letters\.txt"):
        OutputWriter(f"{tmp_path}/mine/", SCHEMA)
    with pytest.raises(RunError, match="it is a folder"):
        OutputWriter(str(tmp_path / "x.csv"), SCHEMA)
    assert (tmp_path / "mine" / "letters.txt").read_text() == "dear"


def test_an_interrupted_folder_leaves_the_old_one(tmp_path, monkeypatch):
    rows = batch_of([(1, 2, 0.5, "a")])
    written(f"{tmp_path}/out/", rows)
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}
    writer = OutputWriter(f"{tmp_path}/out/", SCHEMA)
    replace = os.replace

    def interrupted(source, target):
        if str(target) == str(tmp_path / "out"):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        writer.close(digest(rows))
    writer.abort()
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == before


def test_json_lines_have_columns_of_any_name(tmp_path):
    names = ['a"b', "c\\d", "e\nf", "g\x1b"]
    path = str(tmp_path / "o.jsonl")
    schema = Schema(tuple((name, BIGINT) for name in names), BIGINT)
    rows = Batch(np.array([1]), np.array([2]), tuple(pa.array([i], BIGINT) for i in range(4)))
    writer = OutputWriter(path, schema)
    writer.write(0, rows)
    writer.close(digest(rows))
    wanted = {"vs": 1, "ve": 2, **{name: i for i, name in enumerate(names)}}
    with open(path, encoding="utf-8") as file:
        assert json.loads(file.read()) == wanted


@settings(max_examples=50)
@given(ticks=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20), nested=st.booleans())
def test_times_of_every_year_are_read_back(tmp_path_factory, ticks, nested):
    """Nested values are decoded, others scanned."""
    folder = tmp_path_factory.mktemp("years")
    times = pa.array(ticks, BIGINT).view(TIMESTAMP)
    days = pa.array([t // 86_400_000_000 for t in ticks], INT).view(DATE)
    columns = {"t": times, "d": days}
    if nested:
        columns["l"] = pa.ListArray.from_arrays(pa.array(range(len(ticks) + 1), INT), times)
    batch = pa.RecordBatch.from_pydict(columns)
    for ending, reader in ((".jsonl", JsonLines), (".csv", CsvFile)):
        path = str(folder / f"a{ending}")
        sink = SINKS[ending](path, batch.schema)
        sink.write(batch)
        sink.close()
        [chunk] = reader(path, tuple((f.name, f.type) for f in batch.schema)).chunks()
        assert not chunk.bad
        for name, column in columns.items():
            assert chunk.rows.column(name).equals(column.cast(chunk.rows.column(name).type))
