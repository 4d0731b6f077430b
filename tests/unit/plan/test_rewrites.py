"""What a program is rewritten to, and what must stay as it is.

The golden pairs show a query and the plan that is run for it, one operator a line. That both
give the same rows is for the property tests, which run random programs either way.
"""

from collections.abc import Iterator

import pytest

from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.plan.expressions import Call, Case, Cast, Column, Expr, Literal, UserCall
from weir.plan.functions.failures import can_fail, sees_equals_alike
from weir.plan.operators import Aggregate, Apply, Filter, Join, Node, Project, Source, Union, schema
from weir.plan.program import Output, Program
from weir.plan.rewrites.pruning import needed_columns
from weir.plan.rewrites.rewrite import merge_projects, rewrite
from weir.plan.traversal import ordered_nodes
from weir.plan.usercode.decorators import udf
from weir.plan.usercode.functions import OperatorFunction
from weir.script.program import parse_program

pytestmark = pytest.mark.filterwarnings("ignore:.*a join without an equality")

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT, f DOUBLE, x LIST(BIGINT), s STRING)
  FROM 'a.jsonl' WITH (vs = vs, ve = ve);
STREAM B (vs BIGINT, k STRING, w BIGINT, t STRING) FROM 'b.jsonl' WITH (vs = vs);
STREAM T (At TIMESTAMP, k STRING, w BIGINT, t STRING) FROM 't.jsonl' WITH (vs = At);
"""


def parsed(text: str) -> Program:
    """A program whose output is `Out`; a lone query is `Out` itself."""
    statements = text if "Out =" in text else f"Out = {text};"
    return parse_program(f"{INPUTS}{statements}\nOUTPUT Out TO 'out.jsonl';")


def rewritten(text: str) -> Node:
    return rewrite(parsed(text)).outputs[0].node


def plan_of(node: Node, depth: int = 0) -> Iterator[str]:
    detail = node.name if isinstance(node, Source) else node.detail()
    yield "  " * depth + f"{type(node).__name__} {detail}".strip()
    for below in node.inputs:
        yield from plan_of(below, depth + 1)


def lines(plan: str) -> list[str]:
    found = [line for line in plan.splitlines() if line.strip()]
    margin = len(found[0]) - len(found[0].lstrip())
    return [line[margin:] for line in found]


def filters(node: Node) -> list[str]:
    """Each predicate and the operator right below it."""
    found = [n for n in ordered_nodes([node]) if isinstance(n, Filter)]
    return sorted(f"{f.detail()} | {type(f.input).__name__}" for f in found)


# --- golden pairs --------------------------------------------------------------------------

PAIRS = {
    "a filter goes below a projection, renamed and spelled out": (
        "SELECT * FROM (SELECT k AS key, w, UPPER(t) AS u FROM B) WHERE key = 'a' AND u LIKE 'X%'",
        """
        Project k AS key, w, UPPER(t) AS u
          Filter k = 'a' AND UPPER(t) LIKE 'X%'
            Source B
        """,
    ),
    "a filter goes into all branches of a union": (
        """SELECT * FROM (SELECT k, v AS n FROM A UNION ALL SELECT t AS k, w AS n FROM B)
           WHERE k = 'a' AND vs > 3""",
        """
        Union
          Project k, v AS n
            Filter k = 'a' AND vs > 3
              Project k, v
                Source A
          Project t AS k, w AS n
            Filter t = 'a' AND vs > 3
              Project w, t
                Source B
        """,
    ),
    "an inner join: WHERE and ON to both sides": (
        """SELECT A.v AS v, B.w AS w
           FROM A INNER JOIN B ON A.k = B.k AND A.f > 1.0 AND B.t = 'x' AND A.v < B.w
           WHERE A.s = 'y' AND B.w > 3 AND vs > 1""",
        """
        Project A.v AS v, B.w AS w
          Filter vs > 1
            Join INNER ON A.k = B.k AND A.v < B.w
              Project k AS A.k, v AS A.v
                Filter f > 1.0 AND s = 'y'
                  Project k, v, f, s
                    Source A
              Project k AS B.k, w AS B.w
                Filter t = 'x' AND w > 3
                  Source B
        """,
    ),
    "a key of an aggregate": (
        """SELECT * FROM (SELECT k, COUNT(*) AS n FROM B GROUP BY k WITH TUMBLING(5))
           WHERE k = 'a' AND n > 1""",
        """
        Project k, $a0 AS n
          Filter $a0 > 1
            Aggregate COUNT(*) AS $a0 BY k WITH TUMBLING(5us)
              Filter k = 'a'
                Project k
                  Source B
        """,
    ),
    "a lifetime is read where it was written": (
        "SELECT * FROM (SELECT k, v FROM A WITH DURATION(5)) WHERE k = 'a' AND vs > 3",
        """
        Filter vs > 3
          AlterLifetime DURATION(5us)
            Filter k = 'a'
              Project k, v
                Source A
        """,
    ),
    "EXPLODE: only what does not read its elements": (
        "SELECT * FROM (SELECT k, EXPLODE(x) AS e FROM A) WHERE k = 'a' AND e > 3",
        """
        Filter e > 3
          Explode e
            Project k, x AS e
              Filter k = 'a'
                Project k, x
                  Source A
        """,
    ),
    "projections become one, and none where nothing is read": (
        "SELECT COUNT(*) AS n FROM A CROSS JOIN B",
        """
        Project $a0 AS n
          Aggregate COUNT(*) AS $a0 WITH SNAPSHOT
            Join INNER ON TRUE
              Project no columns
                Source A
              Project no columns
                Source B
        """,
    ),
    "aggregates that nobody reads go, but not one that can fail": (
        """SELECT k FROM (SELECT k, COUNT(*) AS n, MAX(w) AS m, SUM(w) AS s
                          FROM B GROUP BY k WITH TUMBLING(5))""",
        """
        Project k
          Aggregate SUM(w) AS $a2 BY k WITH TUMBLING(5us)
            Project k, w
              Source B
        """,
    ),
    "columns that can fail are computed for nobody": (
        "SELECT k FROM (SELECT k, t, w // 0 AS h, w // 2 AS g FROM B)",
        """
        Project k
          Project k, w // 0 AS h
            Source B
        """,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_golden_pairs(name: str) -> None:
    query, plan = PAIRS[name]
    assert list(plan_of(rewritten(query))) == lines(plan)


@pytest.mark.parametrize("name", PAIRS)
def test_rewriting_twice_changes_nothing_more(name: str) -> None:
    once = rewrite(parsed(PAIRS[name][0]))
    assert rewrite(once) == once


# --- joins ---------------------------------------------------------------------------------

SIDES = {
    # WHERE on the left, WHERE on the right, ON's left, ON's right: what comes below the join.
    "INNER JOIN": ("s = 'y'", "w > 3", "f > 1.0", "t = 'x'"),
    "LEFT OUTER JOIN": ("s = 'y'", None, None, "t = 'x'"),
    "RIGHT OUTER JOIN": (None, "w > 3", "f > 1.0", None),
    "FULL OUTER JOIN": (None, None, None, None),
    "LEFT SEMI JOIN": ("s = 'y'", None, "f > 1.0", "t = 'x'"),
    "LEFT ANTI JOIN": ("s = 'y'", None, None, "t = 'x'"),
    "CLIP JOIN": ("s = 'y'", None, None, "t = 'x'"),
    "ASOF JOIN": ("s = 'y'", None, "f > 1.0", "t = 'x'"),
    "LEFT ASOF JOIN": ("s = 'y'", None, None, "t = 'x'"),
}


@pytest.mark.parametrize("kind", SIDES)
def test_what_sinks_below_a_join(kind: str) -> None:
    hidden = kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN", "CLIP JOIN")
    where = "A.s = 'y' AND vs > 1" if hidden else "A.s = 'y' AND B.w > 3 AND vs > 1"
    on = "A.k = B.k AND A.f > 1.0 AND B.t = 'x'"
    node = rewritten(f"SELECT A.v AS v FROM A {kind} B ON {on} WHERE {where}")
    (join,) = (n for n in ordered_nodes([node]) if isinstance(n, Join))
    below = {
        part
        for n in ordered_nodes(join.inputs)
        if isinstance(n, Filter)
        for part in n.detail().split(" AND ")
    }
    assert below == {part for part in SIDES[kind] if part is not None}
    above = [n.detail() for n in ordered_nodes([node]) if isinstance(n, Filter)][-1]
    assert "vs > 1" in above
    kept = "" if join.condition is None else join.detail()
    assert ("A.f > 1.0" in kept) == (SIDES[kind][2] is None)
    assert ("B.t = 'x'" in kept) == (SIDES[kind][3] is None)


def test_a_condition_that_can_fail_keeps_its_pairs() -> None:
    node = rewritten(
        """SELECT A.v AS v FROM A INNER JOIN B ON A.k = B.k AND A.v + 1 < B.w AND B.t = 'x'
           WHERE A.s = 'y'"""
    )
    assert filters(node) == ["A.s = 'y' | Join"]


# --- what filters stay above ---------------------------------------------------------------

STAY = {
    "LIMIT": ("SELECT * FROM (SELECT k, v FROM A ORDER BY v LIMIT 3) WHERE k = 'a'", "Top"),
    "a value of an aggregate": (
        "SELECT * FROM (SELECT k, MAX(w) AS m FROM B GROUP BY k) WHERE m > 1",
        "Aggregate",
    ),
    "a sum that may overflow": (
        "SELECT * FROM (SELECT k, SUM(w) AS n FROM B GROUP BY k) WHERE k = 'a'",
        "Aggregate",
    ),
    "a hopping window that may see open events": (
        "SELECT * FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5)) WHERE k = 'a'",
        "Aggregate",
    ),
    "CHOP of events that may be open": (
        "SELECT * FROM (SELECT k FROM A WITH CHOP(5)) WHERE k = 'a'",
        "Chop",
    ),
    "a projection that can fail": (
        "SELECT * FROM (SELECT k, w + 1 AS n FROM B) WHERE k = 'a'",
        "Project",
    ),
    "a lifetime that can fail": (
        "SELECT * FROM (SELECT k, w FROM B WITH LIFETIME(vs, vs + w)) WHERE k = 'a'",
        "AlterLifetime",
    ),
    "DISTINCT, asked for a sign that equal rows need not share": (
        "SELECT * FROM (SELECT DISTINCT f FROM A) WHERE 1.0 / f > 0.0",
        "Distinct",
    ),
    "a filter that can fail stays, and all above it": (
        "SELECT * FROM (SELECT * FROM B WHERE w // w = 1) WHERE k = 'a'",
        "Source",
    ),
    "a union of ticks and timestamps, asked for the time": (
        "SELECT * FROM (SELECT k FROM B UNION ALL SELECT k FROM T) WHERE vs > 3",
        "Union",
    ),
}


@pytest.mark.parametrize("name", STAY)
def test_a_filter_stays_above(name: str) -> None:
    query, below = STAY[name]
    (only,) = filters(rewritten(query))
    assert only.endswith(f"| {below}")


SINK = {
    "CHOP of points": "SELECT * FROM (SELECT k FROM B WITH CHOP(5)) WHERE k = 'a'",
    "SESSION": "SELECT * FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH SESSION(5)) "
    "WHERE k = 'a'",
    "COUNT": "SELECT * FROM (SELECT k, LAST(v) AS n FROM A GROUP BY k WITH COUNT(2)) WHERE k = 'a'",
    "SNAPSHOT": "SELECT * FROM (SELECT k, AVG(v) AS n FROM A GROUP BY k) WHERE k = 'a'",
    "DISTINCT": "SELECT * FROM (SELECT DISTINCT k, f FROM A) WHERE f > 0.0",
    "STITCH": "SELECT * FROM (SELECT k FROM A WITH STITCH) WHERE k = 'a'",
    "PARTITION": "SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 2 AS 'p' WHERE k = 'a' "
    "GROUP BY k",
    "a window of bounded events": "SELECT * FROM (SELECT k, COUNT(*) AS n FROM "
    "(SELECT * FROM A WITH CLIP_DURATION(9)) GROUP BY k WITH HOPPING(6, 2)) WHERE k = 'a'",
}


@pytest.mark.parametrize("name", SINK)
def test_a_filter_sinks_to_the_source(name: str) -> None:
    (only,) = (n for n in ordered_nodes([rewritten(SINK[name])]) if isinstance(n, Filter))
    below = [n for n in ordered_nodes([only.input]) if n != only.input]
    assert all(isinstance(n, Source | Project) for n in (only.input, *below))


def test_a_filter_does_not_enter_what_others_read() -> None:
    node = rewritten(
        """M = SELECT A.k AS k, B.w AS w FROM A INNER JOIN B ON A.k = B.k;
           Out = SELECT k FROM M WHERE w > 3 UNION ALL SELECT k FROM M;"""
    )
    assert filters(node) == ["w > 3 | Project"]
    assert sum(isinstance(n, Join) for n in ordered_nodes([node])) == 1


def test_filters_on_each_other_become_one_in_their_order() -> None:
    assert filters(rewritten("SELECT * FROM (SELECT * FROM B WHERE w > 3) WHERE k = 'a'")) == [
        "w > 3 AND k = 'a' | Source"
    ]
    # NULL > 3 drops a row, but NULL AND x // y would still divide.
    text = "SELECT * FROM (SELECT * FROM B WHERE w > 3) WHERE 7 // (w - 3) > 1"
    assert filters(rewritten(text)) == ["7 // (w - 3) > 1 | Filter", "w > 3 | Source"]


def test_a_predicate_does_not_grow_without_end() -> None:
    inner = "(SELECT k || t AS u FROM B)"
    for _ in range(8):
        inner = f"(SELECT u || u AS u FROM {inner})"
    node = rewritten(f"SELECT * FROM {inner} WHERE u = 'a'")
    (only,) = (n for n in ordered_nodes([node]) if isinstance(n, Filter))
    assert len(only.detail()) < 300


# --- columns -------------------------------------------------------------------------------


def test_order_keeps_the_payload_of_rows_without_origin() -> None:
    ranked = "SELECT k, COUNT(*) AS n, MAX(w) AS m FROM B GROUP BY k ORDER BY n LIMIT 1"
    first = "SELECT FIRST(n) AS f FROM (SELECT k, COUNT(*) AS n, MAX(w) AS m FROM B GROUP BY k)"
    for text in (f"SELECT n FROM ({ranked})", first):
        assert "    Project k, $a0 AS n, $a1 AS m" in list(plan_of(rewritten(text)))


def test_origins_make_the_payload_free() -> None:
    assert list(plan_of(rewritten("SELECT FIRST(v) AS f FROM A")))[-2:] == [
        "    Project v",
        "      Source A",
    ]


def test_a_union_with_rows_without_origin_keeps_the_payload() -> None:
    text = """SELECT FIRST(n) AS f FROM (
        SELECT k, w AS n FROM B UNION ALL SELECT k, COUNT(*) AS n FROM A GROUP BY k)"""
    (union,) = (n for n in ordered_nodes([rewritten(text)]) if isinstance(n, Union))
    assert schema(union).names == ("k", "n")


def test_the_right_side_of_asof_keeps_its_order() -> None:
    grouped = "(SELECT k, t, COUNT(*) AS n FROM B GROUP BY k, t)"
    node = rewritten(f"SELECT A.k AS k FROM A ASOF JOIN {grouped} AS C ON A.k = C.k")
    (join,) = (n for n in ordered_nodes([node]) if isinstance(n, Join))
    assert schema(join.right).names == ("C.k", "C.t", "C.n", "C.vs", "C.ve")
    assert schema(join.left).names == ("A.k",)


@pytest.mark.parametrize("clause", ["DISTINCT k, s FROM A", "k, s FROM A WITH STITCH"])
def test_whole_rows_are_compared_whole(clause: str) -> None:
    node = rewritten(f"SELECT k FROM (SELECT {clause})")
    assert schema(node.inputs[0]).names == ("k", "s")


def test_user_operators_see_whole_rows() -> None:
    source = parsed("SELECT * FROM B").sources[1]

    counted = OperatorFunction("Counted", object, (("n", BIGINT),), ())
    node = Apply((source,), ((),), counted())
    program = Program((source,), (), (Output("Out", node, "out.jsonl"),))
    assert rewrite(program) == program


def test_branches_of_a_union_lose_the_same_columns() -> None:
    text = "SELECT n FROM (SELECT k, v AS n FROM A UNION ALL SELECT t AS k, w AS n FROM B)"
    (union,) = (n for n in ordered_nodes([rewritten(text)]) if isinstance(n, Union))
    assert [schema(i).names for i in union.inputs] == [("n",), ("n",)]


def test_a_shared_source_is_narrowed_once() -> None:
    node = rewritten("SELECT k FROM B UNION ALL SELECT t AS k FROM B")
    (narrow,) = (
        n for n in ordered_nodes([node]) if isinstance(n, Project) and n.input.inputs == ()
    )
    assert narrow.columns == tuple((c, Column(c, type=STRING)) for c in ("k", "t"))


def test_outputs_keep_their_columns() -> None:
    program = parsed("M = SELECT k, w, t FROM B WHERE w > 1; Out = SELECT k FROM M WHERE t = 'a';")
    both = (*program.outputs, Output("M", dict(program.streams)["M"], "m.jsonl"))
    result = rewrite(Program(program.sources, program.streams, both))
    for before, after in zip(both, result.outputs, strict=True):
        assert schema(after.node) == schema(before.node)
    assert [name for name, _ in result.streams] == ["M", "Out"]
    assert dict(result.streams)["M"] == result.outputs[1].node


def test_named_streams_stay_in_the_plan() -> None:
    program = rewrite(parsed("M = SELECT k, w FROM B; Out = SELECT k FROM M WITH DURATION(5);"))
    assert dict(program.streams)["M"] in ordered_nodes([program.outputs[0].node])


def test_columns_that_a_reader_must_read() -> None:
    program = rewrite(parsed("SELECT A.v AS v FROM A LEFT SEMI JOIN T ON A.k = T.k AND T.w > 3"))
    a, b, t = program.sources
    assert needed_columns(program, a) == ("vs", "ve", "k", "v")
    assert needed_columns(program, b) == ("vs",)
    assert needed_columns(program, t) == ("At", "k", "w")
    late = Program(program.sources, (), (*program.outputs, Output("T", t, "late.jsonl", "late")))
    assert needed_columns(late, t) == ("At", "k", "w", "t")


# --- projections ---------------------------------------------------------------------------


def test_nothing_is_computed_twice() -> None:
    text = "SELECT u, u || 'b' AS b FROM (SELECT UPPER(k) AS u FROM B)"
    assert [n for n in plan_of(rewritten(text)) if "Project" in n] == [
        "Project u, u || 'b' AS b",
        "  Project UPPER(k) AS u",
    ]


def test_a_failure_does_not_hide_in_a_branch() -> None:
    text = "SELECT CASE WHEN k = 'a' THEN n END AS m FROM (SELECT k, w + 1 AS n FROM B)"
    assert sum(isinstance(n, Project) for n in ordered_nodes([rewritten(text)])) == 2
    once = "SELECT n AS m FROM (SELECT k, w + 1 AS n FROM B)"
    assert list(plan_of(rewritten(once))) == ["Project w + 1 AS m", "  Source B"]


def test_a_projection_that_changes_nothing_is_gone() -> None:
    source = parsed("SELECT * FROM B").sources[1]
    same = Project(source, tuple((n, Column(n, type=t)) for n, t in schema(source).columns))
    program = Program((source,), (), (Output("Out", same, ""),))
    assert merge_projects(program).outputs[0].node == source


def test_shared_nodes_are_rewritten_once() -> None:
    node: Node = parsed("SELECT * FROM B").sources[1]
    w = Column("w", type=BIGINT)
    for least in range(60):
        more = Filter(node, Call("gt", (w, Literal(least, type=BIGINT)), type=BOOLEAN))
        node = Union((node, more))
    program = Program((), (), (Output("Out", node, ""),))
    result = rewrite(program).outputs[0].node
    assert len(ordered_nodes([result])) <= len(ordered_nodes([node]))


# --- failures ------------------------------------------------------------------------------

V, W, F, S = (Column(n, type=t) for n, t in zip("vwfs", (BIGINT, INT, DOUBLE, STRING), strict=True))
AT, DAY = Column("at", type=TIMESTAMP), Column("day", type=DATE)


def number(value: object) -> Literal:
    return Literal(value, type=BIGINT)


@udf(args=["BIGINT"], result="BIGINT")
def own(value: int) -> int:
    return value


FAILS: list[tuple[Expr, bool]] = [
    (Call("add", (V, V), type=BIGINT), True),
    (Call("add", (F, F), type=DOUBLE), False),
    (Call("sub", (AT, V), type=TIMESTAMP), True),
    (Call("neg", (V,), type=BIGINT), True),
    (Call("abs", (F,), type=DOUBLE), False),
    (Call("floordiv", (V, W), type=BIGINT), True),
    (Call("floordiv", (V, number(2)), type=BIGINT), False),
    (Call("floordiv", (V, number(-1)), type=BIGINT), True),
    (Call("mod", (V, number(-1)), type=BIGINT), False),
    (Call("mod", (V, number(0)), type=BIGINT), True),
    (Call("mod", (V, number(None)), type=BIGINT), True),
    (Call("div", (F, F), type=DOUBLE), False),
    (Call("lt", (V, number(3)), type=BOOLEAN), False),
    (Call("lt", (Call("add", (V, V), type=BIGINT), V), type=BOOLEAN), True),
    (Call("like", (S, Literal("a%", type=STRING)), type=BOOLEAN), False),
    (Call("split_part", (S, S, number(1)), type=STRING), False),
    (Call("split_part", (S, S, V), type=STRING), True),
    (Call("regexp_replace", (S, S, S), type=STRING), True),
    (Call("to_timestamp", (S,), type=TIMESTAMP), True),
    (Call("date_trunc", (Literal("day", type=STRING), AT), type=TIMESTAMP), False),
    (Call("extract", (Literal("year", type=STRING), DAY), type=BIGINT), True),
    (Cast(W, type=BIGINT), False),
    (Cast(V, type=INT), True),
    (Cast(V, type=DOUBLE), False),
    (Cast(V, type=STRING), False),
    (Cast(S, type=BIGINT), True),
    (Cast(S, True, type=BIGINT), False),
    (Case(((Call("is_null", (V,), type=BOOLEAN), V),), V, type=BIGINT), False),
    (Case((), Call("neg", (V,), type=BIGINT), type=BIGINT), True),
    (UserCall(own, (V,), type=BIGINT), True),
]


@pytest.mark.parametrize(("expr", "fails"), FAILS, ids=range(len(FAILS)))
def test_what_can_fail(expr: Expr, fails: bool) -> None:
    assert can_fail(expr) is fails


def test_equal_payloads_look_alike_to_comparisons() -> None:
    positive = Call("gt", (F, Literal(0.0, type=DOUBLE)), type=BOOLEAN)
    assert sees_equals_alike(positive)
    inverse = Call("div", (Literal(1.0, type=DOUBLE), F), type=DOUBLE)
    assert not sees_equals_alike(Call("gt", (inverse, F), type=BOOLEAN))
    assert not sees_equals_alike(Call("eq", (Cast(F, type=STRING), S), type=BOOLEAN))
    assert sees_equals_alike(Call("eq", (Cast(V, type=STRING), S), type=BOOLEAN))


def test_a_dropped_aggregate_asks_for_no_order() -> None:
    counted = "(SELECT k, t, COUNT(*) AS n FROM B GROUP BY k, t)"
    text = f"SELECT k FROM (SELECT k, FIRST(n) AS f FROM {counted} GROUP BY k)"
    outer = [n for n in ordered_nodes([rewritten(text)]) if isinstance(n, Aggregate)][-1]
    assert outer.aggregates == ()
    assert schema(outer.input).names == ("k",)
