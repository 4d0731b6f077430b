"""`weir.testing.run` takes what `check` takes, and refuses what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weir
from weir.testing import run

ROWS = [{"vs": i, "k": "abc"[i % 3], "v": i} for i in range(4)]
STREAM = "STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.jsonl';\n"
LAST = [{"vs": 3, "ve": 4, "v": 3}]


@pytest.mark.parametrize("rows", [ROWS, [ROWS], [ROWS[:2], ROWS[2:]], pa.Table.from_pylist(ROWS)])
def test_rows_partitions_and_tables(rows: object) -> None:
    assert run(STREAM + "Out = SELECT v FROM A WHERE v > 2;", {"A": rows}).rows == LAST


def test_files_streams_and_outputs(tmp_path: Path) -> None:
    code = "import weir\n@weir.udf\ndef twice(v: int) -> int:\n    return 2 * v\n"
    (tmp_path / "mine.py").write_text(code, "utf-8")
    text = "IMPORT 'mine.py'; DECLARE @least BIGINT = 9;\n" + STREAM
    text += "Out = SELECT twice(v) AS w FROM A WHERE v > @least;"
    (tmp_path / "p.weir").write_text(text, "utf-8")
    wanted = [{"vs": 3, "ve": 4, "w": 6}]
    assert run(tmp_path / "p.weir", {"A": ROWS}, params={"least": 2}).rows == wanted
    assert run(text, {"A": ROWS}, params={"least": 2}, directory=tmp_path).rows == wanted
    a = weir.stream("A", {"vs": "BIGINT", "k": "STRING", "v": "BIGINT"}, "a.jsonl", vs="vs")
    kept = a.where("v > 2").select("v")
    assert run(kept, {"A": ROWS}).rows == LAST
    assert run([kept.to("kept.csv", name="K")], {"A": ROWS}, stream="K").rows == LAST


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ({}, {}, "no rows for A"),
        ({"A": ROWS, "Aa": []}, {}, "unknown input `Aa`"),
        ({"A": [1, 2]}, {}, "rows"),
        ({"A": ROWS}, {"stream": "Ouch"}, "no stream `Ouch`"),
        ({"A": ROWS}, {"params": {"x": 1}}, "x"),
    ],
)
def test_what_is_given_is_checked(
    inputs: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(weir.WeirError, match=message):
        run(STREAM + "Out = SELECT v FROM A;", inputs, **options)


def test_times_that_python_has_no_value_for_are_texts_that_read_back() -> None:
    text = """
    STREAM A (At TIMESTAMP, d DATE, l LIST(TIMESTAMP)) FROM 'a.jsonl' WITH (vs = At);
    Out = SELECT At, At + 1d AS next, d, l FROM A;
    """
    utc = pa.timestamp("us", "UTC")
    last = 253_402_300_799_999_999  # of the year 9999
    given = pa.table(
        {
            "At": pa.array([-(2**60), 0, last, 2**61], utc),
            "d": pa.array([-(2**30), 1, 2, None], pa.int32()).view(pa.date32()),
            "l": pa.array([None, [1], [], [2]], pa.list_(utc)),
        }
    )
    rows = run(text, {"A": given}).rows
    assert [row["vs"] for row in rows] == [-(2**60), 0, last, 2**61]
    assert rows[0]["At"] == "-34565-05-17T02:29:53.153024Z" and isinstance(rows[0]["d"], str)
    assert rows[1]["At"] == datetime(1970, 1, 1, tzinfo=UTC)
    assert rows[2]["next"] == "+10000-01-01T23:59:59.999999Z"
    assert rows[3]["At"] == "+75039-04-04T19:00:13.693952Z"
    # What comes out can be handed in again, texts beside times.
    again = [{name: row[name] for name in ("At", "d", "l")} for row in rows]
    assert run(text, {"A": again}).rows == rows


def test_far_times_inside_of_lists_and_structs_are_texts_too() -> None:
    text = """
    STREAM A (vs BIGINT, t BIGINT) FROM 'a.jsonl';
    Out = SELECT SPLIT('a', ',') AS s, TO_TIMESTAMP(t) AS t FROM A;
    All = SELECT COLLECT(t) AS ts FROM Out WITH TUMBLING(10);
    """
    rows = run(text, {"A": [{"vs": 1, "t": 0}, {"vs": 2, "t": 10**18}]}, stream="All").rows
    assert rows[0]["ts"] == [
        datetime(1970, 1, 1, tzinfo=UTC),
        "+33658-09-27T01:46:40.000000Z",
    ]
