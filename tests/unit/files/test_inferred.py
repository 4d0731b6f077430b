"""`weir schema`: the STREAM statement of a file runs over that file."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from weir.errors import InputError
from weir.files.inferred import inferred_stream
from weir.script import parse_program


def rows_of(path: Path) -> list[dict[str, object]]:
    """Run the statement over its file, with every warning an error."""
    statement = inferred_stream(str(path)).text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = path.parent / "out.jsonl"
        name = parse_program(statement).sources[0].name
        weir.run(f"{statement} OUTPUT {name} TO '{out}';")
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "my-orders.csv.gz"
    text = """Order Id,placed,Shop,amount,note,end,day
1,2024-01-01T10:00:00Z,x,3.5,,true,2024-01-01
2,2024-01-01 09:59:58.5,"y,z",4,,FALSE,2024-01-02
"""
    path.write_bytes(gzip.compress(text.encode()))
    assert inferred_stream(str(path)).text().splitlines() == [
        "-- note: no value was seen, so the type is a guess.",
        "-- Rows are not in the order of placed: the delay admits those that were seen.",
        "STREAM MyOrders (",
        '  "Order Id" BIGINT,',
        "  placed TIMESTAMP,",
        "  Shop STRING,",
        "  amount DOUBLE,",
        "  note STRING,",
        '  "end" BOOLEAN,',
        "  day DATE",
        ")",
        f"  FROM '{path}'",
        "  WITH (vs = placed, delay = 2s);",
    ]
    assert [row["Order Id"] for row in rows_of(path)] == [2, 1]


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [
        {"event_time": 1_700_000_000_500, "n": 1, "x": 1, "tags": [], "who": {"name": "a"}},
        {"event_time": 1_700_000_000_400, "x": 1.5, "tags": ["b"], "who": {"age": 3}, "odd": 1},
        {"$cti": 1_700_000_000_400},
        {"event_time": 1_700_000_000_600, "odd": "x"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = inferred_stream(str(path))
    assert (found.vs, found.unit, found.delay) == ("event_time", "ms", 100_000)
    assert found.as_json()["columns"] == [
        ["event_time", "BIGINT"],
        ["n", "BIGINT"],
        ["x", "DOUBLE"],
        ["tags", "LIST(STRING)"],
        ["who", "STRUCT(name STRING, age BIGINT)"],
        ["odd", "STRING"],
    ]


def test_parquet_and_arrow(tmp_path: Path) -> None:
    types = {
        "t": pa.timestamp("ms"), "i": pa.int16(), "u": pa.uint32(), "f": pa.float32(),
        "d": pa.decimal128(10, 2), "s": pa.dictionary(pa.int32(), pa.large_string()),
        "l": pa.large_list(pa.int64()), "b": pa.binary(), "day": pa.date32(),
    }  # fmt: skip
    row = {"t": 5, "i": 1, "u": 2, "f": 0.5, "d": None, "s": "x", "l": [1], "b": b"x", "day": 3}
    table = pa.table({n: pa.array([row[n]], t) for n, t in types.items() if n != "s"})
    table = table.append_column("s", pa.array(["x"], pa.large_string()).dictionary_encode())
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    assert [n for n, _ in inferred_stream(str(path)).columns] == table.column_names
    assert rows_of(path)[0]["s"] == "x"
    path = str(tmp_path / "a.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    assert rows_of(tmp_path / "a.arrow")[0]["u"] == 2


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.csv", "", "the file is empty"),
        ("a.csv", "a;b\n1;2\n", "the header has `;` between its fields"),
        ("a.jsonl", "", "no rows to guess columns from"),
        ("a.jsonl", "{}\n{", "line 2: no JSON"),
        ("a.jsonl", "[1]", "line 1: each line is to be an object"),
        ("a.txt", "x", "its ending says no format"),
        ("a.csv", "ts,id,id\n1,2,3\n", "a.csv, column id: there are 2 columns of this name"),
    ],
)
def test_what_says_nothing(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as told:
        inferred_stream(str(tmp_path / name))
    assert why in str(told.value)


def test_without_a_time_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,n\nx,1\n", encoding="utf-8")
    text = inferred_stream(str(tmp_path / "a.csv")).text()
    assert text.startswith("-- No column looks like a time: say which one is (`vs`)")
    assert "WITH (vs = …);" in text
    (tmp_path / "a.csv").write_text("when,n\n01/31/2026 10:00,1\n", encoding="utf-8")
    text = inferred_stream(str(tmp_path / "a.csv")).text()
    assert "-- when: a time is ISO 8601 text or a whole number: convert it before" in text


def test_a_column_without_a_type_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    odd = pa.array([5], pa.time64("us"))
    table = {"ts": pa.array([5], pa.timestamp("us")), "u": pa.array([7], pa.uint64()), "m": odd}
    pq.write_table(pa.table(table), path)
    assert inferred_stream(str(path)).text().splitlines()[:2] == [
        "-- m: there is no type for time64[us], so it is left out.",
        "STREAM A (ts TIMESTAMP, u BIGINT)",
    ]
    assert rows_of(path)[0]["u"] == 7
    pq.write_table(pa.table({"m": odd}), path)
    with pytest.raises(InputError, match="m: there is no type for time64"):
        inferred_stream(str(path))


@pytest.mark.parametrize(("pattern", "name"), [("", "Events"), ("/*.jsonl", "Events")])
def test_all_files_of_a_folder(tmp_path: Path, pattern: str, name: str) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    rows = [{"ts": 5, "x": 1, "tags": []}, {"ts": 9, "x": 1.5, "tags": [1]}, {"ts": 7, "more": "a"}]
    for number, row in enumerate(rows):
        (folder / f"p{number}.jsonl").write_text(json.dumps(row), encoding="utf-8")
    found = inferred_stream(f"{folder}{pattern}")
    assert (found.name, found.delay) == (name, 0)
    assert found.notes == ["Guessed from the first rows of 3 files."]
    columns = [["ts", "BIGINT"], ["x", "DOUBLE"], ["tags", "LIST(BIGINT)"], ["more", "STRING"]]
    assert found.as_json()["columns"] == columns


def test_a_column_that_not_all_tables_have(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,x,y\n3,1,2\n1,1,2\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("ts,x\n1,2.5\n", encoding="utf-8")
    found = inferred_stream(str(tmp_path / "*.csv"))
    assert found.as_json()["columns"] == [["ts", "BIGINT"], ["x", "DOUBLE"]]
    assert f"y: {tmp_path / 'b.csv'} has no such column, so it is left out." in found.notes
    assert found.delay == 2
