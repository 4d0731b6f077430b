"""Parameters of an app: values that each run may set, as in `app.param("threshold", 0.2)`.

Handlers use a parameter as if it were its value. Analysis replaces it by the value. In handlers
that run row by row it is an object that behaves like the value of that run. Outside of handlers it
has no value, because a result computed there from the default would stay the same when a run sets
another value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, SupportsIndex

from weir.errors import PlanError
from weir.handlers.runs.running_event import current

if TYPE_CHECKING:
    from weir.handlers.api.app import App

ParamValue = bool | int | float | str

_WORDS = {"true": True, "false": False}


class AppParam:
    """Stands for a parameter's value.

    While handlers run, their code has the plain value in its place (`live_handles.py`). Elsewhere
    `.value` is the value of the run.
    """

    __slots__ = ("_weir_app", "_weir_default", "_weir_name")

    def __init__(self, app: App, name: str, default: ParamValue) -> None:
        self._weir_app, self._weir_name, self._weir_default = app, name, default

    @property
    def value(self) -> Any:
        hint = "a run sets its value: use it in a handler, or in a function that a handler calls"
        return current(f"the parameter `{self._weir_name}`", hint).param(self._weir_name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # tools look these up on any object
            raise AttributeError(name)
        return getattr(self.value, name)

    def __repr__(self) -> str:
        return f"app.param({self._weir_name!r}, {self._weir_default!r})"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __hash__(self) -> int:
        return hash(self.value)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        app = self._weir_app
        if app.imported is None:
            return object.__reduce_ex__(self, protocol)
        return _param_of, (app, self._weir_name)


def _param_of(app: App, name: str) -> AppParam:
    return app.params[name]


def param_app(param: AppParam) -> App:
    """Return the app that a parameter belongs to."""
    return param._weir_app


def param_name(param: AppParam) -> str:
    return param._weir_name


def param_default(param: AppParam) -> ParamValue:
    """Return the value that a parameter has unless a run sets another."""
    return param._weir_default


def check_default(name: str, default: object) -> ParamValue:
    """Return a parameter's default; PlanError unless it is a bool, an int, a float or a str."""
    if type(default) in (bool, int, float, str):
        assert isinstance(default, ParamValue)
        return _checked(name, default)
    raise PlanError(
        f"the default of the parameter `{name}` is {default!r}",
        hint="a parameter is a bool, an int, a float or a str",
    )


def param_value(param: AppParam, value: object) -> ParamValue:
    """Return the value that a run sets for a parameter, from a text or a value of its type.

    >>> param_value(AppParam(None, "n", 1), "12"), param_value(AppParam(None, "x", 0.5), 1)
    (12, 1.0)
    """
    default = param._weir_default
    kind = type(default)
    if type(value) is kind:
        assert isinstance(value, ParamValue)
        return _checked(param._weir_name, value)
    if kind is float and type(value) is int:
        return float(value)
    if not isinstance(value, str):
        raise _misfit(param, value)
    if kind is bool:
        if value.lower() not in _WORDS:
            raise _misfit(param, value)
        return _WORDS[value.lower()]
    try:
        return kind(value)
    except ValueError:
        raise _misfit(param, value) from None


def _checked(name: str, value: ParamValue) -> ParamValue:
    """Return a value that can be written; PlanError for a text that is not valid Unicode."""
    try:
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        message = f"the parameter `{name}` has the value {value!r}, which no text can hold"
        raise PlanError(message, hint="give it in UTF-8") from None
    return value


def _misfit(param: AppParam, value: object) -> PlanError:
    kind = {bool: "true or false", int: "an integer", float: "a number", str: "a str"}
    return PlanError(
        f"the parameter `{param._weir_name}` must be {kind[type(param._weir_default)]} "
        f"(default {param._weir_default!r}), not {value!r}"
    )


# --- operations of the value, on the parameter ----------------------------------------------


def _unary(function: Callable[[Any], object]) -> Callable[[AppParam], object]:
    return lambda param: function(param.value)


def _binary(function: Callable[[Any, Any], object]) -> Callable[[AppParam, object], object]:
    return lambda param, other: function(param.value, _plain(other))


def _swapped(function: Callable[[Any, Any], object]) -> Callable[[AppParam, object], object]:
    return lambda param, other: function(_plain(other), param.value)


def _plain(value: object) -> object:
    return value.value if isinstance(value, AppParam) else value


def without_params(value: object) -> object:
    """Return a value with each parameter in it replaced by the parameter's value."""
    kind = type(value)
    if kind is AppParam:
        assert isinstance(value, AppParam)
        return value.value
    if kind is tuple or kind is list:
        assert isinstance(value, tuple | list)
        return kind(without_params(part) for part in value)
    if kind is dict:
        assert isinstance(value, dict)
        return {without_params(k): without_params(v) for k, v in value.items()}
    return value


_UNARY: dict[str, Callable[[Any], object]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "abs": abs,
    "bool": bool,
    "int": int,
    "float": float,
    "index": operator.index,
    "round": round,
    "len": len,
    "iter": iter,
    "trunc": int,
}
_ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
)
_COMPARED = ("eq", "ne", "lt", "le", "gt", "ge", "getitem", "contains")

for _name, _function in _UNARY.items():
    setattr(AppParam, f"__{_name}__", _unary(_function))
for _name in _ARITHMETIC:
    _plain_name = _name.rstrip("_")
    setattr(AppParam, f"__{_plain_name}__", _binary(getattr(operator, _name)))
    setattr(AppParam, f"__r{_plain_name}__", _swapped(getattr(operator, _name)))
for _name in _COMPARED:
    setattr(AppParam, f"__{_name}__", _binary(getattr(operator, _name)))
