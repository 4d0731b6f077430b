"""Traces: a second run finds the first row that is another one, however the rows are cut."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import Batch
from weir.reliable import traces
from weir.reliable.differences import NO_ROW, RowDifference, WrittenBy, violation
from weir.reliable.traces import Traces

NUMBERS = list(range(100))


def batch(values: Sequence[int]) -> Batch:
    starts = np.arange(len(values), dtype=np.int64)
    return Batch(starts, starts + 1, (pa.array(values, pa.int64()),))


def add(folder: Path, values: Sequence[int], cut: int, *, compare: bool) -> list[RowDifference]:
    made = Traces(str(folder), compare=compare)
    trace = made.of("1.0/0", ("v",))
    whole = batch(values)
    for start in range(0, len(values), cut):
        trace.add(whole.slice(start, start + cut))
        trace.add(batch(()))
    return made.close()


@pytest.fixture(params=[16, 1 << 20])
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(traces, "HELD_BYTES", request.param)
    assert add(tmp_path, NUMBERS, 7, compare=False) == []
    return tmp_path


@pytest.mark.parametrize("cut", [1, 13, 100])
def test_the_same_rows_differ_nowhere(kept: Path, cut: int) -> None:
    assert add(kept, NUMBERS, cut, compare=True) == []


@pytest.mark.parametrize("cut", [1, 13, 100])
@pytest.mark.parametrize("at", [0, 12, 13, 99])
def test_the_first_row_that_differs_is_named(kept: Path, cut: int, at: int) -> None:
    others = [*NUMBERS[:at], *(v + 1000 for v in NUMBERS[at:])]
    shown = str({"vs": at, "ve": at + 1, "v": at + 1000})
    assert add(kept, others, cut, compare=True) == [RowDifference("1.0/0", at, None, shown)]


@pytest.mark.parametrize("cut", [1, 13, 100])
def test_rows_that_one_run_lacks_are_found(kept: Path, cut: int) -> None:
    fewer = add(kept, NUMBERS[:40], cut, compare=True)
    assert fewer == [RowDifference("1.0/0", 40, None, NO_ROW)]
    (more,) = add(kept, [*NUMBERS, 100, 101], cut, compare=True)
    assert (more.row, more.before) == (100, NO_ROW)


def test_a_stream_that_the_first_run_did_not_write(tmp_path: Path) -> None:
    (found,) = add(tmp_path, [1], 1, compare=True)
    assert (found.row, found.before) == (0, NO_ROW)
    assert add(tmp_path, [], 1, compare=True) == []


def test_a_trace_appears_when_it_is_whole(tmp_path: Path) -> None:
    """Of a task that was killed nothing counts, and one that runs again leaves one file."""
    killed = Traces(str(tmp_path))
    killed.of("1.0/0", ("v",)).add(batch(NUMBERS))
    assert not os.path.exists(tmp_path / "1.0/0")
    for _ in range(2):
        add(tmp_path, NUMBERS, 9, compare=False)
    assert (tmp_path / "1.0/0").stat().st_size == 16 * len(NUMBERS)


def test_a_violation_names_vertex_operators_and_rows() -> None:
    by = WrittenBy("1.0", "Aggregate SUM(v); Project k", ("v",))
    text = str(violation(RowDifference("1.0/0", 7, "{'v': 1}", "{'v': 2}"), by))
    assert text.startswith(
        "stream 1.0/0, written by vertex 1.0 (Aggregate SUM(v); Project k): row 7 was {'v': 1}, "
        "written again it is {'v': 2}; is a user function not deterministic?"
    )
    known = str(violation(RowDifference("1.0/0", 7, None, NO_ROW), by, when="in a second run"))
    assert "row 7 was another row, in a second run it is no row" in known
