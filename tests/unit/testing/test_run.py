"""`weir.testing.run` takes what `check` takes, and refuses what it refuses."""

from __future__ import annotations

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
