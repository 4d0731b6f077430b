"""Translates functions that other SQL dialects have under other names, or in other forms.

Those that only have another name are in the records of functions (`plan/functions/`).

A function of the user's with such a name comes first: programs that had one keep their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from weir.errors import Position
from weir.events.types import NULL, STRING
from weir.plan.expressions import Call, Case, Expr, Literal
from weir.plan.functions import FUNCTIONS

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


def _if(args: Args, at: Position) -> Expr | None:
    if len(args) not in (2, 3):
        return None
    otherwise = args[2] if len(args) == 3 else Literal(None, type=NULL, position=at)
    return Case(((args[0], args[1]),), otherwise, position=at)


_ACCEPTED: Mapping[str, SqlFunction] = {
    **{name: _renamed(f.name) for f in FUNCTIONS.values() for name in f.other_names},
    "date_format": _format("letters"),
    "strftime": _format("codes"),
    **{unit: _field(unit) for unit in ("year", "quarter", "month", "week", "day")},
    **{unit: _field(unit) for unit in ("hour", "minute", "second")},
    "dayofmonth": _field("day"),
    "dayofyear": _field("doy"),
    "weekofyear": _field("week"),
    **dict.fromkeys(("if", "iif"), _if),
}
