"""PROCESS, REDUCE, COMBINE: the user's class, one instance for each key (architecture §3.10).

The events of all inputs come in one order; of two inputs' events that are equal in vs and
origin the first input's come first. Timers fire after all events before their time and before
those at it, in order of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from oracle.rows import OPEN, Key, Row, in_order, order_key, value_key
from weir.plan.operators import Apply, schema


class Event:
    """What `on_event` gets: columns by attribute or index, the lifetime, the input's number."""

    def __init__(self, row: Row, port: int) -> None:
        self.vs, self.ve = row.vs, None if row.ve == OPEN else row.ve
        self.input = port
        self._payload = row.payload

    def __getitem__(self, name: str) -> object:
        return self._payload[name]

    def __getattr__(self, name: str) -> object:
        return self._payload[name]


@dataclass(slots=True)
class Context:
    """What the user's code can do at time `now`."""

    columns: tuple[str, ...]
    now: int = 0
    rows: list[Row] = field(default_factory=list)
    timers: set[int] = field(default_factory=set)

    def emit(self, *, vs: int | None = None, ve: int | None = None, **columns: object) -> None:
        start = self.now if vs is None else vs
        end = start + 1 if ve is None else ve
        assert start >= self.now
        if start < end:
            self.rows.append(Row(start, end, {n: columns.get(n) for n in self.columns}))

    def set_timer(self, time: int) -> None:
        assert time > self.now
        self.timers.add(time)


@dataclass(slots=True)
class Member:
    instance: object
    context: Context


def applied(node: Apply, inputs: Sequence[list[Row]]) -> list[Row]:
    columns = schema(node).names
    members: dict[Key, Member] = {}
    for port, row in _in_one_order(inputs):
        _fire(members, row.vs)
        key = tuple(value_key(row.payload[n]) for n in node.keys[port])
        if key not in members:
            instance = node.call.operator.implementation(*node.call.args)
            members[key] = Member(instance, Context(columns))
        member = members[key]
        member.context.now = row.vs
        member.instance.on_event(Event(row, port), member.context)
    _fire(members, OPEN)
    return [row for member in members.values() for row in member.context.rows]


def _in_one_order(inputs: Sequence[list[Row]]) -> list[tuple[int, Row]]:
    width = max((len(r.origin) for rows in inputs for r in rows if r.origin), default=0)
    ordered = [(port, row) for port, rows in enumerate(inputs) for row in in_order(rows)]
    return sorted(ordered, key=lambda pair: order_key(_padded(pair[1], width))[:2])


def _padded(row: Row, width: int) -> Row:
    if row.origin is None:
        return row
    return replace(row, origin=(*row.origin, *[-1] * (width - len(row.origin))))


def _fire(members: dict[Key, Member], until: float) -> None:
    """All timers up to and at this time, the earliest first, those they set among them."""
    while True:
        time = min((t for m in members.values() for t in m.context.timers), default=None)
        if time is None or time > until:
            return
        for key in sorted(members):
            _fire_one(members[key], time)


def _fire_one(member: Member, time: int) -> None:
    if time in member.context.timers:
        member.context.timers.remove(time)
        member.context.now = time
        member.instance.on_time(time, member.context)
