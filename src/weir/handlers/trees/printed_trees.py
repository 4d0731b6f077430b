"""Prints values and accesses as Python code, for `explain`, messages and tests.

    2: if #0: friend_msgs.merge(e.sender, old + 1)

`#0` is the answer of the read number 0, `old` the value before a merge, `x` the element of a loop
(`x1` of the second one) or of a comprehension, `?1` a value that only CPython can compute. Long
texts are shortened.
"""

from __future__ import annotations

from collections.abc import Mapping

from weir.handlers.reading.comprehensions import EachElement, comprehension_text, written_with
from weir.handlers.reading.raised_failures import shown_guard
from weir.handlers.trees.accesses import EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.operations import COMPARE, OPERATIONS, OR, WHOLE
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

_TERNARY = 0
_CLOSED = {"tuple": "()", "list": "[]", "set": "{}"}
LONGEST = 400
"""The most characters of a value that are written."""


def printed(tree: Tree) -> str:
    """Write a value.

    >>> printed(Op("mul", (Op("add", (Field("a"), Const(1))), ReadValue(0))))
    '(e.a + 1) * #0'
    """
    return shortened(Printer().text(tree)[0])


def printed_access(access: GetAccess | MergeAccess | EmitAccess) -> str:
    """Write an access with its number, its loop and its guard.

    >>> printed_access(GetAccess(order=3, handler="h", line=1, state="s", key=(Field("a"),)))
    '3: s.get(e.a)'
    """
    parts = [f"{access.order}: "]
    if access.block is not None and access.over is not None:
        parts.append(f"for {_element(access.block)} in {printed(access.over)}: ")
    guard = shown_guard(access.guard)
    if guard is not None:
        parts.append(f"if {printed(guard)}: ")
    match access:
        case GetAccess():
            parts.append(f"{access.state}.get({_key(access.key)})")
        case MergeAccess(kind="call", new=Tree() as new):
            parts.append(f"{access.state}.merge({_key(access.key)}, {printed(new)})")
        case MergeAccess():
            args = "".join(f", {printed(a)}" for a in access.args)
            parts.append(f"{access.state}.{access.kind}({_key(access.key)}{args})")
        case EmitAccess():
            fields = "".join(f", {name}={printed(value)}" for name, value in access.fields)
            parts.append(f"emit({access.name!r}{fields})")
    return "".join(parts)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _key(key: tuple[Tree, ...]) -> str:
    return printed(key[0]) if len(key) == 1 else f"({', '.join(map(printed, key))})"


def _element(block: int) -> str:
    return f"x{block}" if block > 0 else "x"


class Printer:
    """Writes the parts of a value, each once: a value may contain another thousands of times.

    For people, `reads` has names for reads, by order.
    """

    def __init__(self, reads: Mapping[int, str] | None = None) -> None:
        self._reads = reads
        self._texts: dict[int, tuple[str, int]] = {}

    def text(self, tree: Tree) -> tuple[str, int]:
        """Return the text of a value, and how tightly it binds."""
        if id(tree) not in self._texts:
            text, binding = self._printed(tree)
            short = len(text) <= LONGEST
            self._texts[id(tree)] = (text, binding) if short else (f"{text[:LONGEST]}…", WHOLE)
        return self._texts[id(tree)]

    def _printed(self, tree: Tree) -> tuple[str, int]:
        match tree:
            case Field(name=name) | Instant(name=name):
                return f"e.{name}", WHOLE
            case ReadValue(order=order):
                named = None if self._reads is None else self._reads.get(order, f"read {order}")
                return named or f"#{order}", WHOLE
            case Element(block=block):
                return "x" if self._reads is not None else _element(block), WHOLE
            case Old():
                return "old", WHOLE
            case Opaque(number=number):
                is_named = self._reads is not None
                return "a value that Python computes" if is_named else f"?{number}", WHOLE
            case Const(value=value):
                return _constant(value), WHOLE
            case Attribute(of=of, name=name):
                return f"{self._inside(of, WHOLE)}.{name}", WHOLE
            case Method(of=of, name=name, args=args, keywords=keywords):
                return f"{self._inside(of, WHOLE)}.{name}({self._args(args, keywords)})", WHOLE
            case Python(function=EachElement() as each, args=args):
                return self._comprehension(each, args), WHOLE
            case Python(function=function, args=args, keywords=keywords):
                return f"{function_name(function)}({self._args(args, keywords)})", WHOLE
            case Op():
                return self._operation(tree)
        raise AssertionError(f"no text for {type(tree).__name__}")

    def _inside(self, tree: Tree, binding: int) -> str:
        text, inner = self.text(tree)
        return text if inner >= binding else f"({text})"

    def _args(self, args: tuple[Tree, ...], keywords: tuple[tuple[str, Tree], ...]) -> str:
        plain = [self._inside(a, _TERNARY) for a in args]
        return ", ".join([*plain, *(f"{n}={self._inside(v, _TERNARY)}" for n, v in keywords)])

    def _comprehension(self, each: EachElement, args: tuple[Tree, ...]) -> str:
        tests, results = written_with(each, args)
        result = ": ".join(self._inside(tree, _TERNARY) for tree in results)
        ifs = "".join(f" if {self._inside(test, OR)}" for test in tests)
        text = f"{result} for x in {self._inside(args[0], OR)}{ifs}"
        return comprehension_text(each, text)

    def _operation(self, tree: Op) -> tuple[str, int]:
        name, args = tree.name, tree.args
        if name in OPERATIONS:
            sign, binding = OPERATIONS[name].sign, OPERATIONS[name].binding
            if OPERATIONS[name].is_unary:
                space = " " if name == "not" else ""
                return f"{sign}{space}{self._inside(args[0], binding)}", binding
            chained = name in ("and", "or")
            first = self._inside(args[0], binding + (name == "pow" or binding == COMPARE))
            rest = [self._inside(a, binding + (not chained and name != "pow")) for a in args[1:]]
            return f" {sign} ".join([first, *rest]), binding
        if name in _CLOSED:
            left, right = _CLOSED[name][0], _CLOSED[name][1]
            inner = self._args(args, ())
            return (
                f"{left}{inner}{',' if name == 'tuple' and len(args) == 1 else ''}{right}",
                WHOLE,
            )
        match name, args:
            case "if", (condition, then, otherwise):
                parts = [self._inside(a, OR) for a in (then, condition)]
                return (
                    f"{parts[0]} if {parts[1]} else {self._inside(otherwise, _TERNARY)}",
                    _TERNARY,
                )
            case "dict", _:
                texts = [self._inside(a, _TERNARY) for a in args]
                pairs = zip(texts[::2], texts[1::2], strict=True)
                return f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}", WHOLE
            case "item", (of, index):
                return f"{self._inside(of, WHOLE)}[{self._inside(index, _TERNARY)}]", WHOLE
            case "slice", (of, *ends):
                shown = ["" if _is_none(e) else self._inside(e, _TERNARY) for e in ends]
                step = f":{shown[2]}" if shown[2] else ""
                return f"{self._inside(of, WHOLE)}[{shown[0]}:{shown[1]}{step}]", WHOLE
            case "tried", (value, *_) if self._reads is not None:
                return self.text(value)
            case "join", _:
                return f"f'{''.join(self._part(a) for a in args)}'", WHOLE
            case "format", _:
                return f"f'{self._part(tree)}'", WHOLE
        return f"{name}({self._args(args, ())})", WHOLE

    def _part(self, tree: Tree) -> str:
        """Write a part of an f-string."""
        match tree:
            case Const(value=str(text)):
                return text.replace("{", "{{").replace("}", "}}").encode("unicode_escape").decode()
            case Op(name="format", args=(value, Const(value=conversion), spec)):
                how = f"!{conversion}" if conversion else ""
                form = spec.value if isinstance(spec, Const) else f"{{{self._inside(spec, 0)}}}"
                return f"{{{self._inside(value, _TERNARY)}{how}{f':{form}' if form else ''}}}"
        return f"{{{self._inside(tree, _TERNARY)}}}"


def _is_none(tree: Tree) -> bool:
    return isinstance(tree, Const) and tree.value is None


def _constant(value: object) -> str:
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return function_name(value)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def function_name(function: object) -> str:
    """Write the name of a function as its source calls it; a library's comes with its module."""
    named = getattr(function, "name", None)  # such as a `@weir.udf`
    name = str(named or getattr(function, "__name__", type(function).__name__))
    module = getattr(function, "__module__", None)
    is_library = module in ("re", "math", "json", "statistics", "itertools", "operator")
    return f"{module}.{name}" if is_library else name
