"""Translates functions that other SQL dialects have under other names.

A function of the user's with such a name comes first: programs that had one keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from weir.errors import Position
from weir.events.types import NULL, STRING
from weir.plan.expressions import Call, Case, Expr, Literal

Args: TypeAlias = tuple[Expr, ...]
SqlFunction: TypeAlias = Callable[[Args, Position], Expr | None]


def accepted(name: str, args: Args, at: Position) -> Expr | None:
    """Return the call of ours that a function of another dialect is; None if there is none."""
    accept = _ACCEPTED.get(name.lower())
    return None if accept is None else accept(args, at)


def _renamed(function: str) -> SqlFunction:
    return lambda args, at: Call(function, args, position=at)


def _field(unit: str) -> SqlFunction:
    def accept(args: Args, at: Position) -> Expr:
        return Call("extract", (Literal(unit, type=STRING, position=at), *args), position=at)

    return accept


def _format(style: str) -> SqlFunction:
    def accept(args: Args, at: Position) -> Expr:
        named = Literal(style, type=STRING, position=at)
        return Call("formatted_time", (*args, named), position=at)

    return accept


def _date_part(args: Args, at: Position) -> Expr:
    return Call("extract", args, position=at)


def _if(args: Args, at: Position) -> Expr | None:
    if len(args) not in (2, 3):
        return None
    otherwise = args[2] if len(args) == 3 else Literal(None, type=NULL, position=at)
    return Case(((args[0], args[1]),), otherwise, position=at)


_ACCEPTED: Mapping[str, SqlFunction] = {
    "mod": _renamed("truncated_mod"),
    "date_format": _format("letters"),
    "strftime": _format("codes"),
    "date_part": _date_part,
    **{unit: _field(unit) for unit in ("year", "quarter", "month", "week", "day")},
    **{unit: _field(unit) for unit in ("hour", "minute", "second")},
    "dayofmonth": _field("day"),
    "dayofyear": _field("doy"),
    "weekofyear": _field("week"),
    "ceiling": _renamed("ceil"),
    "pow": _renamed("power"),
    **dict.fromkeys(("len", "char_length", "character_length"), _renamed("length")),
    "substr": _renamed("substring"),
    "ucase": _renamed("upper"),
    "lcase": _renamed("lower"),
    **dict.fromkeys(("ifnull", "nvl"), _renamed("coalesce")),
    **dict.fromkeys(("if", "iif"), _if),
    "startswith": _renamed("starts_with"),
    "endswith": _renamed("ends_with"),
}
