"""Fills the forms: expressions, statements and blocks of drawn code, with accesses in them."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from python_apps import expression_forms, module_forms, statement_forms
from python_apps.kinds import COLUMNS, LITERALS, PLAIN_KINDS, VARIABLE_KINDS

_HOLE = re.compile(r"\{(\^?)([$!%?]?)([A-Za-z_]\w*)(?::(\w+))?\}")
_VAGUE = (
    "= app",
    "methodcaller",
    "getattr",
    "attrgetter",
    "iter(",
    "[app]",
    "self.app",
    "partial",
    "map(",
)
_BLOCKS = ("B", "L", "F")
_WIDE_STATEMENTS = statement_forms.WIDE + (
    statement_forms.SINCE_3_12 if sys.version_info >= (3, 12) else ()
)
_MERGES = {
    "int": ("add", "add", "set", "max", "min", "merge"),
    "bool": ("set", "merge"),
    "float": ("add", "set", "max", "min", "merge"),
    "oint": ("set", "merge"),
    "ostr": ("set",),
    "str": ("set", "set", "max", "min", "merge"),
    "sdict": ("set", "merge"),
    "ints": ("append", "append", "set", "add_to_set", "top_k", "merge"),
    "strs": ("append", "set", "add_to_set", "merge"),
}


@dataclass(frozen=True)
class DrawnState:
    """A `DrawnState` is a state of a drawn app: its place among them, kinds, and declaration."""

    name: str
    rank: int
    kind: str
    keys: tuple[str, ...]
    declared: str
    is_window: bool


@dataclass(frozen=True)
class Scope:
    """A `Scope` is what code at some place may use."""

    names: tuple[tuple[str, str], ...] = ()
    fixed: frozenset[str] = frozenset()
    """Variables that must not be set there: those of a function around."""
    columns: tuple[str, ...] = ()
    repeated: bool = False
    """Whether the code may run several times for an event."""
    loop: bool = False
    accesses: bool = True

    def knows(self, *names: tuple[str, str]) -> Scope:
        usable = tuple(pair for pair in names if pair[1] != "any")
        return replace(self, names=(*self.names, *usable))

    def inside(self) -> Scope:
        """Return the scope of a function inside of this one."""
        fixed = frozenset(name for name, _ in self.names)
        return replace(self, fixed=fixed, repeated=True, loop=False)


@dataclass
class _LineNames:
    """`_LineNames` are the names that lines of a form bind, for the lines that follow in the same
    block."""

    names: list[tuple[str, str]] = field(default_factory=list)
    _indents: dict[str, int] = field(default_factory=dict)
    _waiting: list[tuple[str, str]] = field(default_factory=list)
    _line: str = ""

    def go_on(self, text: str) -> None:
        if "\n" not in text:
            self._line += text
            return
        self.names += self._waiting
        self._waiting = []
        for line in text.split("\n")[1:]:  # the last may begin with a hole
            self._line = line
            is_case = line.lstrip().startswith("case ")
            indent = _indent(line) + is_case
            self.names = [
                (n, k)
                for n, k in self.names
                if self._indents[n] < indent or (self._indents[n] == indent and not is_case)
            ]

    def bind(self, name: str, kind: str, *, deeper: bool = False) -> None:
        is_case = self._line.lstrip().startswith("case ")
        self._indents.setdefault(name, _indent(self._line) + (is_case or deeper))
        self._waiting.append((name, kind))


def _is_argument(form: str, at: int) -> bool:
    """Tell whether a name of a form is an argument of a function, or a type of a class."""
    line = form[form.rfind("\n", 0, at) + 1 : at].lstrip()
    return line.startswith(("def ", "async def ", "class "))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


@dataclass
class Uses:
    """`Uses` are the states that some code reads and writes."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


@dataclass
class Grammar:
    """A `Grammar` draws the code of one app."""

    rng: random.Random
    states: list[DrawnState]
    emitted: dict[str, list[tuple[str, str]]]
    darkness: float
    """How often an access goes a long way."""
    wide: bool = True
    module: list[str] = field(default_factory=list)
    """What stands before the handlers."""
    helpers: list[tuple[str, str]] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    """Default arguments of the handler that is drawn."""
    uses: Uses = field(default_factory=Uses)
    readable: frozenset[str] = frozenset()
    writable: frozenset[str] = frozenset()
    own_keys: dict[str, str] = field(default_factory=dict)
    """The keys of states that this handler both reads and writes."""
    number: int = 0
    is_vague: bool = False
    """Whether a handle gets into a library, so that nobody can say what its handler touches."""

    # --- forms -------------------------------------------------------------------------------

    def fresh(self, letter: str = "v") -> str:
        self.number += 1
        return f"{letter}{self.number}"

    def fill(self, form: str, scope: Scope, depth: int) -> tuple[str, Scope]:
        """Fill the holes of a form; return the scope after it, too."""
        bound: dict[str, str] = {}
        everywhere: list[tuple[str, str]] = []
        for hole in _HOLE.finditer(form):
            if hole[2] in ("$", "!", "%") and hole[3] not in bound:
                bound[hole[3]] = self.fresh("K" if hole[3].isupper() else hole[3])
                if hole[2] == "$" and not _is_argument(form, hole.start()):
                    everywhere.append((bound[hole[3]], hole[4]))
        inner = scope.knows(*everywhere)
        if everywhere:
            inner = replace(inner, repeated=True)
        inside = inner.inside()
        if everywhere:
            inside = inside.knows(*everywhere)
        here = _LineNames()
        after: list[tuple[str, str]] = []
        chosen: dict[str, str] = {}
        parts: list[str] = []
        end = 0
        for hole in _HOLE.finditer(form):
            text = form[end : hole.start()]
            end = hole.end()
            here.go_on(text)
            parts.append(text)
            outer, mark, name, kind = hole[1], hole[2], hole[3], hole[4]
            if mark == "?":
                parts.append(self._variable(name, scope, chosen))
            elif name in bound:
                parts.append(bound[name])
                if mark in ("%", "!"):
                    here.bind(bound[name], kind)
                elif mark == "$" and _is_argument(form, hole.start()):
                    here.bind(bound[name], kind, deeper=True)
                if mark == "!":
                    after.append((bound[name], kind))
            elif name in _BLOCKS:
                indent = text[text.rfind("\n") + 1 :]
                around = inside if name == "F" else inner
                around = around.knows(*here.names)
                if name == "L":
                    around = replace(around, repeated=True, loop=True)
                lines = self.block(around, self.rng.choice((1, 1, 2)), depth - 1)
                parts.append(f"\n{indent}".join(lines))
            else:
                around = scope.knows(*here.names) if outer else inner.knows(*here.names)
                parts.append(self.expression(name, around, depth - 1))
        parts.append(form[end:])
        return "".join(parts), scope.knows(*after)

    def _variable(self, kind: str, scope: Scope, chosen: dict[str, str]) -> str:
        """Choose a variable that may be set; the same one each time within a form."""
        if kind not in chosen:
            chosen[kind] = self.rng.choice(self._settable(kind, scope))
        return chosen[kind]

    def _settable(self, kind: str, scope: Scope) -> list[str]:
        return [n for n, k in scope.names if k == kind and n not in scope.fixed]

    # --- expressions -------------------------------------------------------------------------

    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        rng = self.rng
        roll = rng.random()
        names = [n for n, k in scope.names if k == kind]
        columns = [c for c in scope.columns if COLUMNS[c] == kind]
        if names and roll < 0.3:
            return rng.choice(names)
        if columns and roll < 0.55:
            return f"e.{rng.choice(columns)}"
        if kind == "plain" and not scope.columns:
            return "12"
        if kind == "int0":
            return rng.choice(LITERALS["int"])
        if scope.accesses and 0.55 < roll < 0.72 and depth >= 0:
            read = self.read(kind, scope)
            if read is not None:
                return read
        if depth <= 0 or roll > 0.95:
            if names and rng.random() < 0.5:
                return rng.choice(names)
            if columns and rng.random() < 0.6:
                return f"e.{rng.choice(columns)}"
            if kind in LITERALS:
                return rng.choice(LITERALS[kind])
        return self.fill(self._form(kind, depth), scope, depth)[0]

    def _form(self, kind: str, depth: int) -> str:
        plain, wide = expression_forms.PLAIN.get(kind, ()), expression_forms.WIDE.get(kind, ())
        if depth <= 0 and wide:
            return wide[0]
        mine = [form for k, form in self.helpers if k == kind] if self.wide else []
        if mine and self.rng.random() < 0.25:
            return self.rng.choice(mine)
        if plain and (not self.wide or self.rng.random() < 0.35):
            return self.rng.choice(plain)
        return self.rng.choice(wide or plain)

    # --- accesses ----------------------------------------------------------------------------

    def read(self, kind: str, scope: Scope, below: int = 99) -> str | None:
        """Return an expression that reads a state of this kind, if there is one."""
        fit = [
            s for s in self.states if s.kind == kind and s.name in self.readable and s.rank < below
        ]
        if not fit or not scope.columns:
            return None
        state = self.rng.choice(fit)
        self.uses.reads.add(state.name)
        key = self.key(state, scope)
        if not self._is_dark():
            return f"{state.name}.get({key})"
        if self.rng.random() < 0.35:
            return f"{self._handle(state)}.get({key})"
        return self._way(self.rng.choice(module_forms.READERS), S=state.name, key=key)

    def _is_dark(self) -> bool:
        return self.wide and self.rng.random() < self.darkness

    def _handle(self, state: DrawnState) -> str:
        if self.rng.random() < 0.15:
            name = self.fresh("st")
            self.defaults.append(f"{name}={state.name}")
            return name
        return self._way(self.rng.choice(module_forms.HANDLES), S=state.name)

    def _way(self, way: tuple[str, str], **texts: str) -> str:
        outside, inside = way
        self.is_vague = self.is_vague or any(word in outside + inside for word in _VAGUE)
        texts["A"] = self.fresh("w")
        for name in ("A", "S", "M", "O"):
            outside = outside.replace(f"{{{name}}}", texts.get(name, ""))
        if outside:
            self.module.append(outside)
        # What stands in a key is not looked through again.
        return re.sub(r"\{(A|S|M|O|key|x|fields)\}", lambda hole: texts[hole[1]], inside)

    def key(self, state: DrawnState, scope: Scope) -> str:
        own = self.own_keys.get(state.name)
        if own is not None and self.rng.random() < 0.98:
            return own
        parts = [self._key_part(kind, state, scope) for kind in state.keys]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def _key_part(self, kind: str, state: DrawnState, scope: Scope) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.03:
            return rng.choice(LITERALS[kind])
        free = not scope.repeated or rng.random() < 0.04
        if free and roll < 0.4:
            read = self.read(kind, scope, state.rank)
            if read is not None:
                return read if kind == "str" else f"{read} % 3"
        names = [n for n, k in scope.names if k == kind]
        if free and names and roll < 0.6:
            return rng.choice(names)
        if free and self.wide and roll < 0.66:
            return self.expression(kind, scope, 1)
        if kind == "str":
            return rng.choice(("e.k", "e.k", "e.k", "e.s", "e.k + e.s"))
        return rng.choice(("e.u", "e.u", "e.u", "e.n % 3", "e.u % 2"))

    def merge(self, scope: Scope, depth: int) -> str | None:
        """Return a statement that merges into a state."""
        fit = [s for s in self.states if s.name in self.writable]
        if not fit or not scope.columns:
            return None
        state = self.rng.choice(fit)
        method = self.rng.choice(_MERGES[state.kind])
        is_odd = state.name not in self.own_keys or state.is_window
        if method == "merge" and is_odd and self.rng.random() < 0.8:
            method = "set"
        self.uses.writes.add(state.name)
        key = self.key(state, scope)
        args = self._merge_args(state, method, scope, depth)
        if not self._is_dark():
            return f"{state.name}.{method}({key}, {args})"
        if self.rng.random() < 0.35 or method == "top_k":
            return f"{self._handle(state)}.{method}({key}, {args})"
        way = self.rng.choice(module_forms.WRITERS)
        return self._way(way, S=state.name, M=method, key=key, x=args)

    def _merge_args(self, state: DrawnState, method: str, scope: Scope, depth: int) -> str:
        kind, deeper = state.kind, min(depth, 2)
        if method == "merge":
            old = self.fresh("old")
            inner = replace(scope.inside().knows((old, kind)), accesses=self.rng.random() < 0.2)
            new = self.expression(kind, inner, 2)
            return f"lambda {old}: {_bounded(kind, new)}"
        if method in ("append", "add_to_set", "top_k"):
            element = self.expression("int" if kind == "ints" else "str", scope, deeper)
            return f"{element}, 2" if method == "top_k" else element
        value = self.expression(kind, scope, deeper)
        return _bounded(kind, value) if method == "set" else value

    def emit(self, scope: Scope, depth: int) -> str:
        name = self.rng.choice(list(self.emitted))
        values = [
            f"{n}={self.expression(kind, scope, min(depth, 2))}" for n, kind in self.emitted[name]
        ]
        fields = ", ".join(values)
        if self._is_dark():
            return self._way(self.rng.choice(module_forms.EMITTERS), O=name, fields=fields)
        return f"app.emit('{name}', {fields})"

    # --- statements --------------------------------------------------------------------------

    def block(self, scope: Scope, count: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            text, scope = self.statement(scope, depth)
            lines += text.split("\n")
        return lines

    def statement(self, scope: Scope, depth: int) -> tuple[str, Scope]:
        roll = self.rng.random()
        if scope.columns and scope.accesses:
            if roll < 0.17 and (text := self.merge(scope, depth)) is not None:
                return text, scope
            if roll < 0.25:
                return self.emit(scope, depth), scope
            if roll < 0.36:
                kind = self.rng.choice([s.kind for s in self.states])
                if (text := self.read(kind, scope)) is not None:
                    name = self.fresh()
                    return f"{name} = {text}", scope.knows((name, kind))
        if scope.loop and roll > 0.93:
            test = self.expression("bool", scope, 1)
            return f"if {test}:\n    {self.rng.choice(('break', 'continue'))}", scope
        return self._formed_statement(scope, depth)

    def _formed_statement(self, scope: Scope, depth: int) -> tuple[str, Scope]:
        forms: Sequence[str] = _WIDE_STATEMENTS if self.wide else statement_forms.PLAIN
        mine = [form for k, form in self.helpers if k == "stmt"] if self.wide else []
        for _ in range(20):
            form = self.rng.choice(forms)
            if mine and self.rng.random() < 0.1:
                form = self.rng.choice(mine)
            if depth <= 0 and any(f"{{{b}}}" in form for b in _BLOCKS):
                continue
            if not scope.columns and "return" in form.split("\n")[-1] and "def " not in form:
                continue
            if any(h[2] == "?" and not self._settable(h[3], scope) for h in _HOLE.finditer(form)):
                continue
            if form.startswith("global") and self.rng.random() < 0.7:
                continue
            kind = self.rng.choice(VARIABLE_KINDS if self.wide else PLAIN_KINDS)
            return self.fill(form.replace("KIND", kind), scope, depth)
        return "pass", scope

    def helper(self) -> None:
        """Draw something that stands outside of handlers, and the forms that use it."""
        outside, uses = self.rng.choice(module_forms.HELPERS)
        name = self.fresh("g")
        text, _ = self.fill(outside.replace("{A}", name), Scope(accesses=False), 2)
        self.module.append(text)
        self.helpers += [(kind, form.replace("{A}", name)) for kind, form in uses]


def _bounded(kind: str, value: str) -> str:
    """Keep what a state holds from growing without end."""
    if kind == "int":
        return f"({value}) % 1000"
    if kind == "float":
        return f"({value}) % 1000.0"
    if kind == "str":
        return f"({value})[:6]"
    if kind in ("ints", "strs"):
        return f"({value})[-5:]"
    return value
