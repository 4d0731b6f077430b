"""All rows of the loop beside an output: equal by digest, or the first difference is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, Batch
from weir.files.writers import OutputWriter
from weir.plan.schema import Schema
from weir.reliable.digest import Digest, digest
from weir.shadow import whole_loop
from weir.shadow.serial_loop import HandlerLine, LoopRow
from weir.shadow.whole_loop import LoopRows

SHAPE = Schema((("n", pa.int64()), ("s", pa.string())), pa.int64())
Row = tuple[int, int, str | None]


def written(folder: Path, rows: list[Row], ending: str = "jsonl") -> str:
    path = folder / f"out.{ending}"
    vs = np.array([row[0] for row in rows], dtype=np.int64)
    columns = pa.array([r[1] for r in rows], pa.int64()), pa.array([r[2] for r in rows])
    batch = Batch(vs, np.where(vs == 9, OPEN, vs + 1), (columns[0], columns[1].cast(pa.string())))
    writer = OutputWriter(path, SHAPE)
    writer.write(0, batch)
    writer.close(digest(batch) if rows else Digest())
    return str(path)


def looped(folder: Path, rows: list[Row]) -> LoopRows:
    (folder / "own").mkdir()
    found = LoopRows("out", SHAPE, folder / "own")
    for number, (vs, n, s) in enumerate(rows):
        at = HandlerLine("tell", "app.py", 100 + number)
        found.add(LoopRow("out", vs, None if vs == 9 else vs + 1, (n, s), number, at))
    return found


ROWS: list[Row] = [(1, 5, "a"), (3, 7, None), (3, 6, "c"), (9, 1, "z")]


@pytest.fixture(params=[2, 50_000])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(whole_loop, "HELD", request.param)
    return int(request.param)


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "arrow"])
def test_equal_rows_in_any_order(tmp_path: Path, held: int, ending: str) -> None:
    assert looped(tmp_path, ROWS).difference(written(tmp_path, ROWS[::-1], ending)) is None


def test_no_rows_are_equal(tmp_path: Path) -> None:
    assert looped(tmp_path, []).difference(written(tmp_path, [])) is None


def test_another_value(tmp_path: Path, held: int) -> None:
    wrong: list[Row] = [*ROWS[:2], (3, 8, "c"), ROWS[3]]
    found = looped(tmp_path, ROWS).difference(written(tmp_path, wrong))
    assert found is not None
    difference, event = found
    assert event == 2 and difference.at == HandlerLine("tell", "app.py", 102)
    assert difference.what == "`out`"
    assert difference.loop == str({"vs": 3, "ve": 4, "n": 6, "s": "c"})
    assert difference.engine == str({"vs": 3, "ve": 4, "n": 8, "s": "c"})


def test_a_row_too_few(tmp_path: Path, held: int) -> None:
    found = looped(tmp_path, ROWS).difference(written(tmp_path, ROWS[:3]))
    assert found is not None and found[1] == 3
    assert found[0].engine == "nothing" and "'n': 1" in found[0].loop


def test_a_row_too_many(tmp_path: Path, held: int) -> None:
    found = looped(tmp_path, ROWS[1:]).difference(written(tmp_path, ROWS))
    assert found is not None and found[1] is None and found[0].at is None
    assert found[0].loop == "nothing" and "'n': 5" in found[0].engine
