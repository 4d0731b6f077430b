"""What nodes a query becomes."""

from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from typing import get_args

import pyarrow as pa
import pytest

from weir.errors import PlanWarning
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP
from weir.plan.aggregations import Aggregation
from weir.plan.binding.lifetimes import BoundChange, change_lifetime
from weir.plan.binding.query import COMPARES_WHOLE_ROWS
from weir.plan.expressions import Call, Cast, Column, Literal, columns_of
from weir.plan.lifetime_changes import Duration, SetLifetime
from weir.plan.operators import (
    Aggregate,
    AlterLifetime,
    Chop,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    Partition,
    Project,
    Source,
    Stitch,
    Top,
    Union,
    schema,
)
from weir.plan.operators.roles import EqualRows
from weir.plan.windows import CountWindow, Hopping, SnapshotWindow

Plan = Callable[[str], Node]

V = Column("v", type=BIGINT)
K = Column("k", type=STRING)


def chain(node: Node) -> list[type]:
    """The kinds of nodes from the top down the first inputs."""
    kinds = [type(node)]
    while node.inputs:
        node = node.inputs[0]
        kinds.append(type(node))
    return kinds


def names(node: Node) -> tuple[str, ...]:
    return schema(node).names


def no_hidden(node: Node) -> bool:
    return not any(n.startswith("$") for n in names(node))


def test_a_star_changes_nothing(plan: Plan) -> None:
    assert chain(plan("SELECT * FROM A")) == [Source]
    assert chain(plan("SELECT A.* FROM A WHERE v > 1")) == [Filter, Source]


def test_project_filter(plan: Plan) -> None:
    node = plan("SELECT k, v + 1 AS w FROM A WHERE v > 3")
    assert chain(node) == [Project, Filter, Source]
    assert node.columns == (
        ("k", K),
        ("w", Call("add", (V, Literal(1, type=BIGINT)), type=BIGINT)),
    )
    assert node.input.predicate == Call("gt", (V, Literal(3, type=BIGINT)), type=BOOLEAN)


def test_time_has_the_type_of_the_input(plan: Plan) -> None:
    assert schema(plan("SELECT vs AS t, vs + 1 AS u FROM A")).types == (BIGINT, BIGINT)
    assert schema(plan("SELECT vs AS t, ve - vs AS d FROM T")).types == (TIMESTAMP, BIGINT)
    assert schema(plan("SELECT T.vs AS t, A.vs AS a, vs AS n FROM T CROSS JOIN A")).types == (
        TIMESTAMP,
        BIGINT,
        BIGINT,
    )


def test_unaliased_names(plan: Plan) -> None:
    assert names(plan("SELECT A.k, r.a FROM A")) == ("k", "a")
    assert names(plan("SELECT A.v, w FROM A INNER JOIN B ON A.k = B.k")) == ("v", "w")


# --- aggregates ----------------------------------------------------------------------------


def test_aggregate_over_one_projection(plan: Plan) -> None:
    node = plan("SELECT k, SUM(v + 1) AS s FROM A GROUP BY k WITH HOPPING(8, 4, 1)")
    assert chain(node) == [Project, Aggregate, Project, Source]
    below = node.input
    assert below.window == Hopping(8, 4, 1)
    assert below.keys == ("k",)
    ((_, aggregation),) = below.aggregates
    (arg,) = aggregation.args
    assert dict(below.input.columns)[arg] == Call("add", (V, Literal(1, type=BIGINT)), type=BIGINT)
    assert names(node) == ("k", "s")


def test_aggregates_are_shared_and_computed_with(plan: Plan) -> None:
    node = plan("SELECT SUM(v) / COUNT(*) + 1 AS a, SUM(v) AS s FROM A HAVING COUNT(*) > 1")
    assert chain(node) == [Project, Filter, Aggregate, Project, Source]
    aggregate = node.input.input
    assert [a.function for _, a in aggregate.aggregates] == ["sum", "count_star"]
    assert aggregate.window == SnapshotWindow()


def test_filters_differ(plan: Plan) -> None:
    query = "SELECT SUM(v) FILTER (WHERE v > 3) AS a, SUM(v) AS b, SUM(v) FILTER (WHERE v > 3) AS c"
    node = plan(f"{query} FROM A WITH TUMBLING(5)")
    (_, first), (_, second) = node.input.aggregates
    assert first.filter is not None
    assert second.filter is None
    assert dict(node.input.input.columns)[first.filter].type == BOOLEAN


@pytest.mark.parametrize(
    ("aggregate", "result"),
    [
        ("COUNT(*)", BIGINT),
        ("COUNT(x)", BIGINT),
        ("COUNT(DISTINCT k)", BIGINT),
        ("SUM(i)", BIGINT),
        ("SUM(f)", DOUBLE),
        ("SUM(p)", pa.decimal128(38, 2)),
        ("AVG(i)", DOUBLE),
        ("AVG(p)", pa.decimal128(38, 6)),
        ("STDDEV(v)", DOUBLE),
        ("VARIANCE(p)", DOUBLE),
        ("MIN(k)", STRING),
        ("MAX(i)", INT),
        ("FIRST(x)", pa.list_(BIGINT)),
        ("LAST(r)", pa.struct([("a", BIGINT)])),
        ("QUANTILE_DISC(p, 0.5)", pa.decimal128(10, 2)),
        ("QUANTILE_CONT(i, 0)", DOUBLE),
        ("MEDIAN(v)", DOUBLE),
        ("COLLECT(k)", pa.list_(STRING)),
        ("SUM(NULL)", BIGINT),
        ("AVG(NULL)", DOUBLE),
    ],
)
def test_aggregate_types(plan: Plan, aggregate: str, result: pa.DataType) -> None:
    assert schema(plan(f"SELECT {aggregate} AS a FROM A WITH SNAPSHOT")).types == (result,)


def test_integers_are_summed_as_bigint(plan: Plan) -> None:
    node = plan("SELECT SUM(i) AS s FROM A").input
    arg = node.aggregates[0][1].args[0]
    assert dict(node.input.columns)[arg] == Cast(Column("i", type=INT), type=BIGINT)


def test_median_is_a_quantile(plan: Plan) -> None:
    node = plan(
        "SELECT MEDIAN(v) AS m, QUANTILE_CONT(v, 0.5) AS q, QUANTILE_DISC(v, 0.60) AS d FROM A"
    )
    assert [a for _, a in node.input.aggregates] == [
        Aggregation("quantile_cont", ("v",), DOUBLE, params=("0.5",)),
        Aggregation("quantile_disc", ("v",), BIGINT, params=("0.60",)),
    ]


def test_groups_by_expression_and_alias(plan: Plan) -> None:
    by_expression = plan("SELECT v % 3 AS m, COUNT(*) AS n FROM A GROUP BY v % 3")
    by_alias = plan("SELECT v % 3 AS m, COUNT(*) AS n FROM A GROUP BY m")
    assert by_expression == by_alias
    assert plan("SELECT v % 3 + 1 AS m FROM A GROUP BY v % 3").columns[0][1].type == BIGINT


def test_a_column_comes_before_an_alias(plan: Plan) -> None:
    node = plan("SELECT v AS w, v + 1 AS k FROM A GROUP BY v").input
    assert node.keys == ("v",)
    with pytest.raises(Exception, match="`v` is neither"):
        plan("SELECT v + 1 AS k FROM A GROUP BY k")


def test_a_group_without_aggregates(plan: Plan) -> None:
    node = plan("SELECT k FROM A GROUP BY k WITH SESSION(5)")
    assert chain(node) == [Aggregate, Project, Source]
    assert node.aggregates == ()


def test_the_window_is_the_lifetime_above_and_the_input_s_below(plan: Plan) -> None:
    node = plan(
        "SELECT window_start AS s, ve AS e, MIN(vs) AS m FROM A GROUP BY vs // 10 WITH TUMBLING(5)"
    )
    assert dict(node.columns)["s"] == Column("vs", type=BIGINT)
    assert dict(node.columns)["e"] == Column("ve", type=BIGINT)
    below = dict(node.input.input.columns)
    assert columns_of(below[node.input.keys[0]]) == {"vs"}
    assert below[node.input.aggregates[0][1].args[0]] == Column("vs", type=BIGINT)


def test_having_by_alias_and_by_window(plan: Plan) -> None:
    by_alias = plan("SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING n > 1 AND window_end > 3")
    spelled = plan("SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING COUNT(*) > 1 AND ve > 3")
    assert by_alias == spelled


def test_order_sensitive_aggregates_keep_the_payload(plan: Plan) -> None:
    """FIRST breaks ties by the payload: narrowing it would change the answer."""
    assert names(plan("SELECT k, FIRST(v) AS a FROM A GROUP BY k").input.input)[:2] == ("k", "v")
    assert isinstance(plan("SELECT k, FIRST(v) AS a FROM A GROUP BY k").input.input, Source)
    assert isinstance(plan("SELECT SUM(v) AS a FROM A WITH COUNT(4)").input.input, Source)
    assert names(plan("SELECT k, SUM(v) AS a FROM A GROUP BY k").input.input) == ("k", "v")
    joined = plan(
        "SELECT LAST(w) AS a, MIN(A.vs) AS m FROM A INNER JOIN B ON A.k = B.k"
    ).input.input
    assert "A.ve" not in names(joined)
    assert names(joined)[0] == "A.k"
    assert names(joined)[-1] == "A.vs"


def test_count_window(plan: Plan) -> None:
    assert plan("SELECT COUNT(*) AS n FROM A WITH COUNT(4, 2)").input.window == CountWindow(4, 2)


# --- lifetimes, distinct, explode ----------------------------------------------------------


def test_lifetime_after_the_projection(plan: Plan) -> None:
    node = plan("SELECT k FROM A WITH DURATION(5s)")
    assert chain(node) == [AlterLifetime, Project, Source]
    assert node.change == Duration(5_000_000)
    assert chain(plan("SELECT DISTINCT k FROM A WITH STITCH")) == [
        Stitch,
        Distinct,
        Project,
        Source,
    ]
    assert plan("SELECT * FROM A WITH CHOP(4, 1)") == Chop(plan("SELECT * FROM A"), 4, 1)


def test_lifetime_of_selected_columns(plan: Plan) -> None:
    node = plan("SELECT k, v AS w FROM A WITH LIFETIME(vs - 3, ve + v)")
    assert chain(node) == [AlterLifetime, Project, Source]
    assert isinstance(node.change, SetLifetime)
    assert node.change.shift == -3
    assert columns_of(node.change.end) == {"ve", "w"}
    assert plan("SELECT k, v AS w FROM A WITH LIFETIME(vs - 3, ve + w)") == node


def test_lifetime_of_what_is_not_selected_is_hidden(plan: Plan) -> None:
    node = plan("SELECT k FROM A WITH LIFETIME(3 + vs, ve + v)")
    assert chain(node) == [Project, AlterLifetime, Project, Source]
    assert names(node) == ("k",)
    (hidden,) = columns_of(node.input.change.end) - {"ve"}
    assert dict(node.input.input.columns)[hidden] == V


def test_open_end(plan: Plan) -> None:
    node = plan("SELECT k FROM A WITH LIFETIME(vs, NULL)")
    assert node.change == SetLifetime(0, Literal(None, type=BIGINT))


def test_explode(plan: Plan) -> None:
    node = plan("SELECT k, EXPLODE(x) AS y FROM A")
    assert chain(node) == [Explode, Project, Source]
    assert schema(node).columns == (("k", STRING), ("y", BIGINT))


# --- ORDER BY … LIMIT ----------------------------------------------------------------------


def test_top_of_selected_columns(plan: Plan) -> None:
    node = plan("SELECT k, v FROM A ORDER BY v DESC, k LIMIT 2 WITH TIES")
    assert chain(node) == [Top, Project, Source]
    assert (node.order, node.limit, node.ties) == ((("v", True), ("k", False)), 2, True)
    assert node.scope == "instant"


@pytest.mark.parametrize(
    ("clause", "scope"),
    [
        ("TUMBLING(5)", "window"),
        ("HOPPING(5, 2)", "window"),
        ("SNAPSHOT", "instant"),
        ("SESSION(5)", "instant"),
        ("COUNT(3)", "instant"),
    ],
)
def test_top_scope(plan: Plan, clause: str, scope: str) -> None:
    query = f"SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH {clause} ORDER BY n LIMIT 1"
    assert plan(query).scope == scope


def test_top_of_a_nested_window_is_per_instant(plan: Plan) -> None:
    inner = "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5)"
    assert plan(f"SELECT * FROM ({inner}) ORDER BY n LIMIT 1").scope == "instant"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM A ORDER BY v LIMIT 1",
        "SELECT k FROM A ORDER BY vs LIMIT 1",
        "SELECT k, v FROM A ORDER BY v % 3 LIMIT 1",
        "SELECT k FROM A GROUP BY k ORDER BY SUM(v) LIMIT 1",
        "SELECT k, v AS w FROM A ORDER BY w + f LIMIT 1",
        "SELECT k, v FROM A WITH DURATION(3) ORDER BY f LIMIT 1",
        "SELECT B.k FROM A INNER JOIN B ON A.k = B.k ORDER BY A.vs LIMIT 1",
        "SELECT k, v FROM A UNION ALL SELECT k, w FROM B ORDER BY v + 1 LIMIT 1",
    ],
)
def test_hidden_order_columns_leave(plan: Plan, query: str) -> None:
    node = plan(query)
    assert chain(node)[:2] == [Project, Top]
    assert no_hidden(node)
    ((column, _),) = node.input.order
    assert column in names(node.input.input)


def test_order_by_the_result_s_lifetime(plan: Plan) -> None:
    """ORDER BY comes after WITH: `ve` there is the changed one."""
    node = plan("SELECT k FROM A WITH DURATION(3) ORDER BY ve LIMIT 1")
    assert chain(node) == [Project, Top, Project, AlterLifetime, Project, Source]


def test_an_aggregate_already_selected_is_reused(plan: Plan) -> None:
    node = plan("SELECT k, COUNT(*) AS n FROM A GROUP BY k ORDER BY COUNT(*) LIMIT 1")
    assert chain(node)[0] is Top
    assert node.order == (("n", False),)


# --- joins ---------------------------------------------------------------------------------


def test_join_keys_and_condition(plan: Plan) -> None:
    node = plan("SELECT A.v, B.w FROM A INNER JOIN B ON A.k = B.k AND A.v < B.w")
    assert chain(node) == [Project, Join, Project, Source]
    join = node.input
    assert (join.kind, join.keys) == ("inner", (("A.k", "B.k"),))
    assert columns_of(join.condition) == {"A.v", "B.w"}
    assert names(join.left)[-2:] == ("A.vs", "A.ve")
    assert not set(names(join.left)) & set(names(join.right))


def test_computed_and_turned_keys(plan: Plan) -> None:
    join = plan("SELECT A.v FROM A INNER JOIN B ON B.w + 1 = A.v AND A.i = B.w").input
    (left, right), (cast, plain) = join.keys
    assert (left, plain) == ("A.v", "B.w")
    assert columns_of(dict(join.right.columns)[right]) == {"B.w"}
    assert dict(join.left.columns)[cast] == Cast(Column("A.i", type=INT), type=BIGINT)


def test_joins_chain(plan: Plan) -> None:
    node = plan(
        "SELECT A.v, B.w, C.w AS u FROM A INNER JOIN B ON A.v + 1 = B.w + 1 "
        "LEFT OUTER JOIN B AS C ON A.v + 2 = C.w + 2 WHERE B.vs < C.vs"
    )
    outer = node.input.input
    assert (outer.kind, outer.left.input.kind) == ("left", "inner")
    all_names = names(outer)
    assert len(set(all_names)) == len(all_names)
    assert names(node) == ("v", "w", "u")


@pytest.mark.parametrize("kind", ["LEFT SEMI", "LEFT ANTI", "CLIP"])
def test_half_joins_hide_their_right_side(plan: Plan, kind: str) -> None:
    node = plan(f"SELECT * FROM A {kind} JOIN B ON A.k = B.k")
    assert names(node) == ("k", "v", "f", "i", "x", "p", "r")
    with pytest.raises(Exception, match=r"unknown column `B\.w`"):
        plan(f"SELECT B.w FROM A {kind} JOIN B ON A.k = B.k")


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("RIGHT OUTER", "right"),
        ("FULL OUTER", "full"),
        ("ASOF", "asof"),
        ("LEFT ASOF", "left_asof"),
    ],
)
def test_join_kinds(plan: Plan, written: str, kind: str) -> None:
    assert plan(f"SELECT A.v FROM A {written} JOIN B ON A.k = B.k").input.kind == kind


def test_cross_and_theta(plan: Plan, recwarn: pytest.WarningsRecorder) -> None:
    assert plan("SELECT A.v FROM A CROSS JOIN B").input.keys == ()
    assert not recwarn.list
    with pytest.warns(PlanWarning, match="every pair"):
        join = plan("SELECT A.v FROM A INNER JOIN B ON A.v < B.w").input
    assert join.keys == ()
    assert join.condition is not None


def test_lifetimes_in_joins(plan: Plan) -> None:
    node = plan("SELECT A.vs AS a, vs AS n FROM A INNER JOIN B ON A.k = B.k AND A.vs <= B.vs")
    assert [e.name for _, e in node.columns] == ["A.vs", "vs"]


# --- unions and partitions -----------------------------------------------------------------


def test_union_widens(plan: Plan) -> None:
    node = plan("SELECT i, v FROM A UNION ALL SELECT w, i FROM B UNION ALL SELECT v, f FROM A")
    assert isinstance(node, Union)
    assert schema(node).columns == (("i", BIGINT), ("v", DOUBLE))
    assert all(schema(n).types == (BIGINT, DOUBLE) for n in node.inputs)
    assert isinstance(plan("SELECT k FROM A UNION ALL SELECT k FROM B").inputs[0].input, Source)


def test_partition_above_its_relation(plan: Plan) -> None:
    node = plan("SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 4 AS 'p' GROUP BY k, v")
    assert chain(node) == [Project, Aggregate, Project, Partition, Source]
    partition = node.input.input.input
    assert (partition.keys, partition.count, partition.uid) == (("k",), 4, "p")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT A.v FROM A PARTITION BY k INTO 2 AS 'p' INNER JOIN B ON A.k = B.k",
        "SELECT DISTINCT k FROM A PARTITION BY k INTO 2 AS 'p'",
        "SELECT v, k AS j FROM A PARTITION BY k INTO 2 AS 'p' WHERE v > 1 WITH STITCH",
        "SELECT v FROM A PARTITION BY k INTO 2 AS 'p' WITH DURATION(3)",
        "SELECT j, COUNT(*) AS n FROM (SELECT k AS j FROM A PARTITION BY k INTO 2 AS 'p') "
        "GROUP BY j",
        "SELECT v, COUNT(*) AS n FROM (SELECT k, v FROM A PARTITION BY k INTO 2 AS 'p' "
        "GROUP BY k, v) GROUP BY v",
    ],
)
def test_partitions_that_fit(plan: Plan, query: str) -> None:
    node = plan(query)
    assert Partition in chain(node)


def test_plans_have_no_hidden_outputs(plan: Plan) -> None:
    queries = [
        "SELECT * FROM A INNER JOIN T ON A.k = T.k AND A.v + 1 = EXTRACT(year FROM T.At)",
        "SELECT A.v FROM A INNER JOIN B ON A.v % 2 = B.w % 2",
    ]
    assert no_hidden(plan(queries[1]))
    with pytest.raises(Exception, match="two columns are called `k`"):
        plan(queries[0])


def test_equal_text_equal_plans(plan: Plan) -> None:
    text = "SELECT k, SUM(v) AS s FROM A WHERE v > 1 GROUP BY k WITH SESSION(3) ORDER BY s LIMIT 1"
    spaced = text.replace(" FROM", "\n  FROM").replace("WHERE", "  WHERE")
    assert all(a == b for a, b in pairwise([plan(text), plan(spaced)]))


def test_clauses_that_compare_whole_rows_are_known(plan: Plan) -> None:
    below = plan("SELECT * FROM A")
    changes = [kind(*(1 for _ in fields(kind))) for kind in get_args(BoundChange)]
    comparing = {type(c) for c in changes if isinstance(change_lifetime(below, c), EqualRows)}
    assert comparing == set(COMPARES_WHOLE_ROWS)
