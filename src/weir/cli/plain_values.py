"""Converts simple values of a command line without Pydantic.

Typer would use Pydantic for each value. To import it and build its adapters would take a large part
of a small run's time."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from typer.core import TyperCommand


class TakesPlainValues:
    """Lets all parameters of a command, `--help` included, convert simple values without
    Pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of a command."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            # A private attribute: Typer has no public way to replace the conversion of values.
            if parameter._runtime_param is None:
                parameter._runtime_param = PlainValues(parameter)
        return parameters


class PlainCommand(TakesPlainValues, TyperCommand):
    """A command that converts simple values without Pydantic."""


class PlainValues:
    """Converts the values of one parameter. Values that are not simple or not valid are left to
    Typer, which reports what is wrong."""

    def __init__(self, parameter: Any) -> None:
        self._type = parameter.type_descriptor.annotation
        self._info = parameter.type_descriptor.parameter_info

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert a text, several texts, or a default value."""
        many = param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        if many and isinstance(value, Sequence) and not isinstance(value, str):
            (inner,) = getattr(self._type, "__args__", (None,))
            values = [self._plain(inner, each) for each in value]
            if None not in values:
                return values
        elif not many and (single := self._plain(self._type, value)) is not None:
            return single
        param._runtime_param = None
        try:
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
        finally:
            param._runtime_param = self

    def _plain(self, kind: Any, value: Any) -> Any:
        """Convert a simple value to this type; return None if Typer must do it."""
        if not isinstance(value, str):
            return value if isinstance(kind, type) and isinstance(value, kind) else None
        if kind is str:
            return value
        if kind is Path:
            return Path(value)
        if kind is int and value.isdecimal() and value.isascii() and len(value) <= 18:
            low, high, number = self._info.min, self._info.max, int(value)
            is_within = (low is None or low <= number) and (high is None or number <= high)
            return number if is_within else None
        if isinstance(kind, type) and issubclass(kind, Enum):
            return next((each for each in kind if each.value == value), None)
        return None
