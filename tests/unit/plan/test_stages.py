"""How a plan is cut into stages: one test for each rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import weir
from weir.errors import PlanError
from weir.plan.expressions import Column
from weir.plan.operators import Distinct, Join, Partition, Project, Source
from weir.plan.operators.facts import Meet
from weir.plan.program import Output, Program
from weir.plan.stages import Branch, Stage, StagedPlan, cut_stages
from weir.script import parse_program

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, j STRING, v BIGINT, l LIST(BIGINT)) FROM 'a.jsonl';
STREAM B (vs BIGINT, ve BIGINT, k STRING, j STRING, w BIGINT) FROM 'b.jsonl';
"""


def _cut(text: str, parallelism: int = 3) -> StagedPlan:
    """Without rewrites, so that a test says what it means; `Out` is what comes out."""
    if "OUTPUT" not in text:
        text += "OUTPUT Out TO 'out.jsonl';"
    return cut_stages(parse_program(INPUTS + text), parallelism)


def _names(stage: Stage) -> list[str]:
    return [type(o).__name__ for o in stage.operators if type(o).__name__ != "Project"]


def _shape(plan: StagedPlan) -> list[list[str]]:
    return [_names(stage) for stage in plan.stages]


def _links(stage: Stage) -> list[list[tuple[int, str, tuple[str, ...]]]]:
    return [[(x.stage, x.channel, x.keys) for x in port.links] for port in stage.ports]


# --- rule 1: what runs together ------------------------------------------------------------


def test_stateless_operators_run_with_their_source() -> None:
    plan = _cut("Out = SELECT EXPLODE(l) AS x FROM A WHERE v > 1 WITH DURATION(5);")
    assert _shape(plan) == [["Source", "Filter", "Explode", "AlterLifetime"]]
    (stage,) = plan.stages
    assert stage.vertices is None and stage.ports == () and stage.split_by is None
    assert plan.sinks[0].stages == (0,)


def test_chop_runs_where_its_rows_are() -> None:
    assert _shape(_cut("Out = SELECT * FROM A WITH CHOP(4);")) == [["Source", "Chop"]]


def test_a_key_that_contains_the_split_needs_no_exchange() -> None:
    text = """S = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5);
              Out = SELECT k, n, COUNT(*) AS m FROM S GROUP BY k, n WITH TUMBLING(10);"""
    plan = _cut(text)
    assert _shape(plan) == [["Source"], ["Aggregate", "Aggregate"]]
    assert plan.stages[1].split_by == ("k",)


def test_a_renamed_key_is_still_the_key() -> None:
    text = """S = SELECT k AS kk, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5);
              Out = SELECT kk, MAX(n) AS m FROM S GROUP BY kk WITH TUMBLING(10);"""
    plan = _cut(text)
    assert _shape(plan)[1] == ["Aggregate", "Aggregate"]
    assert plan.stages[1].split_by is not None and set(plan.stages[1].split_by) == {"kk"}


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5)",  # n is not the split
        "SELECT k || 'x' AS k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5)",  # computed
    ],
)
def test_another_key_needs_an_exchange(inner: str) -> None:
    key = "n" if "||" not in inner else "k"
    text = (
        f"S = {inner}; Out = SELECT {key}, COUNT(*) AS m FROM S GROUP BY {key} WITH TUMBLING(10);"
    )
    plan = _cut(text)
    assert _shape(plan) == [["Source"], ["Aggregate"], ["Aggregate"]]
    (((stage, channel, keys),),) = _links(plan.stages[2])
    assert (stage, channel, len(keys)) == (1, "hash", 1)


def test_exploding_the_split_column_loses_it() -> None:
    text = """S = SELECT l, COUNT(*) AS n FROM A GROUP BY l WITH TUMBLING(5);
              E = SELECT EXPLODE(l) AS l, n FROM S;
              Out = SELECT l, SUM(n) AS m FROM E GROUP BY l WITH TUMBLING(10);"""
    assert _shape(_cut(text)) == [["Source"], ["Aggregate", "Explode"], ["Aggregate"]]


def test_no_input_of_an_operator_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse_program(
        INPUTS + "Out = SELECT A.v AS v FROM A INNER JOIN B ON A.k == B.k; OUTPUT Out TO 'o.csv';"
    )
    monkeypatch.setattr(Join, "meeting", lambda _: Meet.NEVER)
    with pytest.raises(ValueError, match="too many values"):
        cut_stages(program)


# --- rule 2: exchanges ---------------------------------------------------------------------


def test_a_grouped_aggregate_is_split_by_its_keys() -> None:
    plan = _cut("Out = SELECT k, j, COUNT(*) AS n FROM A GROUP BY k, j WITH TUMBLING(5);", 4)
    stage = plan.stages[1]
    assert _links(stage) == [[(0, "hash", ("k", "j"))]]
    assert stage.vertices == 4 and stage.split_by == ("k", "j") and stage.why_single == ""


def test_both_sides_of_a_join_are_split_by_their_own_columns() -> None:
    plan = _cut("Out = SELECT A.v AS v, B.w AS w FROM A INNER JOIN B ON A.k == B.j;")
    stage = plan.stages[2]
    assert _links(stage) == [[(0, "hash", ("A.k",))], [(1, "hash", ("B.j",))]]
    assert stage.vertices == 3


def test_distinct_and_stitch_are_split_by_all_columns() -> None:
    for query in ("SELECT DISTINCT k, v FROM A", "SELECT k, v FROM A WITH STITCH"):
        plan = _cut(f"Out = {query};")
        assert _links(plan.stages[1]) == [[(0, "hash", ("k", "v"))]]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT COUNT(*) AS n FROM A WITH SNAPSHOT", "Aggregate without keys"),
        ("SELECT k, v FROM A ORDER BY v LIMIT 3", "Top without keys"),
        ("SELECT A.v AS v, B.w AS w FROM A CROSS JOIN B", "Join without keys"),
        ("SELECT A.v AS v, B.w AS w FROM A INNER JOIN B ON A.v < B.w", "Join without keys"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*join without an equality")
def test_what_cannot_be_split_says_why(query: str, why: str) -> None:
    plan = _cut(f"Out = {query};")
    stage = plan.stages[-1]
    assert stage.vertices == 1 and stage.why_single.startswith(why)
    assert {link.channel for port in stage.ports for link in port.links} == {"all"}
    assert stage.split_by == ()


def test_above_a_single_vertex_anything_runs_along() -> None:
    text = """S = SELECT k, v FROM A ORDER BY v LIMIT 3;
              Out = SELECT k, COUNT(*) AS n FROM S GROUP BY k WITH TUMBLING(5);"""
    assert _shape(_cut(text)) == [["Source"], ["Top", "Aggregate"]]


@pytest.mark.parametrize(
    ("kind", "fused"),
    [("INNER", True), ("LEFT OUTER", True), ("RIGHT OUTER", False), ("FULL OUTER", False)],
)
def test_the_split_that_an_outer_join_leaves(kind: str, fused: bool) -> None:
    """An unmatched row has NULL in the other side's key: above FULL no column tells the vertex."""
    text = f"""J = SELECT A.k AS ak, B.k AS bk FROM A {kind} JOIN B ON A.k == B.k;
               Out = SELECT ak, COUNT(*) AS n FROM J GROUP BY ak WITH TUMBLING(5);"""
    shape = _shape(_cut(text))
    assert shape[2:] == ([["Join", "Aggregate"]] if fused else [["Join"], ["Aggregate"]])


def test_a_right_join_keeps_the_right_key() -> None:
    text = """J = SELECT A.k AS ak, B.k AS bk FROM A RIGHT OUTER JOIN B ON A.k == B.k;
              Out = SELECT bk, COUNT(*) AS n FROM J GROUP BY bk WITH TUMBLING(5);"""
    assert _shape(_cut(text))[2:] == [["Join", "Aggregate"]]


# --- rule 3: unions ------------------------------------------------------------------------


def test_a_union_is_read_branch_by_branch() -> None:
    text = """U = SELECT k, v FROM A UNION ALL SELECT k, w AS v FROM B;
              Out = SELECT k, FIRST(v) AS n FROM U GROUP BY k WITH TUMBLING(5);"""
    plan = _cut(text)
    assert _shape(plan) == [["Source", "Branch"], ["Source", "Branch"], ["Aggregate"]]
    assert _links(plan.stages[2]) == [[(0, "hash", ("k",)), (1, "hash", ("k",))]]
    branches = [s.operators[-1] for s in plan.stages[:2]]
    assert [b.number for b in branches if isinstance(b, Branch)] == [0, 1]
    assert {b.depth for b in branches if isinstance(b, Branch)} == {2}, "FIRST asks for origins"


def test_stateless_operators_above_a_union_run_in_each_branch() -> None:
    text = """U = SELECT k, v FROM A UNION ALL SELECT k, w AS v FROM B;
              Out = SELECT k FROM U WHERE v > 2;"""
    plan = _cut(text)
    assert _shape(plan) == [["Source", "Branch", "Filter"]] * 2
    assert plan.sinks[0].stages == (0, 1)


def test_a_union_of_a_stream_with_itself() -> None:
    plan = _cut("Out = SELECT k, v FROM A UNION ALL SELECT k, v FROM A;")
    sources = [s for s in plan.stages if isinstance(s.operators[0], Source)]
    assert len(sources) == 1, "read once"
    assert len(plan.sinks[0].stages) == 2
    for number in plan.sinks[0].stages:
        assert _links(plan.stages[number]) == [[(0, "forward", ())]]


# --- rule 4: shared nodes ------------------------------------------------------------------


def test_a_stream_that_two_read_ends_its_stage() -> None:
    text = """S = SELECT k, v FROM A WHERE v > 1;
              X = SELECT k FROM S; Y = SELECT v FROM S;
              OUTPUT X TO 'x.jsonl'; OUTPUT Y TO 'y.jsonl';"""
    plan = _cut(text)
    assert _shape(plan)[0] == ["Source", "Filter"] and len(plan.stages) == 3
    for stage in plan.stages[1:]:
        assert _links(stage) == [[(0, "forward", ())]] and stage.vertices is None
    assert [s.stages for s in plan.sinks] == [(1,), (2,)]


def test_an_output_that_is_read_too_ends_its_stage() -> None:
    text = """S = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5);
              T = SELECT k, MAX(n) AS m FROM S GROUP BY k WITH TUMBLING(10);
              OUTPUT S TO 's.jsonl'; OUTPUT T TO 't.jsonl';"""
    plan = _cut(text)
    assert [x for x in _shape(plan) if x] == [["Source"], ["Aggregate"], ["Aggregate"]]
    assert plan.sinks[0].stages != plan.sinks[1].stages


def test_a_self_join_reads_its_source_once() -> None:
    plan = _cut("Out = SELECT x.v AS v FROM A AS x INNER JOIN A AS y ON x.k == y.k;")
    assert sum(isinstance(o, Source) for s in plan.stages for o in s.operators) == 1
    (left,), (right,) = (port.links for port in plan.stages[-1].ports)
    assert left.channel == right.channel == "hash" and left.stage != right.stage


def test_late_and_bad_outputs_come_with_the_source() -> None:
    text = "OUTPUT LATE OF A TO 'late.jsonl'; OUTPUT BAD OF A TO 'bad.jsonl';"
    plan = _cut(text)
    assert _shape(plan) == [["Source"]] and [s.stages for s in plan.sinks] == [(), ()]


def test_a_users_operator_may_emit_anything_under_the_name_of_its_key() -> None:
    @weir.operator(columns={"k": "STRING"})
    class Renamed:
        def on_event(self, event: Any, context: Any) -> None:
            context.emit(k="x", ve=event.vs + 100)

    a = weir.stream("A", {"vs": "BIGINT", "k": "STRING"}, "a.jsonl", vs="vs")
    same = a.reduce("k", using=Renamed())
    counts = same.group_by("k").window(weir.tumbling(100)).agg(n=weir.count())
    program = Program((), (), (Output("Out", counts.node, "out.jsonl"),))
    assert _shape(cut_stages(program, 3)) == [["Source"], ["Apply"], ["Aggregate"]]
    rows = {"A": [{"vs": i, "k": f"k{i}"} for i in range(20)]}
    answers = [weir.collect(counts, inputs=rows, parallelism=p) for p in (1, 3)]
    assert answers[0].equals(answers[1]) and answers[0]["n"].to_pylist() == [20, 19]


# --- PARTITION BY --------------------------------------------------------------------------


def test_partition_by_sets_count_and_uid() -> None:
    text = """Out = SELECT k, j, COUNT(*) AS n FROM A PARTITION BY k INTO 5 AS 'by-k'
              GROUP BY k, j WITH TUMBLING(5);"""
    for parallelism in (1, 3):
        stage = _cut(text, parallelism).stages[1]
        assert (stage.vertices, stage.uid, stage.split_by) == (5, "by-k", ("k",))
        assert _links(stage) == [[(0, "hash", ("k",))]]


def test_partition_by_of_a_join_splits_both_sides() -> None:
    text = """Out = SELECT A.v AS v FROM A PARTITION BY k INTO 2 AS 'by-k'
              INNER JOIN B ON A.j == B.j AND A.k == B.k;"""
    stage = _cut(text).stages[-1]
    assert _links(stage) == [[(0, "hash", ("A.k",))], [(1, "hash", ("B.k",))]]
    assert (stage.vertices, stage.uid) == (2, "by-k")


def test_partition_by_under_another_name() -> None:
    text = """S = SELECT k AS kk, v FROM A PARTITION BY k INTO 2 AS 'by-k';
              Out = SELECT kk, COUNT(*) AS n FROM S GROUP BY kk WITH TUMBLING(5);"""
    stage = _cut(text).stages[-1]
    assert (stage.vertices, stage.uid) == (2, "by-k")


def test_partition_by_holds_through_what_runs_wherever_rows_are() -> None:
    text = """S = SELECT k, v FROM A PARTITION BY k INTO 2 AS 'by-k' WITH CHOP(5);
              Out = SELECT k, COUNT(*) AS n FROM S GROUP BY k WITH TUMBLING(5);"""
    stage = _cut(text).stages[-1]
    assert (stage.vertices, stage.uid) == (2, "by-k")


def test_partition_into_one_keeps_its_name_to_itself() -> None:
    text = """S = SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 1 AS 'one'
              GROUP BY k WITH TUMBLING(5);
              Out = SELECT n, COUNT(*) AS m FROM S GROUP BY n WITH TUMBLING(10);"""
    plan = _cut(text)
    assert _shape(plan)[1:] == [["Aggregate"], ["Aggregate"]]
    assert [s.uid for s in plan.stages] == [None, "one", None]


def test_partition_by_is_checked_again_in_the_finished_plan() -> None:
    program = parse_program(INPUTS + "S = SELECT k, v FROM A; OUTPUT S TO 's.csv';")
    partition = Partition(program.outputs[0].node, ("k",), 2, "by-k")
    values = Project(partition, (("v", Column("v", type=pa.int64())),))
    unchecked = replace(program, outputs=(Output("Out", Distinct(values), "out.csv"),))
    with pytest.raises(PlanError, match="PARTITION BY of 'by-k' splits by `k`"):
        cut_stages(unchecked)


# --- parallelism ---------------------------------------------------------------------------

PROGRAMS = [
    "Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5);",
    "Out = SELECT COUNT(*) AS n FROM A WITH SNAPSHOT;",
    """S = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5);
       Out = SELECT n, COUNT(*) AS m FROM S GROUP BY n WITH TUMBLING(10);""",
    """J = SELECT A.k AS k, B.w AS w FROM A FULL OUTER JOIN B ON A.k == B.k;
       Out = SELECT DISTINCT w FROM J;""",
    """S = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5);
       Out = SELECT n FROM S ORDER BY n LIMIT 3;""",
    """S = SELECT k, j, COUNT(*) AS n FROM A GROUP BY k, j WITH TUMBLING(5);
       Out = SELECT k, SUM(n) AS m FROM S GROUP BY k WITH TUMBLING(10);""",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_the_cut_depends_on_the_program_alone(text: str) -> None:
    """A snapshot taken at one parallelism is loaded at another: its stages must be the same."""

    def structure(parallelism: int) -> list[object]:
        plan = _cut(text, parallelism)
        return [(s.operators, _links(s), s.split_by, s.why_single) for s in plan.stages]

    assert structure(1) == structure(2) == structure(7)


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_parallelism_sets_how_many_vertices_a_keyed_stage_has(parallelism: int) -> None:
    plan = _cut(PROGRAMS[0], parallelism)
    assert [s.vertices for s in plan.stages] == [None, parallelism]
    assert _cut(PROGRAMS[1], parallelism).stages[-1].vertices == 1


def test_no_vertices_at_all() -> None:
    with pytest.raises(PlanError, match="parallelism must be a number from 1 to 1000, not 0"):
        _cut(PROGRAMS[0], 0)


def test_origins_are_carried_only_where_order_is_asked_for() -> None:
    by_order = _cut("Out = SELECT k, FIRST(v) AS x FROM A GROUP BY k WITH TUMBLING(5);")
    by_value = _cut("Out = SELECT k, MIN(v) AS x FROM A GROUP BY k WITH TUMBLING(5);")
    assert [by_order.origins[n] for n in by_order.origins if isinstance(n, Source)] == [2]
    assert [by_value.origins[n] for n in by_value.origins if isinstance(n, Source)] == [0]


def test_very_deep_plans_are_cut() -> None:
    text = "S0 = SELECT k, v FROM A;"
    for i in range(1, 400):
        text += f"S{i} = SELECT k, v + 1 AS v FROM S{i - 1};"
    assert len(_cut(f"{text} Out = SELECT * FROM S399;").stages) == 1
