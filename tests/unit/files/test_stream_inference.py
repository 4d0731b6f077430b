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
from weir.files.stream_inference import inferred_stream
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
        "t": pa.timestamp("ms"),
        "i": pa.int16(),
        "u": pa.uint32(),
        "f": pa.float32(),
        "d": pa.decimal128(10, 2),
        "s": pa.dictionary(pa.int32(), pa.large_string()),
        "l": pa.large_list(pa.int64()),
        "b": pa.binary(),
        "day": pa.date32(),
    }
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
        ("a.jsonl", "{}\n{", "line 2: not JSON"),
        ("a.jsonl", "[1]", "line 1: each line must be an object"),
        ("a.txt", "x", "unknown format; expected"),
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
    assert text.startswith("-- No column looks like a time: set `vs` to")
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


@pytest.mark.parametrize("name", ["order.csv", "sel ect.csv", "group.csv"])
def test_a_file_that_is_called_like_a_word_of_the_language(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("vs,v\n1,2\n", encoding="utf-8")
    assert rows_of(tmp_path / name)[0]["v"] == 2


def test_names_that_no_column_can_have(tmp_path: Path) -> None:
    names = ["http.method", "", "window_start", 'a"b', "a\n", "in"]
    row = {"ts": 1, "$c": 2, **dict.fromkeys(names[:-1], 3), "in": {"x.y": 1}}
    (tmp_path / "a.jsonl").write_text(json.dumps(row), encoding="utf-8")
    found = inferred_stream(str(tmp_path / "a.jsonl"))
    assert [n for n, _ in found.columns] == ["ts", "$c"]
    assert [note.split(":")[0] for note in found.notes] == [n or "(no name)" for n in names]
    assert all(
        note.endswith("not a valid name of a column, so it is left out.") for note in found.notes
    )
    assert rows_of(tmp_path / "a.jsonl") == [{"vs": 1, "ve": 2, "ts": 1, "$c": 2}]


@pytest.mark.parametrize(
    ("value", "column"),
    [
        (2**63 - 1, "BIGINT"),
        (-(2**63), "BIGINT"),
        (2**63, "DECIMAL(20, 0)"),
        (99999999999999999999, "DECIMAL(20, 0)"),
        (-(10**20), "DECIMAL(38, 0)"),
        (10**38 - 1, "DECIMAL(38, 0)"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_whole_numbers_keep_all_digits(tmp_path: Path, name: str, value: int, column: str) -> None:
    text = f"ts,id\n1,{value}\n2,5\n"
    if name == "a.jsonl":
        text = f'{{"ts": 1, "id": {value}}}\n{{"ts": 2, "id": 5}}\n'
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = inferred_stream(str(tmp_path / name))
    assert dict(found.as_json()["columns"])["id"] == column
    assert ("id: there are numbers beyond 64 bits." in found.notes) == (column != "BIGINT")
    assert [int(str(row["id"])) for row in rows_of(tmp_path / name)] == [value, 5]


@pytest.mark.parametrize(
    "values", ["007,01.5", "01234,99999", "+4912,+1", f"{10**40},1", f"{'9' * 5000},1", "00,1"]
)
def test_codes_are_no_numbers(tmp_path: Path, values: str) -> None:
    one, other = values.split(",")
    (tmp_path / "a.csv").write_text(f"ts,code\n1,{one}\n2,{other}\n3,\n", encoding="utf-8")
    found = inferred_stream(str(tmp_path / "a.csv"))
    assert dict(found.as_json()["columns"])["code"] == "STRING"
    assert found.notes[0].startswith("code: numbers with leading zeros, a plus or many digits")
    assert [row["code"] for row in rows_of(tmp_path / "a.csv")] == [one, other, None]


@pytest.mark.parametrize("number", ["0", "-5", "0.5", "-0.5", "1e05", "10"])
def test_numbers_are_no_codes(tmp_path: Path, number: str) -> None:
    (tmp_path / "a.csv").write_text(f"ts,n\n1,{number}\n", encoding="utf-8")
    found = inferred_stream(str(tmp_path / "a.csv"))
    assert dict(found.as_json()["columns"])["n"] == (
        "BIGINT" if number.isdigit() or number == "-5" else "DOUBLE"
    )
    assert not found.notes


def test_values_of_several_types(tmp_path: Path) -> None:
    rows = [{"ts": i, "a": i, "l": [i]} for i in range(9)] + [{"ts": 9, "a": "x", "l": ["y", "z"]}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = inferred_stream(str(tmp_path / "a.jsonl"))
    columns = [["ts", "BIGINT"], ["a", "BIGINT"], ["l", "LIST(BIGINT)"]]
    assert found.as_json()["columns"] == columns
    bad = "such rows are bad, and bad = 'skip' leaves them out."
    assert found.notes == [
        f"a: 1 of 10 values is not numeric: {bad}",
        f"l: 2 of 11 values are not numeric: {bad}",
    ]
    skipping = found.text().replace("vs = ts", "vs = ts, bad = 'skip'")
    report = weir.run(f"{skipping} OUTPUT A TO '{tmp_path / 'out.csv'}';")
    assert (report.outputs[0].rows, report.inputs[0].bad) == (9, 1)


def test_types_that_differ_between_files(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", "x")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"ts": 1, "v": value}), encoding="utf-8")
    found = inferred_stream(str(tmp_path / "*.jsonl"))
    assert "v: BIGINT in some files, STRING in others." in found.notes


def test_a_time_by_a_short_name_and_one_without_values(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": 1767225600123, "v": 1}', encoding="utf-8")
    found = inferred_stream(str(tmp_path / "a.jsonl"))
    assert (found.vs, found.unit) == ("t", "ms")
    (tmp_path / "a.csv").write_text("ts,v\n", encoding="utf-8")
    notes = inferred_stream(str(tmp_path / "a.csv")).notes
    assert notes[0] == "ts, v: no value was seen, so the type is a guess."
    assert not any("convert it before" in note for note in notes)


def test_a_folder_of_one_file_has_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "clicks").mkdir()
    (tmp_path / "clicks" / "part-0.csv").write_text("vs,v\n1,2\n", encoding="utf-8")
    assert inferred_stream(str(tmp_path / "clicks")).name == "Clicks"
    assert inferred_stream(str(tmp_path / "clicks" / "*.csv")).name == "Part0"
