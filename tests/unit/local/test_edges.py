"""Narrow places: one stream read twice by a vertex, the ends of time, many partitions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from weir import testing
from weir.errors import InputError, RunError, ScriptError

A = "STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.jsonl' WITH (vs = vs);\n"


@pytest.fixture
def combine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "seen.py").write_text(
        "import weir\n"
        "@weir.operator(columns={'port': 'BIGINT', 'v': 'BIGINT'})\n"
        "class Seen:\n"
        "    def on_event(self, event, ctx):\n"
        "        ctx.emit(port=event.input, v=event.v)\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    return f"IMPORT 'seen.py';\n{A}"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_combine_of_a_stream_with_itself(combine: str, parallelism: int) -> None:
    rows = [{"vs": 1, "k": "a", "v": 7}, {"vs": 2, "k": "b", "v": 8}]
    text = f"{combine} Out = COMBINE A WITH A ON k USING Seen();"
    found = testing.run(text, {"A": [rows]}, parallelism=parallelism).rows
    wanted = [(1, 0, 7), (1, 1, 7), (2, 0, 8), (2, 1, 8)]
    assert sorted((r["vs"], r["port"], r["v"]) for r in found) == wanted


@pytest.mark.parametrize("start", [2**62 + 1, -(2**62) - 1, 2**63 - 10, -(2**63)])
def test_starts_beyond_the_range_of_times_are_bad(start: int) -> None:
    text = f"{A} Out = SELECT COUNT(*) AS n FROM A WITH TUMBLING(10);"
    with pytest.raises(InputError, match="a start must be a time"):
        testing.run(text, {"A": [[{"vs": start, "k": "a", "v": 1}]]})


@pytest.mark.parametrize("end", [2**62 + 1, 2**63 - 2, 2**63 - 1])
def test_ends_beyond_the_range_of_times_are_bad(end: int) -> None:
    text = "STREAM A (vs BIGINT, ve BIGINT) FROM 'a.jsonl'; Out = SELECT COUNT(*) AS n FROM A;"
    good, beyond = {"vs": 1, "ve": None}, {"vs": 2, "ve": end}
    with pytest.raises(InputError, match=f"column ve: the end {end} is beyond"):
        testing.run(text, {"A": [[good, beyond]]})
    assert testing.run(text, {"A": [[good]]}).rows == [{"vs": 1, "ve": None, "n": 1}]


@pytest.mark.parametrize("offset", [2**62 - 10, 10 - 2**62])
@pytest.mark.parametrize("start", [2**62, -(2**62)])
def test_windows_of_far_offsets_at_the_ends_of_time(start: int, offset: int) -> None:
    text = f"{A} Out = SELECT COUNT(*) AS n FROM A WITH TUMBLING(10, {offset});"
    (row,) = testing.run(text, {"A": [[{"vs": start, "k": "a", "v": 1}]]}).rows
    first = start - (start - offset) % 10
    assert row == {"vs": first, "ve": first + 10, "n": 1}


@pytest.mark.parametrize("start", [2**62, -(2**62)])
def test_windows_at_the_ends_of_time(start: int) -> None:
    text = f"{A} Out = SELECT COUNT(*) AS n FROM A WITH TUMBLING(10);"
    (row,) = testing.run(text, {"A": [[{"vs": start, "k": "a", "v": 1}]]}).rows
    first = start // 10 * 10
    assert row == {"vs": first, "ve": first + 10, "n": 1}


def test_a_lifetime_that_is_moved_out_of_range_is_an_error() -> None:
    text = f"{A} Out = SELECT k FROM A WITH SHIFT(10);"
    with pytest.raises(RunError, match="overflow"):
        testing.run(text, {"A": [[{"vs": 2**62 - 5, "k": "a", "v": 1}]]})


@pytest.mark.parametrize(
    "change",
    [
        "EXTEND(20)",
        "DURATION(20)",
        "DURATION(4611686018427387903)",
        "EXTEND(4611686018427387903)",
        "SHIFT(4611686018427387903)",
        "LIFETIME(vs, 4611686018427387906)",
        "LIFETIME(vs, 9223372036854775807)",
        "LIFETIME(vs, vs + v)",
        "QUANTIZE(1000, 1000)",
        "QUANTIZE(4611686018427387903, 4611686018427387903, 100)",
        "HOP_LIFETIME(100, 7)",
        "HOP_LIFETIME(4611686018427387903, 4611686018427387)",
    ],
)
def test_an_end_that_is_moved_out_of_range_is_an_error(change: str) -> None:
    text = f"{A} Out = SELECT k FROM A WITH {change};"
    with pytest.raises(RunError, match="overflow: a lifetime was moved to"):
        testing.run(text, {"A": [[{"vs": 2**62 - 5, "k": "a", "v": 2**62}]]})


@pytest.mark.parametrize("change", ["POINT", "DURATION(1)", "EXTEND(0)", "CLIP_DURATION(5)"])
def test_a_point_at_the_last_of_all_times(change: str) -> None:
    text = f"{A} Out = SELECT k FROM A WITH {change};"
    (row,) = testing.run(text, {"A": [[{"vs": 2**62, "k": "a", "v": 1}]]}).rows
    assert (row["vs"], row["ve"]) == (2**62, 2**62 + 1)


@pytest.mark.parametrize("group", ["", "GROUP BY k"])
def test_a_window_that_would_end_at_the_open_end_is_an_error(group: str) -> None:
    text = f"{A} Out = SELECT COUNT(*) AS n FROM A {group} WITH TUMBLING({2**62 - 1}, 1);"
    with pytest.raises(RunError, match=r"overflow: a window of TUMBLING.* ends beyond"):
        testing.run(text, {"A": [[{"vs": 2**62, "k": "a", "v": 1}]]})


@pytest.mark.parametrize("group", ["", "GROUP BY k"])
def test_a_session_that_would_end_at_the_open_end_is_an_error(group: str) -> None:
    text = f"{A} Out = SELECT COUNT(*) AS n FROM A {group} WITH SESSION({2**62 - 1});"
    with pytest.raises(RunError, match="overflow: a session ends beyond"):
        testing.run(text, {"A": [[{"vs": 2**62, "k": "a", "v": 1}]]})


def test_no_point_is_behind_the_last_of_all_times() -> None:
    text = f"{A} Out = SELECT k FROM A WITH POINT_AT_END;"
    with pytest.raises(RunError, match="overflow"):
        testing.run(text, {"A": [[{"vs": 2**62, "k": "a", "v": 1}]]})


def test_work_is_not_quadratic_in_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of a stream count, not seconds: a step touches only what was written."""
    from weir.reliable.memory_stream import MemoryStream

    reads = 0
    plain = MemoryStream.read_next

    def counted(self: MemoryStream, reader: object) -> object:
        nonlocal reads
        reads += 1
        return plain(self, reader)

    monkeypatch.setattr(MemoryStream, "read_next", counted)
    text = f"{A} Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(100);"
    inputs = {"A": [[{"vs": i, "k": "a", "v": 1}] for i in range(200)]}
    assert sum(r["n"] for r in testing.run(text, inputs).rows) == 200
    assert reads < 200 * 20


@pytest.mark.parametrize("call", ["k RLIKE '['", "REGEXP_REPLACE(k, '(', 'x') == ''"])
def test_a_wrong_regular_expression_is_found_before_anything_runs(call: str) -> None:
    with pytest.raises(ScriptError, match="regular expression") as error:
        testing.run(f"{A} Out = SELECT k FROM A WHERE {call};", {"A": [[]]})
    assert error.value.line == 2


def test_what_arrow_cannot_compute_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise pa.ArrowCapacityError("too much")

    monkeypatch.setattr(pc, "utf8_lpad", refuse)
    text = f"{A} Out = SELECT LPAD(k, 3, 'x') AS l FROM A;"
    with pytest.raises(RunError, match="cannot be computed"):
        testing.run(text, {"A": [[{"vs": 1, "k": "a", "v": 1}]]})
