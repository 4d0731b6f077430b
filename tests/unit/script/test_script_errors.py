"""Errors: one message, where it is wrong, a caret under it, a hint where one is obvious."""

from __future__ import annotations

import pytest

from weir.errors import ScriptError
from weir.plan.functions import FUNCTIONS, is_called
from weir.script import parse_program

A = "STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.jsonl';\n"
B = "STREAM B (vs BIGINT, k STRING, v BIGINT) FROM 'b.jsonl';\n"


def error_of(text: str, **options: object) -> ScriptError:
    with pytest.raises(ScriptError) as caught:
        parse_program(text, **options)  # type: ignore[arg-type]
    assert "\x1b" not in str(caught.value)
    return caught.value


def test_the_whole_message() -> None:
    error = error_of(A + "Out =\n\tSELECT k, vv FROM A;")
    assert str(error) == (
        "line 3, column 12: unknown column `vv`\n"
        "  \tSELECT k, vv FROM A;\n"
        "  \t          ^\n"
        "  hint: did you mean `v`?"
    )


# The text of a query over A and B; `^` stands before the position of the error.
QUERIES = [
    ("SELECT v ^x y FROM A", "expected `,` or FROM", "AS x"),
    ("SELECT ^5 s FROM A", "a duration is one word", "write `5s`"),
    ("SELECT ^5S FROM A", "neither a number nor a duration", "250ms"),
    ("SELECT ^1.5s FROM A", "neither a number nor a duration", ""),
    ("SELECT v FROM A ^SEMI JOIN B ON A.k = B.k", "found `SEMI`", "LEFT SEMI JOIN"),
    ("SELECT v FROM A ^LEFT CLIP JOIN B ON A.k = B.k", "no LEFT CLIP JOIN", "LEFT ASOF JOIN"),
    ("SELECT v FROM A ^WHER v > 1", "found `WHER`", "did you mean `WHERE`?"),
    ("SELECT v FROM A^, B", "FROM takes one stream", "CROSS JOIN"),
    ("SELECT v FROM A JOIN B ^USING (k)", "found `USING`", ""),
    (
        "SELECT v FROM A INNER JOIN B ON A.k = B.k AND ^vs > 1",
        "`vs` of the result cannot stand in ON",
        "write `A.vs` or `B.vs`",
    ),
    ("SELECT v FROM A CROSS JOIN B ^ON A.k = B.k", "CROSS JOIN takes no ON", "INNER JOIN"),
    ("SELECT v FROM A JOIN B^", "expected ON and the condition of JOIN", ""),
    ("SELECT v FROM ^Axx", "unknown stream `Axx`", ""),
    ("SELECT v FROM A WITH SNAPSHOT ^GROUP BY k", "GROUP BY comes too late", "the order is"),
    ("SELECT v FROM A LIMIT 1 WITH ^POINT", "expected TIES after WITH", ""),
    ("SELECT v FROM A ORDER BY v ^WITH TIES", "WITH comes too late", "follows LIMIT"),
    ("SELECT v FROM A WITH ^TUMBLNG(5)", "unknown window", "did you mean `TUMBLING`?"),
    ("SELECT v FROM A WITH ^HOPPING(5)", "HOPPING has 1 arg", "HOPPING(size, hop [, offset])"),
    ("SELECT v FROM A WITH SHIFT(^v)", "the d of SHIFT must be a duration", "5s"),
    ("SELECT COUNT(*) AS n FROM A WITH COUNT(^5s)", "must be a whole number", ""),
    ("SELECT v FROM A WITH ^HOPPING(5, 0)", "hop", ""),
    ("SELECT v FROM A UNION ^SELECT v FROM A", "expected ALL after UNION", "UNION ALL"),
    ("SELECT v FROM A ^EXCEPT SELECT v FROM A", "found `EXCEPT`", ""),
    ("SELECT ^left FROM A", "expected an expression", 'quote it, as in "left"'),
    ("SELECT k, ^FROM A", "expected an expression", "comma too many"),
    ("SELECT k, ^FROM A", "expected an expression", "If it is a name: `FROM` is reserved: quote"),
    ("SELECT ^end FROM A", "expected an expression", '`end` is reserved: quote it, as in "end"'),
    ("SELECT k, ^end FROM A", "expected an expression", '`end` is reserved: quote it, as in "end"'),
    ("SELECT v AS ^End FROM A", "expected an alias", '`End` is reserved: quote it, as in "End"'),
    ("SELECT A.^end FROM A", "expected a name after `.`", "`end` is reserved: quote it"),
    ("SELECT * ^+ 1 FROM A", "expected `,` or FROM", ""),
    ("SELECT v ^WHERE v > 1", "expected `,` or FROM", ""),
    ("SELECT (v + 1 ^FROM A", "expected `)`", ""),
    ("SELECT v IN (^) FROM A", "an expression", ""),
    ("SELECT v IN (^SELECT v FROM A) FROM A", "IN takes a list", "LEFT SEMI JOIN"),
    ("SELECT (^SELECT v FROM A) AS x FROM A", "a sub-select stands in FROM only", ""),
    ("SELECT v BETWEEN 1 ^OR 2 FROM A", "expected AND", ""),
    ("SELECT CASE ^END FROM A", "expected an expression", ""),
    ("SELECT CASE WHEN v > 1 ^2 END FROM A", "expected THEN", ""),
    ("SELECT v = ^NOT k FROM A", "NOT binds looser", "parentheses"),
    ("SELECT CAST(v AS ^INTEGER) AS x FROM A", "unknown type INTEGER", "write INT"),
    ("SELECT CAST(v AS ^DECIMAL(99, 2)) AS x FROM A", "1 to 38 digits", ""),
    ("SELECT ^9223372036854775808 AS x FROM A", "does not fit BIGINT", ""),
    ("SELECT ^1e999 AS x FROM A", "does not fit DOUBLE", ""),
    ("SELECT ^99999999999999d AS x FROM A", "do not fit BIGINT", ""),
    ("SELECT TIMESTAMP ^'yesterday' AS x FROM A", "is not a TIMESTAMP", "2024-01-31T"),
    ("SELECT DATE ^'2024-02-30' AS x FROM A", "is not a DATE", ""),
    ("SELECT [1, ^v] AS x FROM A", "a list takes constants", ""),
    ("SELECT ^[1, 'x'] AS x FROM A", "must have one type", ""),
    ("SELECT ^@nobody AS x FROM A", "unknown parameter `@nobody`", "DECLARE"),
    ("SELECT ^nobody(v) AS x FROM A", "unknown function `nobody`", ""),
    ("SELECT ^add(v, v) AS x FROM A", "unknown function `add`", ""),
    ("SELECT ^abz(v) AS x FROM A", "unknown function `abz`", "did you mean `abs`?"),
    ("SELECT ABS(v) ^OVER (k) FROM A", "there is no OVER", "WITH TUMBLING"),
    ("SELECT ^ABS(v) FILTER (WHERE v > 1) AS x FROM A", "FILTER belongs to an aggregate", ""),
    ("SELECT ^SUM(DISTINCT v) AS x FROM A", "only COUNT takes DISTINCT", ""),
    ("SELECT ^SUM(v, v) AS x FROM A", "SUM takes 1 argument", ""),
    ("SELECT QUANTILE_DISC(v, ^1.5) AS x FROM A", "a number from 0 to 1", ""),
    ("SELECT ABS(^*) AS x FROM A", "ABS takes no *", ""),
    ("SELECT (^A.*) AS x FROM A", "`.*` stands alone", ""),
    ('SELECT ^"" FROM A', "a name is not empty", ""),
    ("SELECT ^€ FROM A", "expected an expression, found `€`", ""),
    ("SELECT v FROM A PARTITION ^k INTO 2 AS 'p'", "expected BY", ""),
    ("SELECT v FROM A PARTITION BY k INTO ^'2' AS 'p'", "a number, how many", ""),
]


@pytest.mark.parametrize(("marked", "message", "hint"), QUERIES)
def test_queries(marked: str, message: str, hint: str) -> None:
    line = f"Out = {marked};"
    text = line.replace("^", "")
    error = error_of(A + B + text)
    assert message in error.message
    assert hint in error.hint
    assert (error.line, error.column, error.source_line) == (3, line.index("^") + 1, text)


def test_a_reserved_word_after_a_comma() -> None:
    quote = '`{0}` is reserved: quote it, as in "{0}"'
    assert error_of(A + "X = SELECT k, end FROM A;").hint == quote.format("end")
    comma = "is there a comma too many before it? If it is a name: "
    assert error_of(A + "X = SELECT k, order FROM A;").hint == comma + quote.format("order")


@pytest.mark.parametrize("name", ["n", "mull", "ad", "is_nul", "no", "fild", "gte", "likes"])
def test_no_hint_at_a_name_that_nobody_can_call(name: str) -> None:
    hint = error_of(f"{A}Out = SELECT {name}(v, v) AS x FROM A;").hint
    assert not any(f"`{name}`" in hint for name in FUNCTIONS if not is_called(name))


PROGRAMS = [
    ("^", "no statements", ""),
    ("^STREM A (vs BIGINT) FROM 'a';", "expected a statement", "did you mean `STREAM`?"),
    ("^DROP A;", "expected a statement", "one of STREAM"),
    ("A = ^B;", "expected SELECT, PROCESS, REDUCE, COMBINE or APP", ""),
    ("OUTPUT ^X TO 'x';", "unknown stream `X`", ""),
    ("IMPORT ^'nothing.py';", "no Python file", "relative to"),
    ("IMPORT ^'a.txt';", "no Python file", ".py"),
    ("SET ^strateg = 'x';", "unknown setting `strateg`", "did you mean `strategy`?"),
    ("SET allow_unbounded = ^1;", "`allow_unbounded` must be a BOOLEAN", ""),
    ("SET strategy = 'replay'; SET ^strategy = 'replay';", "is set twice", ""),
    ("SET strategy = ^'sometimes';", "unknown strategy 'sometimes'", "checkpoint(10s), replay"),
    ("SET strategy = ^'replicate(1)';", "unknown strategy 'replicate(1)'", "replicate(2)"),
    ("SET strategy = ^'checkpoint(soon)';", "invalid duration 'soon'", "such as 250ms"),
    ("SET step_limit = ^'soon';", "invalid duration 'soon'", "such as 250ms"),
    ("SET step_limit = ^'30';", "invalid step limit '30'", "500ms, 30s or 5m"),
    ("SET step_limit = ^30;", "`step_limit` must be a STRING", ""),
    ("DECLARE @a BIGINT = ^'x';", "expected a BIGINT, found a STRING", ""),
    ("DECLARE @a TIMESTAMP = ^'2024-01-01';", "expected a TIMESTAMP", "TIMESTAMP '…'"),
    ("DECLARE @a DECIMAL(3, 1) = ^123.4;", "does not fit DECIMAL(3, 1)", ""),
    ("DECLARE @a BIGINT = 1; DECLARE ^@a BIGINT = 2;", "`@a` is declared twice", ""),
    ("STREAM ^A (a BIGINT) FROM 'x';", "stream `A` has no `vs`", "WITH (vs = column)"),
    ("STREAM A (time BIGINT) FROM 'x' WITH (vs = ^tim);", "unknown column `tim`", "`time`"),
    ("STREAM A (a STRING) FROM 'x' WITH (vs = ^a);", "must be BIGINT or TIMESTAMP", ""),
    ("STREAM A (a BIGINT, ^a INT) FROM 'x';", "`a` is declared twice", ""),
    ("STREAM A (a BIGINT, ^end INT) FROM 'x';", "a column's name", "`end` is reserved: quote it"),
    ("STREAM A (vs BIGINT, ^window_end INT) FROM 'x';", "cannot be called", ""),
    ("STREAM A (vs BIGINT, e TIMESTAMP) FROM 'x' WITH (ve = ^e);", "one type", ""),
    ("STREAM A (vs BIGINT, ve BIGINT) FROM 'x' WITH (lifetime = ^5);", "not both", ""),
    ("STREAM A (vs BIGINT, a BIGINT) FROM 'x' WITH (vs = ^a);", "cannot be", ""),
    ("STREAM A (vs BIGINT) FROM 'x' WITH (^delai = 5);", "unknown option", "`delay`"),
    ("STREAM A (vs BIGINT) FROM 'x' WITH (delay = ^-5);", "cannot be negative", ""),
    ("STREAM A (vs BIGINT) FROM 'x' WITH (late = ^'maybe');", "'fail', 'drop', 'adjust'", ""),
    ("STREAM A (vs BIGINT) FROM 'x' WITH (idle = 1s, ^idle = 2s);", "given twice", ""),
    ("STREAM A (vs BIGINT) FROM 'x'; STREAM ^A (vs BIGINT) FROM 'y';", "`A` is defined twice", ""),
    ("STREAM A (vs BIGINT) FROM 'x'; B = PROCESS A USING ^Op(1);", "unknown operator", "IMPORT"),
    ("STREAM A (vs BIGINT) FROM 'x'; B = PROCESS A USING Op^;", "expected `(`", ""),
    (
        "STREAM A (vs BIGINT, v INT) FROM 'x'; B = SELECT v FROM A; OUTPUT LATE OF ^B TO 'x';",
        "only a STREAM has late rows",
        "",
    ),
    *(
        (
            f"STREAM A (vs BIGINT, {name} INT) FROM 'x'; OUTPUT LATE OF ^A TO 'x';",
            f"LATE rows of A have a column `{name}` of their own",
            "file, offset, line, now say where",
        )
        for name in ("file", "offset", "line", "now")
    ),
    (
        "STREAM A (vs BIGINT) FROM 'x'; OUTPUT A TO 'o'; OUTPUT A TO ^'o';",
        "'o' is written twice",
        "",
    ),
    (
        "STREAM A (vs BIGINT, v INT) FROM 'x'; B = SELECT v FROM A ^OUTPUT B TO 'x';",
        "found `OUTPUT`",
        "`;`",
    ),
    ("STREAM A (vs BIGINT) FROM 'x'^", "expected `;`", ""),
    ("STREAM A (vs BIGINT) FROM ^'x;", "this ' is never closed", ""),
    ("/* a */ -- b\n^/* STREAM A (vs BIGINT) FROM 'x';", "comment is never closed", "*/"),
    ("^{# hidden #} SET strategy = 'x';", "expected a statement", ""),
    ("SET strategy = ^{# hidden #} 'x';", "expected an expression", ""),
    ("^{# it's hidden", "expected a statement", ""),
]


@pytest.mark.parametrize(("marked", "message", "hint"), PROGRAMS)
def test_statements(marked: str, message: str, hint: str) -> None:
    caret = marked.index("^")
    error = error_of(marked.replace("^", ""))
    assert message in error.message
    assert hint in error.hint
    before = marked[:caret].splitlines() or [""]
    at_start_of_line = marked[:caret].endswith("\n")
    line = len(before) + at_start_of_line
    assert (error.line, error.column) == (line, 1 if at_start_of_line else len(before[-1]) + 1)


def test_two_stages_of_one_name() -> None:
    one = "SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 2 AS 'p' GROUP BY k"
    error = error_of(f"{A}X = {one};\nY = SELECT k FROM ({one});")
    assert error.message == "two stages are called 'p'"
    assert (error.line, error.column) == (3, error.source_line.index("PARTITION") + 1)


def test_parameters_from_outside() -> None:
    text = A + "DECLARE @least BIGINT = 1;\nX = SELECT v FROM A WHERE v > @least;"
    error = error_of(text, params={"leest": "2"})
    assert (error.message, error.hint) == ("unknown parameter `leest`", "did you mean `least`?")
    error = error_of(text, params={"least": "two"})
    assert error.message == "--param least=two is no BIGINT"
    assert (error.line, error.column) == (2, 9)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "(" * 100 + "v" + ")" * 100,
        "-" + " -" * 10_000 + "v",
        "NOT " * 10_000 + "v",
        "f(" * 10_000,
        "[" * 10_000,
        "CASE WHEN " * 10_000,
        " + ".join(["v"] * 20_000),
        " OR ".join(["v = 1"] * 20_000),
        "v" + " BETWEEN 1 AND 2" * 200,
        "CASE " * 60 + "v" + " WHEN 1 THEN 2 WHEN 2 THEN 3 END" * 60,
        ".".join(["v"] * 10_000),
        "CAST(v AS " + "LIST(" * 10_000,
        "9" * 100_000,
        "9" * 100_000 + ".5e" + "9" * 100_000,
    ],
    ids=range(15),
)
def test_too_deep_too_long(text: str) -> None:
    error_of(f"{A}X = SELECT {text} AS x FROM A;")


def test_long_lines_and_words_are_cut_short() -> None:
    error = error_of(A + "X = SELECT k FROM A" + " " * 5000 + "WHERE v = " + "9" * 100_000 + ";")
    assert error.column > 5000
    assert len(str(error)) < 2000
    _, shown, caret, *_ = str(error).splitlines()
    assert shown.startswith("  …") and shown.endswith("9…")
    assert shown[caret.index("^")] == "9" and shown[caret.index("^") - 1] == " "


def test_nothing_that_a_terminal_would_obey_is_shown() -> None:
    error = error_of(A + "X = SELECT '\x1b[2J' \x07 FROM \x9b A;")
    assert not {"\x1b", "\x07", "\x9b"} & set(str(error))
    assert "\\u001b[2J" in str(error)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("X = SELECT '\ud800' AS s FROM A;", "U+D800 is half of a character"),
        ("OUTPUT A TO 'a\0b.csv';", "the path of OUTPUT has a NUL character"),
        ("STREAM C (vs BIGINT) FROM 'a\0b.csv';", "the path of a STREAM has a NUL character"),
        ("IMPORT 'a\0b.py';", "the file of IMPORT has a NUL character"),
        ("X = SELECT k FROM A PARTITION BY k INTO 1001 AS 'p';", "from 1 to 1000, not 1001"),
        ("X = SELECT k FROM A PARTITION BY k INTO 0 AS 'p';", "from 1 to 1000, not 0"),
    ],
)
def test_what_could_not_be_run(text: str, told: str) -> None:
    assert told in error_of(A + text).message


def test_half_a_character_in_a_parameter() -> None:
    with pytest.raises(ScriptError, match="U\\+DCFF is half of a character"):
        parse_program(f"{A}DECLARE @p STRING = 'a';", params={"p": "\udcff"})


def test_too_many_joins() -> None:
    joins = "".join(f" JOIN A AS A{i} ON A.k = A{i}.k" for i in range(101))
    error = error_of(f"{A}X = SELECT A.k AS k FROM A{joins};")
    assert error.message == "more than 100 joins in one SELECT" and error.column > 2500


def test_nested_sub_selects() -> None:
    error_of(A + "X = " + "SELECT * FROM (" * 10_000)
    deep = "SELECT * FROM (" * 10 + "SELECT * FROM A" + ")" * 10
    assert parse_program(f"{A}X = {deep};").streams


@pytest.mark.parametrize("end", ["\u2028", "\x0c", "\x0b", "\x85"])
def test_only_a_line_feed_ends_a_line(end: str) -> None:
    error = error_of(f"-- a{end}b\nSTREAM A (v BIGINT)\n  FROM 'a' WITH (vs = nothing);\r\n")
    assert (error.line, error.source_line) == (3, "  FROM 'a' WITH (vs = nothing);")
    assert error.source_line[error.column - 1 :].startswith("nothing")
