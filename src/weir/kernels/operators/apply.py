"""PROCESS, REDUCE and COMBINE run the user's own operators.

There is one instance of the user's class for each key. The kernel calls it event by event in merge
order, with its timers in between: `on_time(t)` comes after all events with vs < t and before those
at t, in the order of the keys. Rows that are emitted at time t have vs ≥ t. Python is called for
every row, since the code is the user's.

Keys are looked up by a hash with a secret (`structures/keys.py`). Python's own hash of numbers and
tuples has no secret, so crafted keys could make a dictionary slow.

An emitted row is converted to its type at once, and so copied (`user_context.py`). State always has
the form that a snapshot restores (`user_instances.py`).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from weir.errors import OperatorFailed, SnapshotCorrupt
from weir.events.batch import OPEN, START, Batch, Int64s, empty_batch
from weir.events.python_lists import python_column, slices
from weir.kernels.aggregates.group_failures import key_text
from weir.kernels.expressions.evaluation import RowFailure, shown_python, shown_time
from weir.kernels.expressions.failed_events import event_at, failed_row
from weir.kernels.expressions.user_calls import extra_calls, python_values
from weir.kernels.expressions.user_values import typed_array
from weir.kernels.kernel import Tables, emitted
from weir.kernels.operators.instance_changes import MadeAttributes
from weir.kernels.operators.user_context import Context, Event
from weir.kernels.operators.user_instances import UserInstances
from weir.kernels.structures.keys import KeyIndex
from weir.plan.operators import Apply, schema


@dataclass(slots=True)
class _Member:
    """One key's instance, with its pending timers.

    `values` are the key's values as they are, `order` is what they are sorted by."""

    instance: object
    values: tuple[object, ...]
    order: tuple[object, ...]
    rest: MadeAttributes
    """The undeclared attributes of the instance when it was new."""
    timers: set[int] = field(default_factory=set)


class ApplyKernel:
    """Runs the user's own operator, with one instance per key (see `kernel.Kernel`)."""

    right_from = START

    def __init__(self, node: Apply) -> None:
        self._user = UserInstances(node.call)
        self._schema = schema(node)
        self._inputs = [schema(i) for i in node.inputs]
        self._keys = node.keys
        self._index = KeyIndex()
        self._members: dict[int, _Member] = {}  # by the number of their key
        self._timers: list[tuple[int, int, int]] = []
        self._tie = itertools.count()
        self._context = Context(self._schema.columns)
        # Keys whose nested state is checked at the end of the step, with the call that changed it.
        self._changed: dict[int, object] = {}
        self._extra = extra_calls()

    @property
    def state_rows(self) -> int:
        return len(self._members) + len(self._timers)

    def step(self, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        events = [self._events(port, batch) for port, batch in enumerate(slices)]
        try:
            for event, key in self._merged(slices, events):
                self._fire(event.vs)
                self._deliver(event, key)
            # All events before the CTI have come, so timers at the CTI itself are due.
            self._fire(cti)
            for key, after in self._changed.items():
                self._user.check_nested(self._members[key].instance, after)
        except OperatorFailed as error:
            self._name(error, slices, events)
            raise
        self._changed.clear()
        rows, self._context.rows = self._context.rows, []
        return self._batch(rows), cti

    def _events(self, port: int, batch: Batch) -> list[Event]:
        try:
            return _events(batch, self._inputs[port].names, port)
        except RowFailure as failure:  # a value that Python cannot represent
            shape = self._inputs[port]
            error = self._user.failed(event_at(batch, shape, failure.row), failure.why)
            error.row = failed_row(batch, failure.row, port)
            raise error from None

    def _name(
        self, error: OperatorFailed, slices: Sequence[Batch], events: Sequence[Sequence[Event]]
    ) -> None:
        """Set the error's event to the event as it arrived: the user's code may have changed it."""
        for port, batch in enumerate(slices):
            for row, event in enumerate(events[port]):
                if event is error.event:
                    error.row = failed_row(batch, row, port)
                    error.complete(event_at(batch, self._inputs[port], row), "")

    def _merged(
        self, slices: Sequence[Batch], events: Sequence[list[Event]]
    ) -> Iterator[tuple[Event, int]]:
        """Yield the events of all inputs in order, each with the number of its key."""
        keys = [self._numbers(port, batch) for port, batch in enumerate(slices)]
        if len(events) == 1:
            yield from zip(events[0], keys[0], strict=True)
            return
        depth = max(len(b.origin) for b in slices)
        origins = [_origins(b, depth) for b in slices]
        order = [(p, i) for p, of_port in enumerate(events) for i in range(len(of_port))]
        # One order for both inputs: (vs, origin), then the first input before the second.
        order.sort(key=lambda at: (events[at[0]][at[1]].vs, origins[at[0]][at[1]], at))
        yield from ((events[port][i], keys[port][i]) for port, i in order)

    def _numbers(self, port: int, batch: Batch) -> list[int]:
        shape = self._inputs[port]
        columns = [batch.columns[shape.index(name)] for name in self._keys[port]]
        return self._encoded(columns, len(batch))

    def _encoded(self, columns: Sequence[pa.Array], length: int) -> list[int]:
        numbers: list[int] = self._index.encode(*self._index.hashes(columns, length)).tolist()
        return numbers

    def _fire(self, until: int) -> None:
        while self._timers and self._timers[0][0] <= until:
            time = self._timers[0][0]
            due: list[int] = []
            while self._timers and self._timers[0][0] == time:
                due.append(heapq.heappop(self._timers)[2])
            for key in sorted(due, key=lambda key: self._members[key].order):
                member = self._members[key]
                member.timers.discard(time)
                self._context.begin(time, time)
                self._run("on_time", key, time, self._timer(time, member))

    def _timer(self, time: int, member: _Member) -> str:
        values = (shown_python(value) for value in member.values)
        keys = key_text(dict(zip(self._keys[0], values, strict=True)))
        at = shown_time(time, self._schema.time)
        return f"the timer at {at} of {keys}" if keys else f"the timer at {at}"

    def _deliver(self, event: Event, key: int) -> None:
        if key not in self._members:
            values = tuple(event.values[name] for name in self._keys[event.input])
            # A copy: the user's code may change lists in its event.
            self._members[key] = self._member(self._user.make(event), deepcopy(values))
        if self._extra:
            self._rehearse(event)
        self._context.begin(event.vs, event.vs + 1)
        self._run("on_event", key, event, event)

    def _member(self, instance: object, values: tuple[object, ...]) -> _Member:
        return _Member(instance, values, _order(values), self._user.rest(instance))

    def _rehearse(self, event: Event) -> None:
        """Call an instance that is then thrown away, and ignore what it does."""
        context = Context(self._schema.columns)
        context.begin(event.vs, event.vs + 1)
        scratch = deepcopy(event.values)
        again = Event(event.vs, OPEN if event.ve is None else event.ve, scratch, event.input)
        self._user.call("on_event", self._user.make(event), again, context, event)

    def _run(self, method: str, key: int, argument: object, event: object) -> None:
        member, context = self._members[key], self._context
        self._user.call(method, member.instance, argument, context, event)
        context.end()
        self._user.check_rest(member.instance, member.rest, method, event)
        self._user.settle(member.instance, event)
        if self._user.has_nested_state:
            self._changed[key] = event
        for time in context.timers:
            if time not in member.timers:
                member.timers.add(time)
                heapq.heappush(self._timers, (time, next(self._tie), key))
        context.timers.clear()

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
            except RowFailure as failure:  # only of too much data: all values have the right type
                why = f"column {name} must be {failure.why}"
                raise self._user.failed(f"the row it emits at {vs[failure.row]}", why) from None
        batch = Batch(np.array(vs, np.int64), np.array(ve, np.int64), tuple(columns))
        return emitted([(np.array(final, np.int64), batch)])

    # --- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Tables:
        members = list(self._members.values())
        timers = [(m, t) for m in members for t in sorted(m.timers)]
        state = self._user.state([member.instance for member in members])
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
            name: python_column([m.values[i] for m in members], types[i])
            for i, name in enumerate(names)
        }

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        if set(tables) != {"members", "timers"}:
            raise SnapshotCorrupt(f"a user operator's snapshot has tables {sorted(tables)}")
        names = self._keys[0]
        for key, row in self._stored(tables["members"]):
            values = tuple(row[name] for name in names)
            self._members[key] = self._member(self._user.restore(row), values)
        for key, row in self._stored(tables["timers"]):
            self._members[key].timers.add(row["$time"])
            heapq.heappush(self._timers, (row["$time"], next(self._tie), key))

    def _stored(self, table: pa.Table) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the rows of a snapshot's table, each with the number of its key."""
        columns = [table.column(name).combine_chunks() for name in self._keys[0]]
        yield from zip(self._encoded(columns, table.num_rows), _rows(table), strict=True)


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for start, end in slices(table.num_rows):
        yield from table.slice(start, end - start).to_pylist()


def _events(batch: Batch, names: Sequence[str], port: int) -> list[Event]:
    columns = [python_values(column) for column in batch.columns]
    values = zip(*columns, strict=True) if columns else itertools.repeat((), len(batch))
    lifetimes = zip(batch.vs.tolist(), batch.ve.tolist(), values, strict=True)
    return [Event(vs, ve, dict(zip(names, v, strict=True)), port) for vs, ve, v in lifetimes]


def _origins(batch: Batch, depth: int) -> list[tuple[int, ...]]:
    """Return each row's origin, so that shorter ones sort before the longer ones that they begin.

    A missing origin sorts after all."""
    fill = -1 if batch.origin else OPEN
    padding: list[Int64s] = [np.full(len(batch), fill)] * (depth - len(batch.origin))
    columns = [o.tolist() for o in (*batch.origin, *padding)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(batch)


def _order(values: Iterable[object]) -> tuple[object, ...]:
    """Return a key that sorts by value: NULL first, NaN last, strings by their bytes."""
    return tuple(_sort_key(value) for value in values)


def _sort_key(value: object) -> tuple[int, object]:
    match value:
        case None:
            return 0, 0
        case float() if math.isnan(value):
            return 2, 0
        case list():
            return 1, _order(value)
        case dict():
            return 1, _order(value.values())
        case str():
            return 1, value.encode()
    return 1, value
