"""The record of a built-in operator or function: everything about it except its kernel.

The kernel is registered under the same name, beside its implementation
(`kernels/expressions/functions_*.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from weir.events.types import DOUBLE
from weir.plan.expressions import Call

Rule: TypeAlias = Callable[[Call], Call]
"""Returns a call with its type, and with its arguments cast to what the kernel gets.

It takes a call with bound arguments, or raises a PlanError that names the function."""


class Nulls(Enum):
    """What a call with NULL arguments returns, and who decides it."""

    MAKE_NULL = auto()
    """The call is NULL; the kernel never gets a constant NULL."""
    ARE_SEEN = auto()
    """The kernel decides, unless an argument can only be NULL (its type is NULL)."""
    ARE_TESTED = auto()
    """The kernel decides, whatever the types of the arguments."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in operator or function.

    `name` is the one in `Call.function`. `signature` and `meaning` are its line in
    `docs/reference/language.md`: how a script writes it, and what it returns. `fails` tells whether
    a bound call can fail when its arguments do not; False is a promise. `other_names` are those of
    other SQL dialects. `unit` is the index of an argument that names a unit of time, in upper or
    lower case. `sees_equals_alike`: it returns the same for equal arguments, such as −0.0 and 0.0.
    """

    name: str
    signature: str
    meaning: str
    rule: Rule
    fails: Callable[[Call], bool]
    nulls: Nulls = Nulls.MAKE_NULL
    other_names: tuple[str, ...] = ()
    unit: int | None = None
    sees_equals_alike: bool = False

    @property
    def is_called(self) -> bool:
        """Tell whether scripts call it by its name.

        Others are operators, or have another name in scripts."""
        return self.signature.startswith(f"{self.name.upper()}(")


def never(call: Call) -> bool:
    return False


def always(call: Call) -> bool:
    return True


def unless_double(call: Call) -> bool:
    """Tell whether the result can overflow; a DOUBLE cannot."""
    return bool(call.type != DOUBLE)
