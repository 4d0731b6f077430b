"""Variants: the combinations of parameter values that a replay tries.

`--param threshold=0.1,0.2 --param k=3,5` makes four. Parameters are in the order in which the app
declares them, and the last one changes fastest. A parameter with one value has that value in all
variants. Each variant has a folder of its own, `threshold=0.1/k=3/`, as in partitioned datasets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from urllib.parse import quote

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.api.parameters import ParamValue

MOST_VARIANTS = 1000
LONGEST_FOLDER = 200
"""The most characters in the name of a variant's folder; file systems allow about 250."""
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True)
class Variant:
    """The values of all parameters, and the names of those that differ between variants."""

    params: tuple[tuple[str, ParamValue], ...]
    varied: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its name in tables: `threshold=0.1, k=3`; empty if there is only one variant."""
        return ", ".join(f"{name}={_shown(self.values[name])}" for name in self.varied)

    @property
    def folder(self) -> str:
        """The folder of its outputs inside the output folder."""
        return "/".join(_folder(name, self.values[name]) for name in self.varied)

    @property
    def values(self) -> dict[str, ParamValue]:
        return dict(self.params)


def split_values(texts: Iterable[str]) -> list[str]:
    """Return the values in texts that are separated by commas; `\\\\,` is a comma in a value.

    >>> split_values(["0.1,0.2", r"a\\,b"])
    ['0.1', '0.2', 'a,b']
    """
    return [part.replace("\\,", ",") for text in texts for part in _COMMA.split(text)]


def variants_of(app: App, params: Mapping[str, object]) -> list[Variant]:
    """Return all combinations; `params` has a value or a list of values for each parameter.

    PlanError for an unknown parameter, and for values that do not fit a parameter.
    """
    choices = {name: _several(name, value) for name, value in params.items()}
    plain = app.param_values({name: values[0] for name, values in choices.items()})
    typed = {
        name: [app.param_values({name: value})[name] for value in values]
        for name, values in choices.items()
    }
    for name, values in typed.items():
        _check_once(name, values)
        if len(values) > 1:
            _check_folders(name, values)
    varied = tuple(name for name in app.params if len(typed.get(name, ())) > 1)
    combinations = list(product(*(typed[name] for name in varied)))
    if len(combinations) > MOST_VARIANTS:
        message = f"too many variants: {len(combinations):,}, at most {MOST_VARIANTS:,}"
        raise PlanError(message, hint="pass fewer values, or run several replays")
    return [
        Variant(tuple((plain | dict(zip(varied, values, strict=True))).items()), varied)
        for values in combinations
    ]


def _several(name: str, value: object) -> Sequence[object]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values:
        raise PlanError(f"the parameter `{name}` has no value", hint="leave it out")
    return values


def _check_once(name: str, values: Sequence[ParamValue]) -> None:
    """Raise PlanError if two values are equal, because they would be one constant in a plan."""
    seen: dict[object, ParamValue] = {}
    for value in values:
        key = value if value == value else "NaN"  # NaN does not equal itself
        if key in seen and repr(seen[key]) == repr(value):
            raise PlanError(f"the parameter `{name}` has the value {value!r} twice")
        if key in seen:
            message = f"the parameter `{name}` has the values {seen[key]!r} and {value!r}"
            raise PlanError(f"{message}, which are equal", hint="give each its own replay")
        seen[key] = value


def _check_folders(name: str, values: Sequence[ParamValue]) -> None:
    """Raise PlanError if a value is too long for the name of a folder."""
    for value in values:
        if (length := len(_folder(name, value))) > LONGEST_FOLDER:
            message = f"a value of the parameter `{name}` is too long: its folder's name has "
            hint = "give shorter values, or each its own replay"
            raise PlanError(f"{message}{length:,} letters of {LONGEST_FOLDER}", hint=hint)


def _folder(name: str, value: ParamValue) -> str:
    return f"{name}={quote(_shown(value), safe=' ')}"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
