"""The grammar of queries.

    query  := [WITH name AS ( query ) {, …}]
              select {UNION ALL select} [ORDER BY …] [LIMIT k [WITH TIES]]
    select := SELECT [DISTINCT] items FROM relation [PARTITION BY … INTO n AS 'uid'] {join}
              [WHERE …] [GROUP BY …] [HAVING …] [WITH window or lifetime]  |  ( query )

WITH belongs to its SELECT; ORDER BY and LIMIT belong to the whole UNION. An alias may come without
AS if it cannot be anything else: in `A SEMI JOIN B`, and also in `A LEFFT JOIN B`, the word after A
is not an alias.
"""

from __future__ import annotations

from sqlglot import TokenType, exp

from weir.script.cursor import TokenCursor, is_name
from weir.script.grammar_expressions import expression, parameter
from weir.script.habits import clause_hint, list_hint, relation_hint
from weir.script.source import did_you_mean
from weir.script.tree import (
    Definition,
    PartitionSyntax,
    QueryExpression,
    SelectClause,
    WithSyntax,
)

# The words that may stand before JOIN, and the kind of join they make.
_JOINS = {
    ("JOIN",): "inner",
    ("INNER", "JOIN"): "inner",
    ("LEFT", "JOIN"): "left",
    ("LEFT", "OUTER", "JOIN"): "left",
    ("RIGHT", "JOIN"): "right",
    ("RIGHT", "OUTER", "JOIN"): "right",
    ("FULL", "JOIN"): "full",
    ("FULL", "OUTER", "JOIN"): "full",
    ("LEFT", "SEMI", "JOIN"): "semi",
    ("LEFT", "ANTI", "JOIN"): "anti",
    ("LEFT", "ANTI", "SEMI", "JOIN"): "anti",
    ("CLIP", "JOIN"): "clip",
    ("ASOF", "JOIN"): "asof",
    ("LEFT", "ASOF", "JOIN"): "left_asof",
    ("CROSS", "JOIN"): "cross",
}
_JOIN_STARTS = frozenset(words[0] for words in _JOINS)
_JOIN_WORDS = frozenset(word for words in _JOINS for word in words)
_CLAUSES = (
    "FROM",
    "PARTITION",
    "JOIN",
    "WHERE",
    "GROUP",
    "HAVING",
    "WITH",
    "ORDER",
    "LIMIT",
)
_AFTER_RELATION = _JOIN_STARTS | {*_CLAUSES, "ON", "UNION"}
_CLAUSE_ORDER = "FROM, PARTITION BY, joins, WHERE, GROUP BY, HAVING, WITH, ORDER BY, LIMIT"
_STATEMENT_WORDS = frozenset({"STREAM", "IMPORT", "OUTPUT", "DECLARE", "SET"})
_OTHER_SET_OPERATIONS = frozenset({"EXCEPT", "INTERSECT", "MINUS"})


def query(p: TokenCursor) -> QueryExpression:
    return p.nested(lambda: _query(p))


def _query(p: TokenCursor) -> QueryExpression:
    start = p.token
    named = _named_queries(p) if p.word == "WITH" else []
    parts = [_operand(p)]
    while p.word == "UNION":
        p.advance()
        if p.word != "ALL":
            p.unexpected("ALL after UNION", hint="UNION ALL, then SELECT DISTINCT over it")
        p.advance()
        parts.append(_operand(p))
    if p.word in _OTHER_SET_OPERATIONS:
        p.fail(f"there is no {p.word}", hint="see LEFT SEMI JOIN and LEFT ANTI JOIN")
    order = p.list_of(_order_item) if p.take_word("ORDER", "BY") else None
    limit = _count(p, "the k of LIMIT") if p.take_word("LIMIT") else None
    ties = limit is not None and p.take_word("WITH", "TIES")
    if p.word in _CLAUSES:
        _misplaced(p)
    node = QueryExpression(expressions=parts, order=order, limit=limit, ties=ties, named=named)
    return p.at(node, start)


def _named_queries(p: TokenCursor) -> list[exp.Expr]:
    """Parse WITH name AS (query), …, before a SELECT."""
    p.advance()
    if p.word == "RECURSIVE" and p.following.token_type == TokenType.VAR:
        p.fail("there are no recursive queries", hint="REDUCE … USING Op() keeps state of its own")
    return p.list_of(_named_query)


def _named_query(p: TokenCursor) -> exp.Expr:
    name = p.name("a query's name after WITH")
    if p.comes(TokenType.L_PAREN):
        p.fail("a query's columns are named in its own select list", hint="as in SELECT x AS a")
    p.expect_word("AS", f"after WITH {name.name}")
    p.expect(TokenType.L_PAREN, f"`(` and the query after WITH {name.name} AS")
    body = query(p)
    p.expect(TokenType.R_PAREN, f"`)` after the query {name.name}")
    return p.at(Definition(this=name, expression=body), name)


def _operand(p: TokenCursor) -> exp.Expr:
    """Parse a SELECT, or a query in parentheses."""
    if p.take(TokenType.L_PAREN):
        inner = query(p)
        p.expect(TokenType.R_PAREN, "`)` after a sub-select")
        return inner
    return _select(p)


def _misplaced(p: TokenCursor) -> None:
    word = f"{p.word} BY" if p.word in ("GROUP", "ORDER", "PARTITION") else p.word
    hint = f"the order is {_CLAUSE_ORDER}"
    if p.word == "WITH" and p.next_word == "TIES":
        hint = "WITH TIES follows LIMIT k"
    p.fail(f"{word} comes too late here, or twice", hint=hint)


def _select(p: TokenCursor) -> SelectClause:
    start = p.expect_word("SELECT")
    if p.word == "TOP" and p.following.token_type == TokenType.NUMBER:
        p.fail("there is no TOP", hint=clause_hint(p.word, calls=False))
    distinct = p.take_word("DISTINCT")
    if distinct and p.word == "ON":
        p.fail(
            "there is no DISTINCT ON",
            hint="one row of each key and window: "
            "SELECT k, FIRST(v) AS v FROM A GROUP BY k WITH TUMBLING(1h)",
        )
    items = p.list_of(_item)
    if p.word != "FROM":
        hint = list_hint(p.word) or _stray_hint(p)
        p.unexpected("`,` or FROM after the select list", hint=hint)
    p.advance()
    relation = _relation(p)
    node = SelectClause(
        expressions=items,
        distinct=distinct,
        relation=relation,
        partition=_partition(p) if p.word == "PARTITION" else None,
        joins=_joins(p),
        where=expression(p) if p.take_word("WHERE") else None,
        group=p.list_of(expression) if p.take_word("GROUP", "BY") else None,
        having=expression(p) if p.take_word("HAVING") else None,
        lifetime=_with(p) if p.word == "WITH" else None,
    )
    return p.at(node, start)


def _item(p: TokenCursor) -> exp.Expr:
    """Parse `*`, `A.*`, or an expression and its alias."""
    token = p.token
    if p.take(TokenType.STAR):
        return p.at(exp.Star(), token)
    value = expression(p)
    if p.take_word("AS"):
        return p.at(exp.Alias(this=value, alias=p.name("an alias after AS")), value)
    named = is_name(p.token) or p.comes(TokenType.IDENTIFIER)
    if named and (p.following.token_type == TokenType.COMMA or p.next_word == "FROM"):
        return p.at(exp.Alias(this=value, alias=p.name("an alias")), value)
    return value


def _stray_hint(p: TokenCursor) -> str:
    """Return a hint for a name where none can stand, by what it likely means; '' for anything
    else."""
    if not (is_name(p.token) or p.comes(TokenType.IDENTIFIER)):
        return ""
    if p.following.token_type == TokenType.EQ or p.word in _STATEMENT_WORDS:
        return "does the statement before it lack its `;`?"
    if p.word in _JOIN_WORDS and p.next_word in _JOIN_WORDS:
        return f"write LEFT {p.word} JOIN"
    hint = clause_hint(p.word, calls=p.following.token_type == TokenType.L_PAREN)
    words = _JOIN_WORDS if p.next_word == "JOIN" else _CLAUSES
    return hint or did_you_mean(p.word, words) or f"an alias has AS: write `AS {p.token.text}`"


def _order_item(p: TokenCursor) -> exp.Expr:
    value = expression(p)
    descending = p.take_word("DESC")
    if not descending:
        p.take_word("ASC")
    if p.word == "NULLS":
        p.fail(
            "there is no NULLS FIRST or LAST",
            hint="NULL is before all values, so DESC has it last: leave it out, or write "
            "ORDER BY x IS NULL, x",
        )
    return p.at(exp.Ordered(this=value, desc=descending), value)


def _count(p: TokenCursor, what: str) -> exp.Expr:
    """Parse a whole number, or a parameter."""
    if p.comes(TokenType.PARAMETER):
        return parameter(p)
    token = p.expect(TokenType.NUMBER, f"a number, {what}")
    return p.at(exp.Literal.number(token.text), token)


# --- FROM ----------------------------------------------------------------------------------


def _relation(p: TokenCursor) -> exp.Expr:
    """Parse a stream's name or a query in parentheses, and its alias."""
    token = p.token
    node: exp.Expr
    if p.take(TokenType.L_PAREN):
        inner = query(p)
        p.expect(TokenType.R_PAREN, "`)` after a sub-select")
        node = exp.Subquery(this=inner, alias=_alias(p))
    else:
        _refuse_other_relations(p)
        node = exp.Table(this=p.name("a stream's name or a sub-select"), alias=_alias(p))
    if p.comes(TokenType.COMMA):
        p.fail("FROM takes one stream", hint="join others to it: JOIN … ON, or CROSS JOIN")
    return p.at(node, token)


def _refuse_other_relations(p: TokenCursor) -> None:
    declared = "declare it by STREAM Name (column TYPE, …) FROM 'path' WITH (vs = …);"
    if p.comes(TokenType.STRING):
        p.fail("FROM takes a stream, not a file", hint=declared)
    if is_name(p.token) and p.following.token_type == TokenType.L_PAREN:
        p.fail("FROM takes a stream, not a function", hint=relation_hint(p.word) or declared)


def _alias(p: TokenCursor) -> exp.Identifier | None:
    if p.take_word("AS"):
        return p.name("an alias after AS")
    if _is_alias(p):
        return p.name("an alias")
    if hint := _stray_hint(p):
        p.unexpected("a join or the next clause", hint=hint)
    return None


def _is_alias(p: TokenCursor) -> bool:
    """Tell whether the current token is an alias without AS. It is not if it is a word of a clause,
    here or in another dialect, if it is nearly a word of a join, or if the next token cannot follow
    a stream."""
    if p.comes(TokenType.IDENTIFIER):
        return True
    if not is_name(p.token) or p.word in _STATEMENT_WORDS | _JOIN_WORDS:
        return False
    if clause_hint(p.word, calls=False):
        return False
    if p.next_word == "JOIN" and did_you_mean(p.word, _JOIN_WORDS):
        return False
    ends = (TokenType.R_PAREN, TokenType.SEMICOLON)
    return p.next_word in _AFTER_RELATION or not p.following or p.following.token_type in ends


def _partition(p: TokenCursor) -> PartitionSyntax:
    token = p.advance()
    p.expect_word("BY", "after PARTITION")
    keys = p.list_of(expression)
    p.expect_word("INTO", "after the keys of PARTITION BY")
    count = _count(p, "how many partitions")
    p.expect_word("AS", "and the stage's name, as in AS 'uid'")
    uid = text(p, "the stage's name, a string")
    return p.at(PartitionSyntax(expressions=keys, count=count, uid=uid), token)


def text(p: TokenCursor, what: str) -> exp.Expr:
    """Parse a string, or a parameter."""
    if p.comes(TokenType.PARAMETER):
        return parameter(p)
    if p.comes(TokenType.VAR):
        p.unexpected(what, hint=f"it stands in single quotes: '{p.token.text}…'")
    token = p.expect(TokenType.STRING, what)
    return p.at(exp.Literal.string(token.text), token)


def _joins(p: TokenCursor) -> list[exp.Expr]:
    joins = []
    while p.word in _JOIN_STARTS:
        joins.append(_join(p))
    return joins


def _join(p: TokenCursor) -> exp.Expr:
    start = p.token
    words: tuple[str, ...] = ()
    while p.word in _JOIN_WORDS and "JOIN" not in words:
        words += (p.word,)
        p.advance()
    kind = _JOINS.get(words)
    if kind is None:
        kinds = sorted({" ".join(w) for w in _JOINS if w[0] == words[0]})
        p.fail(
            f"there is no {' '.join(words)} here",
            start,
            hint=f"write {' or '.join(kinds)}",
        )
    relation = _relation(p)
    condition = None
    if p.word == "USING":
        p.fail("a join has no USING", hint="write ON A.key == B.key")
    if kind != "cross":
        p.expect_word("ON", f"and the condition of {' '.join(words)}")
        condition = expression(p)
    elif p.word == "ON":
        p.fail("CROSS JOIN takes no ON", hint="write INNER JOIN")
    return p.at(exp.Join(this=relation, kind=kind, on=condition), start)


# --- WITH ----------------------------------------------------------------------------------


def _with(p: TokenCursor) -> WithSyntax:
    """Parse WITH NAME or WITH NAME(arguments)."""
    p.advance()
    token = p.token
    name = p.name("a window or a lifetime after WITH")
    arguments: list[exp.Expr] = []
    if p.take(TokenType.L_PAREN):
        if not p.comes(TokenType.R_PAREN):
            arguments = p.list_of(expression)
        p.expect(TokenType.R_PAREN, f"`,` or `)` in the arguments of {name.name}")
    return p.at(WithSyntax(this=name.name.upper(), expressions=arguments), token)
