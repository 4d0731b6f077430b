"""What a built-in operator or function is: everything about it but its kernel.

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
"""Takes a call with bound arguments and gives it back with its type and with its arguments cast to
what the kernel gets, or raises a PlanError that names the function."""


class Nulls(Enum):
    """`Nulls` says what becomes of a call with arguments that are NULL."""

    MAKE_NULL = auto()
    """It is NULL; the kernel gets no constant NULL."""
    ARE_SEEN = auto()
    """The kernel decides, unless an argument has no other value (its type is NULL)."""
    ARE_TESTED = auto()
    """The kernel decides, whatever the type."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A `BuiltIn` is a built-in operator or function.

    `name` is what `Call.function` has. `signature` and `meaning` are its line in
    `docs/reference/language.md`: how a script writes it, and what it gives. `fails` tells of a
    bound call whether it can fail when its arguments do not; False is a promise. `other_names` are
    those of other SQL dialects. `unit` is the index of an argument that names a unit of time, in
    any case. `sees_equals_alike` says that it has one value for arguments that are equal, such as
    −0.0 and 0.0.
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
        """Tell whether a script calls it by its name; others are operators, or have another name
        there."""
        return self.signature.startswith(f"{self.name.upper()}(")


def never(call: Call) -> bool:
    return False


def always(call: Call) -> bool:
    return True


def unless_double(call: Call) -> bool:
    """Tell whether a number can overflow: a DOUBLE cannot."""
    return bool(call.type != DOUBLE)
