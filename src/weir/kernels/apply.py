"""The user's own operators: PROCESS, REDUCE, COMBINE.

One instance of the user's class for each key, called event by event in merge order, its timers
in between: `on_time(t)` comes after all events with vs < t and before those at t, in order of
keys. What is emitted at time t has vs ≥ t. Python calls per row: the code is the user's.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weir.errors import OperatorFailed, SnapshotCorrupt
from weir.events.batch import OPEN, START, Batch, Int64s, empty_batch
from weir.kernels.evaluation import RowFailure
from weir.kernels.group_failures import key_text
from weir.kernels.kernel import Tables, emitted
from weir.kernels.user_calls import failure_place, guarded, typed_array
from weir.plan.nodes import Apply, schema

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
    """What the user's code can do: `emit` rows and `set_timer`s; `now` is the current time."""

    def __init__(self) -> None:
        self.now = START
        self.timers: list[int] = []
        self.rows: list[tuple[int, int, int, dict[str, object]]] = []
        self._final = START

    def begin(self, now: int, final: int) -> None:
        self.now, self._final = now, final

    def emit(self, *, vs: int | None = None, ve: int | None = None, **columns: object) -> None:
        """A row valid from `vs` (default: now) to `ve` (default: one tick)."""
        start = self.now if vs is None else vs
        end = start + 1 if ve is None else ve
        if start < self.now:
            raise ValueError(f"emit at vs = {start}, which is before the current time {self.now}")
        if start < end:
            self.rows.append((self._final, start, end, columns))

    def set_timer(self, time: int) -> None:
        """Ask for `on_time(time)`; a time that has passed is an error."""
        if time <= self.now:
            raise ValueError(f"a timer at {time}, which is not after the current time {self.now}")
        self.timers.append(time)


@dataclass(slots=True)
class _Member:
    """One key's instance, the key's values as they came, and its pending timers."""

    instance: object
    values: tuple[object, ...]
    timers: set[int] = field(default_factory=set)


class ApplyKernel:
    """See `kernel.Kernel` for the contract."""

    def __init__(self, node: Apply) -> None:
        self._call = node.call
        self._schema = schema(node)
        self._inputs = [schema(i) for i in node.inputs]
        self._keys = node.keys
        self._members: dict[Key, _Member] = {}
        self._timers: list[tuple[int, int, Key]] = []
        self._tie = itertools.count()

    @property
    def state_rows(self) -> int:
        return len(self._members) + len(self._timers)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        context = Context()
        for event in self._merged(slices):
            self._fire(event.vs, context)
            self._deliver(event, context)
        # Everything before the CTI has come, so timers at the CTI itself are due.
        self._fire(cti, context)
        return self._rows(context), cti

    def _merged(self, slices: Sequence[Batch]) -> Iterator[Event]:
        events = [_events(b, self._inputs[i].names, i) for i, b in enumerate(slices)]
        if len(events) == 1:
            yield from events[0]
            return
        depth = max(len(b.origin) for b in slices)
        origins = [_origins(b, depth) for b in slices]
        places = [(p, i) for p, of_port in enumerate(events) for i in range(len(of_port))]
        # Both inputs in one order: (vs, origin), then the first input before the second.
        places.sort(key=lambda at: (events[at[0]][at[1]].vs, origins[at[0]][at[1]], at))
        yield from (events[port][i] for port, i in places)

    def _fire(self, until: int, context: Context) -> None:
        while self._timers and self._timers[0][0] <= until:
            time = self._timers[0][0]
            due: list[Key] = []
            while self._timers and self._timers[0][0] == time:
                due.append(heapq.heappop(self._timers)[2])
            for key in sorted(due, key=_order):
                member = self._members[key]
                member.timers.discard(time)
                context.begin(time, time)
                self._run("on_time", member, (time, context), self._timer(time, member))
                self._register(key, context)

    def _timer(self, time: int, member: _Member) -> str:
        keys = key_text(dict(zip(self._keys[0], member.values, strict=True)))
        return f"the timer at {time} of {keys}" if keys else f"the timer at {time}"

    def _deliver(self, event: Event, context: Context) -> None:
        values = tuple(event.values[name] for name in self._keys[event.input])
        key = tuple(_canonical(v) for v in values)
        if key not in self._members:
            self._members[key] = _Member(self._made(event), values)
        context.begin(event.vs, event.vs + 1)
        self._run("on_event", self._members[key], (event, context), event)
        self._register(key, context)

    def _made(self, event: object) -> object:
        operator = self._call.operator
        make: Callable[..., object] = operator.implementation
        return guarded(f"{operator.name}.__init__", make, self._call.args, event)

    def _run(
        self, method: str, member: _Member, arguments: tuple[object, ...], event: object
    ) -> None:
        call = getattr(member.instance, method, None)
        if call is None:
            why = f"it has no {method}; define it, or set no timer"
            raise self._failed(event, why)
        guarded(f"{self._call.operator.name}.{method}", call, arguments, event)

    def _register(self, key: Key, context: Context) -> None:
        pending = self._members[key].timers
        for time in context.timers:
            if time not in pending:
                pending.add(time)
                heapq.heappush(self._timers, (time, next(self._tie), key))
        context.timers.clear()

    def _rows(self, context: Context) -> Batch:
        if not context.rows:
            return empty_batch(self._schema.types)
        final, vs, ve, values = zip(*context.rows, strict=True)
        for row, given in enumerate(values):
            unknown = set(given) - set(self._schema.names)
            if unknown:
                why = f"it emits {sorted(unknown)}, which it does not declare; "
                why += f"its columns are {', '.join(self._schema.names)}"
                raise self._failed(_emitted_row(context, row), why)
        columns = []
        for name, dtype in self._schema.columns:
            try:
                columns.append(typed_array([v.get(name) for v in values], dtype))
            except RowFailure as failure:
                why = f"column {name} must be {failure.why}"
                raise self._failed(_emitted_row(context, failure.row), why) from None
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
            f"${name}": pa.array([getattr(m.instance, name) for m in members], dtype)
            for name, dtype in self._call.operator.state
        }
        times = {"$time": pa.array([t for _, t in timers], pa.int64())}
        return {
            "members": pa.table({**self._key_columns(members), **state})
            if state or self._keys[0]
            else pa.table({"$count": pa.array([0] * len(members))}),
            "timers": pa.table({**self._key_columns([m for m, _ in timers]), **times}),
        }

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
                setattr(instance, name, row[f"${name}"])
            self._members[tuple(_canonical(v) for v in values)] = _Member(instance, values)
        for row in tables["timers"].to_pylist():
            key = tuple(_canonical(row[name]) for name in names)
            self._members[key].timers.add(row["$time"])
            heapq.heappush(self._timers, (row["$time"], next(self._tie), key))


def _events(batch: Batch, names: Sequence[str], port: int) -> list[Event]:
    columns = [column.to_pylist() for column in batch.columns]
    values = zip(*columns, strict=True) if columns else itertools.repeat((), len(batch))
    lifetimes = zip(batch.vs.tolist(), batch.ve.tolist(), values, strict=True)
    return [Event(vs, ve, dict(zip(names, v, strict=True)), port) for vs, ve, v in lifetimes]


def _emitted_row(context: Context, row: int) -> str:
    _, vs, ve, values = context.rows[row]
    return f"the row it emits, { ({'vs': vs, 've': ve, **values}) }"


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
