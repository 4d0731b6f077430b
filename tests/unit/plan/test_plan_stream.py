"""The fluent API: what it writes is what a script writes."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from weir.errors import PlanError, PlanWarning
from weir.plan.fluent.sources import stream
from weir.plan.fluent.stream import Stream
from weir.plan.fluent.terms import call, case, col, count, explode, lit
from weir.plan.operators import Aggregate, Apply, Node, Source, schema
from weir.plan.usercode.decorators import aggregate, operator, udf
from weir.plan.windows import count_window, hopping, session, snapshot, tumbling

A = stream(
    "A",
    {
        "vs": "BIGINT",
        "ve": "BIGINT",
        "k": "STRING",
        "v": "BIGINT",
        "f": "DOUBLE",
        "i": "INT",
        "x": "LIST(BIGINT)",
        "p": "DECIMAL(10, 2)",
        "r": "STRUCT(a BIGINT)",
    },
    "a.jsonl",
    vs="vs",
    index=0,
)
B = stream(
    "B",
    {"vs": "BIGINT", "ve": "BIGINT", "k": "STRING", "w": "BIGINT", "i": "INT"},
    "b.jsonl",
    vs="vs",
    index=1,
)
T = stream("T", {"At": "TIMESTAMP", "k": "STRING"}, "t.jsonl", vs="At", index=2)

v, k = col("v"), col("k")
counts = A.group_by("k").window(hopping(8, 4)).agg(n=count())
joined = A.join(B, col("A.k") == col("B.k"))

SAME = [
    (A, "SELECT * FROM A"),
    (T.where(k == "x"), "SELECT * FROM T WHERE k = 'x'"),
    (A.where(v > 0).select("k", w=v + 1), "SELECT k, v + 1 AS w FROM A WHERE v > 0"),
    (A.select("*", vs2=col("vs")), "SELECT *, vs AS vs2 FROM A"),
    (A.select(v.between(1, 3).as_("b")), "SELECT v BETWEEN 1 AND 3 AS b FROM A"),
    (A.select(n=-v), "SELECT -v AS n FROM A"),
    (A.select(n=1 - v * 2), "SELECT 1 - v * 2 AS n FROM A"),
    (A.select(n=v.isin(1, 2)), "SELECT v IN (1, 2) AS n FROM A"),
    (A.select(n=~(v == 1) | k.is_null()), "SELECT NOT (v = 1) OR k IS NULL AS n FROM A"),
    (A.select(n=v.cast("DOUBLE")), "SELECT CAST(v AS DOUBLE) AS n FROM A"),
    (A.select(n=k.try_cast("BIGINT")), "SELECT TRY_CAST(k AS BIGINT) AS n FROM A"),
    (A.select(n=call("upper", k)), "SELECT UPPER(k) AS n FROM A"),
    (A.select(n=k.like("a%")), "SELECT k LIKE 'a%' AS n FROM A"),
    (
        A.select(n=case((v > 3, "big"), otherwise="small")),
        "SELECT CASE WHEN v > 3 THEN 'big' ELSE 'small' END AS n FROM A",
    ),
    (A.select("k", explode("x").as_("y")), "SELECT k, EXPLODE(x) AS y FROM A"),
    (A.select("k", "x").explode("x"), "SELECT k, EXPLODE(x) AS x FROM (SELECT k, x FROM A)"),
    (A.select("k").distinct(), "SELECT DISTINCT k FROM A"),
    (A.agg(n=count()), "SELECT COUNT(*) AS n FROM A"),
    (A.window(snapshot()).agg(n=v.count()), "SELECT COUNT(v) AS n FROM A WITH SNAPSHOT"),
    (counts, "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH HOPPING(8, 4)"),
    (
        A.group_by("k").window(hopping(8, 4)).having(count() > 1).agg(n=count()),
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k HAVING COUNT(*) > 1 WITH HOPPING(8, 4)",
    ),
    (
        A.group_by((v % 3).as_("m")).window(session("5s")).agg(s=v.sum().filter(v > 3)),
        "SELECT v % 3 AS m, SUM(v) FILTER (WHERE v > 3) AS s FROM A GROUP BY v % 3 "
        "WITH SESSION(5s)",
    ),
    (
        A.window(count_window(4, 2)).agg(a=v.avg(), b=v.count_distinct(), c=v.median()),
        "SELECT AVG(v) AS a, COUNT(DISTINCT v) AS b, MEDIAN(v) AS c FROM A WITH COUNT(4, 2)",
    ),
    (
        A.window(tumbling("1m")).agg(
            a=v.quantile_disc("0.6"), b=v.min(), c=v.last(), d=k.collect()
        ),
        "SELECT QUANTILE_DISC(v, 0.6) AS a, MIN(v) AS b, LAST(v) AS c, COLLECT(k) AS d FROM A "
        "WITH TUMBLING(1m)",
    ),
    (
        A.window(tumbling(5)).select(s=v.sum() / count() + 1, start=col("window_start")),
        "SELECT SUM(v) / COUNT(*) + 1 AS s, window_start AS start FROM A WITH TUMBLING(5)",
    ),
    (
        counts.top(2, by=col("n").desc(), ties=True),
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH HOPPING(8, 4) ORDER BY n DESC LIMIT 2 "
        "WITH TIES",
    ),
    (A.select("k").top(1, by="v"), "SELECT k FROM A ORDER BY v LIMIT 1"),
    (A.top(1, by=["k", v.desc()]), "SELECT * FROM A ORDER BY k, v DESC LIMIT 1"),
    (
        counts.where(col("n") > 1).top(1, by="n"),
        "SELECT * FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH HOPPING(8, 4)) "
        "WHERE n > 1 ORDER BY n LIMIT 1",
    ),
    (
        joined.select("A.k", "v", "w"),
        "SELECT A.k, v, w FROM A INNER JOIN B ON A.k = B.k",
    ),
    (
        joined.where(col("A.vs") < col("B.vs")).group_by("A.k").agg(n=count()),
        "SELECT A.k, COUNT(*) AS n FROM A INNER JOIN B ON A.k = B.k WHERE A.vs < B.vs GROUP BY A.k",
    ),
    (
        A.join(B, col("A.k") == col("B.k"), kind="semi").select("A.*"),
        "SELECT A.* FROM A LEFT SEMI JOIN B ON A.k = B.k",
    ),
    (
        A.join(B.as_("C"), kind="cross").join(B, col("A.i") == col("B.w"), "left").select("A.k"),
        "SELECT A.k FROM A CROSS JOIN B AS C LEFT OUTER JOIN B ON A.i = B.w",
    ),
    (
        A.select("k", "v").union(B.select("k", "w"), A.select("k", "f")),
        "SELECT k, v FROM A UNION ALL SELECT k, w FROM B UNION ALL SELECT k, f FROM A",
    ),
    (
        A.select("k", "v").union(B.select("k", "w")).top(1, by="v"),
        "SELECT k, v FROM A UNION ALL SELECT k, w FROM B ORDER BY v LIMIT 1",
    ),
    (A.duration("5s"), "SELECT * FROM A WITH DURATION(5s)"),
    (A.shift(-4), "SELECT * FROM A WITH SHIFT(-4)"),
    (A.extend("-2ms"), "SELECT * FROM A WITH EXTEND(-2ms)"),
    (A.clip_duration(3), "SELECT * FROM A WITH CLIP_DURATION(3)"),
    (A.point(), "SELECT * FROM A WITH POINT"),
    (A.point_at_end(), "SELECT * FROM A WITH POINT_AT_END"),
    (A.quantize(10, 5, 1), "SELECT * FROM A WITH QUANTIZE(10, 5, 1)"),
    (A.hop_lifetime(10, 5), "SELECT * FROM A WITH HOP_LIFETIME(10, 5)"),
    (A.chop(4, 4), "SELECT * FROM A WITH CHOP(4, 4)"),
    (A.select("k").stitch(), "SELECT k FROM A WITH STITCH"),
    (A.lifetime(col("vs") + 1, col("ve") + v), "SELECT * FROM A WITH LIFETIME(vs + 1, ve + v)"),
    (
        A.partition_by("k", into=3, uid="p").group_by("k").agg(n=count()),
        "SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 3 AS 'p' GROUP BY k",
    ),
]


@pytest.mark.parametrize(("fluent", "script"), SAME, ids=[s for _, s in SAME])
def test_same_plan(plan: Callable[[str], Node], fluent: Stream, script: str) -> None:
    assert fluent.node == plan(script)


@udf
def twice(x: int) -> int:
    return 2 * x


@aggregate
class Longest:
    def zero(self) -> int:
        return 0

    def add(self, state: int, value: str) -> int:
        return max(state, len(value))

    def result(self, state: int) -> int:
        return state


@operator(columns={"n": "BIGINT"})
class Tally:
    n: int

    def __init__(self, start=0, *, only_by_name=0):
        self.n = start

    def on_event(self, event, ctx):
        pass


def test_the_users_functions() -> None:
    scalar = A.select(y=call(twice, col("i")) + 1)
    assert schema(scalar.node).types[0] == twice.result
    node = A.group_by("k").agg(n=call(Longest, k) + 1).node.input
    assert isinstance(node, Aggregate)
    ((_, found),) = node.aggregates
    assert (found.function, found.user, found.args) == ("user", Longest, ("k",))
    with pytest.raises(PlanError, match="Longest: argument 1 must be STRING"):
        A.agg(n=call(Longest, v))


def test_the_users_operators() -> None:
    node = A.reduce("k", using=Tally(30)).node
    assert isinstance(node, Apply)
    assert (node.keys, node.call.args, schema(node).names) == ((("k",),), (30,), ("n",))
    assert A.process(Tally()).node.keys == ((),)
    assert A.combine(B, "k", ("v", "w"), using=Tally()).node.keys == (("k", "v"), ("k", "w"))
    with pytest.raises(PlanError, match="different types"):
        A.combine(B, ("k", "w"), using=Tally())
    with pytest.raises(PlanError, match="unknown column `kk`"):
        A.reduce("kk", using=Tally())
    with pytest.raises(PlanError, match="PARTITION BY of 'p'"):
        A.partition_by("v", into=2, uid="p").reduce("k", using=Tally())
    with pytest.raises(PlanError, match=r"Tally takes \(start=0, .*: too many positional"):
        A.process(Tally(1, 2))


@operator(columns={"n": "BIGINT"})
class Needs:
    def __init__(self, wait):
        pass

    def on_event(self, event, ctx):
        pass


@operator(columns={"n": "BIGINT"})
class Unknowable(dict):
    def on_event(self, event, ctx):
        pass


def test_the_constructor_s_arguments_are_checked() -> None:
    with pytest.raises(PlanError, match=r"Needs takes \(wait\): missing a required argument"):
        A.reduce("k", using=Needs())
    with pytest.raises(PlanError, match=r"Needs takes \(wait\): too many positional arguments"):
        A.combine(B, "k", using=Needs(1, 2))
    assert A.process(Needs(1)).node.call.args == (1,)
    assert A.process(Unknowable(())).node.call.args == ((),)


def test_names_in_joins() -> None:
    with pytest.raises(PlanError, match="needs a name"):
        A.select("k").join(B, kind="cross")
    with pytest.raises(PlanError, match="two inputs of the join are called `A`"):
        A.join(A, kind="cross")
    both = A.join(A.where(v > 3).as_("X"), col("A.k") == col("X.k")).select("A.k", w=col("X.v"))
    assert both.columns == ("k", "w")


def test_theta_joins_are_warned_about() -> None:
    with pytest.warns(PlanWarning):
        A.join(B, v < col("w")).select("v")


def test_terms() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        bool(v == 1)
    with pytest.raises(PlanError, match="FILTER belongs to an aggregate"):
        v.filter(v > 1)
    assert lit(Decimal("1.50")).expr.value == Decimal("1.50")
    with pytest.raises(PlanError, match="hop must be positive"):
        A.window(hopping(5, 0)).agg(n=count())
    with pytest.raises(PlanError, match=r"hop of '3s' or more, or .duration\('30d'\)"):
        A.window(hopping("30d", "1ms")).agg(n=count())
    A.window(hopping(1_000_000, 1)).agg(n=count())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vs": "at"}, "unknown column `at`; did you mean `At`"),
        ({"vs": "k"}, "`vs` must be BIGINT or TIMESTAMP, `k` is STRING"),
        ({"ve": "n"}, "must have one type"),
        ({"ve": "At", "lifetime": 5}, "`ve` or `lifetime`"),
        ({"lifetime": 0}, "`lifetime` must be at least 1"),
        ({"delay": -1}, "`delay` must be at least 0"),
        ({"late": "never"}, "`late` must be one of fail, drop, adjust"),
        ({"columns": {"At": "TIMESTAMP", "window_start": "INT"}}, "cannot be called"),
        ({"columns": {"At": "TIMESTAMP", "vs": "BIGINT"}}, "column `vs` is the stream's `vs`"),
        ({"columns": {"At": "TIMESTMP"}}, "unknown type"),
    ],
)
def test_source_options(changes: dict[str, object], message: str) -> None:
    options = {"columns": {"At": "TIMESTAMP", "k": "STRING", "n": "BIGINT"}, "vs": "At"} | changes
    with pytest.raises(PlanError, match=message):
        stream("S", options.pop("columns"), "s.jsonl", **options)


def test_source_durations() -> None:
    node = stream("S", {"At": "TIMESTAMP"}, "s.csv", vs="At", delay="10s", idle="1m").node
    assert isinstance(node, Source)
    assert (node.options.delay, node.options.idle) == (10_000_000, 60_000_000)
