"""Random expressions of handlers: text of a given type, over what is in scope.

Every value has a *rank*: that of the states whose reads it comes from. A merge into a state may
use values of lower rank only, so that no state depends on itself; `limit` is the largest rank
that an expression may have. Types are words: int, float, str, bool, ints and strs (lists), oint
and ostr (or None), struct (of n and t). Values stay small: products are taken modulo something.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

COLUMNS = {
    "k": ("ostr", "STRING"),
    "u": ("int", "BIGINT"),
    "n": ("int", "BIGINT"),
    "v": ("int", "BIGINT"),
    "m": ("oint", "BIGINT"),
    "x": ("float", "DOUBLE"),
    "y": ("float", "DOUBLE"),
    "s": ("str", "STRING"),
    "t": ("ostr", "STRING"),
    "f": ("bool", "BOOLEAN"),
    "tags": ("strs", "LIST(STRING)"),
    "nums": ("ints", "LIST(BIGINT)"),
}
ALWAYS = ("k", "u", "n")
"""Columns that every event type has."""

SQL = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "STRING",
    "bool": "BOOLEAN",
    "oint": "BIGINT",
    "ostr": "STRING",
    "ints": "LIST(BIGINT)",
    "strs": "LIST(STRING)",
    "struct": "STRUCT(n BIGINT, t STRING)",
}

_INSTEAD = {
    "float": ("(e.n * 0.5)", "(e.n / 4)"),
    "str": ('(e.k or "-")', "f'{e.u}'"),
    "bool": ("e.n > 1", "e.u != 0", 'e.k == "a"', "e.k is None"),
    "oint": ("(e.n if e.n > 1 else None)",),
    "ints": ("()", "(1, 2)"),
    "strs": ("()", '("a", "b")'),
    "struct": ('{"n": e.n, "t": "x"}',),
}
"""What a type's values are made of where nothing else is there."""


@dataclass(frozen=True)
class StateShape:
    """A `StateShape` is a state as the generator knows it."""

    name: str
    key: tuple[str, ...]
    type: str
    rank: int
    ring: bool
    declared: str


@dataclass(frozen=True)
class HelperShape:
    """A `HelperShape` is a pure function of the module: its arguments' types and its result's."""

    name: str
    takes: tuple[str, ...]
    gives: str


@dataclass(frozen=True)
class Scope:
    """A `Scope` is what an expression at some place of a handler can use."""

    columns: tuple[str, ...]
    names: tuple[tuple[str, str, int], ...] = ()
    """Local variables: name, type, rank."""
    rank: int = -1
    """The rank of the conditions under which this place is reached."""
    ring: bool = False
    """In a handler of the ring: states of the ring are read with the ring's key."""
    readable: frozenset[str] = frozenset()
    loop: bool = False
    fixed: frozenset[str] = frozenset()
    """Variables that are not assigned here."""

    def knows(self, name: str, type: str, rank: int) -> Scope:
        others = tuple(n for n in self.names if n[0] != name)
        return replace(self, names=(*others, (name, type, rank)))

    def under(self, rank: int) -> Scope:
        return replace(self, rank=max(self.rank, rank))


@dataclass
class Drawn:
    """A `Drawn` is an expression: its text and its rank."""

    text: str
    rank: int = -1


@dataclass
class Expressions:
    """`Expressions` draws expressions for one app."""

    rng: random.Random
    states: list[StateShape] = field(default_factory=list)
    helpers: list[HelperShape] = field(default_factory=list)
    constants: list[tuple[str, str]] = field(default_factory=list)
    ring_key: str = "e.k"
    small_functions: dict[str, str] = field(default_factory=dict)
    """Functions of the module that read or write a state, by name."""

    def pick(self, *choices: Callable[[], Drawn | None]) -> Drawn:
        for choice in self.rng.sample(choices, len(choices)):
            found = choice()
            if found is not None:
                return found
        raise AssertionError("no choice fits")

    def expr(self, type: str, scope: Scope, limit: int, depth: int = 2) -> Drawn:
        """Draw an expression of a type whose rank is at most `limit`."""
        roll = self.rng.random()
        if depth <= 0 or roll < 0.3:
            return self.atom(type, scope, limit)
        if roll < 0.55 and (read := self.read(type, scope, limit)):
            return read
        if roll < 0.6:
            return self.chosen(type, scope, limit, depth)
        if roll < 0.66 and (called := self.called(type, scope, limit, depth)):
            return called
        return getattr(self, f"_{type}")(scope, limit, depth)  # type: ignore[no-any-return]

    # --- atoms -----------------------------------------------------------------------------

    def atom(self, type: str, scope: Scope, limit: int) -> Drawn:
        known = [Drawn(n, r) for n, t, r in scope.names if t == type and r <= limit]
        columns = [Drawn(f"e.{c}") for c in scope.columns if COLUMNS[c][0] == type]
        constants = [Drawn(n) for n, t in self.constants if t == type]
        found = [*known * 4, *columns * 2, *constants]
        if type == "int":
            found += [Drawn("e.vs"), Drawn("e.ve")]
        if type in ("int", "float", "str") and self.rng.random() < 0.12:
            return Drawn(self.literal(type))
        return self.rng.choice(found) if found else Drawn(self.rng.choice(_INSTEAD[type]))

    def literal(self, type: str) -> str:
        rng = self.rng
        match type:
            case "int":
                return str(rng.choice([0, 1, 2, 3, 5, -1, -4, 10]))
            case "float":
                return rng.choice(["0.0", "1.0", "0.5", "-2.5", "0.1", "3.0", "1e3"])
            case "str":
                return rng.choice(['"a"', '"b"', '""', '"ab"', '"ß"', '"x y"'])
            case "bool":
                return rng.choice(["True", "False"])
        raise AssertionError(type)

    # --- reads -----------------------------------------------------------------------------

    def read(self, type: str, scope: Scope, limit: int) -> Drawn | None:
        fit = [
            s
            for s in self.states
            if s.type == type and s.rank <= limit and s.name in scope.readable
        ]
        if not fit:
            return None
        state = self.rng.choice(fit)
        key = self.key(state, scope, limit)
        text = f"{state.name}.get({key.text})"
        if self.rng.random() < 0.07:
            name = f"look_{state.name}"
            self.small_functions[name] = f"def {name}(key):\n    return {state.name}.get(key)\n"
            text = f"{name}({key.text})"
        return Drawn(text, max(state.rank, key.rank))

    def key(self, state: StateShape, scope: Scope, limit: int, write: bool = False) -> Drawn:
        if state.ring and (scope.ring or write):
            return Drawn(self.ring_key)
        parts = [self.key_part(t, scope, limit) for t in state.key]
        text = ", ".join(p.text for p in parts)
        return Drawn(f"({text})" if len(parts) > 1 else text, max(p.rank for p in parts))

    def key_part(self, type: str, scope: Scope, limit: int) -> Drawn:
        rng, roll = self.rng, self.rng.random()
        if scope.loop and roll < 0.5:
            for name, known, rank in reversed(scope.names):
                if known == type and rank <= limit:
                    return Drawn(name, rank)
        if roll < 0.75:
            plain = {"str": ["k"], "int": ["u", "n"], "float": ["x", "y"], "bool": ["f"]}[type]
            more = [c for c in scope.columns if COLUMNS[c][0].lstrip("o") == type]
            if fit := [c for c in plain if c in scope.columns] + more:
                return Drawn(f"e.{rng.choice(fit)}")
        if roll < 0.8:
            return Drawn(self.literal(type))
        return self.expr(type, scope, limit, 1)

    # --- any type --------------------------------------------------------------------------

    def chosen(self, type: str, scope: Scope, limit: int, depth: int) -> Drawn:
        a, b = (self.expr(type, scope, limit, depth - 1) for _ in range(2))
        if self.rng.random() < 0.25 and type not in ("ints", "strs"):
            word = self.rng.choice(["or", "and"])
            return Drawn(f"({a.text} {word} {b.text})", max(a.rank, b.rank))
        c = self.condition(scope, limit, depth - 1)
        return Drawn(f"({a.text} if {c.text} else {b.text})", max(a.rank, b.rank, c.rank))

    def called(self, type: str, scope: Scope, limit: int, depth: int) -> Drawn | None:
        fit = [h for h in self.helpers if h.gives == type]
        if not fit:
            return None
        helper = self.rng.choice(fit)
        args = [self.expr(t, scope, limit, depth - 1) for t in helper.takes]
        rank = max((a.rank for a in args), default=-1)
        return Drawn(f"{helper.name}({', '.join(a.text for a in args)})", rank)

    def condition(self, scope: Scope, limit: int, depth: int = 2) -> Drawn:
        """Draw what stands behind `if`: mostly a bool, sometimes any value."""
        if self.rng.random() < 0.8:
            return self.expr("bool", scope, limit, max(depth, 1))
        return self.expr(self.rng.choice(["int", "str", "oint", "ostr", "strs"]), scope, limit, 1)

    def _parts(
        self, types: Sequence[str], scope: Scope, limit: int, depth: int, *forms: str
    ) -> Drawn:
        text = self.rng.choice(forms)
        # Before Python 3.12 an f-string cannot hold another.
        depth = 1 if text.startswith("f'") else depth
        parts = [self.expr(t, scope, limit, depth - 1) for t in types]
        for name, part in zip("abc", parts, strict=False):
            text = text.replace(f"${name}", part.text)
        return Drawn(text, max(p.rank for p in parts))

    # --- by type ---------------------------------------------------------------------------

    def _int(self, scope: Scope, limit: int, depth: int) -> Drawn:
        def of(types: Sequence[str], *forms: str) -> Callable[[], Drawn]:
            return lambda: self._parts(types, scope, limit, depth, *forms)

        return self.pick(
            of(["int", "int"], "($a + $b)", "($a - $b)", "min($a, $b)", "max($a, $b)"),
            of(["int", "int"], "($a * $b) % 1009", "($a + $b)", "($a - $b)"),
            of(["int"], "-$a", "abs($a)", "($a // 3)", "($a // -2)", "($a % 5)", "($a % -3)"),
            of(["int"], "($a * 2)", "($a & 7)", "($a // 2 + 1)", "int($a > 2)"),
            of(["int", "int"], "($a // $b if $b != 0 else 0)", "($a % ($b or 7))"),
            of(["str"], "len($a)", '$a.count("a")', '$a.find("b")'),
            of([self.rng.choice(["ints", "strs"])], "len($a)"),
            of(["ints"], "sum($a)", "max($a, default=0)", "($a[0] if $a else -1)"),
            lambda: self._part('["n"]', ".n", scope, limit),
            of(["ints"], "sum(i * 2 for i in $a)", "len([i for i in $a if i > 1])"),
            of(["oint"], "($a or 0)", "(0 if $a is None else $a)"),
            of(["float"], "int($a > 0.5)", "(1 if $a < 1.0 else 2)"),
        )

    def _float(self, scope: Scope, limit: int, depth: int) -> Drawn:
        def of(types: Sequence[str], *forms: str) -> Callable[[], Drawn]:
            return lambda: self._parts(types, scope, limit, depth, *forms)

        return self.pick(
            of(["float", "float"], "($a + $b)", "($a - $b)", "($a * $b)"),
            of(["float"], "-$a", "abs($a)", "($a / 3.0)", "($a * 0.1)"),
            of(["int"], "($a / 4)", "($a * 0.5)", "float($a)"),
            of(["float", "float"], "($a / $b if $b else 0.0)"),
            of(["float", "int"], "($a + $b)", "($a * $b)", "($b - $a)"),
        )

    def _str(self, scope: Scope, limit: int, depth: int) -> Drawn:
        def of(types: Sequence[str], *forms: str) -> Callable[[], Drawn]:
            return lambda: self._parts(types, scope, limit, depth, *forms)

        return self.pick(
            of(["str", "str"], "($a + $b)[:8]", "($a + $b)[-6:]"),
            of(["str"], "$a.upper()", "$a.lower()", "$a.strip()", "$a[:2]", "$a[1:]", "$a[-1:]"),
            of(["str"], '$a.replace("a", "bb")[:6]', "$a[::-1]", "$a.title()"),
            of(["int"], "str($a)", "f'{$a}'", "f'{$a:04d}'", "f'<{$a}>'"),
            of(["int", "bool"], "f'{$a}/{$b}'"),
            lambda: self._part('["t"]', ".t", scope, limit),
            of(["strs"], "'/'.join($a)", "($a[-1] if $a else '-')"),
            of(["ostr"], '($a or "-")', '("" if $a is None else $a)'),
            of(["float"], "f'{$a:.2f}'"),
        )

    def _bool(self, scope: Scope, limit: int, depth: int) -> Drawn:
        def of(types: Sequence[str], *forms: str) -> Callable[[], Drawn]:
            return lambda: self._parts(types, scope, limit, depth, *forms)

        number = self.rng.choice(["int", "float", "int"])
        return self.pick(
            of([number, number], "$a < $b", "$a <= $b", "$a > $b", "$a == $b", "$a != $b"),
            of(["int", "int"], "0 < $a <= $b", "$a < $b < 9", "$a in (1, 2, $b)"),
            of(["str", "str"], "$a == $b", "$a < $b", "$a in $b", "$a.startswith($b)"),
            of(["ostr", "str"], "$a == $b", "$a != $b"),
            of(["bool", "bool"], "($a and $b)", "($a or $b)", "($a != $b)"),
            of(["bool"], "(not $a)"),
            of(["oint"], "$a is None", "$a is not None", "($a is not None and $a > 2)"),
            of(["ostr"], "$a is None", "$a is not None", "bool($a)"),
            of(["str", "strs"], "$a in $b", "$a not in $b"),
            of(["int", "ints"], "$a in $b"),
            of(["str"], "re.search(r'a$', $a) is not None", "bool(re.match(r'\\d|b', $a))"),
            of(["ints"], "any(i > 2 for i in $a)"),
            of(["str"], "$a.isdigit()", '$a in ("a", "b", "")', "bool($a)"),
        )

    def _oint(self, scope: Scope, limit: int, depth: int) -> Drawn:
        return self._parts(["int", "bool"], scope, limit, depth, "($a if $b else None)")

    def _ostr(self, scope: Scope, limit: int, depth: int) -> Drawn:
        return self._parts(["str", "bool"], scope, limit, depth, "($a if $b else None)")

    def _part(self, item: str, attribute: str, scope: Scope, limit: int) -> Drawn | None:
        read = self.read("struct", scope, limit)
        return read and Drawn(f"{read.text}{self.rng.choice([item, attribute])}", read.rank)

    def _struct(self, scope: Scope, limit: int, depth: int) -> Drawn:
        return self.read("struct", scope, limit) or self.atom("struct", scope, limit)

    def _ints(self, scope: Scope, limit: int, depth: int) -> Drawn:
        return self.atom("ints", scope, limit)

    def _strs(self, scope: Scope, limit: int, depth: int) -> Drawn:
        return self.atom("strs", scope, limit)
