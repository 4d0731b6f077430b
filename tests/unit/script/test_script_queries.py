"""One golden tree for each clause: that it parses proves nothing, since SQL's own grammar
reads `A CLIP JOIN B` as an alias and `5s` as `5 AS s`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from weir.events.types import BIGINT
from weir.plan.binding.query import (
    ChopChange,
    JoinClause,
    LifetimeClause,
    NamedRelation,
    OrderItem,
    PartitionClause,
    Query,
    Select,
    SelectItem,
    Star,
    StitchChange,
    SubqueryRelation,
    WithClause,
)
from weir.plan.expressions import AggregateCall, Call, Column, Literal
from weir.plan.lifetime_changes import (
    ClipDuration,
    Duration,
    Extend,
    HopLifetime,
    Point,
    PointAtEnd,
    Quantize,
    Shift,
)
from weir.plan.windows import CountWindow, Hopping, Session, SnapshotWindow

Parse: TypeAlias = Callable[[str], Query]

FREE_WORDS = "count all min sum avg name slice tick temp key value year date first last t p"
K, V = SelectItem(Column("k")), Column("v")
ALL = (SelectItem(Star()),)
A = NamedRelation("A")
ON = Call("eq", (Column("A.k"), Column("B.k")))


def number(value: int) -> Literal:
    return Literal(value, type=BIGINT)


def test_select_list(query: Parse) -> None:
    items = (SelectItem(Star()), SelectItem(Star("A")), K, SelectItem(Column("A.v"), "w"))
    assert query("SELECT *, A.*, k, A.v AS w FROM A") == Query((Select(items, A),))


def test_distinct(query: Parse) -> None:
    assert query("SELECT DISTINCT k FROM A") == Query((Select((K,), A, distinct=True),))


@pytest.mark.parametrize("name", FREE_WORDS.split())
def test_words_that_are_no_keywords(query: Parse, name: str) -> None:
    items = (SelectItem(Column(name), name),)
    assert query(f"SELECT {name} AS {name} FROM A") == Query((Select(items, A),))


def test_names_keep_their_case_and_keywords_have_none(query: Parse) -> None:
    items = (SelectItem(Column("UserID")), SelectItem(Column("userid")))
    assert query("select UserID, userid from A") == Query((Select(items, A),))


def test_quoted_names_are_never_keywords(query: Parse) -> None:
    items = (SelectItem(Column("select")), SelectItem(Column("A.from"), "a b"))
    relation = NamedRelation("A", "where")
    text = 'SELECT "select", A.`from` AS "a b" FROM A AS "where"'
    assert query(text) == Query((Select(items, relation),))


def test_sub_select_and_alias(query: Parse) -> None:
    inner = Query((Select(ALL, A, with_clause=Duration(5)),))
    outer = Select((K,), SubqueryRelation(inner, "S"))
    assert query("SELECT k FROM (SELECT * FROM A WITH DURATION(5)) AS S") == Query((outer,))


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("JOIN", "inner"),
        ("INNER JOIN", "inner"),
        ("LEFT JOIN", "left"),
        ("LEFT OUTER JOIN", "left"),
        ("RIGHT JOIN", "right"),
        ("RIGHT OUTER JOIN", "right"),
        ("FULL JOIN", "full"),
        ("FULL OUTER JOIN", "full"),
        ("LEFT SEMI JOIN", "semi"),
        ("LEFT ANTI JOIN", "anti"),
        ("LEFT ANTI SEMI JOIN", "anti"),
        ("CLIP JOIN", "clip"),
        ("ASOF JOIN", "asof"),
        ("LEFT ASOF JOIN", "left_asof"),
        ("left /* a comment */ asof\njoin", "left_asof"),
    ],
)
def test_joins(query: Parse, words: str, kind: str) -> None:
    join = JoinClause(kind, NamedRelation("B"), ON)  # type: ignore[arg-type]
    expected = Query((Select(ALL, A, joins=(join,)),))
    assert query(f"SELECT * FROM A {words} B ON A.k == B.k") == expected
    assert query(f"SELECT * FROM A {words} B ON A.k = B.k") == expected


def test_cross_join_and_chains_of_joins(query: Parse) -> None:
    joins = (
        JoinClause("cross", NamedRelation("B", "b")),
        JoinClause("clip", SubqueryRelation(Query((Select(ALL, A),)), "C"), ON),
    )
    text = "SELECT * FROM A CROSS JOIN B AS b CLIP JOIN (SELECT * FROM A) AS C ON A.k == B.k"
    assert query(text) == Query((Select(ALL, A, joins=joins),))


def test_partition_by_stands_before_the_joins(query: Parse) -> None:
    partition = PartitionClause((Column("k"), Column("v")), 3, "uid")
    joins = (JoinClause("inner", NamedRelation("B"), ON),)
    text = "SELECT * FROM A PARTITION BY k, v INTO @k AS 'uid' JOIN B ON A.k = B.k"
    assert query(text) == Query((Select(ALL, A, partition, joins),))


def test_where_group_by_having(query: Parse) -> None:
    count = AggregateCall("count_star", ())
    expected = Select(
        (K, SelectItem(count, "n")),
        A,
        where=Call("gt", (V, number(1))),
        group_by=(Column("k"), Call("mod", (V, number(2)))),
        having=Call("gt", (count, number(1))),
    )
    text = "SELECT k, COUNT(*) AS n FROM A WHERE v > 1 GROUP BY k, v % 2 HAVING COUNT(*) > 1"
    assert query(text) == Query((expected,))


VS = Column("vs")


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("TUMBLING(5s)", Hopping(5_000_000, 5_000_000, 0)),
        ("TUMBLING(10, 3)", Hopping(10, 10, 3)),
        ("HOPPING(2m, 250ms)", Hopping(120_000_000, 250_000, 0)),
        ("HOPPING(10, 5, -2)", Hopping(10, 5, -2)),
        ("SESSION(1h)", Session(3_600_000_000)),
        ("SNAPSHOT", SnapshotWindow()),
        ("COUNT(4)", CountWindow(4, 4)),
        ("COUNT(4, 2)", CountWindow(4, 2)),
        ("DURATION(7d)", Duration(604_800_000_000)),
        ("SHIFT(-4)", Shift(-4)),
        ("SHIFT(-4s)", Shift(-4_000_000)),
        ("EXTEND(-1)", Extend(-1)),
        ("CLIP_DURATION(@k)", ClipDuration(3)),
        ("POINT", Point()),
        ("POINT_AT_END", PointAtEnd()),
        ("CHOP(5)", ChopChange(5, 0)),
        ("CHOP(5, 1)", ChopChange(5, 1)),
        ("QUANTIZE(6, 3)", Quantize(6, 3, 0)),
        ("QUANTIZE(6, 3, 1)", Quantize(6, 3, 1)),
        ("HOP_LIFETIME(6, 3, 1)", HopLifetime(6, 3, 1)),
        ("stitch", StitchChange()),
        (
            "LIFETIME(vs + 1, ve)",
            LifetimeClause(Call("add", (VS, number(1))), Column("ve")),
        ),
    ],
)
def test_with(query: Parse, text: str, clause: WithClause) -> None:
    assert query(f"SELECT * FROM A WITH {text}") == Query((Select(ALL, A, with_clause=clause),))


def test_with_binds_to_its_select_and_order_to_the_whole_union(query: Parse) -> None:
    first = Select(ALL, A, with_clause=Point())
    second = Select(ALL, NamedRelation("B"), with_clause=Shift(1))
    order = (OrderItem(V, descending=True), OrderItem(Column("k")), OrderItem(Column("j")))
    text = (
        "SELECT * FROM A WITH POINT UNION ALL SELECT * FROM B WITH SHIFT(1)"
        " ORDER BY v DESC, k ASC, j LIMIT 2 WITH TIES"
    )
    assert query(text) == Query((first, second), order, 2, ties=True)


def test_limit_without_ties_takes_a_parameter(query: Parse) -> None:
    assert query("SELECT * FROM A ORDER BY v LIMIT @k") == Query(
        (Select(ALL, A),), (OrderItem(V),), 3
    )


def test_parentheses_in_a_union(query: Parse) -> None:
    a, b = Select(ALL, A), Select(ALL, NamedRelation("B"))
    assert query("(SELECT * FROM A UNION ALL SELECT * FROM B)") == Query((a, b))
    top = Query((a,), (OrderItem(V),), 1)
    wrapped = Select(ALL, SubqueryRelation(top))
    text = "(SELECT * FROM A ORDER BY v LIMIT 1) UNION ALL SELECT * FROM B"
    assert query(text) == Query((wrapped, b))


def test_every_part_has_its_position(query: Parse) -> None:
    text = "SELECT k,\n  v + 1 AS w\nFROM A JOIN B ON A.k = B.k\nWITH SHIFT(1)"
    (select,) = query(text).selects
    value = select.items[1].expr
    assert isinstance(value, Call)
    # The text stands after "Out = ", six characters into the first line.
    assert select.position == (1, 7)
    assert select.items[0].position == (1, 14)
    assert (value.position, value.args[0].position, value.args[1].position) == (
        (2, 5),
        (2, 3),
        (2, 7),
    )
    assert (select.relation.position, select.joins[0].position) == ((3, 6), (3, 8))
    assert select.joins[0].on is not None and select.joins[0].on.position == (3, 22)
    assert select.with_position == (4, 6)
