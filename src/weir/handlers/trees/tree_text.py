"""Shows values to people as equivalent Python code, in messages and by `explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.handlers.reading.comprehensions import EachElement, comprehension_text, written_with
from weir.handlers.trees.values import (
    Attribute,
    Const,
    Element,
    Field,
    Instant,
    Method,
    Old,
    Op,
    Opaque,
    Python,
    ReadValue,
    Tree,
)

_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
    "lshift": "<<",
    "rshift": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "is": "is",
    "isnot": "is not",
    "in": "in",
    "notin": "not in",
    "and": "and",
    "or": "or",
}
_UNARY = {"neg": "-", "pos": "+", "invert": "~", "not": "not "}
_BRACKETS = {"tuple": ("(", ")"), "list": ("[", "]"), "set": ("{", "}")}
_LONGEST = 120
_MOST_PARTS = 60


def tree_text(tree: Tree, reads: Mapping[int, str] | None = None) -> str:
    """Write a value as Python; `reads` says what reads are called, by their orders.

    >>> tree_text(Op("gt", (Op("add", (Field("a"), Const(1))), ReadValue(3))), {3: "n.get(e.a)"})
    'e.a + 1 > n.get(e.a)'
    """
    text = _Words(reads or {}).text(tree)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]} …"


def key_text(key: Sequence[Tree], reads: Mapping[int, str] | None = None) -> str:
    """Write a key as it stands in a call.

    >>> key_text((Field("a"),)), key_text((Field("a"), Field("b")))
    ('e.a', '(e.a, e.b)')
    """
    parts = [tree_text(part, reads) for part in key]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


class _Words:
    """Writes values; of a large one, which may share parts many times over, only the beginning."""

    def __init__(self, reads: Mapping[int, str]) -> None:
        self._reads = reads
        self._left = _MOST_PARTS

    def text(self, tree: Tree) -> str:
        self._left -= 1
        if self._left < 0:
            return "…"
        match tree:
            case Field(name=name) | Instant(name=name):
                return f"e.{name}"
            case ReadValue(order=order):
                return self._reads.get(order, f"read {order}")
            case Element():
                return "x"
            case Old():
                return "old"
            case Const(value=value):
                return getattr(value, "__name__", None) or repr(value)
            case Attribute(of=of, name=name):
                return f"{self._inner(of)}.{name}"
            case Method(of=of, name=name):
                return f"{self._inner(of)}.{name}({self._args(tree.args, tree.keywords)})"
            case Python(function=EachElement() as each, args=args):
                return self._comprehension(each, args)
            case Python(function=function):
                name = getattr(function, "__name__", type(function).__name__)
                return f"{name}({self._args(tree.args, tree.keywords)})"
            case Op():
                return self._op(tree)
            case Opaque():
                return "a value that Python computes"
        raise TypeError(f"{type(tree).__name__} is not a value")

    def _comprehension(self, each: EachElement, args: Sequence[Tree]) -> str:
        tests, results = written_with(each, args)
        result = ": ".join(map(self.text, results))
        over = self._inner(args[0])
        ifs = "".join(f" if {self.text(test)}" for test in tests)
        return comprehension_text(each, f"{result} for x in {over}{ifs}")

    def _inner(self, tree: Tree) -> str:
        plain = not isinstance(tree, Op) or tree.name in (*_BRACKETS, "item", "slice", "join")
        return self.text(tree) if plain else f"({self.text(tree)})"

    def _args(self, args: Sequence[Tree], keywords: Sequence[tuple[str, Tree]]) -> str:
        named = (f"{name}={self.text(value)}" for name, value in keywords)
        return ", ".join([*map(self.text, args), *named])

    def _op(self, op: Op) -> str:
        args = op.args
        if op.name in _BINARY:
            connects = op.name in ("and", "or", "eq", "ne", "lt", "le", "gt", "ge")
            inner = self._operand if connects else self._inner
            return f" {_BINARY[op.name]} ".join(map(inner, args))
        if op.name in _UNARY:
            return f"{_UNARY[op.name]}{self._inner(args[0])}"
        if op.name in _BRACKETS:
            opening, closing = _BRACKETS[op.name]
            comma = "," if op.name == "tuple" and len(args) == 1 else ""
            return f"{opening}{', '.join(map(self.text, args))}{comma}{closing}"
        return self._other(op.name, args)

    def _operand(self, tree: Tree) -> str:
        arithmetic = isinstance(tree, Op) and tree.name in (
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "neg",
            "not",
        )
        compares = isinstance(tree, Op) and tree.name in ("eq", "ne", "lt", "le", "gt", "ge")
        return self.text(tree) if arithmetic or compares else self._inner(tree)

    def _other(self, name: str, args: Sequence[Tree]) -> str:
        match name:
            case "if":
                condition, then, otherwise = map(self._inner, args)
                return f"{then} if {condition} else {otherwise}"
            case "dict":
                pairs = zip(args[::2], args[1::2], strict=True)
                return f"{{{', '.join(f'{self.text(k)}: {self.text(v)}' for k, v in pairs)}}}"
            case "item":
                return f"{self._inner(args[0])}[{self.text(args[1])}]"
            case "slice":
                shown = ["" if a == Const(None) else self.text(a) for a in args[1:]]
                return f"{self._inner(args[0])}[{':'.join(shown).removesuffix(':')}]"
            case "tried":
                return self.text(args[0])
            case "format":
                return f"format({self.text(args[0])})"
            case "join":
                return f"f-string of {', '.join(map(self.text, args))}"
        return f"{name}({', '.join(map(self.text, args))})"
