"""The parts of which type rules of built-in functions are made, and the rules that many share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import type_name
from weir.plan.expressions import Call, Expr, Literal
from weir.plan.functions.built_in import Rule
from weir.plan.functions.coercion import coerce, common_type_of, type_of, widens
from weir.plan.render import function_text

Hints: TypeAlias = Callable[[Call], tuple[str, str]]
"""Returns how arguments could be written to have one type: in a script, and in Python."""


def with_type(call: Call, args: tuple[Expr, ...], result: pa.DataType) -> Call:
    return replace(call, args=args, type=result)


def rule_error(call: Call, message: str, hint: str = "", python: str = "") -> PlanError:
    text = f"{function_text(call)}: {message}"
    return PlanError(text, position=call.position, hint=hint, python=python)


def type_names(args: tuple[Expr, ...]) -> str:
    return " and ".join(type_name(type_of(a)) for a in args)


def check_count(call: Call, least: int, most: int | None = None) -> None:
    count = len(call.args)
    if count < least or (most is not None and count > most):
        arity = f"{least}" if most == least else f"{least} to {most}" if most else f"{least}+"
        raise rule_error(call, f"takes {arity} argument(s), not {count}")


def argument_as(call: Call, index: int, target: pa.DataType, python: str = "") -> Expr:
    """Return an argument, cast to the type; `python` is the hint for Python programs."""
    arg = call.args[index]
    if not widens(type_of(arg), target):
        name = type_name(target)
        raise rule_error(
            call,
            f"argument {index + 1} must be {name}, not {type_name(type_of(arg))}",
            hint=f"CAST(… AS {name})",
            python=python or f"….cast({name!r})",
        )
    return coerce(arg, target)


def constant_at(call: Call, index: int) -> Literal:
    """Return an argument that must be a constant."""
    arg = call.args[index]
    if not isinstance(arg, Literal) or arg.value is None:
        raise rule_error(call, f"argument {index + 1} must be a constant")
    return arg


def shared_type(call: Call, hints: Hints | None = None) -> pa.DataType:
    """Return the one type that all arguments can have."""
    shared = common_type_of(type_of(a) for a in call.args)
    if shared is None:
        hint, python = hints(call) if hints else ("", "")
        raise rule_error(
            call,
            f"{type_names(call.args)} do not go together",
            hint=hint or "CAST one of them",
            python=python or "cast one of them: .cast('INT')",
        )
    return shared


def with_shared_type(
    call: Call, result: pa.DataType | None = None, hints: Hints | None = None
) -> Call:
    """Return the call with its arguments cast to one type.

    If there is no such type, `hints` provides the hints of the error."""
    shared = shared_type(call, hints)
    return with_type(call, tuple(coerce(a, shared) for a in call.args), result or shared)


# --- rules ---------------------------------------------------------------------------------


def fixed(
    *types: pa.DataType,
    result: pa.DataType,
    least: int | None = None,
    constant: tuple[int, ...] = (),
    default: object = None,
) -> Rule:
    """Make a rule for arguments of these types; from index `least` on, they are optional.

    Arguments at the indices `constant` must be literals; a missing last argument becomes the
    literal `default`, if there is one.
    """

    def rule(call: Call) -> Call:
        check_count(call, len(types) if least is None else least, len(types))
        args = tuple(argument_as(call, i, types[i]) for i in range(len(call.args)))
        for index in constant:
            if index < len(args):
                constant_at(call, index)
        if default is not None and len(args) < len(types):
            args = (*args, Literal(default, type=types[-1]))
        return with_type(call, args, result)

    return rule


def alike(
    *,
    least: int,
    most: int | None,
    result: pa.DataType | None = None,
    hints: Hints | None = None,
) -> Rule:
    """Make a rule for arguments of one type, which is also the result's unless `result` is set."""

    def rule(call: Call) -> Call:
        check_count(call, least, most)
        return with_shared_type(call, result, hints)

    return rule


def variadic(dtype: pa.DataType, least: int) -> Rule:
    """Make a rule for any number of arguments of this type, which is also the result's."""

    def rule(call: Call) -> Call:
        check_count(call, least)
        return with_type(
            call, tuple(argument_as(call, i, dtype) for i in range(len(call.args))), dtype
        )

    return rule


def one_of(*types: pa.DataType, result: pa.DataType) -> Rule:
    """Make a rule for one argument, of one of these types; NULL counts as the first."""

    def rule(call: Call) -> Call:
        check_count(call, 1, 1)
        dtype = type_of(call.args[0])
        if dtype in types:
            return with_type(call, call.args, result)
        return with_type(call, (argument_as(call, 0, types[0]),), result)

    return rule
