"""The first rows of inputs are looked at before a run: for what is there and hardly meant."""

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

ROWS = [{"At": 1_700_000_000 + i, "shop": "x", "v": i} for i in range(3)]


def write(folder: Path, rows: list[dict[str, object]], name: str = "a.jsonl") -> None:
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / name).write_text(text, encoding="utf-8")


def run(folder: Path, columns: str, options: str, name: str = "a.jsonl") -> list[dict[str, object]]:
    text = f"STREAM A ({columns}) FROM '{name}' WITH ({options}); Out = SELECT * FROM A;"
    weir.run(f"{text} OUTPUT Out TO 'out.jsonl';", directory=folder)
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("size", "unit", "word"),
    [(1, "s", "seconds"), (10**3, "ms", "milliseconds"), (10**9, "ns", "nanoseconds")],
)
def test_numbers_since_1970(tmp_path: Path, size: int, unit: str, word: str) -> None:
    write(tmp_path, [{**row, "At": row["At"] * size} for row in ROWS])
    with pytest.warns(
        weir.PlanWarning, match=rf"looks like {word} since 1970 .*2023-11-14"
    ) as told:
        run(tmp_path, "At BIGINT, v BIGINT", "vs = At")
    assert f"unit = '{unit}'" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = run(tmp_path, "At BIGINT, v BIGINT", f"vs = At, unit = '{unit}'")
        plain = run(tmp_path, "At BIGINT, v BIGINT", "vs = At, unit = 'tick'")
    assert rows[1]["vs"] == "2023-11-14T22:13:21.000000Z"
    assert (rows[1]["At"], plain[1]["vs"]) == (ROWS[1]["At"] * size, ROWS[1]["At"] * size)


@pytest.mark.parametrize(
    ("size", "said", "unit"), [(1000, "s", "ms"), (1, "ms", "s"), (10**9, "us", "ns")]
)
def test_numbers_of_another_unit_than_is_said(
    tmp_path: Path, size: int, said: str, unit: str
) -> None:
    write(tmp_path, [{**row, "At": row["At"] * size} for row in ROWS])
    with pytest.warns(weir.PlanWarning, match="looks like .* 2023-11-14.*taken for") as told:
        run(tmp_path, "At BIGINT, v BIGINT", f"vs = At, unit = '{said}'")
    assert f"unit = '{unit}'" in str(told[0].message)


@pytest.mark.parametrize("first", [0, 5, 1_700_000_000_000_000, -3])
def test_other_numbers_are_ticks(tmp_path: Path, first: int) -> None:
    write(tmp_path, [{"At": first, "v": 1}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(tmp_path, "At BIGINT, v BIGINT", "vs = At")


def test_units_and_ends_and_ctis(tmp_path: Path) -> None:
    rows = [
        {"vs": 1, "ve": 3},
        {"$cti": 2},
        {"vs": 2, "ve": None},
        {"$cti": "1970-01-01T00:00:03Z"},
    ]
    write(tmp_path, [*rows, {"vs": 2, "ve": 9}])
    late = (
        r"late: .* 1970-01-01T00:00:02Z is before 1970-01-01T00:00:03Z, .* a CTI in the data rules"
    )
    with pytest.raises(weir.InputError, match=late):
        run(tmp_path, "vs BIGINT, ve BIGINT", "unit = 's'")
    write(tmp_path, rows)
    found = run(tmp_path, "vs BIGINT, ve BIGINT", "unit = 's'")
    assert [(r["vs"][17:19], r["ve"] and r["ve"][17:19]) for r in found] == [
        ("01", "03"),
        ("02", None),
    ]


@pytest.mark.parametrize("number", [2**62, -(2**63)])
def test_a_number_beyond_all_times_is_a_bad_row(tmp_path: Path, number: int) -> None:
    write(tmp_path, [{"vs": number}])
    with pytest.raises(weir.InputError, match=f"a start must be a time, came {number}"):
        run(tmp_path, "vs BIGINT", "unit = 's'")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"vs": 1, "v": "x"}, "line 1, column v: wanted BIGINT, came a text; the row is"),
        ({"vs": 1, "v": 1.5}, "column v: wanted BIGINT, came a number with decimals"),
        ({"v": 1}, "column vs: a start must be a time, came NULL"),
    ],
)
def test_a_bad_row_is_told_without_names_of_python(
    tmp_path: Path, row: dict[str, object], told: str
) -> None:
    write(tmp_path, [row])
    with pytest.raises(weir.InputError, match=told):
        run(tmp_path, "vs BIGINT, v BIGINT", "vs = vs")


def test_a_unit_is_of_numbers() -> None:
    with pytest.raises(weir.ScriptError, match="`unit` is of a BIGINT time"):
        weir.parse_program("STREAM A (t TIMESTAMP) FROM 'a' WITH (vs = t, unit = 's');")
    with pytest.raises(
        weir.ScriptError, match="`unit` must be one of s, ms, us, ns, tick, not 'h'"
    ):
        weir.parse_program("STREAM A (t BIGINT) FROM 'a' WITH (vs = t, unit = 'h');")


@pytest.mark.parametrize(
    ("declared", "hint"),
    [
        ("Shop", "did you mean `shop`?"),
        ("price", "there are shop, é"),
        ('"e\u0301"', "in another Unicode form"),
    ],
)
def test_a_field_that_no_row_has(tmp_path: Path, declared: str, hint: str) -> None:
    write(tmp_path, [{"vs": 1, "shop": "x", "é": 1}])
    with pytest.warns(weir.PlanWarning, match=r"no row of .*a\.jsonl has a field") as told:
        run(tmp_path, f"vs BIGINT, {declared} STRING", "vs = vs")
    assert hint in str(told[0].message)


def test_a_field_is_looked_for_in_all_files(tmp_path: Path) -> None:
    for number in range(25):
        write(tmp_path, [{"vs": 1, "new": 1} if number == 19 else {"vs": 1}], f"p{number:02}.jsonl")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(tmp_path, "vs BIGINT, new BIGINT", "vs = vs", "p*.jsonl")
    with pytest.warns(weir.PlanWarning, match="no row of the first 20 of 25 files has a field `o`"):
        run(tmp_path, "vs BIGINT, o BIGINT", "vs = vs", "p*.jsonl")
    with pytest.warns(weir.PlanWarning, match="no row of 10 files has a field `o`; it is NULL"):
        run(tmp_path, "vs BIGINT, o BIGINT", "vs = vs", "p1*.jsonl")


def test_fields_of_rows_in_memory() -> None:
    a = weir.stream("A", {"vs": "BIGINT", "ve": "BIGINT", "Shop": "STRING"}, "a.jsonl", vs="vs")
    with pytest.warns(weir.PlanWarning, match="no row of the rows has a field `Shop`"):
        weir.collect(a, inputs={"A": [{"vs": 1, "shop": "x"}]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weir.collect(a, inputs={"A": [{"vs": 1, "Shop": "x"}, {"vs": 2}]})


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "jsonl.gz"])
def test_nanoseconds_are_cut_with_a_count(tmp_path: Path, ending: str) -> None:
    texts = [
        "1969-12-31T23:59:59.999999001Z",
        "2024-01-01T00:00:00.123456789Z",
        "2024-01-01T00:00:01Z",
    ]
    name = f"a.{ending}"
    lines = "\n".join(json.dumps({"t": t, "v": 1}) for t in texts)
    match ending:
        case "jsonl":
            (tmp_path / name).write_text(lines)
        case "jsonl.gz":
            (tmp_path / name).write_bytes(gzip.compress(lines.encode()))
        case "csv":
            (tmp_path / name).write_text("\n".join(["t,v", *(f"{t},1" for t in texts)]))
        case _:
            times = pa.array(texts).cast(pa.timestamp("ns", "UTC"))
            pq.write_table(pa.table({"t": times, "v": [1, 1, 1]}), tmp_path / name)
    with pytest.warns(weir.PlanWarning, match=r"cut to microseconds: in 2 of the first \d rows"):
        rows = run(tmp_path, "t TIMESTAMP, v BIGINT", "vs = t", name)
    cut = [
        "1969-12-31T23:59:59.999999Z",
        "2024-01-01T00:00:00.123456Z",
        "2024-01-01T00:00:01.000000Z",
    ]
    assert [row["t"] for row in rows] == cut


@pytest.mark.parametrize("stored", [pa.date32(), pa.int32(), pa.string()])
def test_a_column_that_is_not_a_time_is_the_readers_error(
    tmp_path: Path, stored: pa.DataType
) -> None:
    column = pa.array([1, 2], pa.int32()).cast(stored)
    pq.write_table(pa.table({"vs": [1, 2], "t": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="column t: wanted TIMESTAMP, the file has"):
        run(tmp_path, "vs BIGINT, t TIMESTAMP", "vs = vs", "a.parquet")
