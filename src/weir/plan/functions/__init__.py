"""The built-in operators and functions of the language, one record each, and their types.

`FUNCTIONS` has them by their names in `Call.function`. To add one, write its record here, in the
module of its kind; its kernel, in the module of the same kind in `kernels/expressions/`; and its
line in `docs/reference/language.md`. `tests/unit/plan/test_function_records.py` fails if one of
these is missing.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir.plan.expressions import Call
from weir.plan.functions import hashes, lists, logic, numbers, texts, times
from weir.plan.functions.built_in import BuiltIn

_KINDS = (numbers, logic, texts, times, lists, hashes)

FUNCTIONS: Mapping[str, BuiltIn] = {f.name: f for kind in _KINDS for f in kind.FUNCTIONS}


def typed(call: Call) -> Call:
    """Return a call of a built-in with its type, and with its bound arguments cast."""
    return FUNCTIONS[call.function].rule(call)


def is_called(name: str) -> bool:
    """Tell whether scripts call a built-in function by this lower-case name."""
    return name in FUNCTIONS and FUNCTIONS[name].is_called
