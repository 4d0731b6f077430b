"""Errors of rows: the program's line, the whole row of the input, ISO times, and where it stood."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from weir.errors import EventFailed, RunError
from weir.local.file_run import run_files
from weir.script import parse_program

ROWS = [
    '{"ts": "2024-01-01T00:00:00Z", "shop": "a", "amount": 5, "n": 2, "note": "hi"}',
    '{"ts": "2024-01-01T00:00:01Z", "shop": "b", "amount": 9223372036854775807, "n": 1, "day":'
    ' "2024-05-01"}',
    '{"ts": "2024-01-01T00:00:02.5Z", "shop": "b", "amount": 3, "n": 0, "note": "zz"}',
]
STREAM = """STREAM A (ts TIMESTAMP, shop STRING, amount BIGINT, n BIGINT, note STRING, day DATE)
  FROM '{}' WITH (vs = ts);
"""
SECOND = (
    "{'vs': '2024-01-01T00:00:01Z', 've': '2024-01-01T00:00:01.000001Z', "
    "'ts': '2024-01-01T00:00:01Z', 'shop': 'b', 'amount': 9223372036854775807, 'n': 1, "
    "'note': None, 'day': '2024-05-01'}"
)
THIRD = (
    "{'vs': '2024-01-01T00:00:02.500000Z', 've': '2024-01-01T00:00:02.500001Z', "
    "'ts': '2024-01-01T00:00:02.500000Z', 'shop': 'b', 'amount': 3, 'n': 0, 'note': 'zz', "
    "'day': None}"
)

Told = Callable[..., str]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """The message of a program that fails, with the folder's path left out."""
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text("\n\n".join(ROWS) + "\n", encoding="utf-8")
    Path("f.py").write_text(
        "import weir\n\n@weir.udf\ndef inverse(n: int) -> int:\n    return 10 // n\n", "utf-8"
    )

    def run(queries: str, path: str = "a.jsonl", **how: object) -> str:
        text = f"{STREAM.format(path)}{queries}\nOUTPUT Out TO 'out.jsonl';"
        program = parse_program(text, directory=tmp_path, name="a.weir")
        with pytest.raises(RunError) as caught:
            run_files(program, **how)  # type: ignore[arg-type]
        return str(caught.value).replace(f"{tmp_path}{os.sep}", "")

    return run


def test_the_line_the_row_and_its_origin(told: Told) -> None:
    assert told("Out = SELECT shop, amount + 1 AS m\n      FROM A;") == (
        f"a.weir, line 3, column 27: overflow in 9223372036854775807 + 1, on event {SECOND} "
        "(a.jsonl, line 3)\n"
        "  Out = SELECT shop, amount + 1 AS m\n"
        "                            ^"
    )


def test_division_by_zero(told: Told) -> None:
    for query, where in (
        ("SELECT 10 % n AS m FROM A", 17),
        ("SELECT n FROM A WHERE 1 // n = 1", 31),
    ):
        first, line, caret = told(f"Out = {query};").split("\n")
        sign = "%" if "%" in query else "//"
        assert first.startswith(f"a.weir, line 3, column {where}: division by zero: 1")
        assert first.endswith(f"{sign} 0, on event {THIRD} (a.jsonl, line 5)")
        assert line.index(sign) == caret.index("^")


@pytest.mark.parametrize("cut", [None, 1])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_users_functions(told: Told, cut: int | None, parallelism: int) -> None:
    told_of = told(
        "IMPORT 'f.py'; Out = SELECT inverse(n) AS m FROM A;", cut=cut, parallelism=parallelism
    )
    assert told_of == (
        f"inverse (f.py:5) failed on event {THIRD} (a.jsonl, line 5): "
        "ZeroDivisionError: integer division or modulo by zero\n"
        "  return 10 // n\n"
        "         ^"
    )


def test_other_columns_stand_behind_those_of_the_source(told: Told) -> None:
    found = told(
        "P = SELECT shop AS s, n * 2 AS twice, n AS amount FROM A WHERE note IS NULL OR n < 2;\n"
        "Out = SELECT s, 10 // twice AS m FROM P;"
    )
    event = (
        "{'vs': '2024-01-01T00:00:02.500000Z', 've': '2024-01-01T00:00:02.500001Z', "
        "'ts': '2024-01-01T00:00:02.500000Z', 's': 'b', 'amount': 3, 'n': 0, 'note': 'zz', "
        "'day': None, 'twice': 0} (a.jsonl, line 5)"
    )
    assert event in found


def test_a_union_knows_the_source_of_each_row(told: Told) -> None:
    Path("b.jsonl").write_text(ROWS[0] + "\n", encoding="utf-8")
    assert told(
        "STREAM B (ts TIMESTAMP, n BIGINT) FROM 'b.jsonl' WITH (vs = ts);\n"
        "U = SELECT n FROM B UNION ALL SELECT n FROM A;\n"
        "Out = SELECT 10 // n AS m FROM U;"
    ) == (
        f"a.weir, line 5, column 17: division by zero: 10 // 0, on event {THIRD} "
        "(a.jsonl, line 5)\n"
        "  Out = SELECT 10 // n AS m FROM U;\n"
        "                  ^"
    )


def test_a_row_without_an_origin_shows_what_it_has(told: Told) -> None:
    found = told(
        "J = SELECT X.n, Y.shop FROM A AS X JOIN A AS Y ON X.shop = Y.shop AND X.n = Y.n\n"
        "    WITH DURATION(1h);\n"
        "Out = SELECT 10 // n AS m FROM J;"
    )
    assert "division by zero: 10 // 0, on event {'vs': '2024-01-01T00:00:02.500000Z', " in found
    assert "'n': 0}\n" in found and "None" not in found


def test_rows_of_columnar_files_are_counted(told: Told) -> None:
    table = pa.table(
        {
            "ts": pa.array([0, 1], pa.timestamp("us", "UTC")),
            "n": [1, 0],
            "shop": ["a", "b"],
            "amount": [1, 2],
            "note": ["x", "y"],
            "day": pa.array([0, 1], pa.date32()),
        }
    )
    pq.write_table(table, "a.parquet")
    found = told("Out = SELECT 10 % n AS m FROM A;", "a.parquet")
    assert "'amount': 2, 'n': 0, 'note': 'y', 'day': '1970-01-02'} (a.parquet, row 2)\n" in found


def test_a_file_that_has_changed_is_not_believed(told: Told) -> None:
    Path("g.py").write_text(
        "import weir\n\n@weir.udf\ndef f(n: int) -> int:\n"
        "    if n == 0:\n        open('a.jsonl', 'w').close()\n    return 10 // n\n",
        encoding="utf-8",
    )
    found = told("IMPORT 'g.py'; Out = SELECT f(n) AS m FROM A;")
    # What was not read is not known any more: it is left out.
    assert "'ts': '2024-01-01T00:00:02.500000Z', 'n': 0} (a.jsonl, row 3): Zero" in found


def test_windows_have_times(told: Told) -> None:
    query = "SELECT shop, SUM(amount) AS s FROM A GROUP BY shop WITH TUMBLING(1m)"
    assert told(f"Out = {query};").startswith(
        "a.weir, line 3, column 20: in window [2024-01-01T00:00:00Z, 2024-01-01T00:01:00Z) of "
        "shop = 'b': integer overflow: a SUM does not fit BIGINT: it is 9223372036854775810; "
    )


def test_rows_in_memory_are_counted() -> None:
    a = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    rows = [{"vs": 1, "v": 2}, {"vs": 4, "v": 0}]
    with pytest.raises(EventFailed) as caught:
        weir.collect(a.select((1 // weir.col("v")).as_("w")), inputs={"A": rows})
    assert "on event {'vs': 4, 've': 5, 'v': 0} (A, row 2)" in str(caught.value)
