"""Reserved names: words of the script language, and names that columns cannot have."""

from __future__ import annotations

from collections.abc import Iterable

from weir.errors import PlanError, Position
from weir.plan.expressions import LIFETIME_NAMES

_WORDS = """SELECT FROM WHERE GROUP HAVING WITH ORDER LIMIT UNION JOIN INNER LEFT RIGHT FULL
CROSS CLIP ASOF ON AS PARTITION CASE WHEN THEN ELSE END AND OR NOT IN IS NULL TRUE FALSE LIKE RLIKE
BETWEEN DISTINCT"""
RESERVED_WORDS = frozenset(_WORDS.split())
"""Words of the script language; they are names only if they are quoted."""
WINDOW_COLUMNS = ("window_start", "window_end")
"""Columns that windows add; inputs cannot have them."""


def check_name(name: str, position: Position | None = None) -> None:
    """Raise PlanError for a name that a payload column cannot have."""
    if name in (*LIFETIME_NAMES, *WINDOW_COLUMNS):
        raise PlanError(
            f"a payload column cannot be called `{name}`",
            position=position,
            hint="give it another name with AS",
            python="give it another name",
        )
    if name.startswith(("$", "@")):
        raise PlanError(f"`{name}`: names with `$` or `@` in front are reserved", position=position)


def check_distinct(names: Iterable[tuple[str, Position | None]]) -> None:
    """Raise PlanError if two columns have the same name."""
    seen: set[str] = set()
    for name, position in names:
        if name in seen:
            raise PlanError(
                f"two columns are called `{name}`",
                position=position,
                hint="rename one with AS",
                python=f"select columns one by one, w=col({name!r}) under another name; after a "
                "join, 'A.*' selects those of one side",
            )
        seen.add(name)
