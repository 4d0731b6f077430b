"""`check_cases`: what passes, what fails, and what the reason says."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from weir.conform import cases as conform
from weir.conform.case_rows import meaning, shown_rows, type_of
from weir.conform.cases import CaseVerdict, ConformanceCase, case_program, check_cases, read_cases
from weir.errors import InputError
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, NULL, STRING
from weir.local.runner import LocalRun

ROWS = [{"vs": 1, "ve": 5, "k": "x", "v": 1}, {"vs": 2, "ve": 3, "k": "y", "v": 2}]


def case(program: str, inputs: object = None, **more: object) -> ConformanceCase:
    raw = {"id": "c", "program": program, "inputs": inputs or {"A": ROWS}, **more}
    return conform._case(json.loads(json.dumps(raw)))


def verdict(program: str, inputs: object = None, **more: object) -> CaseVerdict:
    (verdict,) = check_cases([case(program, inputs, **more)], (1, 3, None), (1, 3))
    return verdict


# --- what passes -----------------------------------------------------------------------------


def test_rows_compare_as_a_multiset_and_by_value() -> None:
    expected = [{"vs": 2, "ve": 3, "d": 4}, {"ve": 5.0, "vs": 1, "d": 2.0}]
    assert verdict("Out = SELECT v * 2.0 AS d FROM A;", expected=expected).passed


def test_special_doubles_are_texts() -> None:
    rows = [{"vs": i, "f": f} for i, f in enumerate(["NaN", 1.5, "Infinity", "-Infinity", None])]
    expected = [{**row, "ve": row["vs"] + 1} for row in rows]
    assert verdict("Out = SELECT f FROM A;", {"A": rows}, expected=expected).passed
    expected[0]["f"] = math.nan
    assert verdict("Out = SELECT f FROM A;", {"A": rows}, expected=expected).passed


def test_a_missing_end_is_a_point_and_a_null_one_is_open() -> None:
    rows = [{"vs": 1, "v": 1}, {"vs": 2, "ve": None, "v": 2}, {"vs": 3, "ve": 9, "v": 3}]
    expected = [{"vs": 1, "ve": 2, "v": 1}, {"vs": 2, "ve": None, "v": 2}, rows[2]]
    assert verdict("Out = SELECT v FROM A;", {"A": rows}, expected=expected).passed


def test_options_and_partitions() -> None:
    parts = [[{"vs": 9, "v": 1}, {"vs": 1, "v": 2}], [{"vs": 1, "v": 3}]]
    expected = [{"vs": 9, "ve": 14, "v": 1}, {"vs": 1, "ve": 6, "v": 3}]
    options = {"A": "lifetime = 5, late = 'drop'"}
    program = "Out = SELECT v FROM A;"
    assert verdict(program, {"A": {"partitions": parts}}, options=options, expected=expected).passed


def test_explicit_ctis() -> None:
    rows = [{"vs": 1, "v": 1}, {"$cti": 5}, {"vs": 4, "v": 2}]
    program = "Out = SELECT v FROM A;"
    assert verdict(program, {"A": rows}, error="late").passed
    rows[2]["vs"] = 5
    assert verdict(
        program, {"A": rows}, expected=[{"vs": 1, "ve": 2, "v": 1}, {"vs": 5, "ve": 6, "v": 2}]
    ).passed


def test_a_column_of_nulls_fits_every_type() -> None:
    rows = [{"vs": 1, "ve": 3, "v": None}]
    program = "Out = SELECT SUM(v) AS s, COUNT(v) AS n FROM A;"
    expected = [{"vs": 1, "ve": 3, "s": None, "n": 0}]
    assert verdict(program, {"A": rows}, expected=expected).passed


def test_names_that_need_quotes() -> None:
    rows = [{"vs": 1, "ve": 2, "a b": 1, "select": 2}]
    program = 'Out = SELECT "a b" AS x, "select" AS y FROM "my stream";'
    expected = [{"vs": 1, "ve": 2, "x": 1, "y": 2}]
    assert verdict(program, {"my stream": rows}, expected=expected).passed


def test_lists_and_structs() -> None:
    rows = [{"vs": 1, "ve": 2, "l": [1, None], "s": {"a": 1, "b": "x"}}]
    expected = [{"vs": 1, "ve": 2, "l": [1.0, None], "s": {"b": "x", "a": 1}}]
    assert verdict("Out = SELECT l, s FROM A;", {"A": rows}, expected=expected).passed


def test_errors_of_the_program_and_of_the_run() -> None:
    assert verdict("Out = SELECT vv FROM A;", error="unknown COLUMN `vv`").passed
    assert verdict("Out = SELECT v // 0 AS x FROM A;", error="zero").passed


# --- what fails ------------------------------------------------------------------------------


def test_missing_and_unexpected_rows_are_shown() -> None:
    expected = [{"vs": 1, "ve": 5, "v": 1}, {"vs": 2, "ve": 3, "v": 9}]
    reason = verdict("Out = SELECT v FROM A;", expected=expected).reason
    assert "missing [{vs: 2, ve: 3, v: 9}], unexpected [{vs: 2, ve: 3, v: 2}]" in reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    "expected",
    [
        [],
        [{"vs": 1, "ve": 5, "v": 1}],
        [{"vs": 1, "ve": 5, "v": 1}] * 2,
        [{"vs": 1, "ve": 5, "v": 1}, {"vs": 2, "ve": 3}],
        [{"vs": 1, "ve": 5, "v": 1}, {"vs": 2, "ve": 3, "v": 2, "w": None}],
        [{"vs": 1, "ve": 5, "v": True}, {"vs": 2, "ve": 3, "v": 2}],
        [{"vs": 1, "ve": 5, "v": "1"}, {"vs": 2, "ve": 3, "v": 2}],
    ],
)
def test_other_rows_fail(expected: list[object]) -> None:
    assert not verdict("Out = SELECT v FROM A;", expected=expected).passed


def test_an_error_that_does_not_come_or_is_another() -> None:
    assert "no rows" in verdict("Out = SELECT v FROM A WHERE v > 9;", error="x").reason
    assert "came: line 1" in verdict("Out = SELECT vv FROM A;", error="overflow").reason
    assert "came an error" in verdict("Out = SELECT vv FROM A;", expected=[]).reason
    assert "no stream `Out`" in verdict("Other = SELECT v FROM A;", expected=[]).reason


def test_a_run_that_depends_on_cuts_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge itself: let the checksums depend on the cut and see it go red."""

    class Careless(LocalRun):
        @property
        def checksums(self) -> dict[str, str]:
            return {"0.0/0": str(self._size)}

    monkeypatch.setattr(conform, "LocalRun", Careless)
    expected = [{"vs": 1, "ve": 5, "v": 1}, {"vs": 2, "ve": 3, "v": 2}]
    reason = verdict("Out = SELECT v FROM A;", expected=expected).reason
    assert "other rows in 0.0/0" in reason


def test_streams_that_the_program_declares_itself() -> None:
    again = "STREAM A (vs BIGINT) FROM 'a.jsonl'; Out = SELECT vs AS s FROM A;"
    assert verdict(again, error="stream `A` is defined twice").passed
    other = "STREAM C (vs BIGINT) FROM 'c.jsonl'; Out = SELECT vs AS s FROM C;"
    assert "the case has no input `C`" in verdict(other, expected=[]).reason
    program = case_program(case(other, expected=[]))
    assert [(s.name, s.index) for s in program.sources] == [("A", 0), ("C", 1)]


# --- types and reading -----------------------------------------------------------------------


def test_types_come_from_the_values() -> None:
    rows = [
        {"vs": 1, "i": 1, "f": 1, "b": True, "s": "NaN", "l": [], "n": None, "d": {"a": 1}},
        {"vs": 2, "i": None, "f": 2.5, "l": [0.5], "d": {"b": "x"}},
    ]
    declared = dict(
        case_program(case("Out = SELECT i FROM A;", {"A": rows}, expected=[])).sources[0].declared
    )
    assert declared == {
        "vs": BIGINT,
        "i": BIGINT,
        "f": DOUBLE,
        "b": BOOLEAN,
        "s": STRING,
        "l": pa.list_(DOUBLE),
        "n": NULL,
        "d": pa.struct([("a", BIGINT), ("b", STRING)]),
    }


def test_values_without_one_type() -> None:
    with pytest.raises(InputError, match="int, str"):
        type_of([1, "x"])
    assert (
        "no single type"
        in verdict(
            "Out = SELECT v FROM A;", {"A": [{"vs": 1, "v": 1}, {"vs": 2, "v": "x"}]}, expected=[]
        ).reason
    )


def test_decimals_compare_by_value() -> None:
    decimal = pa.decimal128(10, 2)
    assert meaning("0.10", decimal) == meaning(0.1, decimal)
    assert meaning("0.10", STRING) != meaning("0.1", STRING)


def test_long_lists_of_rows_are_cut() -> None:
    assert shown_rows(Counter({(1, 2): 5}), ()).endswith("and 2 more")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "invalid JSON: Expecting property name"),
        ("[]", "a case is an object"),
        ('{"id": "x", "program": "", "expected": []}', "it has no `inputs`$"),
        ('{"expected": []}', "it has no `id`, no `program`, no `inputs`$"),
        ('{"id": "x", "program": "", "inputs": {"A": {}}, "expected": []}', "`partitions`"),
    ],
)
def test_what_a_case_lacks(line: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"line 2: not a case: .*{why}"):
        list(read_cases(path))


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"id": "x"}',
        '{"id": "x", "program": "", "inputs": {}}',
        '{"id": "x", "program": "", "inputs": {"A": [1]}, "expected": []}',
        '{"id": "x", "program": "", "inputs": {"A": 1}, "expected": []}',
        '{"id": "x", "program": "", "inputs": {}, "expected": [], "error": "e"}',
    ],
)
def test_a_line_that_is_no_case(line: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2: not a case"):
        list(read_cases(path))
