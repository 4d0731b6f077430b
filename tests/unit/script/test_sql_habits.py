"""What people write who have another SQL in the fingers: accepted with its meaning there, or told
what Weir has for it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from weir.errors import ScriptError
from weir.local.run import collect
from weir.plan.expressions import Column
from weir.plan.fluent.stream import Stream
from weir.plan.operators import Project
from weir.script import parse_program

HEAD = """STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.jsonl';
STREAM B (vs BIGINT, k STRING, v BIGINT) FROM 'b.jsonl';
STREAM T (At TIMESTAMP, k STRING, x DOUBLE, ok BOOLEAN, s STRUCT(name STRING, age BIGINT))
  FROM 't.jsonl' WITH (vs = At);
"""
HEAD_LINES = HEAD.count("\n")


def error_of(query: str) -> ScriptError:
    with pytest.raises(ScriptError) as caught:
        parse_program(HEAD + query)
    return caught.value


def node_of(query: str) -> object:
    return dict(parse_program(f"{HEAD}Out = {query};").streams)["Out"]


@pytest.mark.parametrize(
    ("habit", "ours"),
    [
        ("SELECT k key, v + 1 w FROM A", "SELECT k AS key, v + 1 AS w FROM A"),
        ('SELECT k "the key" FROM A x WHERE x.v > 1', 'SELECT k AS "the key" FROM A WHERE v > 1'),
        (
            "SELECT a.k FROM A a JOIN B b ON a.k = b.k",
            "SELECT a.k FROM A AS a JOIN B AS b ON a.k = b.k",
        ),
        ("SELECT n FROM (SELECT v n FROM A) s", "SELECT n FROM (SELECT v AS n FROM A) AS s"),
        ("SELECT k FROM A WITH DURATION(10us)", "SELECT k FROM A WITH DURATION(10)"),
        ("SELECT k FROM A WITH DURATION(INTERVAL '5' MINUTE)", "SELECT k FROM A WITH DURATION(5m)"),
        ("SELECT k FROM A WITH DURATION(INTERVAL 5 MINUTES)", "SELECT k FROM A WITH DURATION(5m)"),
        (
            "SELECT k FROM A WITH DURATION(INTERVAL '1 hour 30 minutes')",
            "SELECT k FROM A WITH DURATION(90m)",
        ),
        (
            "SELECT k FROM A WITH SHIFT(INTERVAL '-0.5' SECOND)",
            "SELECT k FROM A WITH SHIFT(-500ms)",
        ),
        ("SELECT k FROM A WITH SHIFT(-INTERVAL 1 week)", "SELECT k FROM A WITH SHIFT(-7d)"),
        ("SELECT vs + INTERVAL '2s' t FROM A", "SELECT vs + 2s AS t FROM A"),
        (
            "WITH b AS (SELECT k FROM A), c AS (SELECT k FROM b WHERE k > 'x') SELECT * FROM c",
            "SELECT * FROM (SELECT k FROM (SELECT k FROM A) AS b WHERE k > 'x') AS c",
        ),
        (
            "SELECT k FROM (WITH b AS (SELECT k FROM A WITH POINT) SELECT k FROM b) AS x",
            "SELECT k FROM (SELECT k FROM A WITH POINT) AS x",
        ),
        (
            "SELECT k FROM A UNION ALL (WITH b AS (SELECT k FROM B) SELECT k FROM b)",
            "SELECT k FROM A UNION ALL SELECT k FROM B",
        ),
        ("SELECT HOUR(At) h FROM T", "SELECT EXTRACT(hour FROM At) AS h FROM T"),
        ("SELECT DATE_PART('HOUR', At) h FROM T", "SELECT EXTRACT(hour FROM At) AS h FROM T"),
        ("SELECT DAYOFYEAR(At) h FROM T", "SELECT EXTRACT(doy FROM At) AS h FROM T"),
        ("SELECT IF(x > 1, 2, 3) y FROM T", "SELECT CASE WHEN x > 1 THEN 2 ELSE 3 END AS y FROM T"),
        ("SELECT IFNULL(x, 0.0) y FROM T", "SELECT COALESCE(x, 0.0) AS y FROM T"),
        ("SELECT SUBSTR(k, 2) y FROM T", "SELECT SUBSTRING(k, 2) AS y FROM T"),
        (
            "SELECT DISTINCT k FROM A WITH TUMBLING(10)",
            "SELECT DISTINCT k FROM A GROUP BY k WITH TUMBLING(10)",
        ),
        (
            "SELECT DISTINCT * FROM A WITH HOPPING(10, 5)",
            "SELECT DISTINCT k, v FROM A GROUP BY k, v WITH HOPPING(10, 5)",
        ),
        (
            "SELECT DISTINCT k || 'x' AS y, window_start AS w FROM A WITH TUMBLING(10)",
            "SELECT DISTINCT k || 'x' AS y, window_start AS w FROM A GROUP BY k WITH TUMBLING(10)",
        ),
    ],
)
def test_a_habit_is_what_we_would_write(habit: str, ours: str) -> None:
    assert _plain(node_of(habit)) == _plain(node_of(ours))


def _plain(node: object) -> object:
    """Leave out projections that change nothing: a query after WITH may have one."""
    while isinstance(node, Project) and all(
        isinstance(e, Column) and e.name == n for n, e in node.columns
    ):
        if tuple(n for n, _ in node.columns) != getattr(node.input, "names", None):
            break
        node = node.input
    return node


HINTS = [
    ("^SELECT k FROM A;", "expected a statement", "a query has a name: `Out = SELECT …;`"),
    ("^WITH a AS (SELECT k FROM A) SELECT k FROM a;", "a statement", "Out = WITH a AS"),
    ("^CREATE TABLE x (a INT);", "expected a statement", "STREAM Name (column TYPE"),
    ("^INSERT INTO x SELECT k FROM A;", "expected a statement", "OUTPUT Out TO"),
    ("Out = SELECT k FROM ^'a.csv';", "FROM takes a stream, not a file", "STREAM"),
    ("Out = SELECT k FROM ^TABLE(TUMBLE(TABLE A));", "not a function", "WITH TUMBLING(5m)"),
    ("Out = SELECT k FROM A CROSS JOIN ^UNNEST(tags);", "not a function", "EXPLODE(list)"),
    (
        "Out = SELECT COUNT(*) n FROM A GROUP BY ^TUMBLE(vs, INTERVAL '5' MINUTE);",
        "unknown function `TUMBLE`",
        "WITH TUMBLING(5m)",
    ),
    ("Out = SELECT ROW_NUMBER() ^OVER (PARTITION BY k) n FROM A;", "no OVER", "DESC LIMIT"),
    ("Out = SELECT LAG(v) ^OVER (ORDER BY vs) n FROM A;", "no OVER", "LEFT ASOF JOIN"),
    ("Out = SELECT SUM(v) ^OVER (PARTITION BY k) n FROM A;", "no OVER", "WITH DURATION(1h)"),
    ("Out = SELECT ^NOW() n FROM A;", "unknown function `NOW`", "no clock"),
    ("Out = SELECT ^CURRENT_TIMESTAMP() n FROM A;", "unknown function", "no clock"),
    ("Out = SELECT ^TUMBLE_START(vs, 5m) n FROM A;", "unknown function", "write window_start"),
    ("Out = SELECT ^DAYOFWEEK(At) n FROM T;", "unknown function", "0 on Sunday"),
    ("Out = SELECT ^ARRAY_AGG(v) n FROM A;", "unknown function", "COLLECT(x)"),
    (
        "Out = SELECT k FROM A WHERE k ^> 3;",
        "`>`: STRING and BIGINT do not go together",
        "write CAST(k AS BIGINT) > 3, or k > '3'",
    ),
    (
        "Out = SELECT k FROM A WHERE 3 ^<= k;",
        "`<=`: BIGINT and STRING",
        "write 3 <= CAST(k AS BIGINT), or '3' <= k",
    ),
    ("Out = SELECT k FROM A WHERE v ^= '3';", "`=`: BIGINT and STRING", "write v = 3"),
    ("Out = SELECT k FROM A WHERE v ^= 'x';", "`=`: BIGINT", "write CAST(v AS STRING) = 'x'"),
    (
        "Out = SELECT k FROM T WHERE At ^> '2024-01-01';",
        "TIMESTAMP and STRING",
        "write At > TIMESTAMP '2024-01-01'",
    ),
    (
        "Out = SELECT k FROM T WHERE At ^> DATE '2024-01-01';",
        "TIMESTAMP and DATE",
        "CAST(At AS DATE)",
    ),
    ("Out = SELECT k FROM T WHERE ok ^= 1;", "BOOLEAN and BIGINT", "write ok, or NOT ok"),
    ("Out = SELECT ^s.nme FROM T;", "no field `nme`", "did you mean `name`?"),
    ("Out = SELECT k FROM A ^EMIT CHANGES;", "found `EMIT`", "final"),
    ("Out = SELECT k FROM A ^QUALIFY x = 1;", "found `QUALIFY`", "LIMIT k"),
    ("Out = SELECT k FROM A ^TUMBLING(5s);", "found `TUMBLING`", "write WITH TUMBLING(…)"),
    ("Out = SELECT k FROM A ^STITCH;", "found `STITCH`", "write WITH STITCH"),
    ("Out = SELECT k FROM A ^LEFFT JOIN B ON A.k = B.k;", "found `LEFFT`", "did you mean `LEFT`?"),
    ("Out = SELECT k FROM A ^NATURAL JOIN B;", "found `NATURAL`", "JOIN … ON"),
    (
        "Out = SELECT k FROM A WITH DURATION(INTERVAL '1' ^MONTH);",
        "no fixed length",
        "DATE_ADD(t, 1, 'month')",
    ),
    ("Out = SELECT k FROM A WITH DURATION(INTERVAL ^'soon');", "invalid interval 'soon'", "MINUTE"),
    ("Out = SELECT k FROM A WITH DURATION(INTERVAL '5'^);", "the unit of INTERVAL", "MINUTE"),
    ("Out = SELECT k FROM A WITH DURATION(INTERVAL '0.1' ^us);", "whole number of micro", ""),
    ("Out = WITH ^A AS (SELECT k FROM B) SELECT k FROM A;", "stream `A` already", "something else"),
    ("Out = WITH a^(x) AS (SELECT k FROM B) SELECT x FROM a;", "own select list", "SELECT x AS a"),
    ("Out = WITH ^RECURSIVE a AS (SELECT k FROM B) SELECT k FROM a;", "no recursive", "REDUCE"),
    ("Out = SELECT v^::DOUBLE AS y FROM A;", "found `:`", "CAST(x AS TYPE)"),
    ("Out = SELECT k FROM A WHERE k ^ILIKE 'x';", "found `ILIKE`", "LOWER(x) LIKE"),
    ("Out = SELECT k FROM A WHERE ok IS ^TRUE;", "no IS TRUE", "the condition itself"),
    ("Out = SELECT k FROM A WHERE ^!ok;", "found `!`", "write NOT"),
    ("Out = SELECT k FROM A WHERE v > 1 ^&& v < 3;", "found `&`", "write AND"),
    ("Out = SELECT k FROM A GROUP BY ^1;", "not a constant", "name the column"),
    ("Out = SELECT k FROM A ORDER BY ^k;", "ORDER BY needs LIMIT", "LIMIT k"),
    ("Out = SELECT k FROM A LIMIT 1 ^OFFSET 5;", "found `OFFSET`", "no OFFSET"),
    ("Out = SELECT k FROM A ^EXCEPT SELECT k FROM B;", "found `EXCEPT`", "LEFT ANTI JOIN"),
    ("Out = SELECT k FROM A WHERE EXISTS (^SELECT k FROM B);", "FROM only", "LEFT SEMI JOIN"),
    ("Out = SELECT k FROM A JOIN B ^USING (k);", "found `USING`", "ON A.key"),
    ("Out = SELECT k, ^v FROM A GROUP BY k;", "neither in GROUP BY", "LAST(v)"),
    ("Out = SELECT DATE_TRUNC(^hour, At) AS d FROM T;", "unknown column `hour`", "'hour'"),
    ("Out = SELECT ^CURRENT_DATE AS d FROM T;", "unknown column", "no clock"),
    ("Out = SELECT s^['name'] AS d FROM T;", "found `[`", "s.name"),
    ("Out = SELECT k ^+ 'x' AS d FROM A;", "takes numbers", "||"),
    ("Out = SELECT ^LEFT(k, 2) AS d FROM A;", "found `LEFT`", "SUBSTRING(s, 1, n)"),
    ("Out = SELECT k FROM A WITH SHIFT(^5min);", "`5min` is neither", "write `5m`"),
    ("Out = SELECT ^COUNT() AS n FROM A;", "COUNT takes 1", "COUNT(*)"),
    ('Out = SELECT k FROM A WHERE k = ^"xyz";', "unknown column `xyz`", "single quotes: 'xyz'"),
    ("STREAM C ^FROM 'a.csv';", "the columns", "weir schema"),
    ("STREAM C (t BIGINT ^NOT NULL) FROM 'a.csv';", "found `NOT`", "may be NULL"),
    ("STREAM C (t TIMESTAMP) FROM 'a' WITH (vs = t, ^watermark = 5s);", "unknown", "delay = 10s"),
    ("STREAM C (t TIMESTAMP) FROM ^a.jsonl WITH (vs = t);", "a path", "single quotes"),
    ("DECLARE ^x BIGINT = 3;", "`@` and a name", "DECLARE @name"),
    ("DECLARE @x ^= 3;", "a type", "DECLARE @x BIGINT"),
    ("OUTPUT A ^INTO 'out.csv';", "found `INTO`", "TO 'path'"),
    ("Out = SELECT DISTINCT k FROM A WITH ^SESSION(5);", "SELECT DISTINCT", "GROUP BY"),
    ("Out = SELECT ^DATE_FORMAT(At, 'YYYY-MM-DD') x FROM T;", "no `YYYY`", "yyyy is the year"),
    ("Out = SELECT ^DATE_FORMAT(At, '%Y') x FROM T;", "invalid format '%Y' for", "STRFTIME"),
    ("Out = SELECT ^STRFTIME(At, '%Q') x FROM T;", "no `%Q`", "%Y"),
    ("Out = SELECT ^DATE_FORMAT(At, k) x FROM T;", "must be a constant", ""),
    ("Out = SELECT ^DATE_FORMAT(At) x FROM T;", "takes a time and a format", "yyyy-MM-dd"),
    (
        "Out = SELECT PERCENTILE_CONT(0.5) ^WITHIN GROUP (ORDER BY v) AS n FROM A;",
        "no WITHIN GROUP",
        "write QUANTILE_CONT(x, p)",
    ),
    ("Out = SELECT ^UNIX_TIMESTAMP(At) AS n FROM T;", "unknown function", "EXTRACT(epoch FROM t)"),
    ("Out = SELECT A.* ^EXCEPT (v) FROM A;", "found `EXCEPT`", "name the columns"),
    ("Out = SELECT * ^EXCLUDE (v) FROM A;", "found `EXCLUDE`", "name the columns"),
    ("Out = SELECT DISTINCT ^ON (k) k, v FROM A;", "no DISTINCT ON", "FIRST(v)"),
    ("Out = SELECT k FROM A WHERE v ^<=> 3;", "no `<=>`", "a IS NULL AND b IS NULL"),
    (
        "Out = SELECT k FROM A WHERE v IS ^DISTINCT FROM 3;",
        "no IS DISTINCT FROM",
        "a <> b OR (a IS NULL) <> (b IS NULL)",
    ),
    (
        "Out = SELECT k FROM A WHERE v IS NOT ^DISTINCT FROM 3;",
        "no IS NOT DISTINCT FROM",
        "a = b OR (a IS NULL AND b IS NULL)",
    ),
    ("Out = SELECT k FROM A WHERE v IS ^3;", "NULL after IS", "compared by `=`"),
    ("Out = SELECT k FROM A WHERE v IS NOT ^3;", "NULL after IS", "compared by `<>`"),
    ("Out = SELECT ^TO_TIMESTAMP(k, 'yyyy-MM-dd') AS t FROM A;", "invalid time format", "%Y-%m-%d"),
    ("Out = SELECT ^TOP 3 k FROM A;", "no TOP", "ORDER BY … LIMIT k"),
    (
        "Out = SELECT k, SUM(v) AS s FROM A GROUP BY ^ALL WITH TUMBLING(5);",
        "unknown column `ALL`",
        "no GROUP BY ALL",
    ),
    ("Out = SELECT ^+v AS x FROM A;", "an expression", "no + before it"),
    ("Out = SELECT k FROM A WHERE ^v;", "WHERE must be BOOLEAN", "x <> 0"),
    (
        "Out = SELECT k FROM A ORDER BY v DESC ^NULLS LAST LIMIT 1;",
        "no NULLS FIRST or LAST",
        "DESC has it last",
    ),
    ("DECLARE @m BIGINT = 3; Out = SELECT k FROM A WHERE v > ^m;", "unknown column `m`", "@m"),
    ("Out = SELECT COUNT(*) AS n FROM A WITH ^TUMBLING(-5s);", "positive, not -5s", ""),
    (
        "STREAM C (t TIMESTAMP, ^WATERMARK FOR t AS t - INTERVAL '5' SECOND) FROM 'a';",
        "a column's name, found `WATERMARK`",
        "delay = 10s",
    ),
    (
        "STREAM C (t BIGINT, ^PRIMARY KEY (t) NOT ENFORCED) FROM 'a';",
        "found `PRIMARY`",
        "without constraints",
    ),
    ("STREAM C (t BIGINT, ^p AS PROCTIME()) FROM 'a';", "a column is `name TYPE`", "in a query"),
    ("STREAM C (t ^TIMESTAMP(3)) FROM 'a';", "takes no parameters", "microseconds"),
]


@pytest.mark.parametrize(("marked", "message", "hint"), HINTS)
def test_hints(marked: str, message: str, hint: str) -> None:
    error = error_of(marked.replace("^", ""))
    assert message in error.message
    assert hint in error.hint
    assert (error.line, error.column) == (HEAD_LINES + 1, marked.index("^") + 1)


def test_a_function_of_the_users_comes_first(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import weir\n@weir.udf\ndef hour(x: int) -> int:\n    return x + 1\n"
    )
    text = f"IMPORT 'own.py';\n{HEAD}Out = SELECT hour(v) AS h, MOD(v, 2) AS m FROM A;"
    node = dict(parse_program(text, directory=tmp_path).streams)["Out"]
    rows = collect(Stream(node), inputs={"A": [{"vs": 1, "k": "x", "v": 5}]})
    assert rows["h"].to_pylist() == [6]


MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1899, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2000, 2, 29, 12, 0, 0, 500_000, tzinfo=UTC),
    datetime(2024, 12, 30, 0, 7, 9, 123_456, tzinfo=UTC),
    datetime(2100, 3, 1, 13, 45, 1, 10, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
CALENDAR = """YEAR QUARTER MONTH WEEK DAY DAYOFMONTH DAYOFYEAR WEEKOFYEAR HOUR MINUTE SECOND"""
CODES = (
    "%Y-%m-%d %H:%M:%S.%f",
    "%y %-m %-d %j %-j",
    "%a %A %b %B",
    "%I:%M %p %-I %-H %-M %-S",
    "100%%",
)


def values(expression: str) -> list[object]:
    text = "STREAM T (t TIMESTAMP) FROM 't.jsonl' WITH (vs = t, delay = 5000000d);\n"
    node = dict(parse_program(f"{text}Out = SELECT t, {expression} AS x FROM T;").streams)["Out"]
    rows = [{"t": m} for m in MOMENTS]
    return collect(Stream(node), inputs={"T": rows})["x"].to_pylist()


def in_duckdb(expression: str) -> list[object]:
    table = pa.table({"t": pa.array([m.replace(tzinfo=None) for m in MOMENTS], pa.timestamp("us"))})
    with duckdb.connect() as connection:
        connection.register("T", table)
        found = connection.sql(f"SELECT {expression} AS x FROM T ORDER BY t").fetchall()
    return [row[0] for row in found]


@pytest.mark.parametrize("name", CALENDAR.split())
def test_fields_of_times_are_those_of_duckdb(name: str) -> None:
    assert values(f"{name}(t)") == in_duckdb(f"{name.lower()}(t)")


@pytest.mark.parametrize("form", CODES)
def test_times_are_written_as_duckdb_writes_them(form: str) -> None:
    assert values(f"STRFTIME(t, '{form}')") == in_duckdb(f"strftime(t, '{form}')")


@pytest.mark.parametrize(
    ("letters", "codes"),
    [
        ("yyyy-MM-dd HH:mm:ss.SSSSSS", "%Y-%m-%d %H:%M:%S.%f"),
        ("yy M d DDD D", "%y %-m %-d %j %-j"),
        ("EEE EEEE MMM MMMM", "%a %A %b %B"),
        ("hh:mm a h H m s", "%I:%M %p %-I %-H %-M %-S"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "%Y-%m-%dT%H:%M:%SZ"),
        ("'it''s' ''", "it's '"),
    ],
)
def test_letters_are_codes_in_other_words(letters: str, codes: str) -> None:
    quoted = letters.replace("'", "''"), codes.replace("'", "''")
    assert values(f"DATE_FORMAT(t, '{quoted[0]}')") == in_duckdb(f"strftime(t, '{quoted[1]}')")


def test_fractions_are_cut() -> None:
    assert values("DATE_FORMAT(t, 'S SSS')")[5] == "1 123"


def test_years_beyond_four_digits_have_a_sign() -> None:
    year = 365 * 86400 * 10**6
    query = "Out = SELECT DATE_FORMAT(TO_TIMESTAMP(v), 'yyyy') AS x FROM A;"
    node = dict(parse_program(HEAD + query).streams)["Out"]
    rows = [{"vs": i, "k": "", "v": y * year} for i, y in enumerate((-2100, 10_100))]
    assert collect(Stream(node), inputs={"A": rows})["x"].to_pylist() == ["-0129", "+12063"]


NUMBERS = [(a, b) for a in (-(2**62), -7, -1, 0, 5, 2**63 - 1) for b in (-3, -1, 2, 2**62)]


def test_mod_is_that_of_duckdb() -> None:
    text = "STREAM N (vs BIGINT, a BIGINT, b BIGINT) FROM 'n.jsonl';\n"
    query = """Out = SELECT MOD(a, b) AS i, MOD(CAST(a AS DOUBLE), 2.5) AS d, a % b AS p FROM N;"""
    node = dict(parse_program(text + query).streams)["Out"]
    rows = [{"vs": i, "a": a, "b": b} for i, (a, b) in enumerate(NUMBERS)]
    got = collect(Stream(node), inputs={"N": rows})
    with duckdb.connect() as connection:
        connection.register("N", pa.Table.from_pylist(rows))
        wanted = connection.sql(
            "SELECT mod(a, b), mod(a::DOUBLE, 2.5::DOUBLE) FROM N ORDER BY vs"
        ).fetchall()
    pairs = zip(got["i"].to_pylist(), got["d"].to_pylist(), strict=True)
    assert list(pairs) == wanted
    assert got["p"].to_pylist() == [a % b for a, b in NUMBERS]
