"""What a program says and probably does not mean: a warning says so once, with what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from weir import (
    PlanWarning,
    Stream,
    col,
    count,
    from_rows,
    hopping,
    lit,
    session,
    stream,
    tumbling,
)
from weir.plan.advice.plan_warnings import told_already
from weir.runtime.programs import as_program
from weir.script import parse_program

HEAD = """STREAM A (vs BIGINT, k STRING) FROM 'a.jsonl';
STREAM T (At TIMESTAMP, k STRING) FROM 't.jsonl' WITH (vs = At);
STREAM U (At TIMESTAMP, k STRING) FROM 'u.jsonl' WITH (vs = At);
STREAM L (At TIMESTAMP, k STRING) FROM 'l.jsonl' WITH (vs = At, lifetime = 5m);
STREAM C (since TIMESTAMP, k STRING) FROM 'c.jsonl' WITH (vs = since);
"""
HOURS = "(SELECT k, COUNT(*) AS n FROM T GROUP BY k WITH TUMBLING(1h)) AS W"
HEAD_LINES = HEAD.count("\n")
DOUBTS = [
    ("Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(^10);", "TUMBLING: 10 is 10 micro", "10s"),
    ("Out = SELECT COUNT(*) AS n FROM T WITH HOPPING(1h, ^300000);", "300,000 micro", "300ms"),
    (
        "Out = SELECT k FROM (SELECT k FROM T WITH SHIFT(^-5)) AS x;",
        "SHIFT: -5 is -5 micro",
        "write -5s for seconds, or -5us",
    ),
    (
        "DECLARE @w BIGINT = 60; Out = SELECT COUNT(*) AS n FROM T WITH SESSION(^@w);",
        "60 is",
        "60s",
    ),
    ("DECLARE @w BIGINT = -6; Out = SELECT k FROM T WITH SHIFT(^@w);", "SHIFT: -6 is", "-6s"),
    ("STREAM B (At TIMESTAMP) FROM 'b' WITH (vs = At, delay = ^30);", "delay: 30 is", "30s"),
    ("Out = SELECT k FROM A LIMIT ^2;", "keeps 2 rows of each instant", "--limit 2"),
    ("Out = SELECT k FROM A GROUP BY k WITH TUMBLING(5) LIMIT ^2;", "of each window", "ORDER BY x"),
    ("Out = SELECT k FROM A WHERE k ^= NULL;", "`= NULL` is never true", "IS NULL"),
    ("Out = SELECT k FROM A WHERE NULL ^<> k;", "`<> NULL` is never true", "IS NOT NULL"),
    ("Out = SELECT k FROM A WHERE k ^IN ('x', NULL);", "`IN (…, NULL)`: NULL equals", "IS NULL"),
    ("Out = SELECT k FROM A WHERE k NOT ^IN (NULL, 'x');", "NOT IN (…, NULL)` is never true", ""),
    ("Out = SELECT COUNT(*) AS n FROM T WITH ^HOPPING(1m, 5m);", "of 1m every 5m: ", "(5m, 1m)"),
    (
        "Out = SELECT k, COUNT(*) AS n FROM T GROUP BY ^k;",
        "events of T are points: only those of the same microsecond come together",
        "WITH TUMBLING(1h) for windows, or WITH SNAPSHOT",
    ),
    ("Out = ^SELECT COUNT(*) AS n FROM A WHERE k > 'x';", "the same instant", "TUMBLING(size)"),
    (
        "Out = SELECT h, COUNT(*) AS n FROM (SELECT DATE_TRUNC('hour', At) AS h FROM T) "
        "GROUP BY ^h;",
        "events of T are points",
        "WITH TUMBLING(1h)",
    ),
    (
        "Out = SELECT T.k FROM T ^JOIN U ON T.k = U.k AND T.At >= U.At - 5m;",
        "events of T and U are points: only those of the same microsecond meet",
        "(SELECT * FROM U WITH DURATION(10m)) AS U",
    ),
    ("Out = SELECT T.k FROM T ^LEFT ANTI JOIN U ON T.k = U.k;", "events of T and U", "ASOF JOIN"),
    (
        f"Out = SELECT W.k FROM {HOURS} ^JOIN C ON W.k = C.k;",
        "events of C are points: a window over T meets only those whose time lies inside it",
        "(SELECT * FROM C WITH LIFETIME(vs, NULL)) AS C from then on; or ASOF JOIN",
    ),
    (f"Out = SELECT C.k FROM C ^LEFT JOIN {HOURS} ON W.k = C.k;", "a window over T", "WITH POINT"),
    (f"Out = SELECT W.k FROM {HOURS} ^CROSS JOIN C;", "events of C are points", "WITH POINT"),
    (
        f"Out = SELECT W.k FROM {HOURS.replace('TUMBLING(1h)', 'SESSION(1h)')} "
        "^LEFT ANTI JOIN C ON W.k = C.k;",
        "a window over T meets only",
        "ASOF JOIN",
    ),
    (
        "Out = SELECT W.k FROM (SELECT k FROM L GROUP BY k WITH HOPPING(2h, 1h)) AS W "
        "^FULL JOIN C ON W.k = C.k;",
        "a window over L meets only",
        "LIFETIME(vs, NULL)",
    ),
    (
        "Out = SELECT x.k FROM (SELECT k FROM T UNION ALL SELECT k FROM U) AS x "
        "^JOIN C ON x.k = C.k;",
        "events of T and U and C are points",
        "(SELECT * FROM C WITH DURATION(10m)) AS C",
    ),
    (
        "Out = SELECT x.k FROM C ^JOIN (SELECT T.k FROM T ASOF JOIN U ON T.k = U.k) AS x "
        "ON x.k = C.k;",
        "events of C and T are points",
        "ASOF JOIN",
    ),
    (
        "Out = SELECT x.k FROM (SELECT DISTINCT k FROM T WITH SHIFT(1h)) AS x "
        "^JOIN C ON x.k = C.k;",
        "events of T and C are points",
        "ASOF JOIN",
    ),
    (
        "Out = SELECT x.k FROM (SELECT k FROM T GROUP BY k WITH COUNT(5)) AS x "
        "^JOIN C ON x.k = C.k;",
        "events of T and C are points",
        "ASOF JOIN",
    ),
    (
        "Out = SELECT L.k FROM T JOIN L ON T.k = L.k ^JOIN C ON L.k = C.k;",
        "events of T and C are points",
        "ASOF JOIN",
    ),
    (
        "Out = SELECT T.k FROM T ^JOIN L ON T.k > L.k;",
        "compares every pair of live rows",
        "ON A.key = B.key",
    ),
]
FINE = [
    "Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(10us);",
    "Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(60000000);",
    "Out = SELECT COUNT(*) AS n FROM T WITH HOPPING(5s, 1s, 0);",
    "Out = SELECT COUNT(*) AS n FROM T WITH COUNT(10);",
    "Out = SELECT COUNT(*) AS n FROM A WITH TUMBLING(10);",
    "DECLARE @w BIGINT = 5s; Out = SELECT COUNT(*) AS n FROM T WITH TUMBLING(@w);",
    "Out = SELECT k FROM A ORDER BY k LIMIT 2;",
    "Out = SELECT k FROM A WHERE k IS NULL OR k = 'x';",
    "Out = SELECT COUNT(*) AS n FROM T WITH HOPPING(5m, 5m);",
    "Out = SELECT k, COUNT(*) AS n FROM T GROUP BY k WITH SNAPSHOT;",
    "Out = SELECT At, COUNT(*) AS n FROM T GROUP BY At;",
    "Out = SELECT k, COUNT(*) AS n FROM L GROUP BY k;",
    "Out = SELECT k, COUNT(*) AS n FROM (SELECT k FROM T WITH DURATION(5m)) GROUP BY k;",
    "Out = SELECT T.k FROM T JOIN L ON T.k = L.k;",
    "Out = SELECT T.k FROM T JOIN (SELECT k FROM U WITH DURATION(5m)) AS U ON T.k = U.k;",
    "Out = SELECT T.k FROM T ASOF JOIN U ON T.k = U.k;",
    "Out = SELECT T.k FROM T JOIN U ON T.At = U.At;",
    "Out = SELECT a.k FROM T AS a JOIN T AS b ON a.k = b.k;",
    f"Out = SELECT W.k FROM {HOURS} ASOF JOIN C ON W.k = C.k;",
    f"Out = SELECT W.k FROM {HOURS} JOIN L ON W.k = L.k;",
    f"Out = SELECT W.k FROM {HOURS} JOIN (SELECT * FROM C WITH POINT) AS C ON W.k = C.k;",
    f"Out = SELECT W.k FROM {HOURS} JOIN (SELECT * FROM C WITH LIFETIME(vs, NULL)) AS C "
    "ON W.k = C.k;",
    f"Out = SELECT W.k FROM {HOURS} JOIN T ON W.k = T.k;",
    f"Out = SELECT W.k FROM {HOURS} JOIN C ON W.k = C.k AND W.vs = C.since;",
    f"Out = SELECT W.k FROM {HOURS} JOIN "
    "(SELECT k FROM C GROUP BY k WITH TUMBLING(1d)) AS D ON W.k = D.k;",
    "Out = SELECT T.k FROM T JOIN (SELECT k FROM U UNION ALL SELECT k FROM L) AS x ON T.k = x.k;",
]


@pytest.mark.parametrize(("marked", "message", "hint"), DOUBTS)
def test_doubts(marked: str, message: str, hint: str) -> None:
    with pytest.warns(PlanWarning) as told:
        parse_program(HEAD + marked.replace("^", ""), name="p.weir")
    [warning] = told
    first, _, _, last = str(warning.message).split("\n")
    assert first.startswith(f"p.weir, line {HEAD_LINES + 1}, column {marked.index('^') + 1}: ")
    assert message in first
    assert last.startswith("  hint: ") and hint in last
    assert warning.filename == __file__  # the line that gave the text, not one of ours


@pytest.mark.parametrize("text", FINE)
def test_what_is_fine_is_silent(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_program(HEAD + text)


def test_the_line_that_runs_a_file_is_blamed(tmp_path: Path) -> None:
    path = tmp_path / "p.weir"
    path.write_text(f"{HEAD}Out = SELECT k FROM A LIMIT 2; OUTPUT Out TO 'o.csv';", "utf-8")
    with pytest.warns(PlanWarning, match="each instant") as told:
        as_program(path)
    assert [warning.filename for warning in told] == [__file__]


def test_what_was_told_is_not_told_again() -> None:
    with warnings.catch_warnings(), told_already():
        warnings.simplefilter("error")
        parse_program(f"{HEAD}Out = SELECT k FROM A LIMIT 2;")


def test_a_filter_makes_errors_of_them() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlanWarning)
        with pytest.raises(PlanWarning, match="each instant"):
            parse_program(f"{HEAD}Out = SELECT k FROM A LIMIT 2;")


COLUMNS = {"At": "TIMESTAMP", "k": "STRING"}


def declared(**options: Any) -> Stream:
    return stream("T", COLUMNS, "t.jsonl", vs="At", **options)


@pytest.mark.parametrize(
    ("doubtful", "message", "instead"),
    [
        (lambda t: t.window(tumbling(10)), "TUMBLING(10us): 10 is 10 microseconds", "'10s'"),
        (lambda t: t.window(hopping("1h", "300000")), "300000 is 300,000 micro", "'300ms'"),
        (lambda t: t.window(session(60)), "SESSION(60us): 60 is", "'60s'"),
        (lambda t: t.shift(-5), "shift: -5 is -5 microseconds", "'-5s'"),
        (lambda t: t.duration(5), "duration: 5 is", "'5us' to keep the value"),
        (lambda t: t.chop(5), "chop: 5 is", "'5s'"),
        (lambda t: t.quantize("1m", 5), "quantize: 5 is", "'5s'"),
        (lambda t: declared(delay=30), "delay: 30 is 30 microseconds", "'30s'"),
        (lambda t: declared(lifetime=5), "lifetime: 5 is", "'5s'"),
        (lambda t: from_rows([], columns=COLUMNS, vs="At", delay=5), "delay: 5 is", "'5s'"),
        (lambda t: t.top(2), "top(2) without `by` keeps 2 rows of each instant", "by=col('x')"),
        (lambda t: t.where(col("k") == None), "`== None` is never true", ".is_null()"),  # noqa: E711
        (lambda t: lit(None) != col("k"), "`!= None` is never true", ".is_not_null()"),
        (lambda t: ~col("k").isin(["x", None]), "equals nothing", "| ….is_null()"),
        (lambda t: t.where("k = NULL"), "column 3: `= NULL` is never true", "IS NULL"),
        (lambda t: t.group_by("k").agg(n=count()), "are points", ".window(tumbling('1h'))"),
        (lambda t: t.group_by("k").agg(n=count()).top(1, by="n"), "points", ".window(snapshot())"),
        (lambda t: t.window(hopping("1m", "5m")).agg(n=count()), "1m every 5m", "('5m', '1m')"),
        (
            lambda t: t.join(t.where("k > 'a'").as_("U"), "T.k > U.k").select("T.k"),
            "every pair of live rows",
            "AND …",
        ),
        (
            lambda t: t.join(stream("U", COLUMNS, "u", vs="At"), "T.k = U.k").select("T.k"),
            "T and U are points",
            "kind='asof'",
        ),
        (
            lambda t: (
                t.group_by("k")
                .window(tumbling("1h"))
                .agg(n=count())
                .as_("W")
                .join(stream("U", COLUMNS, "u", vs="At"), "W.k = U.k")
                .select("W.k")
            ),
            "a window over T meets only",
            ".lifetime('vs', lit(None))",
        ),
    ],
)
def test_python_is_warned_too(
    doubtful: Callable[[Stream], object], message: str, instead: str
) -> None:
    with pytest.warns(PlanWarning) as told:
        doubtful(declared())
    [warning] = told
    assert message in str(warning.message) and instead in str(warning.message)
    assert warning.filename == __file__  # the line that wrote it, not one of ours


def test_what_is_fine_in_python_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t = declared(delay="5s", lifetime=timedelta(microseconds=5), idle=60_000_000)
        t.window(tumbling("10s")).agg(n=count())
        t.window(tumbling("10us", 0)).agg(n=count())
        t.duration("5us").shift(10**9)
        t.top(2, by=col("k"))
        t.where(col("k").is_null() & (col("k") == "x") & (col("At") > lit(None)))
        a = stream("A", {"vs": "BIGINT"}, "a.jsonl", vs="vs", delay=5)
        a.window(tumbling(10)).agg(n=count())
        a.duration(5)
        hours = t.group_by("k").window(tumbling("1h")).agg(n=count()).as_("W")
        customers = stream("C", COLUMNS, "c", vs="At")
        valid = customers.lifetime("vs", lit(None)).as_("C")
        hours.join(valid, "W.k = C.k").select("W.k")
        hours.join(customers, "W.k = C.k", kind="asof").select("W.k")
