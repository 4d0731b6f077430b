"""Hints for users of other SQL dialects: what Weir has for words that it does not know.

Hints appear only for a word where nothing of ours can stand: a name that is also a keyword of
another dialect stays a name. (Functions of other dialects: `plan/advice/other_dialects.py`.)
"""

from __future__ import annotations

_NAME_IT = "a query has a name: `Out = SELECT …;`, and OUTPUT Out TO 'out.csv'; writes it"
_DECLARE_INPUT = "an input is declared by STREAM Name (column TYPE, …) FROM 'path' WITH (vs = …);"
_INSERT = "name the query and write it: `Out = SELECT …; OUTPUT Out TO 'out.csv';`"
_NO_TABLES = "streams are not changed: a program reads inputs, and writes outputs"

_STATEMENTS = {
    "SELECT": _NAME_IT,
    "WITH": f"{_NAME_IT} (`Out = WITH a AS (…) SELECT …;`)",
    "FROM": f"SELECT comes first, and {_NAME_IT}",
    "CREATE": f"{_DECLARE_INPUT} A view or a table of a query is `Name = SELECT …;`",
    "INSERT": _INSERT,
    "UPSERT": _INSERT,
    "MERGE": _INSERT,
    "COPY": "inputs are declared by STREAM … FROM 'path', outputs by OUTPUT … TO 'path'",
    "LOAD": _DECLARE_INPUT,
    "TABLE": _DECLARE_INPUT,
    "REGISTER": _DECLARE_INPUT,
    **dict.fromkeys(("UPDATE", "DELETE", "TRUNCATE", "ALTER"), _NO_TABLES),
    "EXPLAIN": "the plan is shown by `weir explain PROGRAM`",
    **dict.fromkeys(
        ("DESCRIBE", "DESC", "SHOW"), "columns and types are shown by `weir explain PROGRAM`"
    ),
    "PRINT": "`weir run` prints the streams of a program that has no OUTPUT",
    "ADD": "your own code comes with IMPORT 'file.py';",
    "USE": "there are no databases: the paths of STREAM and OUTPUT start at --directory",
    "LET": "a parameter is `DECLARE @name TYPE = value;`, a query `Name = SELECT …;`",
    "DEF": "this is a script; Python files come with IMPORT 'file.py';",
    "CLASS": "this is a script; Python files come with IMPORT 'file.py';",
}
# Words that in other dialects follow FROM, a join or a select list, and look like an alias here.
_CLAUSES = {
    "QUALIFY": "the first k of each window: ORDER BY … LIMIT k",
    "OFFSET": "there is no OFFSET: LIMIT takes the first k of each window or instant",
    "FETCH": "write LIMIT k",
    "TOP": "write ORDER BY … LIMIT k at the end of the query",
    "EMIT": "results are final when they come, there is no EMIT: leave it out",
    "LATERAL": "EXPLODE(list) in the select list makes one row for each element",
    "UNNEST": "EXPLODE(list) in the select list makes one row for each element",
    "NATURAL": "write JOIN … ON A.key = B.key",
    "SORT": "write ORDER BY … LIMIT k: a stream has no end at which it could be sorted",
    "CLUSTER": "write PARTITION BY key INTO n AS 'uid' after FROM",
    "DISTRIBUTE": "write PARTITION BY key INTO n AS 'uid' after FROM",
    "TABLESAMPLE": "there is no random function: filter by XXHASH64(key) % 100 < 10",
    "WINDOW": "a window follows WITH, as in WITH TUMBLING(5m)",
    "WITHIN": "rows meet while their lifetimes overlap: make them longer WITH DURATION(5m)",
    "FOR": "AS OF a time is ASOF JOIN: each row of the left meets the latest of the right",
    "MATCH_RECOGNIZE": "patterns are an operator of your own: REDUCE … ON key USING Op()",
    "PIVOT": "write an aggregate for each column: SUM(x) FILTER (WHERE k = 'a') AS a",
    "WATERMARK": "how late rows may come is WITH (vs = column, delay = 10s) of STREAM",
    "ILIKE": "write LOWER(x) LIKE 'pattern' with a pattern in lower case",
    "REGEXP": "write RLIKE",
    "SIMILAR": "write RLIKE and a regular expression",
    "GLOB": "write LIKE, with % for *",
    "DIV": "write //",
    "COLLATE": "texts compare by their UTF-8 bytes; LOWER(x) takes the case away",
    "AT": "times are UTC",
    "EXCEPT": "rows of one stream without those of another: LEFT ANTI JOIN",
    "MINUS": "rows of one stream without those of another: LEFT ANTI JOIN",
    "INTERSECT": "rows of one stream that another has too: LEFT SEMI JOIN",
    "USING": "write ON A.key = B.key",
}
# The windows and lifetimes that take no arguments: without WITH they would be aliases.
_BARE_FORMS = ("SNAPSHOT", "POINT", "POINT_AT_END", "STITCH")
_FORMS = ("TUMBLING", "HOPPING", "SESSION", "DURATION", "SHIFT", "EXTEND", "CHOP", "LIFETIME")
_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE")
_LIST_CHANGES = ("EXCEPT", "EXCLUDE", "REPLACE", "RENAME")
_NEIGHBOURS = ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE")


# Tokens that are wrong wherever they stand.
_STRAYS = {
    ":": "a type is CAST(x AS TYPE), a definition `Name = SELECT …;`",
    "&": "write AND; there are no operators of bits",
    "|": "write OR; there are no operators of bits",
    "!": "write NOT",
    "^": "write POWER(x, y)",
    "[": "an element of a list is ELEMENT_AT(l, n), from 1; a field of a STRUCT is s.name",
    "#": "a comment begins with --",
    "//": "a comment begins with --; `//` divides and rounds down",
    ">": "`>=` and `<=` are written so; a field of a STRUCT is s.name",
    "PRIMARY": "a column is `name TYPE`, without constraints",
    "NOT": "a column is `name TYPE`: all may be NULL",
    "WATERMARK": _CLAUSES["WATERMARK"],
    "DEFAULT": "write DECLARE @name TYPE = value;",
    "INTO": "write OUTPUT stream TO 'path';",
}


def stray_hint(word: str) -> str:
    """Return a hint for a token that is wrong where it stands; '' if there is none."""
    return _STRAYS.get(word) or _CLAUSES.get(word, "")


def statement_hint(word: str) -> str:
    """Return a hint for the first word of a statement of another dialect; '' for other words."""
    return _STATEMENTS.get(word, "")


def clause_hint(word: str, *, calls: bool) -> str:
    """Return a hint for a clause of another dialect; `calls`: whether a parenthesis follows."""
    if word in _BARE_FORMS or (calls and word in _FORMS):
        return f"write WITH {word}" + ("(…)" if calls else "")
    return _CLAUSES.get(word, "")


def list_hint(word: str) -> str:
    """Return a hint for a word that changes `*` in other dialects, such as EXCEPT; '' for
    others."""
    return "name the columns that you need" if word in _LIST_CHANGES else ""


def relation_hint(word: str) -> str:
    """Return what to write for a function in FROM; '' for functions that read files."""
    if word in ("TABLE", "TUMBLE", "HOP", "SESSION", "CUMULATE", "TUMBLING", "HOPPING"):
        return (
            "a window follows GROUP BY: SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5m)"
        )
    if word in ("UNNEST", "LATERAL", "EXPLODE", "FLATTEN"):
        return "EXPLODE(list) in the select list makes one row for each element"
    return ""


def over_hint(function: str) -> str:
    """Return what to write for a function over a window of rows."""
    if function.upper() in _RANKS:
        return "the first k of each window: WITH TUMBLING(5m) ORDER BY x DESC LIMIT k"
    if function.upper() in _NEIGHBOURS:
        return (
            "the row before: LEFT ASOF JOIN with the stream itself, shifted by WITH SHIFT(1us); or "
            "an operator of your own, REDUCE … ON key USING Op()"
        )
    return (
        "a window follows WITH, as in WITH TUMBLING(5s); over the last hour at each instant: "
        f"SELECT k, {function.upper()}(x) AS y FROM (SELECT k, x FROM A WITH DURATION(1h)) "
        "GROUP BY k"
    )
