"""Handlers in rows that read states by the elements of lists.

They are drawn apart from the rest of an app, by a random generator of their own: an app has the
text that it would have without them, and one handler more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from python_apps.grammar import DrawnState

EMITS = "app.emits('ol', 'text STRING, many BIGINT')"
COLUMNS = ("tags", "nums", "items")
HELPERS = """NEAR = {'a': ['b', 'c'], 'b': ['a'], 'c': ['a', 'b', 'a']}


def twice(xs):
    return xs + xs
"""

_OVERS = {
    "item": (
        "e.items",
        "e.items",
        "e.items",
        "(e.items or [])",
        "reversed(e.items)",
        "list(e.items)",
        "(e.items or [])[:2]",
        "[*e.items]",
        "iter(e.items)",
        "copy.copy(e.items)",
    ),
    "str": (
        "e.tags",
        "e.tags",
        "sorted(e.tags)",
        "sorted(set(e.tags))",
        "NEAR.get(e.k, [])",
        "e.s.split()",
        "NEAR.get(e.k, [])[:1]",
        "['a', e.k]",
        "twice(e.tags)",
    ),
    "int": (
        "e.nums",
        "e.nums",
        "sorted(e.nums)",
        "reversed(e.nums)",
        "[x % 3 for x in e.nums]",
        "e.nums[1:]",
        "range(len(e.nums))",
        "[*e.nums, 1]",
    ),
}
_KEYS = {
    ("item", "str"): ("{x}.k", "{x}.k", "{x}['k']", "({x}.k or '') + e.k", "e.k", "f'{{{x}.k}}'"),
    ("item", "int"): ("{x}.n", "{x}.n", "({x}.n or 0) % 3", "{x}.n % 2", "e.u", "abs({x}.n or 0)"),
    ("str", "str"): ("{x}", "{x}", "{x}", "{x} + e.s", "{x}.upper()", "min({x}, e.k)", "e.k"),
    ("str", "int"): ("len({x})", "e.u", "e.n % 3", "int({x})"),
    ("int", "str"): ("str({x})", "e.k", "'ab'[{x} % 2]", "chr(97 + {x} % 3)"),
    ("int", "int"): ("{x}", "{x}", "{x} % 3", "e.u", "{x} // {x}"),
}
_PARTS = ("str", "str", "int", "item", "item", "item")
_MERGES = {
    "int": ("add({key}, 1)", "set({key}, {value})", "max({key}, {value})"),
    "str": ("set({key}, e.k)",),
    "float": ("add({key}, 0.5)", "set({key}, 1.5)"),
    "bool": ("set({key}, e.n > 0)",),
    "oint": ("set({key}, {value})",),
    "ostr": ("set({key}, e.s)",),
    "ints": ("append({key}, {value})", "add_to_set({key}, {value})"),
    "strs": ("append({key}, e.k)",),
}


@dataclass
class ListHandler:
    """A `ListHandler` is drawn line by line; `reads` and `writes` are what its text uses."""

    rng: random.Random
    states: Sequence[DrawnState]
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    number: int = 0

    def draw(self, name: str, events: Sequence[str]) -> str:
        """Return the text of a handler of these event types."""
        rng = self.rng
        pivot = rng.randint(1, len(self.states))
        self.readable = [s for s in self.states[:pivot] if s.kind != "sdict"]
        free = rng.random() < 0.1
        self.writable = [s for s in self.states[0 if free else pivot :] if s.kind in _MERGES]
        lines = ["acc = []"]
        for _ in range(rng.choice((1, 1, 2, 3))):
            lines += self._statement()
        lines.append("app.emit('ol', text=repr(acc), many=len(acc))")
        body = "".join(f"    {line}\n" for line in lines)
        return f"@app.on({', '.join(events)})\ndef {name}(e):\n{body}"

    def _fresh(self) -> str:
        self.number += 1
        return f"x{self.number}"

    # --- accesses ----------------------------------------------------------------------------

    def _read(self, x: str, kind: str) -> str:
        if not self.readable:
            return "0"
        state = self.rng.choice(self.readable)
        self.reads.add(state.name)
        return f"{state.name}.get({self._key(state, x, kind)})"

    def _key(self, state: DrawnState, x: str, kind: str) -> str:
        parts = [self.rng.choice(_KEYS[kind, of]).format(x=x) for of in state.keys]
        if len(parts) == 1 and self.rng.random() < 0.08 and state.keys == ("str",):
            inner = [s for s in self.readable if s.kind == "str" and s.keys == ("str",)]
            if inner:
                self.reads.add(inner[0].name)
                return f"{inner[0].name}.get({parts[0]})"
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def _merge(self, x: str, kind: str, value: str) -> list[str]:
        if not self.writable:
            return []
        state = self.rng.choice(self.writable)
        self.writes.add(state.name)
        form = self.rng.choice(_MERGES[state.kind])
        return [f"{state.name}.{form.format(key=self._key(state, x, kind), value=value)}"]

    # --- statements --------------------------------------------------------------------------

    def _statement(self) -> list[str]:
        rng = self.rng
        kind, x = rng.choice(_PARTS), self._fresh()
        over = rng.choice(_OVERS[kind])
        lists = [s for s in self.readable if s.kind == "strs" and s.keys == ("str",)]
        if kind == "str" and lists and rng.random() < 0.4:
            self.reads.add(lists[0].name)
            over = f"{lists[0].name}.get({rng.choice(('e.k', 'e.s'))})"
        roll = rng.random()
        if roll < 0.14:
            return [f"acc += [{self._read(x, kind)} for {x} in {over}]"]
        if roll < 0.22:
            test = f"{self._read(x, kind)} == {self._read(x, kind)}"
            return [f"acc += [{self._read(x, kind)} for {x} in {over} if {test}]"]
        if roll < 0.30:
            what = rng.choice(("any", "all", "list", "tuple"))
            return [f"acc.append({what}({self._read(x, kind)} for {x} in {over}))"]
        if roll < 0.36:
            return [f"acc.append({{str({x}): {self._read(x, kind)} for {x} in {over}}})"]
        if roll < 0.42:
            number = self._fresh()
            return [
                f"for {number}, {x} in enumerate({over}):",
                f"    acc.append(({number}, {self._read(x, kind)}))",
            ]
        if roll < 0.47:
            other = self._fresh()
            return [
                f"for {x}, {other} in zip({over}, {rng.choice(_OVERS['str'])}):",
                f"    acc.append({self._read(x, kind)})",
                f"    acc.append({self._read(other, 'str')})",
            ]
        if roll < 0.53:
            look = self._fresh()
            return [
                f"def {look}({x}):",
                f"    return {self._read(x, kind)}",
                f"for {x} in {over}:",
                f"    acc.append({look}({x}))",
            ]
        if roll < 0.56:
            return [
                f"{x} = 0",
                f"while {x} < len(e.tags):",
                f"    acc.append({self._read(f'e.tags[{x}]', 'str')})",
                f"    {x} += 1",
            ]
        if roll < 0.60:
            return [rng.choice(("e.tags.append('z')", "e.nums.sort()", "acc.append(e.tags)"))]
        return [f"for {x} in {over}:", *(f"    {line}" for line in self._round(x, kind, 2))]

    def _round(self, x: str, kind: str, depth: int) -> list[str]:
        """Draw what is done for an element."""
        rng = self.rng
        lines: list[str] = []
        for _ in range(rng.choice((1, 2, 2, 3))):
            roll = rng.random()
            read = self._read(x, kind)
            if roll < 0.30:
                lines.append(f"acc.append({read})")
            elif roll < 0.40:
                word = rng.choice(("break", "continue"))
                lines += [
                    f"if {read} == {rng.choice(('0', 'e.n', repr('a'), 'None'))}:",
                    f"    {word}",
                ]
            elif roll < 0.50:
                what = rng.choice(("Exception", "TypeError", "(TypeError, ValueError)", ""))
                lines += ["try:", f"    acc.append({read})", f"except {what}:".replace(" :", ":")]
                lines.append("    acc.append('failed')")
            elif roll < 0.72:
                lines += self._merge(x, kind, rng.choice(("e.n", "1", "len(acc)")))
            elif roll < 0.77:
                value = self._fresh()
                lines += [f"{value} = {read}", f"acc.append({value})"]
            elif roll < 0.80 and kind == "item":
                lines.append(rng.choice((f"{x}.n = 3", f"acc.append({x}.n)", f"{x}.k = e.k")))
            elif roll < 0.90 and depth > 0:
                inner, y = rng.choice(_PARTS), self._fresh()
                lines.append(f"for {y} in {rng.choice(_OVERS[inner])}:")
                lines += [f"    {line}" for line in self._round(y, inner, depth - 1)]
            else:
                lines.append(f"app.emit('ol', text=repr({read}), many=len(acc))")
        return lines or ["pass"]


def items(rng: random.Random) -> object:
    """Draw the value of the column."""
    if rng.random() < 0.04:
        return None
    drawn: list[Any] = []
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5))):
        k = None if rng.random() < 0.06 else rng.choice("aabbc")
        n = None if rng.random() < 0.06 else rng.choice((0, 0, 1, 2, -3))
        drawn.append(None if rng.random() < 0.01 else {"k": k, "n": n})
    return drawn
