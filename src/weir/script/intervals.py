"""Reads SQL's intervals as durations: INTERVAL '5' MINUTE is `5m`.

The amount is a number or a text; it may have decimals if the result is a whole number of ticks. The
unit follows it, or is in the text, which may have several: INTERVAL '1 hour 30 minutes'. Months and
years have no fixed length and are errors.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sqlglot import Token, TokenType, exp

from weir.plan.durations import UNITS
from weir.script.cursor import TokenCursor
from weir.script.tree import DurationLiteral

_WORDS = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "d",
}
_TICKS = {**UNITS, **{word: UNITS[unit] for word, unit in _WORDS.items()}, "week": 7 * UNITS["d"]}
_CALENDAR = ("month", "quarter", "year")
_AMOUNT = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,9})?")
_PART = re.compile(r"([+-]?[0-9.]+)\s*([A-Za-z]+)(?:\s+|$)")
_HINT = (
    "expected an amount and a unit, such as INTERVAL '5' MINUTE, or 5m; the units are "
    + ", ".join(word.upper() for word in (*_WORDS, "week"))
)


def is_interval(p: TokenCursor) -> bool:
    """Tell whether an interval comes next. A column may be called INTERVAL, but no value follows
    its name."""
    kinds = (TokenType.STRING, TokenType.NUMBER, TokenType.DASH)
    return p.word == "INTERVAL" and p.following.token_type in kinds


def interval(p: TokenCursor) -> exp.Expr:
    """Parse INTERVAL, its amount and its unit, and return the duration."""
    token = p.advance()
    sign = -1 if p.take(TokenType.DASH) else 1
    if not (p.comes(TokenType.STRING) or p.comes(TokenType.NUMBER)):
        p.unexpected("the amount of INTERVAL", hint=_HINT)
    amount = p.advance()
    if amount.token_type == TokenType.STRING and not _AMOUNT.fullmatch(amount.text.strip()):
        ticks = sum(_ticks(p, amount, *part) for part in _parts(p, amount))
    else:
        unit = p.token
        if unit.token_type != TokenType.VAR:
            p.unexpected("the unit of INTERVAL", hint=_HINT)
        p.advance()
        ticks = _ticks(p, unit, amount.text.strip(), unit.text)
        if p.word == "TO":
            p.fail("INTERVAL takes one unit", hint="as in INTERVAL '1 hour 30 minutes', or 90m")
    ticks *= sign
    node = p.at(DurationLiteral(this=str(abs(ticks)), unit="us"), token)
    return p.at(exp.Neg(this=node), token) if ticks < 0 else node


def _parts(p: TokenCursor, text: Token) -> list[tuple[str, str]]:
    parts, at = [], 0
    stripped = text.text.strip()
    while part := _PART.match(stripped, at):
        parts.append((part[1], part[2]))
        at = part.end()
    if at < len(stripped) or not parts:
        p.fail(f"invalid interval '{text.text}'", text, hint=_HINT)
    return parts


def _ticks(p: TokenCursor, where: Token, amount: str, unit: str) -> int:
    word = unit.lower() if unit.lower() in UNITS else unit.lower().removesuffix("s")
    if word in _CALENDAR:
        hint = f"add it to a time with DATE_ADD(t, {amount.lstrip('+')}, '{word}')"
        p.fail(f"a {word} has no fixed length, so it is not a duration", where, hint=hint)
    if word not in _TICKS or not _AMOUNT.fullmatch(amount):
        p.fail(f"invalid interval `{amount} {unit}`", where, hint=_HINT)
    ticks = Decimal(amount) * _TICKS[word]
    if ticks != int(ticks):
        p.fail(f"{amount} {unit} is not a whole number of microseconds", where)
    return int(ticks)
