"""Handlers of a serial group run as they are, row by row, over all cells of their states.

Contract
1. A group's code gets the rows of all event types that its handlers are for, with all columns; and
   the merges of other handlers into the states that it touches, as steps.
2. What handlers emit, and what they merge into states that others read, are effects: a list for
   each handler, in the order in which it happened.
3. An effect of a merge has the key and the value after it: others set that. Where that says too
   little it has the merge itself: but for functions, into a DOUBLE that others, or a later run,
   merge into (a sum is more than its rounded value); all merges into windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weir.errors import PlanError
from weir.handlers.app import App
from weir.handlers.parameters import AppParam
from weir.handlers.row_code import RingPort
from weir.handlers.running import event_class, running_with
from weir.plan.states import MERGE_TRAITS, Cells, MergeKind, RowFunction

EffectForm: TypeAlias = Literal["set", "sum", "window"]
USE_VALUES = f"use {', '.join(t.kind for t in MERGE_TRAITS.values() if t.is_value)} there"
"""The way out where a window's merges must be told to others."""


@dataclass(frozen=True, slots=True)
class EmitEffect:
    """An `EmitEffect` has the rows that a handler emits under a name."""

    handler: str
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeEffect:
    """A `MergeEffect` has a handler's merges into a state; `form` says what of them, and `kinds`
    which there are where they are told themselves."""

    handler: str
    state: str
    form: EffectForm
    kinds: tuple[MergeKind, ...]
    of_list: bool


@dataclass(frozen=True, slots=True)
class SerialPort:
    """A `SerialPort` has the handlers for the events of one type, in order.

    `reads` and `writes` are the states that analysis found in each, which the order of handlers
    follows from.
    """

    event: str
    columns: tuple[str, ...]
    handlers: tuple[str, ...]
    reads: tuple[frozenset[str], ...] = field(compare=False)
    writes: tuple[frozenset[str], ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class SerialCode:
    """A `SerialCode` runs a serial group; called, it makes the function (`RowCode.make`).

    The effects are those of port 0.
    """

    app: App
    params: tuple[tuple[str, object], ...]
    states: tuple[str, ...]
    ports: tuple[SerialPort | RingPort, ...]
    effects: tuple[EmitEffect | MergeEffect, ...]

    def __call__(self) -> RowFunction:
        context = _GroupContext(self)
        runs = [
            _port_run(self.app, port, context, reader=number == 0)
            if isinstance(port, SerialPort)
            else port.make()
            for number, port in enumerate(self.ports)
        ]

        def run(
            port: int, vs: int, ve: int | None, values: tuple[object, ...], cells: Cells
        ) -> Sequence[object]:
            return runs[port](vs, ve, values, cells)

        return run


PortRun: TypeAlias = Callable[["int", "int | None", "tuple[object, ...]", Cells], Sequence[object]]


def _port_run(app: App, port: SerialPort, context: _GroupContext, *, reader: bool) -> PortRun:
    made = event_class(port.event, port.columns)
    handlers = [
        (name, app.handlers[name].function, reads, writes)
        for name, reads, writes in zip(port.handlers, port.reads, port.writes, strict=True)
    ]

    def run(vs: int, ve: int | None, values: tuple[object, ...], cells: Cells) -> Sequence[object]:
        event = made((vs, ve, *values))
        context.begin(cells, reader)
        with running_with(context):
            for name, function, reads, writes in handlers:
                context.handler, context.reads, context.writes = name, reads, writes
                function(event)
        return context.effects

    return run


class _GroupContext:
    """The `_GroupContext` is what surrounds an event: cells, effects, parameters."""

    def __init__(self, code: SerialCode) -> None:
        self.handler = ""
        self.reads: frozenset[str] = frozenset()
        self.writes: frozenset[str] = frozenset()
        self._reader = True
        self.effects: list[object] = []
        self._cells: Cells | None = None
        self._numbers = {name: n for n, name in enumerate(code.states)}
        self._params = dict(code.params)
        self._emits: dict[tuple[str, str], tuple[int, EmitEffect]] = {}
        self._merges: dict[tuple[str, str], tuple[int, MergeEffect]] = {}
        for number, effect in enumerate(code.effects):
            if isinstance(effect, EmitEffect):
                self._emits[effect.handler, effect.name] = (number, effect)
            else:
                self._merges[effect.handler, effect.state] = (number, effect)
        self._lists: list[list[dict[str, object]]] = [[] for _ in code.effects]

    def begin(self, cells: Cells, reader: bool) -> None:
        """Begin an event; effects are those of the reader's."""
        self._cells, self._reader = cells, reader
        self._lists = [[] for _ in self._lists]
        self.effects = list(self._lists)

    def param(self, name: str) -> object:
        return self._params[name]

    def get(self, state: str, key: tuple[object, ...]) -> object:
        assert self._cells is not None
        return self._cells.get(self._number(state, self.reads, "reads"), plain_values(key))

    def merge(
        self, state: str, key: tuple[object, ...], kind: MergeKind, args: tuple[object, ...],
        function: Callable[..., object] | None,
    ) -> None:  # fmt: skip
        assert self._cells is not None
        number = self._number(state, self.writes, "writes")
        key, args = plain_values(key), plain_values(args)
        self._cells.merge(number, key, kind, args, function)
        found = self._merges.get((self.handler, state))
        if found is not None and self._reader:
            place, effect = found
            self._lists[place].append(self._merged(effect, number, key, kind, args))

    def _merged(
        self, effect: MergeEffect, number: int, key: tuple[object, ...], kind: MergeKind,
        args: tuple[object, ...],
    ) -> dict[str, object]:  # fmt: skip
        assert self._cells is not None
        row: dict[str, object] = {f"key{i}": part for i, part in enumerate(key)}
        if effect.form == "set":
            return {**row, "value": self._cells.get(number, key)}
        if effect.form == "sum" and kind == "call":
            return {**row, "kind": "set", "value": self._cells.get(number, key)}
        what = "a function" if kind == "call" else kind
        if not MERGE_TRAITS[kind].is_value:
            raise PlanError(
                f"{self.handler} merges into the window of `{effect.state}` with {what}, and "
                "handlers outside of its serial group read that",
                hint=f"{USE_VALUES}, or put them into the group",
            )
        if kind not in effect.kinds:
            told = f"{self.handler} merges into `{effect.state}` with {what}"
            raise PlanError(f"{told}, which analysis did not find")
        if not effect.of_list:
            return {**row, "kind": kind, "value": args[0]}
        of_elements = MERGE_TRAITS[kind].of_elements
        value, element = (None, args[0]) if of_elements else (args[0], None)
        return {**row, "kind": kind, "value": value, "element": element}

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        if not self._reader:
            return
        found = self._emits.get((self.handler, name))
        if found is None:
            raise PlanError(f"{self.handler} emits `{name}`, which analysis did not find")
        place, effect = found
        for column in fields:
            if column not in effect.columns:
                known = ", ".join(effect.columns)
                raise PlanError(f"`{name}` has no column `{column}`", hint=f"it has {known}")
        for column in effect.columns:
            if column not in fields:
                hint = f"write {column}=None where there is none"
                raise PlanError(f"this emit of `{name}` has no `{column}`", hint=hint)
        values = plain_values(tuple(fields[column] for column in effect.columns))
        self._lists[place].append(dict(zip(effect.columns, values, strict=True)))

    def _number(self, state: str, found: frozenset[str], what: str) -> int:
        if state not in found:
            raise PlanError(
                f"{self.handler} {what} `{state}` in a way that the order of handlers does not "
                "count with",
                hint="call it by its name there, or hand it to the function that uses it",
            )
        return self._numbers[state]


def plain_values(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return the values with those of parameters in place of the parameters."""
    return tuple(v.value if isinstance(v, AppParam) else v for v in values)
