"""Outputs read back, and the first difference of two."""

import json
import math
import resource
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import InputError
from weir.events.batch import OPEN, Batch
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
)
from weir.files import output_diff as diff
from weir.files import sorted_runs as runs
from weir.files.output_diff import SHOWN_ROWS, compare_rows, first_difference, total_digest
from weir.files.saved_outputs import open_outputs
from weir.files.sinks import SINKS
from weir.files.writers import OutputForm, OutputWriter
from weir.plan.schema import Schema
from weir.reliable.digest import Digest, digest

SCHEMA = Schema((("x", DOUBLE), ("s", STRING)), BIGINT)

rows_of = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from([5, OPEN]),
        st.sampled_from([None, 0.0, -0.0, math.nan, 1.5]),
        st.sampled_from([None, "", "a"]),
    ),
    max_size=12,
)


def batch_of(rows):
    return Batch(
        np.array([r[0] for r in rows], np.int64),
        np.array([r[1] for r in rows], np.int64),
        (pa.array([r[2] for r in rows], DOUBLE), pa.array([r[3] for r in rows], STRING)),
    )


def save(path, rows, vertices=1):
    """An output by Weir."""
    writer = OutputWriter(path, SCHEMA, vertices)
    for vertex in range(vertices):
        writer.write(vertex, batch_of(rows[vertex::vertices]))
    writer.close(digest(batch_of(rows)))


def save_as_is(path, rows):
    """A file in the order of the rows, that carries nothing."""
    OutputForm(path.suffix, SCHEMA).write(str(path), iter([batch_of(rows)] if rows else []))


def untold(rows):
    pass


def differ(a, b, **options):
    return first_difference(*open_outputs([str(a), str(b)]), untold, **options)


def canonical(row):
    vs, ve, x, s = row
    x = "NaN" if x is not None and math.isnan(x) else 0.0 if x == 0 else x
    return vs, None if ve == OPEN else ve, x, s


def as_tuples(only):
    return Counter((r["vs"], r["ve"], 0.0 if r["x"] == 0 else r["x"], r["s"]) for r in only.rows)


# --- the first difference ------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(rows_of, rows_of, st.data())
def test_against_counting_rows(tmp_path_factory, mine, others, data):
    folder = tmp_path_factory.mktemp("diff")
    common = data.draw(rows_of)
    a, b = [*common, *mine], data.draw(st.permutations([*common, *others]))
    paths = {"a.parquet": a, "b.csv": b}
    for name, rows in paths.items():
        if data.draw(st.booleans()):
            save_as_is(folder / name, rows)
        else:
            save(folder / name, rows)
    if data.draw(st.booleans()):
        save(f"{folder}/b/", b, 3)
        (folder / "b.csv").unlink()
    second = folder / ("b" if (folder / "b").exists() else "b.csv")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "BLOCK_ROWS", 4)
        patched.setattr(diff, "BLOCK_ROWS", 4)
        found = differ(
            folder / "a.parquet", second, memory=data.draw(st.sampled_from([0, 1 << 20]))
        )
        counted = compare_rows(
            *open_outputs([str(folder / "a.parquet"), str(second)]), untold, memory=0
        )
    first, second = Counter(map(canonical, a)), Counter(map(canonical, b))
    assert counted.only_a == (first - second).total()
    assert counted.only_b == (second - first).total()
    assert counted.digests == (digest(batch_of(a)), digest(batch_of(b)))
    times = [row[0] for row in (first - second) + (second - first)]
    if not times:
        assert found is None
        return
    time = min(times)
    assert found.time == time
    for only, wanted in ((found.only_a, first - second), (found.only_b, second - first)):
        here = Counter({row: n for row, n in wanted.items() if row[0] == time})
        # What is shown is a part of it, and the count is right.
        assert not as_tuples(only) - here
        assert len(only.rows) + only.more == here.total()
        assert len(only.rows) == min(SHOWN_ROWS, here.total())


def test_many_equal_rows_at_one_time_are_counted_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "BLOCK_ROWS", 16)
    monkeypatch.setattr(diff, "BLOCK_ROWS", 16)
    same = [(1, 2, 0.5, "same")] * 300
    many = [(1, 2, float(i), "many") for i in range(50)]
    save(f"{tmp_path}/a/", [*same, *many, (0, 1, 1.0, "z"), (9, 10, 1.0, "later")], 2)
    save(f"{tmp_path}/b/", [*same, *same[:45], (0, 1, 1.0, "z")], 3)
    found = differ(tmp_path / "a", tmp_path / "b")
    assert found.time == 1
    assert [r["x"] for r in found.only_a.rows] == [float(i) for i in range(20)]
    assert found.only_a.more == 30
    assert found.only_b.rows == ({"vs": 1, "ve": 2, "x": 0.5, "s": "same"},) * 20
    assert found.only_b.more == 25


def test_reading_stops_behind_the_first_difference(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "BLOCK_ROWS", 10)
    monkeypatch.setattr(diff, "BLOCK_ROWS", 10)
    rows = [(i, i + 1, 1.0, "a") for i in range(500)]
    save(tmp_path / "a.parquet", rows)
    save(tmp_path / "b.parquet", [(0, 1, 2.0, "a"), *rows[1:]])
    read: list[int] = []
    [a, b] = open_outputs([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")])
    assert first_difference(a, b, read.append).time == 0
    assert sum(read) < 1000 + 60  # both once to see whether they are in order, then some blocks


def test_unsorted_files_are_sorted_on_disk(tmp_path, monkeypatch):
    spilled = []
    real = runs.SortedRuns.spill
    monkeypatch.setattr(runs.SortedRuns, "spill", lambda self: spilled.append(self) or real(self))
    rows = [(i % 50, 60, float(i), "a") for i in range(500)]
    save_as_is(tmp_path / "a.parquet", rows[:-1])
    save_as_is(tmp_path / "b.parquet", rows)
    found = differ(tmp_path / "a.parquet", tmp_path / "b.parquet", memory=0)
    assert (found.time, found.only_a.rows, found.only_a.more) == (49, (), 0)
    assert [r["x"] for r in found.only_b.rows] == [499.0]
    assert len(spilled) == 4  # of each file: its one batch, and what is left


def test_a_folder_of_more_parts_than_files_may_be_open(tmp_path):
    rows = [(t // 7, OPEN, float(t), "a") for t in range(900)]
    save(f"{tmp_path}/a/", rows, vertices=300)
    save(f"{tmp_path}/b/", [*rows[:650], *rows[651:]], vertices=5)
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    now_open = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (now_open + 150, most))
    try:
        found = differ(tmp_path / "a", tmp_path / "b")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
    assert (found.time, found.only_b.rows) == (92, ())
    assert [r["x"] for r in found.only_a.rows] == [650.0]


@pytest.mark.parametrize("most", [2, 3])
def test_runs_are_merged_in_groups(tmp_path, monkeypatch, most):
    monkeypatch.setattr(runs, "MOST_RUNS", most)
    monkeypatch.setattr(runs, "BLOCK_ROWS", 4)
    rows = [(t * 7 % 50, OPEN, float(t), None) for t in range(100)]
    sorters = [runs.SortedRuns(str(tmp_path), f"r{i}", SCHEMA.types) for i in range(11)]
    for i, sorter in enumerate(sorters[:10]):  # the last has no rows
        sorter.add(batch_of(rows[i::10]))
        sorter.spill()
    each = [run for sorter in sorters for run in sorter.run_iterators()]
    came = [batch for batch in runs.merge_runs(each, str(tmp_path)) if len(batch)]
    pairs = [(int(b.vs[i]), b.columns[0][i].as_py()) for b in came for i in range(len(b))]
    assert pairs == sorted((vs, x) for vs, _, x, _ in rows)


def test_times_are_shown_as_outputs_have_them(tmp_path):
    schema = Schema((), TIMESTAMP)
    for name, second in (("a", OPEN), ("b", 60_000_000)):
        batch = Batch(np.array([0, 1]), np.array([second, OPEN]), ())
        writer = OutputWriter(tmp_path / f"{name}.arrow", schema)
        writer.write(0, batch)
        writer.close(digest(batch))
    found = differ(tmp_path / "a.arrow", tmp_path / "b.arrow")
    epoch = "1970-01-01T00:00:00.000000Z"
    assert found.time == epoch
    assert found.only_a.rows == ({"vs": epoch, "ve": None},)
    assert found.only_b.rows == ({"vs": epoch, "ve": "1970-01-01T00:01:00.000000Z"},)


# --- reading back --------------------------------------------------------------------------

TYPES = (BIGINT, INT, DOUBLE, BOOLEAN, STRING, BINARY, TIMESTAMP, DATE, pa.decimal128(9, 2), NULL)
VALUES = (2**60, -5, -math.inf, False, 'b,"\n', b"\x00z", 7, 19_000, 1, None)
NESTED = {
    "l": pa.array([[1.5, None], None], pa.list_(DOUBLE)),
    "r": pa.array([{"p": 5, "q": "a"}, None], pa.struct([("p", TIMESTAMP), ("q", STRING)])),
}


@pytest.mark.parametrize("ending", list(SINKS))
def test_the_digest_survives_every_format(tmp_path, ending):
    nested = {} if ending == ".csv" else NESTED
    columns = [pa.array([v, None], t) for v, t in zip(VALUES, TYPES, strict=True)]
    columns += nested.values()
    names = [*(f"c{i}" for i in range(len(TYPES))), *nested]
    types = [column.type for column in columns]
    schema = Schema(tuple(zip(names, types, strict=True)), TIMESTAMP)
    batch = Batch(np.array([1, 2]), np.array([9, OPEN]), tuple(columns))
    writer = OutputWriter(tmp_path / f"a{ending}", schema)
    writer.write(0, batch)
    writer.close(digest(batch))
    [saved] = open_outputs([str(tmp_path / f"a{ending}")])
    assert total_digest(saved, untold) == digest(batch)


def test_types_that_others_write(tmp_path):
    ours = OutputWriter(tmp_path / "a.jsonl", SCHEMA)
    ours.write(0, batch_of([(1, 2, 1.5, "a"), (3, OPEN, None, "b")]))
    ours.close(Digest())
    table = pa.table(
        {
            "vs": pa.array([3, 1], pa.int64()),
            "ve": pa.array([None, 2], pa.int64()),
            "x": pa.array([None, 1.5], pa.float32()),
            "s": pa.array(["b", "a"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "b.parquet")
    with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as file:
        large = table.cast(table.schema.set(3, pa.field("s", pa.large_string())))
        with pa.ipc.new_stream(file, large.schema) as stream:
            stream.write_table(large)
    for name in ("b.parquet", "c.arrow"):
        assert differ(tmp_path / "a.jsonl", tmp_path / name) is None


def test_text_without_types_borrows_those_of_the_other(tmp_path):
    save(tmp_path / "a.parquet", [(1, 2, 1.0, "a"), (1, OPEN, None, "1")])
    text = '{"s": "1", "vs": 1}\n{"vs": 1, "ve": 2, "x": 1, "s": "a"}\n'
    (tmp_path / "b.jsonl").write_text(text)
    assert differ(tmp_path / "a.parquet", tmp_path / "b.jsonl") is None
    assert differ(tmp_path / "b.jsonl", tmp_path / "a.parquet") is None
    (tmp_path / "c.csv").write_text("s,vs,ve,x\n1,1,,\na,1,2,1\n")
    assert differ(tmp_path / "a.parquet", tmp_path / "c.csv") is None
    with pytest.raises(InputError, match=r"b\.jsonl: the types of its columns are not known"):
        open_outputs([str(tmp_path / "b.jsonl"), str(tmp_path / "c.csv")])


def test_rows_without_a_lifetime_are_points_at_their_offset(tmp_path):
    schema = Schema((("offset", BIGINT), ("row", STRING)), BIGINT)
    batch = Batch(
        np.array([4, 7]), np.array([5, 8]), (pa.array([4, 7]), pa.array(["x", "y"], STRING))
    )
    for ending in SINKS:
        writer = OutputWriter(tmp_path / f"bad{ending}", schema, lifetime=False)
        writer.write(0, batch)
        writer.close(digest(batch))
        [saved] = open_outputs([str(tmp_path / f"bad{ending}")])
        assert total_digest(saved, untold) == digest(batch)
    shorter = OutputWriter(tmp_path / "b.csv", schema, lifetime=False)
    shorter.write(0, batch.slice(0, 1))
    shorter.close(Digest())
    found = differ(tmp_path / "bad.jsonl", tmp_path / "b.csv")
    assert (found.time, found.only_a.rows) == (7, ({"offset": 7, "row": "y"},))


def broken_files(folder):
    pq.write_table(pa.table({"k": [1]}), folder / "no_times.parquet")
    pq.write_table(
        pa.table({"vs": [1], "ve": [2], "t": pa.array([1], pa.time64("us"))}),
        folder / "time.parquet",
    )
    (folder / "torn.parquet").write_bytes(b"PAR1")
    (folder / "torn.arrow").write_bytes(b"ARROW1")
    (folder / "torn.jsonl").write_text('{"vs": 1,\n')
    (folder / "list.jsonl").write_text("[1]\n")
    (folder / "wrong.csv").write_text("vs,ve,x,s\n1,2,many,a\n")
    (folder / "bytes.csv").write_bytes(b"\xff\xfe\n")
    (folder / "a.txt").write_text("a")
    (folder / "empty").mkdir()
    (folder / "two").mkdir()
    save(folder / "two/a.parquet", [])
    pq.write_table(pa.table({"vs": [1], "ve": [2], "x": [1]}), folder / "two/b.parquet")
    (folder / "two/a.parquet.digest").unlink()
    (folder / "mixed").mkdir()
    save(folder / "mixed/a.parquet", [])
    save(folder / "mixed/b.csv", [])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.csv", "nowhere.csv: no such file or folder"),
        ("no_times.parquet", "not an output: it has no time columns vs and ve"),
        ("time.parquet", "column t: no type of Weir holds time64"),
        ("torn.parquet", "torn.parquet: not a readable file"),
        ("torn.arrow", "torn.arrow: not a readable file"),
        ("torn.jsonl", "torn.jsonl, line 1: not a readable file"),
        ("list.jsonl", "list.jsonl, line 1: not a readable file"),
        ("wrong.csv", "wrong.csv, line 2, column x: wanted DOUBLE, came 'many'"),
        ("bytes.csv", "bytes.csv, line 1: not a readable file"),
        ("a.txt", "a.txt: not an output"),
        ("empty", "empty: not an output"),
        ("mixed", "mixed: not an output"),
        ("two", "two: parts of one output differ: x is DOUBLE in "),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, message):
    broken_files(tmp_path)
    save(tmp_path / "good.parquet", [(1, 2, 1.0, "a")])
    with pytest.raises(InputError) as raised:
        differ(tmp_path / name, tmp_path / "good.parquet")
    assert message in str(raised.value)


def test_a_file_that_is_damaged_inside_is_named(tmp_path):
    save(tmp_path / "a.parquet", [(i, i + 1, float(i), f"{i}") for i in range(5000)])
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:40] = b"\xff" * 36
    (tmp_path / "a.parquet").write_bytes(data)
    [saved] = open_outputs([str(tmp_path / "a.parquet")])
    with pytest.raises(InputError, match=r"a\.parquet: not a readable file: .*(checksum|page)"):
        total_digest(saved, untold)


def test_a_column_of_nulls_must_be_one(tmp_path):
    schema = Schema((("n", NULL),), BIGINT)
    OutputWriter(tmp_path / "a.jsonl", schema).close(Digest())
    (tmp_path / "a.jsonl").write_text(json.dumps({"vs": 1, "ve": 2, "n": "x"}))
    [saved] = open_outputs([str(tmp_path / "a.jsonl")])
    with pytest.raises(InputError, match="column n: expected NULL in every row"):
        total_digest(saved, untold)
