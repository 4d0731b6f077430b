"""The oracle's serial loop for apps as users write them: durations, units of time, timestamps.

Handlers get what Weir's handlers get: lists and dicts of their own, which they may change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from replay_oracle.loop import App, Event, EventKind, Loop, Row, State

UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "tick": 1,
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ticks(duration: str | int | None) -> int | None:
    """Return the microseconds of `5m`."""
    if not isinstance(duration, str):
        return duration
    number = duration.rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(number) * UNITS[duration.removeprefix(number)]


class Fields(dict[str, Any]):
    """A STRUCT's value: a dict whose fields are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def thawed(value: Any) -> Any:
    """Return a copy that the handler may change."""
    if isinstance(value, list | tuple):
        return [thawed(part) for part in value]
    if isinstance(value, Mapping):
        return Fields({name: thawed(part) for name, part in value.items()})
    return value


class PlainApp(App):
    """A `PlainApp` is the stand-in for `weir.App`, with units and durations."""

    def events(self, name: str, columns: str, **options: Any) -> EventKind:  # type: ignore[override]
        kind = super().events(name, columns, **options)
        loop: PlainLoop = self._loop  # type: ignore[assignment]
        loop.units[name] = UNITS[options.get("unit") or "tick"]
        declared = [part.split() for part in columns.split(",")]
        loop.timestamps[name] = {part[0] for part in declared if part[-1] == "TIMESTAMP"}
        return kind

    def state(self, name: str, default: object = None, **options: Any) -> State:  # type: ignore[override]
        for span in ("last", "expires"):
            options[span] = ticks(options.get(span))
        return super().state(name, default, **options)


class PlainEvent(Event):
    """A `PlainEvent` has the values that a handler of Weir gets."""

    def __init__(self, kind: EventKind, row: Row, unit: int, timestamps: set[str]) -> None:
        super().__init__(kind, row)
        values = {name: thawed(value) for name, value in vars(self).items()}
        vs = values["vs"] * unit
        for name in timestamps:
            values[name] = EPOCH + timedelta(microseconds=values[name])
        self.__dict__.update(values, vs=vs, ve=vs + 1)


class PlainLoop(Loop):
    """A `PlainLoop` runs one app over rows as a log has them."""

    app_class = PlainApp

    def __init__(self, source: str, params: Mapping[str, object] | None = None) -> None:
        self.units: dict[str, int] = {}
        self.timestamps: dict[str, set[str]] = {}
        super().__init__(source, params)

    def time_of(self, kind: EventKind, row: Row) -> int:
        return super().time_of(kind, row) * self.units[kind.name]

    def event_of(self, kind: EventKind, row: Row) -> Event:
        return PlainEvent(kind, row, self.units[kind.name], self.timestamps[kind.name])

    def read(self, name: str, key: object) -> object:
        return thawed(super().read(name, key))

    def captured(self, function: Callable[[object], object], at: int) -> Callable[[object], object]:
        call = super().captured(function, at)
        return lambda old: call(thawed(old))
