"""Apps from texts, and two loops over events: one calls handlers, one follows their accesses.

`verdict_of` runs such an app by the engine, and compares it with the oracle's loop.
"""

from __future__ import annotations

import linecache
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import count, groupby
from typing import Any

import weir
from replay_oracle.differences import How, Verdict, judge
from replay_oracle.programs import Case
from weir.handlers.api.declared_types import frozen
from weir.handlers.runs.running_event import event_class, running_with
from weir.handlers.trees.accesses import Analysed, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.values import (
    Attribute,
    Const,
    Element,
    Field,
    Instant,
    Method,
    Old,
    Op,
    Python,
    ReadValue,
    Tree,
)
from weir.plan.states import MergeKind

PRELUDE = """
import weir, re, math, functools, collections, operator, itertools, enum
app = weir.App("a")
m = app.events("m", "a BIGINT, b BIGINT, f DOUBLE, s STRING, t STRING, xs LIST(BIGINT), "
               "ys LIST(STRING), ok BOOLEAN, ts BIGINT", vs="ts")
n = app.events("n", "a BIGINT, c BIGINT, ts BIGINT", vs="ts")
seen = app.state("seen", default=False)
sums = app.state("sums", default=0)
total = app.state("total", default=0.0)
many = app.state("many", default=(), type="LIST(BIGINT)")
limit = app.param("limit", 3)
word = app.param("word", "ab")
"""
_numbers = count()


def app_of(text: str) -> weir.App:
    """Run a text behind the prelude, as a file would be."""
    source = f"{PRELUDE.strip()}\n{text.strip()}\n"
    name = f"<handlers {next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "handlers_of_a_test"}
    exec(compile(source, name, "exec"), names)
    found = names["app"]
    assert isinstance(found, weir.App)
    return found


def handler_of(body: str, *, before: str = "") -> weir.App:
    """Make an app with one handler `h` on `m`, which has this body."""
    return app_of(_handler_text(body, before))


def _handler_text(body: str, before: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    return f"{before.strip()}\n@app.on(m)\ndef h(e):\n{lines}"


def events_of_m(count: int) -> list[dict[str, object]]:
    """Draw events of the type `m`."""
    draw = random.Random(7)
    return [
        {
            "a": draw.randint(-2, 3),
            "b": draw.randint(0, 3),
            "f": draw.choice([0.5, -1.0, 2.0]),
            "s": draw.choice(["ab", "x", "b@c", " d"]),
            "t": draw.choice(["", "abc", "1"]),
            "xs": [draw.randint(0, 3) for _ in range(draw.randint(0, 3))],
            "ys": [draw.choice("abc") for _ in range(draw.randint(0, 3))],
            "ok": draw.choice([True, False]),
            "ts": at,
        }
        for at in range(count)
    ]


def verdict_of(body: str, *, before: str = "", serial: bool = False) -> Verdict:
    """Run the app of `handler_of` by the engine, and compare it with the oracle's loop."""
    return judge(case_of(body, before=before, serial=serial), How())


def case_of(body: str, *, before: str = "", serial: bool = False) -> Case:
    """Make the app of `handler_of` and its events a case of the oracle."""
    source = f"{PRELUDE.strip()}\n{_handler_text(body, before)}\n"
    source += "app.serial(h)\n" if serial else ""
    return Case(0, source, {"m": [events_of_m(40)], "n": [[]]}, {})


Event = Mapping[str, object]
Cells = dict[tuple[str, tuple[object, ...]], object]


class SerialLoop:
    """Calls the handlers as they are; cells are a dict."""

    def __init__(self, app: weir.App, params: Mapping[str, object] | None = None) -> None:
        self.app, self.cells, self.emitted = app, {}, []
        self._params = app.param_values(params)
        self.cells: Cells = {}
        self.emitted: list[object] = []

    def run(self, handler: str, event: str, values: Event) -> None:
        columns = [n for n, _ in self.app.event_types[event].columns]
        row = (values["ts"], values["ts"] + 1, *(values[c] for c in columns))
        with running_with(self):
            self.app.handlers[handler].function(event_class(event, columns)(row))

    def get(self, state: str, key: tuple[object, ...]) -> object:
        return self.cells.get((state, key), self.app.states[state].default)

    def merge(
        self,
        state: str,
        key: tuple[object, ...],
        kind: MergeKind,
        args: tuple[object, ...],
        function: Callable[..., object] | None,
    ) -> None:
        old = self.get(state, key)
        new = MERGED[kind](old, *args) if function is None else function(old)
        self.cells[state, key] = frozen(new)

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        self.emitted.append((name, frozen(dict(fields))))

    def param(self, name: str) -> object:
        return self._params[name]


MERGED: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "set": lambda old, x: x,
    "max": max,
    "min": min,
    "append": lambda old, x: (*old, x),
    "add_to_set": lambda old, x: old if x in old else (*old, x),
    "top_k": lambda old, x, k: tuple(sorted((*old, x), reverse=True)[:k]),
}


class AccessLoop(SerialLoop):
    """Follows the accesses that analysis found."""

    def follow(self, analysed: Analysed, values: Event) -> None:
        answers: dict[int, object] = {}
        for block, accesses in groupby(analysed.accesses, key=lambda a: a.block):
            group = list(accesses)
            if block is None:
                for access in group:
                    self._one(access, Evaluated(values, answers))
            else:
                here = Evaluated(values, answers)
                outer = group[0].over
                assert outer is not None
                for element in self._elements(group, here, outer):
                    for access in group:
                        self._one(access, Evaluated(values, answers, {block: element}))

    def _elements(self, group: Sequence[Any], here: Evaluated, over: Tree) -> list[object]:
        # The loop's own guard is the part of the guards that mentions no element.
        guards = [here.outer_guard(a.guard) for a in group]
        return list(here.of(over)) if any(guards) else []

    def _one(self, access: GetAccess | MergeAccess | EmitAccess, here: Evaluated) -> None:
        if access.guard is not None and not here.of(access.guard):
            return
        match access:
            case GetAccess():
                key = tuple(here.of(k) for k in access.key)
                here.answers[access.order] = self.get(access.state, key)
            case MergeAccess():
                key = tuple(here.of(k) for k in access.key)
                args = tuple(here.of(a) for a in access.args)
                new = access.new
                function = None if new is None else lambda old: here.with_old(old).of(new)
                self.merge(access.state, key, access.kind, args, function)
            case EmitAccess():
                self.emit(access.name, {n: here.of(v) for n, v in access.fields})


_NONE = object()


class Evaluated:
    """Evaluates trees, as CPython would the source."""

    def __init__(
        self,
        values: Event,
        answers: dict[int, object],
        elements: Mapping[int, object] | None = None,
        old: object = _NONE,
    ) -> None:
        self.values, self.answers, self.elements = values, answers, elements or {}
        self.old = old
        self._known: dict[int, Any] = {}

    def with_old(self, old: object) -> Evaluated:
        return Evaluated(self.values, self.answers, self.elements, old)

    def outer_guard(self, guard: Tree | None) -> bool:
        if guard is None:
            return True
        parts = guard.args if isinstance(guard, Op) and guard.name == "and" else (guard,)
        try:
            return all(self.of(part) for part in parts)
        except KeyError:  # it mentions the element
            return True

    def of(self, tree: Tree) -> Any:
        if id(tree) not in self._known:
            self._known[id(tree)] = self._of(tree)
        return self._known[id(tree)]

    def _of(self, tree: Tree) -> Any:
        match tree:
            case Const(value=value):
                return value
            case Field(name=name):
                return self.values[name]
            case Instant(name=name):
                return self.values["ts"] + (name == "ve")
            case ReadValue(order=order):
                return self.answers[order]
            case Element(block=block):
                return self.elements[block]
            case Old():
                assert self.old is not _NONE
                return self.old
            case Attribute(of=of, name=name):
                return getattr(self.of(of), name)
            case Method(of=of, name=name, args=args, keywords=keywords):
                return getattr(self.of(of), name)(*map(self.of, args), **self._named(keywords))
            case Python(function=function, args=args, keywords=keywords):
                return function(*map(self.of, args), **self._named(keywords))
            case Op():
                return self._operation(tree)
        raise AssertionError(tree)

    def _named(self, keywords: Sequence[tuple[str, Tree]]) -> dict[str, Any]:
        return {name: self.of(value) for name, value in keywords}

    def _operation(self, tree: Op) -> Any:
        name, args = tree.name, tree.args
        if name in ("and", "or"):
            for arg in args:
                found = self.of(arg)
                if bool(found) != (name == "and"):
                    return found
            return found
        if name == "if":
            return self.of(args[1] if self.of(args[0]) else args[2])
        values = [self.of(a) for a in args]
        return _OPERATIONS[name](*values)


_CONVERTED: dict[str, Callable[[Any], Any]] = {"": lambda v: v, "r": repr, "s": str, "a": ascii}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "not": operator.not_,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is": operator.is_,
    "isnot": operator.is_not,
    "in": lambda a, b: a in b,
    "notin": lambda a, b: a not in b,
    "tuple": lambda *a: tuple(a),
    "list": lambda *a: list(a),
    "set": lambda *a: set(a),
    "dict": lambda *a: dict(zip(a[::2], a[1::2], strict=True)),
    "item": operator.getitem,
    "slice": lambda a, *ends: a[slice(*ends)],
    "join": lambda *a: "".join(a),
    "format": lambda a, how, form: format(_CONVERTED[how](a), form),
    "checked": lambda a: True,
}
