"""What cannot be planned, and what the error says."""

from collections.abc import Callable

import pytest

from weir.errors import ScriptError
from weir.plan.operators import Node

Plan = Callable[[str], Node]

ERRORS = [
    ("SELECT vv FROM A", "unknown column `vv`"),
    ("SELECT v FROM Axx", "unknown stream `Axx`"),
    ("SELECT C.v FROM A", "unknown column `C.v`"),
    ("SELECT B.* FROM A", "unknown stream `B`"),
    ("SELECT v AS vs FROM A", "cannot be called `vs`"),
    ("SELECT vs FROM A", "cannot be called `vs`"),
    ("SELECT v AS window_end FROM A", "cannot be called `window_end`"),
    ("SELECT v + 1 FROM A", "needs a name"),
    ("SELECT COUNT(*) FROM A", "needs a name"),
    ("SELECT v, k AS v FROM A", "two columns are called `v`"),
    ("SELECT *, v FROM A", "two columns are called `v`"),
    ("SELECT v FROM A WHERE v", "WHERE must be BOOLEAN"),
    ("SELECT v FROM A WHERE COUNT(*) > 1", "cannot stand in WHERE"),
    ("SELECT v FROM A WHERE window_start > 1", "`window_start` cannot stand in WHERE"),
    ("SELECT k, v, COUNT(*) AS n FROM A GROUP BY k", "column `v` is neither in GROUP BY"),
    ("SELECT k FROM A HAVING k = 'x'", "column `k` is neither"),
    ("SELECT k FROM A WITH TUMBLING(5)", "column `k` is neither"),
    ("SELECT * FROM A GROUP BY k", "`*` cannot be selected"),
    ("SELECT COUNT(*) AS n FROM A GROUP BY 1", "not a constant"),
    ("SELECT SUM(COUNT(*)) AS n FROM A", "cannot stand in an aggregate"),
    ("SELECT SUM(v) FILTER (WHERE COUNT(*) > 1) AS n FROM A", "cannot stand in FILTER"),
    ("SELECT COUNT(*) AS n FROM A GROUP BY COUNT(*)", "cannot stand in GROUP BY"),
    ("SELECT SUM(k) AS n FROM A", "SUM does not take STRING"),
    ("SELECT MEDIAN(k) AS n FROM A", "MEDIAN"),
    ("SELECT SUM(x) AS n FROM A", "SUM does not take LIST"),
    ("SELECT MEDIAN(r) AS n FROM A", "MEDIAN or QUANTILE_CONT does not take STRUCT"),
    ("SELECT QUANTILE_DISC(v, 1.5) AS n FROM A", "from 0 to 1"),
    ("SELECT QUANTILE_DISC(v, 0.3333333333333333333) AS n FROM A", "more than 18 decimals"),
    ("SELECT QUANTILE_CONT(v, 1e-400) AS n FROM A", "more than 18 decimals"),
    ("SELECT COUNT(*) AS n FROM A WITH HOPPING(5, 0)", "hop must be positive"),
    ("SELECT COUNT(*) AS n FROM A WITH HOPPING(0, 5)", "size must be positive"),
    (
        "SELECT COUNT(*) AS n FROM A WITH HOPPING(30d, 1ms)",
        "every event is in 2,592,000,000 windows, each of which is a row",
    ),
    ("SELECT COUNT(*) AS n FROM A WITH HOPPING(1000001, 1)", "is in 1,000,001 windows"),
    ("SELECT COUNT(*) AS n FROM A WITH TUMBLING(-1)", "size must be positive"),
    ("SELECT COUNT(*) AS n FROM A WITH SESSION(0)", "timeout must be positive"),
    (
        "SELECT COUNT(*) AS n FROM A WITH TUMBLING(100, 4611686018427387902)",
        "size and offset are out of range together",
    ),
    (
        "SELECT COUNT(*) AS n FROM A WITH HOPPING(10, 100, -4611686018427387902)",
        "size and offset are out of range together",
    ),
    ("SELECT COUNT(*) AS n FROM A WITH COUNT(0)", "n must be positive"),
    ("SELECT COUNT(*) AS n FROM A WITH COUNT(9000000000000000000)", "range: 9000000000000000000\n"),
    ("SELECT COUNT(*) AS n FROM A WITH COUNT(2, 0)", "step must be positive"),
    ("SELECT v FROM A WITH DURATION(0)", "DURATION must be positive"),
    ("SELECT v FROM A WITH CLIP_DURATION(0)", "CLIP_DURATION must be positive"),
    ("SELECT v FROM A WITH CHOP(0)", "period must be positive"),
    ("SELECT v FROM A WITH QUANTIZE(1, 0)", "hop must be positive"),
    ("SELECT v FROM A WITH HOP_LIFETIME(0, 1)", "size must be positive"),
    ("SELECT v FROM A WITH SHIFT(9000000000000000000)", "SHIFT is out of range"),
    ("SELECT COUNT(*) AS n FROM A WITH DURATION(3)", "without aggregates"),
    ("SELECT v FROM A WITH LIFETIME(v, ve)", "`vs` plus or minus a constant"),
    ("SELECT v FROM A WITH LIFETIME(vs + v, ve)", "`vs` plus or minus a constant"),
    ("SELECT v FROM A WITH LIFETIME(vs, k)", "must be BIGINT, not STRING"),
    ("SELECT DISTINCT k FROM A WITH LIFETIME(vs, ve + v)", "SELECT DISTINCT compares whole rows"),
    ("SELECT v FROM A ORDER BY v", "LIMIT"),
    ("SELECT v FROM A ORDER BY v LIMIT 0", "LIMIT must be positive"),
    ("SELECT v FROM A ORDER BY v LIMIT 9000000000000000000", "LIMIT is out of range: 9"),
    ("SELECT v FROM A ORDER BY 1 LIMIT 1", "not a constant"),
    ("SELECT DISTINCT k FROM A ORDER BY v LIMIT 1", "SELECT DISTINCT compares whole rows"),
    ("SELECT k FROM A WITH STITCH ORDER BY v LIMIT 1", "STITCH compares whole rows"),
    ("SELECT k FROM A UNION ALL SELECT k FROM B ORDER BY v LIMIT 1", "unknown column `v`"),
    ("SELECT k FROM A UNION ALL SELECT k, w FROM B", "1 and 2 columns"),
    ("SELECT k FROM A UNION ALL SELECT w FROM B", "has types STRING, BIGINT"),
    ("SELECT EXPLODE(v) AS y FROM A", "takes a LIST"),
    ("SELECT EXPLODE(x) + 1 AS y FROM A", "stands alone"),
    ("SELECT EXPLODE(x) AS y, EXPLODE(x) AS z FROM A", "one list only"),
    ("SELECT * FROM A INNER JOIN B ON A.k = B.k", "two columns are called `k`"),
    ("SELECT k FROM A INNER JOIN B ON A.k = B.k", "`k` is ambiguous: it may be `A.k` or `B.k`"),
    ("SELECT v FROM A INNER JOIN A ON A.k = A.k", "called `A`"),
    ("SELECT w FROM A INNER JOIN (SELECT * FROM B) ON A.k = w", "needs a name"),
    ("SELECT v FROM A INNER JOIN B ON A.k = B.w", "do not go together"),
    ("SELECT v FROM A INNER JOIN B ON vs = B.w", "`vs` of the result cannot stand in ON"),
    ("SELECT v FROM A INNER JOIN B ON A.v", "ON must be BOOLEAN"),
    ("SELECT v FROM A INNER JOIN B ON COUNT(*) = 1", "cannot stand in ON"),
    ("SELECT v FROM A PARTITION BY v + 1 INTO 2 AS 'p'", "PARTITION BY takes columns"),
    ("SELECT v FROM A PARTITION BY vs INTO 2 AS 'p'", "PARTITION BY takes columns"),
    ("SELECT v FROM A PARTITION BY zz INTO 2 AS 'p'", "unknown column `zz`"),
    ("SELECT v FROM A PARTITION BY v INTO 0 AS 'p'", "PARTITION BY"),
]

PARTITIONS = [
    "SELECT k, COUNT(*) AS n FROM A PARTITION BY v INTO 2 AS 'p' GROUP BY k WITH TUMBLING(5)",
    "SELECT COUNT(*) AS n FROM A PARTITION BY k INTO 2 AS 'p'",
    "SELECT k, COUNT(*) AS n FROM A PARTITION BY k, v INTO 2 AS 'p' GROUP BY k",
    "SELECT v FROM A PARTITION BY k INTO 2 AS 'p' ORDER BY v LIMIT 1",
    "SELECT DISTINCT v FROM A PARTITION BY k INTO 2 AS 'p'",
    "SELECT v FROM A PARTITION BY k INTO 2 AS 'p' WITH STITCH",
    "SELECT A.v FROM A PARTITION BY v INTO 2 AS 'p' INNER JOIN B ON A.k = B.k",
    "SELECT A.v FROM A PARTITION BY v INTO 2 AS 'p' CROSS JOIN B",
    "SELECT A.v FROM A INNER JOIN (SELECT * FROM B PARTITION BY w INTO 2 AS 'p') AS C ON A.k = C.k",
    "SELECT v, COUNT(*) AS n FROM (SELECT v FROM A PARTITION BY k INTO 2 AS 'p' UNION ALL "
    "SELECT w FROM B) GROUP BY v",
    "SELECT x, COUNT(*) AS n FROM (SELECT EXPLODE(x) AS x FROM A PARTITION BY x INTO 2 AS 'p') "
    "GROUP BY x",
    "SELECT k + 1 AS j, COUNT(*) AS n FROM (SELECT v AS k FROM A PARTITION BY v INTO 2 AS 'p') "
    "GROUP BY k + 1",
]


@pytest.mark.parametrize(("query", "message"), ERRORS)
def test_error(plan: Plan, query: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        plan(query)
    assert message in str(caught.value)


@pytest.mark.parametrize("query", PARTITIONS)
def test_partition_key_not_in_the_operator_s(plan: Plan, query: str) -> None:
    with pytest.raises(ScriptError, match="PARTITION BY of 'p' splits by"):
        plan(query)


def test_an_error_points_at_its_position(plan: Plan) -> None:
    with pytest.raises(ScriptError) as caught:
        plan("SELECT k, vv FROM A")
    assert caught.value.source_line[caught.value.column - 1 :].startswith("vv")
