"""The loops that a program needs: what the golden programs do not show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weir.kernels.expressions import functions_hashes, functions_text, python_text
from weir.runtime.loop_needs import FUNCTIONS, SELDOM, all_loops, needed_loops
from weir.script.program import parse_program

STREAMS = """
STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.csv';
STREAM B (vs BIGINT, k STRING, w BIGINT) FROM 'b.csv';
"""


def needed(query: str, *, complete: bool = True) -> set[str]:
    program = parse_program(f"{STREAMS} Out = {query}; OUTPUT Out TO 'out.csv';")
    loops = needed_loops(program, complete=complete)
    return {loop.name.rpartition(".")[2] for loop in loops}


@pytest.mark.parametrize(
    ("call", "loop"),
    [
        ("xxhash64(k)", "xxhash64_rows"),
        ("split(k, 'ab')", "split_at_text"),
        ("contains(upper(k), 'A')", "find_in_rows"),
        ("CASE WHEN k LIKE '%a%' THEN 1 ELSE 2 END", "find_in_rows"),
    ],
)
def test_a_function_that_calls_loops(call: str, loop: str) -> None:
    assert loop in needed(f"SELECT {call} AS x FROM A")
    assert loop not in needed("SELECT k FROM A")


def test_a_function_in_a_filter_or_a_join() -> None:
    assert "find_in_rows" in needed("SELECT k FROM A WHERE k LIKE '%a%'")
    assert "find_in_rows" in needed(
        "SELECT A.k AS k FROM A JOIN B ON A.k = B.k AND contains(B.k, 'a')"
    )


def test_functions_that_call_loops_are_in_modules_that_the_list_knows() -> None:
    """A function that is not listed is found by a golden program that calls it."""
    users = {functions_hashes, functions_text, python_text}
    names = {name for module in users for name in module.FUNCTIONS}
    assert set(FUNCTIONS) <= names
    folder = Path(functions_text.__file__).parent
    importing = [
        path.stem
        for path in folder.glob("*.py")
        if re.search(
            r"import .*(substrings|_hashes)_loops|expressions\.substrings import|"
            r"(substrings|_hashes)_loops import",
            path.read_text(encoding="utf-8"),
        )
    ]
    assert sorted(importing) == ["functions_hashes", "functions_text", "python_text", "substrings"]


def test_an_operator_alone_needs_few() -> None:
    plain, joined = needed("SELECT k FROM A"), needed("SELECT A.k AS k FROM A JOIN B ON A.k = B.k")
    assert "meet" in joined - plain and plain < joined
    assert not {"add_entries", "cover", "scan_lines"} & joined
    assert len(joined) < len(all_loops()) / 2


def test_a_small_run_leaves_out_what_is_seldom_called() -> None:
    assert {loop.name for loop in all_loops()} > SELDOM
    query = "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(10)"
    seldom = needed(query) - needed(query, complete=False)
    assert {"rehashed", "merge_runs"} <= seldom


def test_aggregates_in_two_phases_need_more() -> None:
    query = "SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(10)"
    assert "pack_rows" in needed(query) - needed(query, complete=False)
