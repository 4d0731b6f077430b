"""Random apps, as source text, that are valid by the rules of what an app may do.

A state's content may depend on states of lower rank only (see `expressions.py`), but for those of
the *ring*: their accesses all have one key, and may depend on each other. `draw_case` gives an
app with its logs and parameters; everything follows from the seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from replay_oracle.expressions import (
    ALWAYS,
    COLUMNS,
    SQL,
    Drawn,
    Expressions,
    HelperShape,
    Scope,
    StateShape,
)
from replay_oracle.logs import Rows, draw_logs
from replay_oracle.merges import draw_merge

MOST_ROWS = 24

_DEFAULTS = {
    "int": ("0", "0", "1", "-2", "7"),
    "float": ("0.0", "0.0", "0.1", "1.5"),
    "str": ('""', '"-"'),
    "bool": ("False", "False", "True"),
    "oint": ("None",),
    "ostr": ("None",),
    "ints": ("()", "(4,)"),
    "strs": ("()",),
    "struct": ('{"n": 1, "t": "o"}',),
}
_STATE_TYPES = (
    "int",
    "int",
    "int",
    "float",
    "float",
    "str",
    "bool",
    "oint",
    "ostr",
    "ints",
    "strs",
)
_KEYS = (("str",), ("str",), ("int",), ("int",), ("str", "int"), ("int", "int"), ("str", "bool"))
_RING_KEYS = {"e.k": ("str",), "e.u": ("int",), "(e.k, e.u)": ("str", "int"), "e.n % 3": ("int",)}
_EMITTED = ("int", "int", "float", "str", "bool", "oint", "ostr", "ints")

_HELPERS = {
    HelperShape("clip", ("int", "int"), "int"): """
def clip(n, most=9):
    if n > most:
        return most
    return max(n, -most)
""",
    HelperShape("label", ("int",), "str"): """
def label(n):
    if n > 3:
        return "many"
    elif n < 0:
        return "less"
    return "few"
""",
    HelperShape("is_odd", ("int", "bool"), "bool"): """
def is_odd(n, otherwise):
    m = n % 2
    return m == 1 or otherwise
""",
    HelperShape("half", ("float",), "float"): """
def half(x):
    return x / 2
""",
    HelperShape("short", ("str", "int"), "str"): """
def short(s, n):
    t = s.strip()
    if not t:
        return "?"
    return t[: n % 4]
""",
}


@dataclass(frozen=True)
class Case:
    """A `Case` is an app with logs and parameters."""

    seed: int
    source: str
    logs: dict[str, list[Rows]]
    params: dict[str, object]


def draw_case(seed: int, most_rows: int = MOST_ROWS) -> Case:
    """Draw the app and the logs of a seed."""
    rng = random.Random(seed)
    program = Program(rng)
    source = program.draw()
    params: dict[str, object] = {"p0": rng.choice([0, 2, 5])} if rng.random() < 0.3 else {}
    logs = draw_logs(rng, program.events, most_rows)
    return Case(seed, source, logs, params if "p0" in source else {})


@dataclass
class Program:
    """A `Program` draws one app."""

    rng: random.Random
    events: dict[str, Sequence[str]] = field(default_factory=dict)
    fields: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    serial: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    locals: int = 0

    def draw(self) -> str:
        rng = self.rng
        self.expressions = Expressions(rng)
        for name in ("a", "b", "c")[: rng.choice([1, 1, 2, 2, 3])]:
            others = [c for c in COLUMNS if c not in ALWAYS and rng.random() < 0.5]
            self.events[name] = (*ALWAYS, *others)
        self._states()
        self.expressions.helpers = rng.sample(list(_HELPERS), rng.choice([0, 1, 2]))
        self.expressions.constants = [("p0", "int"), ("LIMIT", "int"), ("NAMES", "strs")]
        names = [f"h{i}" for i in range(rng.choice([1, 2, 2, 3, 3, 4, 5, 6]))]
        handlers = [self._handler(name) for name in names]
        if rng.random() < 0.06:
            self.serial.append(f"app.serial({rng.choice(['', *names])})\n")
        return "\n".join([*self._head(), *handlers, *self.serial])

    def _head(self) -> list[str]:
        lines = ["import re", "", "import weir", "", 'app = weir.App("drawn")']
        for name, columns in self.events.items():
            declared = ", ".join(f"{c} {COLUMNS[c][1]}" for c in columns)
            lines.append(f'{name} = app.events("{name}", "ts BIGINT, {declared}", vs="ts")')
        lines += [s.declared for s in self.expressions.states]
        lines += self._declared_emits()
        lines += ['p0 = app.param("p0", 3)', "LIMIT = 5", 'NAMES = ("a", "ab", "x")', ""]
        lines.append("def stepped(n, by):\n    return n + by if n % 3 else n - by\n")
        lines.append("def up(n):\n    return n + 1\n")
        lines += self.expressions.small_functions.values()
        return [*lines, *(_HELPERS[h] for h in self.expressions.helpers)]

    def _declared_emits(self) -> list[str]:
        """Declare the types of emits: always where Python's own text would not tell them."""
        lines = []
        for name, fields in self.fields.items():
            if (
                self.serial
                or self.rng.random() < 0.6
                or any(t in ("ints", "strs", "bool") for _, t in fields)
            ):
                columns = ", ".join(f"{n} {SQL[t]}" for n, t in fields)
                lines.append(f'app.emits("{name}", "{columns}")')
        return lines

    def _states(self) -> None:
        rng = self.rng
        count = rng.choice([1, 2, 2, 3, 3, 4, 5, 6])
        rings = rng.choice([0, 0, 0, 1, 1, 2])
        ring_rank = rng.randint(0, 2)
        self.expressions.ring_key = rng.choice(list(_RING_KEYS))
        for i in range(count):
            ring = i < rings
            type = rng.choice(_STATE_TYPES)
            key = _RING_KEYS[self.expressions.ring_key] if ring else rng.choice(_KEYS)
            # Ranks of others are odd: never that of the ring.
            rank = 2 * ring_rank if ring else 2 * rng.randint(0, 3) - 1
            options = [f"default={rng.choice(_DEFAULTS[type])}"]
            if type in ("oint", "ostr", "ints", "strs", "struct"):
                options.append(f'type="{SQL[type]}"')
            if rng.random() < 0.3:
                length = rng.choice([1, 2, 3, 5, 8, 20])
                options.append(f"{rng.choice(['last', 'last', 'expires'])}={length}")
            declared = f's{i} = app.state("s{i}", {", ".join(options)})'
            self.expressions.states.append(StateShape(f"s{i}", key, type, rank, ring, declared))

    # --- handlers ----------------------------------------------------------------------------

    def _handler(self, name: str) -> str:
        rng, states = self.rng, self.expressions.states
        events = [n for n in self.events if rng.random() < 0.4] or [rng.choice(list(self.events))]
        columns = tuple(c for c in COLUMNS if all(c in self.events[n] for n in events))
        # Most handlers read below some rank and write above it: so handlers form no circle.
        pivot = rng.choice(states).rank - rng.choice([0, 1])
        free = rng.random() < 0.3
        ring = any(s.ring for s in states) and rng.random() < 0.4
        self.writable = [s for s in states if free or s.rank > pivot or (ring and s.ring)]
        readable = [s for s in states if free or s.rank <= pivot or (ring and s.ring)]
        if ring:
            self.writable = [s for s in self.writable if s.ring or s.rank > pivot]
        scope = Scope(columns, ring=ring, readable=frozenset(s.name for s in readable))
        self.locals = 0
        body = [line for _ in range(rng.choice([0, 1, 1])) for line in self._merge(scope)]
        body += self._block(scope, rng.choice([1, 2, 2, 3, 4]), 2)
        return f"\n@app.on({', '.join(events)})\ndef {name}(e):\n" + _indented(body)

    def _block(self, scope: Scope, count: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            more, scope = self._statement(scope, depth)
            lines += more
        return lines

    def _statement(self, scope: Scope, depth: int) -> tuple[list[str], Scope]:
        roll = self.rng.random()
        if roll < 0.15:
            return self._assign(scope)
        if roll < 0.48:
            return self._merge(scope), scope
        if roll < 0.68 or depth == 0:
            return self._emit(scope), scope
        if roll < 0.86:
            return self._if(scope, depth)
        if roll < 0.93:
            return self._return(scope)
        lines = self._for(scope, depth)
        return lines, self._after(scope, lines)

    def _limit(self) -> int:
        """Choose how much of what lies above a statement may use: low ranks leave more to write."""
        return self.rng.choice([-1, 0, 1, 3, 9, 9])

    def _assign(self, scope: Scope) -> tuple[list[str], Scope]:
        type = self.rng.choice(["int", "int", "float", "str", "bool", "ostr", "oint"])
        known = [
            n for n, t, _ in scope.names if t == type and n.startswith("l") and n not in scope.fixed
        ]
        if known and self.rng.random() < 0.4:
            name = self.rng.choice(known)
            if type == "int" and self.rng.random() < 0.5:
                return self._augmented(name, scope)
        else:
            name, self.locals = f"l{self.locals}", self.locals + 1
        value = self._read_or(type, scope)
        # In a branch a variable may keep its old value: the branch's rank counts.
        before = max((r for n, _, r in scope.names if n == name), default=-1)
        return [f"{name} = {value.text}"], scope.knows(
            name, type, max(value.rank, scope.rank, before)
        )

    def _augmented(self, name: str, scope: Scope) -> tuple[list[str], Scope]:
        value = self._read_or("int", scope)
        before = max(r for n, _, r in scope.names if n == name)
        rank = max(value.rank, scope.rank, before)
        return [f"{name} += {value.text}"], scope.knows(name, "int", rank)

    def _read_or(self, type: str, scope: Scope) -> Drawn:
        limit = self._limit()
        if self.rng.random() < 0.7 and (read := self.expressions.read(type, scope, limit)):
            return read
        return self.expressions.expr(type, scope, limit)

    def _merge(self, scope: Scope) -> list[str]:
        fit = [s for s in self.writable if self._reach(s, scope) >= scope.rank]
        if not fit:
            return self._emit(scope)
        # Those that nobody writes yet go first.
        state = self.rng.choice([s for s in fit if s.name not in self.written] or fit)
        self.written.add(state.name)
        return [draw_merge(self.expressions, state, scope, self._reach(state, scope)).text]

    def _reach(self, state: StateShape, scope: Scope) -> int:
        """Return the largest rank that a merge into a state may use."""
        return state.rank if state.ring and scope.ring else state.rank - 1

    def _emit(self, scope: Scope) -> list[str]:
        name = self.rng.choice(["o0", "o0", "o1"])
        if name not in self.fields:
            count = self.rng.choice([1, 2, 3])
            of_states = [s.type for s in self.expressions.states]
            types = [self.rng.choice([*_EMITTED, *of_states * 4]) for _ in range(count)]
            self.fields[name] = [(f"f{i}", type) for i, type in enumerate(types)]
        values = [f"{n}={self._read_or(t, scope).text}" for n, t in self.fields[name]]
        return [f'app.emit("{name}", {", ".join(values)})']

    def _if(self, scope: Scope, depth: int) -> tuple[list[str], Scope]:
        condition = self.expressions.condition(scope, self._limit())
        inner = scope.under(condition.rank)
        lines = [f"if {condition.text}:"]
        lines += _indent(self._block(inner, self.rng.choice([1, 1, 2]), depth - 1))
        if self.rng.random() < 0.25:
            other = self.expressions.condition(scope, self._limit())
            inner = inner.under(other.rank)
            lines.append(f"elif {other.text}:")
            lines += _indent(self._block(inner, 1, depth - 1))
        if self.rng.random() < 0.5:
            lines.append("else:")
            lines += _indent(self._block(inner, self.rng.choice([1, 2]), depth - 1))
        return lines, self._after(scope, lines)

    def _after(self, scope: Scope, lines: Sequence[str]) -> Scope:
        """Return the scope behind a branch: what was changed there may come from any state."""
        changed = {line.strip().split(" ")[0] for line in lines}
        names = tuple((n, t, 9 if n in changed else r) for n, t, r in scope.names)
        return replace(scope, names=names)

    def _return(self, scope: Scope) -> tuple[list[str], Scope]:
        condition = self.expressions.condition(scope, self._limit())
        word = "continue" if scope.loop else "return"
        return [f"if {condition.text}:", f"    {word}"], scope.under(condition.rank)

    def _for(self, scope: Scope, depth: int) -> list[str]:
        lists = [c for c in ("tags", "nums") if c in scope.columns]
        if not lists or scope.loop:
            return self._emit(scope)
        column = self.rng.choice(lists)
        name, type = ("t", "str") if column == "tags" else ("n", "int")
        # What a turn leaves to the next one is no column: variables from outside stay as they are.
        fixed = frozenset(n for n, _, _ in scope.names)
        inner = replace(scope.knows(f"x{name}", type, -1), loop=True, fixed=fixed)
        body = self._block(inner, self.rng.choice([1, 2, 3]), depth - 1)
        return [f"for x{name} in e.{column}:", *_indent(body)]


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(_indent(lines)) + "\n"
