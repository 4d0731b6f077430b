"""Plans that are too large are refused when they are made; those below the limits run."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import weir
from weir.cli import command_line
from weir.errors import PlanError, ScriptError
from weir.plan.explain.explanation import explain
from weir.plan.expressions import Call, Column, depth_of
from weir.plan.limits import MOST_BRANCHES, MOST_OPERATORS, MOST_PARTS, MOST_ROWS, MOST_VERTICES
from weir.plan.operators import Project
from weir.plan.program import Program, row_outputs
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import cut_stages
from weir.plan.traversal import ordered_nodes
from weir.script import parse_program

A = "STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a';\n"


def chained(count: int, statement: str) -> Program:
    """Streams S1, S2 … over each other; `statement` reads the one before as {before}."""
    lines = [f"S0 = SELECT * FROM A;\nS1 = {statement.format(before='A')};"]
    lines += [f"S{i} = {statement.format(before=f'S{i - 1}')};" for i in range(2, count + 1)]
    return parse_program(A + "\n".join(lines) + f"\nOUTPUT S{count} TO 'o.csv';")


def planned(program: Program) -> str:
    """As all runners do it; deep in the stack, as they may be."""

    def below(frames: int) -> str:
        if frames:
            return below(frames - 1)
        rewritten = rewrite(program)
        return explain(rewritten, cut_stages(rewritten, 2))

    return below(100)


@pytest.mark.parametrize(
    ("statement", "operators"),
    [
        ("SELECT k, v + 1 AS v FROM {before}", 1),
        ("SELECT DISTINCT * FROM {before}", 1),
        ("SELECT SUM(v) AS v FROM {before} WITH TUMBLING(5)", 2),
        ("SELECT k, SUM(v) AS v FROM {before} GROUP BY k WITH TUMBLING(5)", 2),
    ],
)
def test_operators_in_a_row(statement: str, operators: int) -> None:
    most = (MOST_OPERATORS - 1) // operators - 1
    assert planned(chained(most, statement))
    with pytest.raises(ScriptError, match="more than 500 operators in a row") as refused:
        chained(most + 3, statement)
    assert refused.value.line > most, "at the statement that is too much"


def test_branches_of_unions() -> None:
    assert planned(chained(5, "SELECT * FROM {before} UNION ALL SELECT * FROM {before}"))
    with pytest.raises(ScriptError, match=f"more than {MOST_BRANCHES}"):
        chained(14, "SELECT * FROM {before} UNION ALL SELECT * FROM {before}")
    # What an aggregate gives is one branch again.
    assert chained(
        40,
        "SELECT SUM(v) AS v FROM (SELECT v FROM {before} UNION ALL "
        "SELECT v FROM {before}) AS u WITH TUMBLING(5)",
    )


def test_projections_are_not_merged_into_one_that_is_too_deep() -> None:
    # What can fail is not merged anyway; `||` cannot.
    inner = "SELECT v, k" + " || 'a'" * (MOST_PARTS - 2) + " AS k FROM "
    program = parse_program(f"{A}S = {inner}({inner}({inner}A) AS b) AS c; OUTPUT S TO 'o';")
    assert planned(program)
    for node in ordered_nodes(row_outputs(rewrite(program))):
        if isinstance(node, Project):
            assert all(depth_of(e) <= MOST_PARTS for _, e in node.columns)


@pytest.mark.parametrize("parallelism", [0, -1, 1001, 10**12])
def test_vertices(parallelism: int) -> None:
    with pytest.raises(PlanError, match="parallelism must be a number from 1 to 1000"):
        cut_stages(rewrite(parse_program(A)), parallelism)


def test_depth() -> None:
    assert depth_of(Call("add", (Call("neg", (Column("a"),)), Column("b")))) == 3


def test_the_command_line_has_the_same_limit() -> None:
    assert command_line.MOST_VERTICES == MOST_VERTICES
    assert command_line.MOST_ROWS == MOST_ROWS


RUNNERS: dict[str, Callable[..., object]] = {
    "run": partial(weir.run, "no program"),
    "run_offline": partial(weir.run_offline, "no program"),
    "run_live": partial(weir.run_live, "no program", "store"),
    "collect": partial(weir.collect, weir.stream("A", {"vs": "BIGINT"}, "a.csv", vs="vs")),
}
WRONG_NUMBERS = (
    [("cut", wrong, "cut must be None or a number from 1 to 2**62") for wrong in (0, -1, 2**62 + 1)]
    + [
        (name, wrong, f"{name} must be a number from 1 to 1000")
        for name in ("parallelism", "hosts")
        for wrong in (0, -1, 1001)
    ]
    + [
        (name, wrong, f"{name} must be ")
        for name in ("cut", "parallelism", "hosts")
        for wrong in (True, "3", 2.0)
    ]
)


@pytest.mark.parametrize(
    ("runner", "name", "wrong", "wanted"),
    [(r, *case) for r in RUNNERS for case in WRONG_NUMBERS if case[0] != "hosts" or "live" in r],
)
def test_every_runner_refuses_a_wrong_number_before_anything_else(
    runner: str,
    name: str,
    wrong: object,
    wanted: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlanError, match=f"{re.escape(wanted)}.*not {re.escape(repr(wrong))}"):
        RUNNERS[runner](**{name: wrong})
    assert not list(tmp_path.iterdir())
