"""The grammar of expressions turns tokens into sqlglot's nodes by precedence climbing.

Precedence, from loose to tight: OR · AND · NOT · comparisons, IS, IN, BETWEEN, LIKE, RLIKE · `||` ·
`+ -` · `* / // %` · unary minus · `.field`. All binary operators group to the left. A call is
`exp.Anonymous` with the name as written: sqlglot's own function nodes would rename, reorder or
rewrite arguments.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from sqlglot import Token, TokenType, exp

from weir.plan.advice.other_dialects import function_hint
from weir.plan.durations import UNITS
from weir.script.cursor import TokenCursor
from weir.script.habits import over_hint
from weir.script.intervals import interval, is_interval
from weir.script.tree import DurationLiteral, TypedLiteral
from weir.script.type_names import data_type

Build: TypeAlias = type[exp.Expression]

_NOT_LEVEL, _COMPARISON_LEVEL, _CONCAT_LEVEL, _UNARY_LEVEL = 3, 4, 5, 8
_OPERATORS: dict[TokenType, tuple[int, Build]] = {
    TokenType.EQ: (_COMPARISON_LEVEL, exp.EQ),
    TokenType.NEQ: (_COMPARISON_LEVEL, exp.NEQ),
    TokenType.LT: (_COMPARISON_LEVEL, exp.LT),
    TokenType.LTE: (_COMPARISON_LEVEL, exp.LTE),
    TokenType.GT: (_COMPARISON_LEVEL, exp.GT),
    TokenType.GTE: (_COMPARISON_LEVEL, exp.GTE),
    TokenType.DPIPE: (_CONCAT_LEVEL, exp.DPipe),
    TokenType.PLUS: (6, exp.Add),
    TokenType.DASH: (6, exp.Sub),
    TokenType.STAR: (7, exp.Mul),
    TokenType.SLASH: (7, exp.Div),
    TokenType.DIV: (7, exp.IntDiv),
    TokenType.MOD: (7, exp.Mod),
}
_CONNECTORS: dict[str, tuple[int, Build]] = {"OR": (1, exp.Or), "AND": (2, exp.And)}
_PREDICATES = frozenset({"IS", "IN", "BETWEEN", "LIKE", "RLIKE", "NOT"})
_CONSTANT_WORDS = frozenset({"NULL", "TRUE", "FALSE"})
_SAME, _OTHER = "a = b OR (a IS NULL AND b IS NULL)", "a <> b OR (a IS NULL) <> (b IS NULL)"
_DURATION = re.compile(rf"([0-9]+)({'|'.join(UNITS)})")


def expression(p: TokenCursor) -> exp.Expr:
    """Parse an expression up to the first token that cannot continue it."""
    return p.nested(lambda: _climb(p, 1))


def _climb(p: TokenCursor, lowest: int) -> exp.Expr:
    left = p.grown(_prefix(p, lowest))
    while True:
        entry = _OPERATORS.get(p.token.token_type) or _CONNECTORS.get(p.word)
        if entry is not None and entry[0] >= lowest:
            level, build = entry
            operator = p.advance()
            if operator.token_type == TokenType.LTE and p.comes(TokenType.GT):
                p.fail("there is no `<=>`", operator, hint=f"write {_SAME}")
            left = p.grown(p.at(build(this=left, expression=_climb(p, level + 1)), operator))
        elif lowest <= _COMPARISON_LEVEL and p.word in _PREDICATES:
            left = p.grown(_predicate(p, left))
        else:
            return left


def _prefix(p: TokenCursor, lowest: int) -> exp.Expr:
    token = p.token
    if p.word == "NOT":
        if lowest > _NOT_LEVEL:
            p.fail(
                "NOT binds looser than what stands before it",
                hint="put it in parentheses",
            )
        p.advance()
        return p.at(exp.Not(this=p.nested(lambda: _climb(p, _NOT_LEVEL))), token)
    if p.comes(TokenType.PLUS):
        p.unexpected("an expression", hint="a value needs no + before it")
    if p.take(TokenType.DASH):
        return p.at(exp.Neg(this=p.nested(lambda: _climb(p, _UNARY_LEVEL))), token)
    return _fields(p, _primary(p))


def _predicate(p: TokenCursor, left: exp.Expr) -> exp.Expr:
    """Parse IS [NOT] NULL, and [NOT] IN, BETWEEN, LIKE, RLIKE."""
    token = p.token
    if p.take_word("IS"):
        negated = p.take_word("NOT")
        if p.word in ("TRUE", "FALSE"):
            p.fail(
                f"there is no IS {p.word}", hint="write the condition itself, or COALESCE(x, FALSE)"
            )
        if p.word == "DISTINCT":
            what, hint = ("IS NOT", _SAME) if negated else ("IS", _OTHER)
            p.fail(f"there is no {what} DISTINCT FROM", hint=f"write {hint}")
        if p.word != "NULL":
            sign = "<>" if negated else "="
            p.unexpected("NULL after IS", hint=f"other values are compared by `{sign}`")
        p.advance()
        return _negated(p, negated, p.at(exp.Is(this=left, expression=exp.Null()), token), token)
    negated = p.take_word("NOT")
    operator = p.token
    if p.take_word("IN"):
        return _negated(p, negated, p.at(_in_list(p, left), operator), token)
    if p.take_word("BETWEEN"):
        low = _climb(p, _CONCAT_LEVEL)
        p.expect_word("AND", "between the two bounds of BETWEEN")
        between = exp.Between(this=left, low=low, high=_climb(p, _CONCAT_LEVEL))
        return _negated(p, negated, p.at(between, operator), token)
    build = {"LIKE": exp.Like, "RLIKE": exp.RegexpLike}.get(p.word)
    if build is None:
        p.unexpected("IN, BETWEEN, LIKE or RLIKE after NOT")
    p.advance()
    match = p.at(build(this=left, expression=_climb(p, _CONCAT_LEVEL)), operator)
    return _negated(p, negated, match, token)


def _negated(p: TokenCursor, negated: bool, node: exp.Expr, token: Token) -> exp.Expr:
    return p.at(exp.Not(this=node), token) if negated else node


def _in_list(p: TokenCursor, left: exp.Expr) -> exp.In:
    p.expect(TokenType.L_PAREN, "`(` after IN")
    if p.word == "SELECT":
        p.fail("IN takes a list of values", hint="use LEFT SEMI JOIN for a sub-select")
    items = p.list_of(expression)
    p.expect(TokenType.R_PAREN, "`,` or `)` in the list of IN")
    return exp.In(this=left, expressions=items)


# --- primaries -----------------------------------------------------------------------------


def _primary(p: TokenCursor) -> exp.Expr:
    token = p.token
    match token.token_type:
        case TokenType.NUMBER:
            return _number(p)
        case TokenType.STRING:
            p.advance()
            return p.at(exp.Literal.string(token.text), token)
        case TokenType.L_PAREN:
            return _parenthesised(p)
        case TokenType.L_BRACKET:
            return _list(p, token)
        case TokenType.PARAMETER:
            return parameter(p)
        case TokenType.VAR:
            return _word(p)
        case TokenType.IDENTIFIER:
            return _named(p)
        case TokenType.STAR:
            p.fail("`*` stands alone in a select list, or in COUNT(*)")
    return p.unexpected("an expression")


def _number(p: TokenCursor) -> exp.Expr:
    token = p.advance()
    if p.token.text in UNITS and p.comes(TokenType.VAR):
        p.fail(
            "a duration is one word",
            token,
            hint=f"write `{token.text}{p.token.text}`, or AS {p.token.text} for a name",
        )
    return p.at(exp.Literal.number(token.text), token)


def _parenthesised(p: TokenCursor) -> exp.Expr:
    p.advance()
    if p.word == "SELECT":
        p.fail("a sub-select stands in FROM only", hint="join it instead")
    inner = expression(p)
    p.expect(TokenType.R_PAREN, "`)`")
    return inner


def _list(p: TokenCursor, start: Token) -> exp.Expr:
    p.advance()
    items = [] if p.comes(TokenType.R_BRACKET) else p.list_of(expression)
    p.expect(TokenType.R_BRACKET, "`,` or `]` in a list")
    return p.at(exp.Array(expressions=items), start)


def parameter(p: TokenCursor) -> exp.Parameter:
    """Parse `@name`."""
    token = p.expect(TokenType.PARAMETER, "`@`")
    name = p.token
    if not (p.comes(TokenType.VAR) and name.text.isidentifier()):
        p.unexpected("a parameter's name after `@`")
    p.advance()
    return p.at(exp.Parameter(this=p.at(exp.Identifier(this=name.text), name)), token)


def _word(p: TokenCursor) -> exp.Expr:
    token, word, following = p.token, p.word, p.following.token_type
    if token.text[0].isdigit():
        return _duration(p)
    if word == "CASE":
        return _case(p)
    if word in _CONSTANT_WORDS:
        p.advance()
        constant = exp.Null() if word == "NULL" else exp.Boolean(this=word == "TRUE")
        return p.at(constant, token)
    if word in ("TIMESTAMP", "DATE") and following == TokenType.STRING:
        p.advance()
        quoted = p.advance()
        text = p.at(exp.Literal.string(quoted.text), quoted)
        return p.at(TypedLiteral(this=word, expression=text), token)
    if is_interval(p):
        return interval(p)
    if word == "ARRAY" and following == TokenType.L_BRACKET:
        p.advance()
        return _list(p, token)
    return _named(p)


def _duration(p: TokenCursor) -> exp.Expr:
    token = p.advance()
    parts = _DURATION.fullmatch(token.text)
    if not parts:
        hint = f"a duration is a whole number and one of {', '.join(UNITS)}, as in `250ms`"
        if long := re.fullmatch(r"([0-9]+)(us|ms|s|m|h|d)[a-z]+", token.text.lower()):
            hint = f"write `{long[1]}{long[2]}`: {hint}"
        p.fail(f"`{token.text}` is neither a number nor a duration", token, hint=hint)
    return p.at(DurationLiteral(this=parts[1], unit=parts[2]), token)


def _case(p: TokenCursor) -> exp.Expr:
    token = p.advance()
    subject = None if p.word == "WHEN" else expression(p)
    branches = []
    while p.word == "WHEN":
        when = p.advance()
        condition = expression(p)
        p.expect_word("THEN", "after the condition of WHEN")
        branches.append(p.at(exp.If(this=condition, true=expression(p)), when))
    if not branches:
        p.unexpected("WHEN")
    default = expression(p) if p.take_word("ELSE") else None
    p.expect_word("END", "to close CASE")
    return p.at(exp.Case(this=subject, ifs=branches, default=default), token)


# --- names and calls -----------------------------------------------------------------------


def _named(p: TokenCursor) -> exp.Expr:
    name = p.name("an expression")
    if p.comes(TokenType.L_PAREN):
        return _call(p, name)
    if p.comes(TokenType.DOT) and p.following.token_type == TokenType.STAR:
        p.advance()
        star = p.at(exp.Star(), p.advance())
        return p.at(exp.Column(this=star, table=name), name)
    return p.at(exp.Column(this=name), name)


def _fields(p: TokenCursor, node: exp.Expr) -> exp.Expr:
    """Parse `node.a.b`: the fields of a struct, or the columns of a stream."""
    while p.comes(TokenType.DOT):
        dot = p.advance()
        node = p.grown(p.at(exp.Dot(this=node, expression=p.name("a name after `.`")), dot))
        if p.comes(TokenType.L_PAREN):
            p.fail("a function's name has no dots")
    return node


def call(p: TokenCursor) -> exp.Expr:
    """Parse `name(…)`, as in `USING Op(30m)`."""
    return _call(p, p.name("a name"))


def _call(p: TokenCursor, name: exp.Identifier) -> exp.Expr:
    p.expect(TokenType.L_PAREN, "`(`")
    special = None if name.quoted else _SPECIAL_CALLS.get(name.name.upper())
    node = special(p, name) if special else _plain_call(p, name)
    p.at(node, name)
    p.expect(TokenType.R_PAREN, f"`,` or `)` in the arguments of {name.name}")
    if p.word == "WITHIN" and p.next_word == "GROUP":
        p.fail("there is no WITHIN GROUP", hint=function_hint(name.name))
    if p.word == "OVER":
        p.fail("there is no OVER", hint=over_hint(name.name))
    if p.word == "FILTER" and p.following.token_type == TokenType.L_PAREN:
        return _filtered(p, node)
    return node


def _plain_call(p: TokenCursor, name: exp.Identifier) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=p.nested(lambda: _arguments(p)))


def _arguments(p: TokenCursor) -> list[exp.Expr]:
    token = p.token
    if p.word == "SELECT":
        hint = "EXISTS and IN are LEFT SEMI JOIN, NOT EXISTS is LEFT ANTI JOIN"
        p.fail("a sub-select stands in FROM only", hint=hint)
    if token.token_type == TokenType.R_PAREN:
        return []
    if p.take(TokenType.STAR):
        return [p.at(exp.Star(), token)]
    if p.take_word("DISTINCT"):
        return [p.at(exp.Distinct(expressions=p.list_of(expression)), token)]
    return p.list_of(expression)


def _filtered(p: TokenCursor, node: exp.Expr) -> exp.Expr:
    token = p.advance()
    p.expect(TokenType.L_PAREN, "`(` after FILTER")
    p.expect_word("WHERE", "in FILTER (WHERE …)")
    condition = expression(p)
    p.expect(TokenType.R_PAREN, "`)` after the condition of FILTER")
    return p.at(exp.Filter(this=node, expression=p.at(exp.Where(this=condition), token)), node)


def _cast(p: TokenCursor, name: exp.Identifier) -> exp.Expr:
    build = exp.Cast if name.name.upper() == "CAST" else exp.TryCast
    value = expression(p)
    p.expect_word("AS", f"in {name.name}(value AS type)")
    return build(this=value, to=data_type(p))


def _extract(p: TokenCursor, name: exp.Identifier) -> exp.Expr:
    if p.next_word != "FROM":
        return _plain_call(p, name)
    unit = p.advance()
    p.advance()
    literal = p.at(exp.Literal.string(unit.text), unit)
    return exp.Anonymous(this=name, expressions=[literal, expression(p)])


def _substring(p: TokenCursor, name: exp.Identifier) -> exp.Expr:
    arguments = p.nested(lambda: _arguments(p))
    if len(arguments) == 1 and p.take_word("FROM"):
        arguments.append(expression(p))
        if p.take_word("FOR"):
            arguments.append(expression(p))
    return exp.Anonymous(this=name, expressions=arguments)


_SPECIAL_CALLS = {
    "CAST": _cast,
    "TRY_CAST": _cast,
    "EXTRACT": _extract,
    "SUBSTRING": _substring,
}
