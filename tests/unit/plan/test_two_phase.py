"""Ungrouped aggregates in two phases: which, and that nobody can tell from the answer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from weir.errors import RunError
from weir.plan.operators import Aggregate, PartialAggregate, schema
from weir.plan.program import Program, row_outputs
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import cut_stages
from weir.plan.traversal import ordered_nodes
from weir.script import parse_program
from weir.testing import Result, run, with_output

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, i BIGINT, f DOUBLE, d DECIMAL(20, 2), w DECIMAL(38, 5),
          j INT) FROM 'a.jsonl' WITH (vs = vs, ve = ve);
STREAM B (vs BIGINT, k STRING, i BIGINT, f DOUBLE) FROM 'b.jsonl' WITH (vs = vs, lifetime = 3);
"""

Rows = Sequence[Mapping[str, object]]

# --- the plan ----------------------------------------------------------------------------------


def planned(query: str) -> Program:
    return rewrite(with_output(parse_program(f"{INPUTS} Out = {query};"), "Out"))


def partials(query: str) -> list[PartialAggregate]:
    nodes = ordered_nodes(row_outputs(planned(query)))
    return [n for n in nodes if isinstance(n, PartialAggregate)]


CUT = [
    "SELECT COUNT(*) AS n FROM A WITH TUMBLING(10)",
    "SELECT SUM(i) AS s, MIN(k) AS m, STDDEV(d) AS d FROM A WHERE i > 3 WITH HOPPING(10, 3, 1)",
    "SELECT AVG(f) FILTER (WHERE i > 3) AS a FROM A WITH TUMBLING(10)",
    "SELECT MAX(i) AS m FROM (SELECT i FROM A WITH CHOP(5)) AS C WITH TUMBLING(10)",
    "SELECT MAX(i) AS m FROM (SELECT i FROM A UNION ALL SELECT i FROM B) AS U WITH TUMBLING(10)",
    "SELECT MAX(n) AS m FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5)) AS C "
    "WITH TUMBLING(10)",
    "SELECT COUNT(*) AS n FROM A INNER JOIN B ON A.k = B.k WITH TUMBLING(10)",
    "SELECT MAX(k) AS m FROM (SELECT DISTINCT k FROM A) AS D WITH TUMBLING(10)",
]
WHOLE = [
    "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(10)",
    "SELECT COUNT(*) AS n FROM A",
    "SELECT COUNT(*) AS n FROM A WITH SESSION(10)",
    "SELECT COUNT(*) AS n FROM A WITH COUNT(10)",
    "SELECT COUNT(*) AS n, FIRST(i) AS i FROM A WITH TUMBLING(10)",
    "SELECT COUNT(DISTINCT i) AS n FROM A WITH TUMBLING(10)",
    "SELECT MEDIAN(i) AS m FROM A WITH TUMBLING(10)",
    "SELECT COUNT(*) AS n FROM (SELECT i FROM A ORDER BY i LIMIT 3) AS T WITH TUMBLING(10)",
    "SELECT MAX(n) AS n FROM (SELECT i, COUNT(*) AS n FROM "
    "(SELECT i FROM A ORDER BY i LIMIT 3) AS T GROUP BY i WITH TUMBLING(5)) AS C WITH TUMBLING(10)",
]


def test_an_aggregate_with_a_declared_state_is_whole(tmp_path: Path) -> None:
    """Its rows must be seen in one order."""
    rules = """import weir
@weir.aggregate(state="BIGINT")
class Turns:
    def zero(self): return 0
    def add(self, state, v: int): return state + 1
    def result(self, state) -> int: return state
"""
    (tmp_path / "rules.py").write_text(rules, encoding="utf-8")
    query = "SELECT COUNT(*) AS n, Turns(i) AS t FROM A WITH TUMBLING(10)"
    text = f"IMPORT 'rules.py'; {INPUTS} Out = {query};"
    program = rewrite(with_output(parse_program(text, directory=tmp_path), "Out"))
    nodes = ordered_nodes(row_outputs(program))
    assert not any(isinstance(node, PartialAggregate) for node in nodes)


@pytest.mark.parametrize("query", CUT)
def test_cut_in_two(query: str) -> None:
    assert len(partials(query)) == 1
    once = planned(query)
    assert rewrite(once) == once


@pytest.mark.parametrize("query", WHOLE)
def test_left_whole(query: str) -> None:
    assert not partials(query)


def test_an_aggregate_of_an_aggregate_in_one_vertex_stays_whole() -> None:
    inner = "SELECT SUM(i) AS s FROM A WITH TUMBLING(5)"
    (partial,) = partials(f"SELECT MAX(s) AS m FROM ({inner}) AS C WITH TUMBLING(10)")
    assert partial.window.size == 5


def test_what_each_phase_computes() -> None:
    query = "SELECT SUM(i) AS s, AVG(i) AS a, COUNT(i) AS n, VARIANCE(f) AS v, MAX(k) AS m FROM A"
    final = planned(f"{query} WITH TUMBLING(10)").outputs[0].node
    while not isinstance(final, Aggregate):
        final = final.input  # type: ignore[union-attr]
    (partial,) = partials(f"{query} WITH TUMBLING(10)")
    assert final.input == partial
    assert partial.detail() == (
        "MOMENTS(i) AS $p0, COUNT(i) AS $p1, MOMENTS(f, squares) AS $p2, MAX(k) AS $p3 "
        "WITH TUMBLING(10us)"
    )
    assert final.detail() == (
        "SUM($p0) AS $a0, AVG($p0) AS $a1, SUM($p1) AS $a2, VARIANCE($p2) AS $a3, "
        "MAX($p3) AS $a4 WITH TUMBLING(10us)"
    )
    assert schema(final) == schema(_whole(query))


def _whole(query: str) -> Aggregate:
    program = with_output(parse_program(f"{INPUTS} Out = {query} WITH TUMBLING(10);"), "Out")
    return next(n for n in ordered_nodes(row_outputs(program)) if isinstance(n, Aggregate))


def test_it_runs_in_every_vertex_of_what_feeds_it() -> None:
    joined = "SELECT COUNT(*) AS n FROM A INNER JOIN B ON A.k = B.k WITH TUMBLING(10)"
    stages = cut_stages(planned(joined), 4).stages
    assert [s.vertices for s in stages] == [None, None, 4, 1]
    assert any(isinstance(o, PartialAggregate) for o in stages[2].operators)
    stages = cut_stages(planned(CUT[-1]), 4).stages  # DISTINCT is split by k, panes have no k
    assert [(s.vertices, s.split_by) for s in stages] == [(None, None), (4, None), (1, ())]
    union = "SELECT MAX(i) AS m FROM (SELECT i FROM A UNION ALL SELECT i FROM B) AS U"
    stages = cut_stages(planned(f"{union} WITH TUMBLING(10)"), 4).stages
    assert [s.vertices for s in stages] == [None, None, 1]
    assert all(isinstance(s.operators[-1], PartialAggregate) for s in stages[:2])


# --- the answer --------------------------------------------------------------------------------

INTS = [0, 1, -1, 7, 2**62, -(2**62), 2**40, None]
DOUBLES = [0.0, -0.0, 1.5, 0.1, -0.3, 1e300, -1e300, 5e-324, 2.5e-310, 1e-5, 2.0**1023, None]
SPECIALS: list[float | None] = [float("nan"), float("inf"), float("-inf")]
DECIMALS = ["0", "0.01", "-999999999999999999.99", "12.5", None]


def random_parts(seed: int, *, ints: Sequence[int | None] = INTS) -> list[Rows]:
    chance = random.Random(seed)
    doubles = DOUBLES + SPECIALS if seed % 2 else DOUBLES
    lengths = [1, 1, 3, 12] if seed % 3 else [1]

    def row(vs: int) -> dict[str, object]:
        d, w = chance.choice(DECIMALS), chance.choice(DECIMALS)
        return {
            "vs": vs,
            "ve": vs + chance.choice(lengths),
            "k": chance.choice(["a", "b", "", None]),
            "i": chance.choice(ints),
            "f": chance.choice(doubles),
            "d": None if d is None else Decimal(d),
            "w": None if w is None else Decimal(w),
            "j": chance.choice([1, -5, 2**31 - 1, None]),
        }

    counts = [0, 1, 9, 15] if seed % 2 else [12, 12]
    return [[row(vs) for vs in sorted(chance.choices(range(-20, 30), k=n))] for n in counts]


def whole(query: str, parts: Sequence[Rows], **options: object) -> Result:
    return run(f"{INPUTS} Out = {query};", {"A": parts, "B": parts[-1:]}, **options)  # type: ignore[arg-type]


def assert_same(query: str, parts: Sequence[Rows]) -> None:
    assert partials(query)
    # By their texts: NaN is like NaN there, and −0.0 is not 0.0.
    expected = whole(query, parts, optimise=False)
    checksums: dict[int, set[str]] = {}
    for parallelism in (1, 3):
        for cut in (1, 3, None):
            found = whole(query, parts, cut=cut, parallelism=parallelism)
            assert repr(found.rows) == repr(expected.rows), (cut, parallelism)
            assert found.digest == expected.digest
            checksums.setdefault(parallelism, set()).add(str(sorted(found.checksums.items())))
    assert {len(c) for c in checksums.values()} == {1}


COLUMNS = """
SUM(i) FILTER (WHERE j > 0) AS si, AVG(i) AS ai, STDDEV(i) AS ti, COUNT(i) AS ni, MIN(i) AS li,
SUM(f) AS sf, AVG(f) AS af, VARIANCE(f) AS vf, MAX(f) AS mf, MIN(f) FILTER (WHERE i > 0) AS lf,
SUM(d) AS sd, AVG(d) AS ad, VARIANCE(d) AS vd, MIN(d) AS ld, MAX(w) AS mw, SUM(j) AS sj,
STDDEV(f) FILTER (WHERE j > 0) AS tj, MIN(k) AS mk, MAX(k) AS lk, COUNT(*) AS n,
COUNT(*) FILTER (WHERE k = 'a') AS na, COUNT(k) AS nk
"""
SMALL = [*range(-5, 6), 2**53 + 1, -(2**60), None]
SHAPES = ["TUMBLING(10)", "TUMBLING(7, 3)", "HOPPING(10, 3)", "HOPPING(3, 10, 4)", "HOPPING(9, 1)"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(2))
def test_all_aggregates_give_the_same_rows(shape: str, seed: int) -> None:
    assert_same(f"SELECT {COLUMNS} FROM A WITH {shape}", random_parts(seed, ints=SMALL))


@pytest.mark.parametrize("query", CUT)
def test_wherever_the_rows_come_from(query: str) -> None:
    assert_same(query, random_parts(5, ints=SMALL))


def test_both_branches_of_a_union_may_be_one_stream() -> None:
    twice = "(SELECT i, f FROM A UNION ALL SELECT i, f FROM A) AS U"
    assert_same(
        f"SELECT SUM(f) AS s, COUNT(*) AS n FROM {twice} WITH TUMBLING(10)", random_parts(2)
    )


def test_windows_that_count_nothing() -> None:
    assert_same("SELECT window_start AS w FROM A WITH TUMBLING(10)", random_parts(1))
    nothing = (
        "SUM(i) FILTER (WHERE i < 0 AND i > 0) AS s, MIN(k) FILTER (WHERE i < 0 AND i > 0) AS m"
    )
    assert_same(f"SELECT {nothing} FROM A WITH TUMBLING(10)", random_parts(1))


@pytest.mark.parametrize("shape", SHAPES[2:4])
def test_stopped_and_started_again_anywhere(shape: str) -> None:
    query, parts = f"SELECT {COLUMNS} FROM A WITH {shape}", random_parts(3, ints=SMALL)
    expected = whole(query, parts, optimise=False)
    for at in (0, 2, 5):
        for parallelism in (1, 3):
            found = whole(query, parts, cut=3, parallelism=parallelism, snapshot_at=at)
            assert repr(found.rows) == repr(expected.rows)
    found = whole(query, parts, cut=3, parallelism=3, duplicate_writes=1)
    assert repr(found.rows) == repr(expected.rows)


# --- failures ----------------------------------------------------------------------------------


def point(vs: int, i: int, **more: object) -> dict[str, object]:
    return {"vs": vs, "ve": vs + 1, "i": i, **more}


def test_overflow_is_judged_on_the_final_sum() -> None:
    big = 2**63 - 1
    parts = [[point(1, big), point(2, big), point(3, big)], [point(1, -big), point(2, -big)]]
    query = "SELECT SUM(i) AS s FROM A WITH TUMBLING(10)"
    assert whole(query, parts).rows == [{"vs": 0, "ve": 10, "s": big}]
    assert_same(query, parts)
    with pytest.raises(RunError, match="a SUM does not fit BIGINT"):
        whole(query, [*parts, [point(4, 1)]])


def test_overflow_of_a_decimal_too() -> None:
    most = Decimal("9" * 33 + ".99999")
    parts = [[point(1, 0, w=most), point(2, 0, w=most)], [point(3, 0, w=most.copy_negate())]]
    query = "SELECT SUM(w) AS s FROM A WITH TUMBLING(10)"
    assert whole(query, parts).rows == [{"vs": 0, "ve": 10, "s": most}]
    with pytest.raises(RunError, match="a SUM does not fit"):
        whole(query, parts[:1])


@pytest.mark.parametrize("shape", ["TUMBLING(10)", "HOPPING(3, 10)", "HOPPING(10, 3, 1)"])
def test_an_open_event_is_an_error_at_the_end(shape: str) -> None:
    rows: list[Rows] = [[point(1, 1)], [point(2, 2), {"vs": 5, "ve": None, "i": 3}, point(70, 3)]]
    for optimise in (True, False):
        for cut in (1, None):
            with pytest.raises(RunError, match="an open event is in a HOPPING window"):
                whole(f"SELECT MAX(i) AS m FROM A WITH {shape}", rows, cut=cut, optimise=optimise)
