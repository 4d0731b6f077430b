"""How long operators hold rows back, by how long rows live."""

import pytest

from weir.events.types import BIGINT
from weir.plan.aggregations import Aggregation
from weir.plan.durations import duration_text
from weir.plan.holds import longest_holds, longest_lifetimes
from weir.plan.operators import Aggregate, Apply, Chop, Join, Node, Top
from weir.plan.traversal import ordered_nodes
from weir.plan.usercode.functions import AggregateFunction, FoldingAggregate, OperatorFunction
from weir.plan.windows import Session
from weir.script.program import parse_program

pytestmark = pytest.mark.filterwarnings("ignore:.*a join without an equality")

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'a.jsonl' WITH (vs = vs, ve = ve);
STREAM P (vs BIGINT, k STRING, v BIGINT) FROM 'p.jsonl' WITH (vs = vs);
STREAM L (vs BIGINT, k STRING, v BIGINT) FROM 'l.jsonl' WITH (vs = vs, lifetime = 30s);
"""


def plan(query: str) -> Node:
    return dict(parse_program(f"{INPUTS} Out = {query};").streams)["Out"]


def holding(query: str) -> str:
    """The longest hold of the query's last stateful operator."""
    holds = longest_holds([plan(query)])
    return str(max(holds.values()))


LIFETIMES = [
    ("SELECT k FROM A", "longest lifetime"),
    ("SELECT k FROM P", "1us"),
    ("SELECT k FROM L WHERE v > 1", "30s"),
    ("SELECT k FROM A WITH DURATION(5s)", "5s"),
    ("SELECT k FROM A WITH CLIP_DURATION(5s)", "5s"),
    ("SELECT k FROM L WITH CLIP_DURATION(1m)", "30s"),
    ("SELECT k FROM L WITH EXTEND(5s)", "35s"),
    ("SELECT k FROM L WITH EXTEND(-50s)", "none"),
    ("SELECT k FROM L WITH SHIFT(5s)", "30s"),
    ("SELECT k FROM A WITH POINT", "1us"),
    ("SELECT k FROM A WITH POINT_AT_END", "1us"),
    ("SELECT k FROM A WITH CHOP(5s)", "5s"),
    ("SELECT k FROM A WITH QUANTIZE(10, 4)", "longest lifetime"),
    ("SELECT k FROM P WITH QUANTIZE(10, 4)", "13us"),
    ("SELECT k FROM A WITH HOP_LIFETIME(10, 4)", "12us"),
    ("SELECT k FROM A WITH HOP_LIFETIME(3, 4)", "3us"),
    ("SELECT k FROM A WITH LIFETIME(vs + 2s, vs + 10s)", "8s"),
    ("SELECT k FROM L WITH LIFETIME(vs - 2s, ve + 10s)", "42s"),
    ("SELECT k FROM L WITH LIFETIME(vs, ve - 10s)", "20s"),
    ("SELECT k FROM L WITH LIFETIME(vs, vs + v)", "longest lifetime"),
    ("SELECT k FROM L WITH LIFETIME(vs, NULL)", "unbounded"),
    ("SELECT COUNT(*) AS n FROM A WITH HOPPING(10s, 2s)", "10s"),
    ("SELECT COUNT(*) AS n FROM L WITH SESSION(2s)", "longest lifetime"),
    ("SELECT COUNT(*) AS n FROM L WITH COUNT(2)", "30s"),
    ("SELECT COUNT(*) AS n FROM L", "30s"),
    ("SELECT DISTINCT k FROM P", "longest lifetime"),
    ("SELECT k FROM L WITH STITCH", "longest lifetime"),
    ("SELECT A.k AS k FROM A INNER JOIN L ON A.k = L.k", "30s"),
    ("SELECT A.k AS k FROM A LEFT OUTER JOIN L ON A.k = L.k", "longest lifetime"),
    ("SELECT A.k AS k FROM A RIGHT OUTER JOIN L ON A.k = L.k", "30s"),
    ("SELECT A.k AS k FROM A FULL OUTER JOIN L ON A.k = L.k", "longest lifetime"),
    ("SELECT L.k AS k FROM L ASOF JOIN A ON A.k = L.k", "30s"),
    ("SELECT k FROM L UNION ALL SELECT k FROM P", "30s"),
]


@pytest.mark.parametrize(("query", "longest"), LIFETIMES)
def test_longest_lifetime(query: str, longest: str) -> None:
    node = plan(query)
    assert str(longest_lifetimes([node])[node]) == longest


HOLDS = [
    ("SELECT k FROM A WHERE v > 1", "none"),
    ("SELECT k FROM A WITH CHOP(5s)", "none"),
    ("SELECT COUNT(*) AS n FROM A WITH HOPPING(10s, 2s)", "10s"),
    ("SELECT COUNT(*) AS n FROM P WITH SESSION(2s)", "unbounded"),
    ("SELECT COUNT(*) AS n FROM A WITH COUNT(5)", "none"),
    ("SELECT COUNT(*) AS n FROM A", "longest lifetime"),
    ("SELECT COUNT(*) AS n FROM (SELECT k FROM A WITH CHOP(5s))", "5s"),
    ("SELECT COUNT(*) AS n FROM (SELECT k FROM A WITH LIFETIME(vs, NULL))", "unbounded"),
    ("SELECT DISTINCT k FROM P", "unbounded"),
    ("SELECT k FROM P WITH STITCH", "unbounded"),
    ("SELECT k FROM L ORDER BY v LIMIT 3", "30s"),
    ("SELECT A.k AS k FROM A INNER JOIN L ON A.k = L.k", "none"),
    ("SELECT A.k AS k FROM A ASOF JOIN L ON A.k = L.k", "none"),
    ("SELECT L.k AS k FROM L LEFT SEMI JOIN A ON A.k = L.k", "30s"),
    ("SELECT L.k AS k FROM L LEFT ANTI JOIN A ON A.k = L.k", "30s"),
    ("SELECT L.k AS k FROM L CLIP JOIN A ON A.k = L.k", "30s"),
    ("SELECT L.k AS k FROM L LEFT OUTER JOIN A ON A.k = L.k", "30s"),
    ("SELECT L.k AS k FROM L RIGHT OUTER JOIN A ON A.k = L.k", "longest lifetime"),
    ("SELECT L.k AS k FROM L FULL OUTER JOIN A ON A.k = L.k", "longest lifetime"),
    ("SELECT k FROM L UNION ALL SELECT k FROM P", "none"),
]


@pytest.mark.parametrize(("query", "longest"), HOLDS)
def test_longest_hold(query: str, longest: str) -> None:
    assert holding(query) == longest


def test_top_of_a_window_waits_for_nothing_itself() -> None:
    node = plan("SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5s) ORDER BY n LIMIT 1")
    (top,) = (n for n in ordered_nodes([node]) if isinstance(n, Top))
    assert str(longest_holds([top])[top]) == "none"


def test_a_source_with_open_ends_is_not_unbounded_by_itself() -> None:
    source = plan("SELECT k FROM A").inputs[0]
    assert not longest_lifetimes([source])[source].known
    assert str(longest_holds([source])[source]) == "none"


@pytest.mark.parametrize(
    ("ticks", "text"),
    [(0, "0s"), (1, "1us"), (1500, "1500us"), (2_000, "2ms"), (-3_000_000, "-3s")],
)
def test_durations_read_as_they_are_written(ticks: int, text: str) -> None:
    assert duration_text(ticks) == text


# --- what is kept --------------------------------------------------------------------------

KEPT = [
    (
        "SELECT k, MAX(v) AS m FROM A GROUP BY k WITH HOPPING(9, 3)",
        Aggregate,
        "panes of open windows: one row of sums for each key and pane, and the values for max",
    ),
    ("SELECT COUNT(*) AS n FROM A WITH SESSION(5)", Aggregate, "open sessions: one row of sums"),
    (
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH COUNT(5)",
        Aggregate,
        "a counter for every key, permanently; one row of sums for each key and unfilled window",
    ),
    (
        "SELECT COUNT(*) AS n FROM A",
        Aggregate,
        "live events: one row of sums for each lifetime",
    ),
    ("SELECT A.k AS k FROM A CROSS JOIN P", Join, "left and right rows until they end"),
    (
        "SELECT A.k AS k FROM A ASOF JOIN P ON A.k = P.k",
        Join,
        "the newest right row of every key, permanently",
    ),
    (
        "SELECT A.k AS k FROM A ASOF JOIN P ON A.k = P.k AND A.v > P.v",
        Join,
        "all right rows of every key, permanently: the condition may reject the newest",
    ),
    (
        "SELECT A.k AS k FROM A CLIP JOIN P ON A.k = P.k",
        Join,
        "left rows until they end or are clipped",
    ),
    ("SELECT k FROM A WITH CHOP(5)", Chop, "rows until their last piece is out"),
]


@pytest.mark.parametrize(("query", "kind", "text"), KEPT)
def test_what_a_vertex_keeps(query: str, kind: type, text: str) -> None:
    (node,) = (n for n in ordered_nodes([plan(query)]) if isinstance(n, kind))
    assert node.kept() == text


def test_aggregates_that_declare_their_state_keep_no_values() -> None:
    kept = AggregateFunction("Kept", object, (), BIGINT)
    folded = FoldingAggregate("Folded", object, (), BIGINT, state=BIGINT)
    both = tuple((f.name, Aggregation("user", (), BIGINT, user=f)) for f in (kept, folded))
    source = plan("SELECT k FROM P").inputs[0]
    assert Aggregate(source, (), both, Session(5)).kept() == (
        "open sessions: one row of sums, and the values for Kept, and the states of Folded"
    )


def test_user_operators_keep_their_instances() -> None:
    counted = OperatorFunction("Counted", object, (("n", BIGINT),), ())
    source = plan("SELECT k FROM P").inputs[0]
    assert Apply((source,), (("k",),), counted()).kept() == (
        "an instance of Counted for every key, permanently, and its timers"
    )


def test_stateless_operators_keep_nothing() -> None:
    assert {n.kept() for n in ordered_nodes([plan("SELECT k FROM A WHERE v > 1")])} == {""}
