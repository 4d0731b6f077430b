"""Makes the handles (states and the app) work while handlers run, but only as planned.

Contract
1. A handle does nothing by itself: `bound` sets its methods as attributes while handlers run. At
   other times they raise (`declarations.State`, `App.emit`), however code got the handle: through a
   default argument, an attribute, a closure, a container, a generator.
2. `bound` sets methods for *every* state of the app. A method that is not planned raises
   `UnplannedAccess`.
3. While handlers run, parameters are plain values wherever the handlers' code can reach one: in the
   globals of a module, in a default, a closure, an attribute, a list, a dict. A parameter inside an
   immutable object (a tuple) is refused before the run.
4. One thread at a time runs the handlers of an app: `bound` waits for its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from weir.errors import PlanError
from weir.handlers.api.declarations import bind_state
from weir.handlers.api.parameters import AppParam, param_app, param_name
from weir.handlers.reach.reachable_objects import holders
from weir.handlers.runs.running_event import running_with
from weir.plan.states import Accessors

if TYPE_CHECKING:
    from weir.handlers.api.app import App


@dataclass(frozen=True, slots=True)
class ParamPlace:
    """A place of a parameter in the user's program; `put` sets the value there."""

    param: AppParam
    put: Callable[[object], None]


@contextmanager
def bound(
    app: App,
    states: Mapping[str, Accessors],
    emit: Callable[..., None],
    params: Mapping[str, object],
    places: tuple[ParamPlace, ...],
) -> Iterator[None]:
    """Make the handles of an app work, with these methods, this `emit` and these parameters.

    `places` come from `param_places`.
    """
    with app.turn, running_with(_Parameters(params)), params_set(places, params):
        for name, state in app.states.items():
            bind_state(state, states[name])
        bind_app(app, emit)
        try:
            yield
        finally:
            bind_app(app, None)
            for state in app.states.values():
                bind_state(state, None)


@contextmanager
def params_set(places: Sequence[ParamPlace], params: Mapping[str, object]) -> Iterator[None]:
    """Put the values of parameters in the places of the parameters, for a time."""
    for place in places:
        place.put(params[param_name(place.param)])
    try:
        yield
    finally:
        for place in places:
            place.put(place.param)


def bind_app(app: App, emit: Callable[..., None] | None) -> None:
    """Set `app.emit`; with None it refuses calls again."""
    if emit is None:
        app.__dict__.pop("emit", None)
    else:
        app.__dict__["emit"] = emit


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The running event for parameters that were kept somewhere; handles are bound by name."""

    values: Mapping[str, object]

    def param(self, name: str) -> object:
        return self.values[name]

    def get(self, *args: object) -> NoReturn:
        raise AssertionError("handles are bound by name")

    merge = emit = get


# --- parameters ----------------------------------------------------------------------------------


def param_places(app: App) -> tuple[ParamPlace, ...]:
    """Return the places where the handlers' code can reach parameters of the app.

    PlanError for a place that cannot be changed.
    """
    if not app.params:
        return ()
    functions = [handler.function for handler in app.handlers.values()]
    places: list[ParamPlace] = []
    for holder in holders(*functions):
        places += _places_in(holder, app)
    return tuple(places)


def _places_in(holder: Any, app: App) -> Iterator[ParamPlace]:
    """Yield the places of parameters directly in one object."""

    def mine(value: object) -> bool:
        return type(value) is AppParam and param_app(value) is app

    match holder:
        case dict():
            for key in [key for key, value in holder.items() if mine(value)]:
                yield ParamPlace(holder[key], _setter(holder, key))
        case list():
            for n in [n for n, value in enumerate(holder) if mine(value)]:
                yield ParamPlace(holder[n], _setter(holder, n))
        case CellType():
            if mine(holder.cell_contents):
                yield ParamPlace(holder.cell_contents, partial(setattr, holder, "cell_contents"))
        case FunctionType():
            for n in [n for n, v in enumerate(holder.__defaults__ or ()) if mine(v)]:
                assert holder.__defaults__ is not None
                yield ParamPlace(holder.__defaults__[n], _default_setter(holder, n))
        case type():
            for name in [name for name, value in vars(holder).items() if mine(value)]:
                yield ParamPlace(vars(holder)[name], partial(setattr, holder, name))
        case tuple() | set() | frozenset():
            for value in filter(mine, holder):
                raise PlanError(
                    f"the parameter `{param_name(value)}` lies in a {type(holder).__name__} that "
                    "handlers use, where no run can put its value",
                    hint="use it by the name that app.param(…) was given, or put it into a list",
                )


def _setter(holder: Any, at: object) -> Callable[[object], None]:
    return partial(holder.__setitem__, at)


def _default_setter(function: FunctionType, number: int) -> Callable[[object], None]:
    def put(value: object) -> None:
        defaults = list(function.__defaults__ or ())
        defaults[number] = value
        function.__defaults__ = tuple(defaults)

    return put
