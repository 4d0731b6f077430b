"""The user's own operators: PROCESS, REDUCE, COMBINE.

One instance of the user's class for each key, called event by event in merge order, its timers
in between: `on_time(t)` comes after all events with vs < t and before those at t, in order of
keys. What is emitted at time t has vs ≥ t. Python calls per row: the code is the user's.

What is emitted is converted to its type, and so copied, when it is emitted. State is brought into
the form in which a snapshot gives it back: numbers and texts after every call; LISTs and STRUCTs,
which may be long, must have that form at the end of a step. So a restart changes nothing.
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weir.errors import OperatorFailed, SnapshotCorrupt
from weir.events.batch import LATEST, OPEN, START, Batch, Int64s, empty_batch
from weir.events.types import BIGINT, type_name
from weir.kernels.aggregates.group_failures import key_text
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import extra_calls, failure_place, guarded, python_values
from weir.kernels.expressions.user_values import (
    Misfit,
    converter,
    is_plain,
    plain_value,
    shown,
    typed_array,
)
from weir.kernels.kernel import Tables, emitted
from weir.plan.operators import Apply, schema

Key = tuple[object, ...]
_NAN = math.nan  # one object, so that it equals itself as a key


class Event:
    """An event as the user's code sees it: `event.Amount`, `event["Amount"]`, `event.vs`,
    `event.ve` (None while open), `event.input` (0 or 1 in COMBINE)."""

    __slots__ = ("input", "values", "ve", "vs")

    def __init__(self, vs: int, ve: int, values: dict[str, object], port: int) -> None:
        self.vs = vs
        self.ve = None if ve == OPEN else ve
        self.values = values
        self.input = port

    def __getitem__(self, name: str) -> object:
        return self.values[name]

    def __getattr__(self, name: str) -> object:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"the event has no column {name}") from None

    def __reduce__(self) -> tuple[object, ...]:
        # In an `OperatorFailed` it crosses processes; unpickling by slots would ask for columns.
        return Event, (self.vs, OPEN if self.ve is None else self.ve, self.values, self.input)

    def __repr__(self) -> str:
        return repr({"vs": self.vs, "ve": self.ve, **self.values})


class Context:
    """What the user's code can do: `emit` rows and `set_timer`s; `now` is the current time.

    It is the same object in all calls, and of use only while one runs, in its own thread.
    """

    def __init__(self, columns: Sequence[tuple[str, pa.DataType]] = ()) -> None:
        self.now = START
        self.timers: list[int] = []
        self.rows: list[tuple[int, int, int, list[object]]] = []
        self._columns = [(name, converter(dtype)) for name, dtype in columns]
        self._names = frozenset(name for name, _ in columns)
        self._final = START
        self._thread: int | None = None

    def begin(self, now: int, final: int) -> None:
        self.now, self._final = now, final
        self._thread = threading.get_ident()

    def end(self) -> None:
        self._thread = None

    def emit(self, *, vs: int | None = None, ve: int | None = None, **columns: object) -> None:
        """A row valid from `vs` (default: now) to `ve` (default: one tick)."""
        self._check_running("emit")
        start = self.now if vs is None else _time(vs, "vs")
        end = start + 1 if ve is None else _time(ve, "ve")
        if start < self.now:
            raise ValueError(f"emit at vs = {start}, which is before the current time {self.now}")
        if not columns.keys() <= self._names:
            unknown = sorted(columns.keys() - self._names)
            known = ", ".join(name for name, _ in self._columns)
            raise TypeError(
                f"it emits {unknown}, which it does not declare; its columns are {known}"
            )
        row = []
        for name, convert in self._columns:
            try:
                row.append(convert(columns.get(name)))
            except Misfit as misfit:
                raise TypeError(f"column {name} must be {misfit}") from None
        if start < end:
            self.rows.append((self._final, start, end, row))

    def set_timer(self, time: int) -> None:
        """Ask for `on_time(time)`; a time that has passed is an error."""
        self._check_running("set_timer")
        time = _time(time, "a timer")
        if time <= self.now:
            raise ValueError(f"a timer at {time}, which is not after the current time {self.now}")
        self.timers.append(time)

    def _check_running(self, what: str) -> None:
        if self._thread != threading.get_ident():
            raise RuntimeError(f"{what} outside of on_event and on_time, or in another thread")


def _time(given: object, what: str) -> int:
    """A time that the user's code gives, or an open end."""
    try:
        time = plain_value(given, BIGINT)
    except Misfit as misfit:
        raise TypeError(f"{what} must be {misfit}") from None
    if not isinstance(time, int):
        raise TypeError(f"{what} must be BIGINT, not None")
    if abs(time) > LATEST and (time, what) != (OPEN, "ve"):
        raise ValueError(f"{what} = {time}, which is beyond ±2⁶² ticks")
    return time


@dataclass(slots=True)
class _Member:
    """One key's instance, the key's values as they came, and its pending timers."""

    instance: object
    values: tuple[object, ...]
    timers: set[int] = field(default_factory=set)


class ApplyKernel:
    """See `kernel.Kernel` for the contract."""

    right_from = START

    def __init__(self, node: Apply) -> None:
        self._call = node.call
        self._schema = schema(node)
        self._inputs = [schema(i) for i in node.inputs]
        self._keys = node.keys
        self._members: dict[Key, _Member] = {}
        self._timers: list[tuple[int, int, Key]] = []
        self._tie = itertools.count()
        self._context = Context(self._schema.columns)
        state = self._call.operator.state
        self._scalars = [(n, t) for n, t in state if not pa.types.is_nested(t)]
        self._nested = [(n, t) for n, t in state if pa.types.is_nested(t)]
        self._changed: dict[Key, object] = {}  # whose nested state is to be looked at, after what
        self._extra = extra_calls()

    @property
    def state_rows(self) -> int:
        return len(self._members) + len(self._timers)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        for event in self._merged(slices):
            self._fire(event.vs)
            self._deliver(event)
        # Everything before the CTI has come, so timers at the CTI itself are due.
        self._fire(cti)
        self._check_nested()
        rows, self._context.rows = self._context.rows, []
        return self._batch(rows), cti

    def _merged(self, slices: Sequence[Batch]) -> Iterator[Event]:
        try:
            events = [_events(b, self._inputs[i].names, i) for i, b in enumerate(slices)]
        except RowFailure as failure:  # a value that Python has not
            raise self._failed("an event", failure.why) from None
        if len(events) == 1:
            yield from events[0]
            return
        depth = max(len(b.origin) for b in slices)
        origins = [_origins(b, depth) for b in slices]
        places = [(p, i) for p, of_port in enumerate(events) for i in range(len(of_port))]
        # Both inputs in one order: (vs, origin), then the first input before the second.
        places.sort(key=lambda at: (events[at[0]][at[1]].vs, origins[at[0]][at[1]], at))
        yield from (events[port][i] for port, i in places)

    def _fire(self, until: int) -> None:
        while self._timers and self._timers[0][0] <= until:
            time = self._timers[0][0]
            due: list[Key] = []
            while self._timers and self._timers[0][0] == time:
                due.append(heapq.heappop(self._timers)[2])
            for key in sorted(due, key=_order):
                member = self._members[key]
                member.timers.discard(time)
                self._context.begin(time, time)
                self._run("on_time", key, time, self._timer(time, member))

    def _timer(self, time: int, member: _Member) -> str:
        keys = key_text(dict(zip(self._keys[0], member.values, strict=True)))
        return f"the timer at {time} of {keys}" if keys else f"the timer at {time}"

    def _deliver(self, event: Event) -> None:
        values = tuple(event.values[name] for name in self._keys[event.input])
        key = tuple(_canonical(v) for v in values)
        if key not in self._members:
            # A copy: the user's code may change lists in its event.
            self._members[key] = _Member(self._made(event), deepcopy(values))
        if self._extra:
            self._rehearse(event)
        self._context.begin(event.vs, event.vs + 1)
        self._run("on_event", key, event, event)

    def _rehearse(self, event: Event) -> None:
        """Call an instance that nobody knows, and forget what it does."""
        context = Context(self._schema.columns)
        context.begin(event.vs, event.vs + 1)
        scratch = deepcopy(event.values)
        again = Event(event.vs, OPEN if event.ve is None else event.ve, scratch, event.input)
        self._called("on_event", self._made(event), again, context, event)

    def _made(self, event: object) -> object:
        """A new instance. Lists that it has from its class or its arguments are its own."""
        implementation = self._call.operator.implementation
        made = guarded(
            f"{self._call.operator.name}.__init__",
            lambda: implementation(*deepcopy(self._call.args)),
            (), event, implementation,
        )  # fmt: skip
        for name, dtype in self._nested:
            if isinstance(value := getattr(made, name, None), list | dict):
                self._set(made, name, self._plain(name, value, dtype, event), event)
        return made

    def _run(self, method: str, key: Key, argument: object, event: object) -> None:
        member, context = self._members[key], self._context
        self._called(method, member.instance, argument, context, event)
        context.end()
        for name, dtype in self._scalars:
            value = self._get(member.instance, name, event)
            plain = self._plain(name, value, dtype, event)
            if plain is not value:
                self._set(member.instance, name, plain, event)
        if self._nested:
            self._changed[key] = event
        for time in context.timers:
            if time not in member.timers:
                member.timers.add(time)
                heapq.heappush(self._timers, (time, next(self._tie), key))
        context.timers.clear()

    def _called(
        self, method: str, instance: object, argument: object, context: Context, event: object
    ) -> None:
        operator = self._call.operator
        code = getattr(operator.implementation, method, None)
        if code is None:
            raise self._failed(event, f"it has no {method}; define it, or set no timer")
        name = f"{operator.name}.{method}"
        given = guarded(name, lambda: getattr(instance, method)(argument, context), (), event, code)
        if given is not None:
            raise self._failed(event, f"it must return None, not {shown(given)}; ctx.emit emits")

    # --- state -------------------------------------------------------------------------------

    def _get(self, instance: object, name: str, event: object) -> object:
        operator = self._call.operator
        code = operator.implementation.on_event  # type: ignore[attr-defined]
        return guarded(f"{operator.name}.{name}", getattr, (instance, name), event, code)

    def _set(self, instance: object, name: str, value: object, event: object) -> None:
        operator = self._call.operator
        code = operator.implementation.on_event  # type: ignore[attr-defined]
        guarded(f"{operator.name}.{name}", setattr, (instance, name, value), event, code)

    def _plain(self, name: str, value: object, dtype: pa.DataType, event: object) -> object:
        try:
            return plain_value(value, dtype)
        except Misfit as misfit:
            raise self._failed(event, f"its state `{name}` must be {misfit}") from None

    def _check_nested(self) -> None:
        for key, event in self._changed.items():
            for name, dtype in self._nested:
                value = self._get(self._members[key].instance, name, event)
                self._plain(name, value, dtype, event)
                if not is_plain([value], dtype):
                    why = f"its state `{name}` must be {type_name(dtype)} of plain values (list, "
                    why += "dict in the order of the type, int, float, …), as a restart gives "
                    why += f"them back, not {shown(value)}"
                    raise self._failed(event, why)
        self._changed.clear()

    def _batch(self, rows: Sequence[tuple[int, int, int, list[object]]]) -> Batch:
        if not rows:
            return empty_batch(self._schema.types)
        final, vs, ve, values = zip(*rows, strict=True)
        columns = []
        for (name, dtype), column in zip(
            self._schema.columns, zip(*values, strict=True), strict=True
        ):
            try:
                columns.append(typed_array(column, dtype))
            except RowFailure as failure:  # of what is too much only: all values are of the type
                why = f"column {name} must be {failure.why}"
                raise self._failed(f"the row it emits at {vs[failure.row]}", why) from None
        batch = Batch(np.array(vs, np.int64), np.array(ve, np.int64), tuple(columns))
        return emitted([(np.array(final, np.int64), batch)])

    def _failed(self, event: object, cause: str) -> OperatorFailed:
        operator = self._call.operator
        on_event = operator.implementation.on_event  # type: ignore[attr-defined]
        place = failure_place(operator.name, on_event, None)
        return OperatorFailed(
            function=place.function, file=place.file, line=place.line, event=event, cause=cause
        )

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        members = list(self._members.values())
        timers = [(m, t) for m in members for t in sorted(m.timers)]
        state = {
            f"${name}": self._state(name, dtype, members)
            for name, dtype in self._call.operator.state
        }
        times = {"$time": pa.array([t for _, t in timers], pa.int64())}
        return {
            "members": pa.table({**self._key_columns(members), **state})
            if state or self._keys[0]
            else pa.table({"$count": pa.array([0] * len(members))}),
            "timers": pa.table({**self._key_columns([m for m, _ in timers]), **times}),
        }

    def _state(self, name: str, dtype: pa.DataType, members: Sequence[_Member]) -> pa.Array:
        values = [self._get(m.instance, name, "a checkpoint") for m in members]
        try:
            return typed_array(values, dtype)
        except RowFailure as failure:
            why = f"its state `{name}` must be {failure.why}"
            raise self._failed("a checkpoint", why) from None

    def _key_columns(self, members: list[_Member]) -> dict[str, pa.Array]:
        names = self._keys[0]
        types = [self._inputs[0].type_of(name) for name in names]
        return {
            name: pa.array([m.values[i] for m in members], types[i]) for i, name in enumerate(names)
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        if set(tables) != {"members", "timers"}:
            raise SnapshotCorrupt(f"a user operator's snapshot has tables {sorted(tables)}")
        names = self._keys[0]
        for row in tables["members"].to_pylist():
            values = tuple(row[name] for name in names)
            instance = self._made("its first call after a restart")
            for name, _ in self._call.operator.state:
                self._set(instance, name, row[f"${name}"], "its first call after a restart")
            self._members[tuple(_canonical(v) for v in values)] = _Member(instance, values)
        for row in tables["timers"].to_pylist():
            key = tuple(_canonical(row[name]) for name in names)
            self._members[key].timers.add(row["$time"])
            heapq.heappush(self._timers, (row["$time"], next(self._tie), key))


def _events(batch: Batch, names: Sequence[str], port: int) -> list[Event]:
    columns = [python_values(column) for column in batch.columns]
    values = zip(*columns, strict=True) if columns else itertools.repeat((), len(batch))
    lifetimes = zip(batch.vs.tolist(), batch.ve.tolist(), values, strict=True)
    return [Event(vs, ve, dict(zip(names, v, strict=True)), port) for vs, ve, v in lifetimes]


def _origins(batch: Batch, depth: int) -> list[tuple[int, ...]]:
    """Each row's origin: a shorter one before the longer ones it begins, none after all."""
    fill = -1 if batch.origin else OPEN
    padding: list[Int64s] = [np.full(len(batch), fill)] * (depth - len(batch.origin))
    columns = [o.tolist() for o in (*batch.origin, *padding)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(batch)


def _canonical(value: object) -> object:
    """Equal keys, one object: −0 is 0, NaN is itself, lists are tuples."""
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return tuple(_canonical(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _canonical(v)) for k, v in value.items())
    return value


def _order(key: Key) -> tuple[object, ...]:
    """Keys in the order of values: NULL first, NaN last, strings by their bytes."""
    return tuple(_place(value) for value in key)


def _place(value: object) -> tuple[int, object]:
    if value is None:
        return 0, 0
    if value is _NAN:
        return 2, 0
    if isinstance(value, tuple):
        return 1, _order(value)
    return 1, value.encode() if isinstance(value, str) else value
