"""Infers the type of a value from the types of its parts.

`static_type` is the Python type that a value has wherever it is computed (except where it is None),
as a type of the language. It is None if there is no single such type: `x if c else 0.5` with an int
x is an int on some rows and a float on others. `type_of` is the type of a column that holds the
value: DOUBLE in this example.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

import pyarrow as pa

from weir.events.types import BIGINT, BINARY, BOOLEAN, DOUBLE, INT, NULL, STRING
from weir.handlers.trees.scope import Scope, from_below, is_leaf, leaf_type, remembered
from weir.handlers.trees.values import Attribute, Const, Method, Old, Op, Opaque, Python, Tree
from weir.plan.usercode.functions import ScalarFunction

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "is", "isnot", "in", "notin"))
TEXTS = pa.list_(STRING)
_PLAIN = (bool, int, float, str, bytes, tuple, list)

_TEXTS_FROM = """capitalize casefold center expandtabs format format_map join ljust lower lstrip
removeprefix removesuffix replace rjust rstrip strip swapcase title translate upper zfill"""
_TESTS_OF = """endswith startswith isalnum isalpha isascii isdecimal isdigit isidentifier islower
isnumeric isprintable isspace istitle isupper"""
_TEXT_METHODS: Mapping[str, pa.DataType] = {
    **dict.fromkeys(_TEXTS_FROM.split(), STRING),
    **dict.fromkeys(_TESTS_OF.split(), BOOLEAN),
    **dict.fromkeys(("count", "find", "index", "rfind", "rindex"), BIGINT),
    **dict.fromkeys(("split", "rsplit", "splitlines", "partition", "rpartition"), TEXTS),
    "encode": BINARY,
}
_FUNCTIONS: Mapping[Callable[..., object], pa.DataType] = {
    len: BIGINT,
    bool: BOOLEAN,
    str: STRING,
    repr: STRING,
    ascii: STRING,
    int: BIGINT,
    float: DOUBLE,
    ord: BIGINT,
    chr: STRING,
    isinstance: BOOLEAN,
    any: BOOLEAN,
    all: BOOLEAN,
    hex: STRING,
    oct: STRING,
    bin: STRING,
    format: STRING,
    callable: BOOLEAN,
    math.sqrt: DOUBLE,
    math.exp: DOUBLE,
    math.log: DOUBLE,
    math.log10: DOUBLE,
    math.log2: DOUBLE,
    math.log1p: DOUBLE,
    math.sin: DOUBLE,
    math.cos: DOUBLE,
    math.tan: DOUBLE,
    math.pow: DOUBLE,
    math.hypot: DOUBLE,
    math.atan2: DOUBLE,
    math.fabs: DOUBLE,
    math.fmod: DOUBLE,
    math.floor: BIGINT,
    math.ceil: BIGINT,
    math.trunc: BIGINT,
    math.isnan: BOOLEAN,
    math.isinf: BOOLEAN,
    math.isfinite: BOOLEAN,
    math.isclose: BOOLEAN,
    math.gcd: BIGINT,
    math.radians: DOUBLE,
    math.degrees: DOUBLE,
    math.copysign: DOUBLE,
    math.dist: DOUBLE,
    math.asin: DOUBLE,
    math.acos: DOUBLE,
    math.atan: DOUBLE,
    math.fsum: DOUBLE,
    math.isqrt: BIGINT,
    re.sub: STRING,
    re.split: TEXTS,
    re.escape: STRING,
}


def static_type(tree: Tree, scope: Scope, old: pa.DataType | None = None) -> pa.DataType | None:
    """Return the static type of a value, or None; `old` is the type of a merge's old value."""
    typing = _Typing(scope, old)
    from_below(tree, scope, ("type", old), typing.of)
    return typing.of(tree)


def type_of(tree: Tree, scope: Scope, old: pa.DataType | None = None) -> pa.DataType | None:
    """Return the type of a column that can hold the value, or None if it is not known."""
    static_type(tree, scope, old)
    typing = _Typing(scope, old)
    from_below(tree, scope, ("column", old), typing.column)
    return typing.column(tree)


def const_type(value: object) -> pa.DataType | None:
    """Return the type of a constant, or None.

    Values of classes derived from int, str … have none.
    """
    if value is not None and type(value) not in _PLAIN:
        return None
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return BIGINT
        case float():
            return DOUBLE
        case str():
            return STRING
        case bytes():
            return BINARY
        case tuple() | list():
            return _list_of([const_type(v) for v in value])
    return None


def has_no_elements(dtype: pa.DataType) -> bool:
    """Tell whether a type is that of an empty list, or of lists of empty lists.

    >>> has_no_elements(pa.list_(NULL)), has_no_elements(pa.list_(BIGINT)), has_no_elements(NULL)
    (True, False, False)
    """
    if not pa.types.is_list(dtype):
        return False
    return bool(dtype.value_type == NULL) or has_no_elements(dtype.value_type)


def as_number(dtype: pa.DataType | None) -> pa.DataType | None:
    """Return BIGINT for a type that is an int in arithmetic, DOUBLE for a float, else None."""
    if dtype in (BIGINT, INT, BOOLEAN):
        return BIGINT
    return dtype if dtype == DOUBLE else None


def merged(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    """Return the type of a value that may have either type; None (NULL) fits any type."""
    if one is None or other is None:
        return None
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if {one, other} == {INT, BIGINT}:
        return BIGINT
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _list_of([one.value_type, other.value_type])
    return None


def widened(one: pa.DataType | None, other: pa.DataType | None) -> pa.DataType | None:
    """Return the type of a column that can hold values of both types."""
    same = merged(one, other)
    if same is not None or one is None or other is None:
        return same
    kinds = as_number(one), as_number(other)
    if None in kinds:
        return None
    return DOUBLE if DOUBLE in kinds else BIGINT


def _list_of(elements: list[pa.DataType | None]) -> pa.DataType | None:
    element_type: pa.DataType | None = NULL
    for element in elements:
        element_type = merged(element_type, element)
    return None if element_type is None else pa.list_(element_type)


def _looked_up(table: dict[object, object]) -> pa.DataType | None:
    """Return the common type of all values of a constant dict."""
    common: pa.DataType | None = NULL
    for value in table.values():
        common = merged(common, const_type(value))
    return None if common in (None, NULL) or has_no_elements(common) else common


class _Typing:
    def __init__(self, scope: Scope, old: pa.DataType | None) -> None:
        self._scope, self._old = scope, old

    def column(self, tree: Tree) -> pa.DataType | None:
        return remembered(self._scope, ("column", self._old), tree, lambda: self._column(tree))

    def _column(self, tree: Tree) -> pa.DataType | None:
        own_type = self.of(tree)
        if own_type is not None:
            return own_type
        match tree:
            case Opaque():
                return tree.type
            case Op(name="if", args=(_, one, other)):
                return widened(self.column(one), self.column(other))
            case Op(name="and" | "or", args=(first, *rest)):
                dtype = self.column(first)
                for part in rest:
                    dtype = widened(dtype, self.column(part))
                return dtype
            case Python(function=function, args=(first, *rest), keywords=()) if rest and (
                function is min or function is max
            ):
                dtype = self.column(first)
                for part in rest:
                    dtype = widened(dtype, self.column(part))
                return dtype
            case Python(like=like) if like is not None:
                inside = self._arguments(tree)
                return None if inside is None else type_of(like, inside)
            case Python(function=function, args=(over,), keywords=()) if function is sum:
                own_type = self.of(over)
                return DOUBLE if own_type == pa.list_(DOUBLE) else None
        return None

    def of(self, tree: Tree) -> pa.DataType | None:
        if is_leaf(tree):
            return leaf_type(tree, self._scope)
        return remembered(self._scope, ("type", self._old), tree, lambda: self._computed(tree))

    def _computed(self, tree: Tree) -> pa.DataType | None:
        match tree:
            case Old():
                return self._old
            case Const(value=value):
                return const_type(value)
            case Op():
                return self._operation(tree)
            case Attribute(of=of, name=name):
                return self._attribute(self.of(of), name)
            case Method(of=Const(value=dict() as table), name="get", args=args):
                missing = self.of(args[1]) if len(args) > 1 else NULL
                return merged(_looked_up(table), missing)
            case Method(of=of, name=name):
                return self._method(self.of(of), name, of)
            case Python():
                return self._call(tree)
            case Opaque():
                return tree.type if tree.is_exact else None
        return None

    def _operation(self, tree: Op) -> pa.DataType | None:
        name = tree.name
        if name in _COMPARISONS or name in ("not", "checked"):
            return BOOLEAN
        if name in ("join", "format"):
            return STRING
        args = tree.args[1:] if name == "if" else tree.args
        types = [self.of(a) for a in args]
        match name:
            case "if" | "and" | "or":
                common = types[0]
                for other in types[1:]:
                    common = merged(common, other)
                return common
            case "tuple" | "list" | "set":
                return _list_of(types)
            case "neg" | "pos" | "invert":
                number = as_number(types[0])
                return None if name == "invert" and number != BIGINT else number
            case "item" if isinstance(tree.args[0], Const) and type(tree.args[0].value) is dict:
                return _looked_up(tree.args[0].value)
            case "item":
                return self._item(types[0], tree.args[1])
            case "slice":
                sliced = types[0] == STRING or (types[0] is not None and pa.types.is_list(types[0]))
                return types[0] if sliced else None
            case "pow":
                return self._power(types[0], types[1], tree.args[1])
            case "tried":
                return types[0]
            case "dict":
                return None
        return self._binary(name, types[0], types[1])

    def _binary(
        self, name: str, left: pa.DataType | None, right: pa.DataType | None
    ) -> pa.DataType | None:
        if left is None or right is None:
            return None
        numbers = as_number(left), as_number(right)
        if None not in numbers:
            if name == "truediv":
                return DOUBLE
            if name in ("lshift", "rshift", "bitand", "bitor", "bitxor"):
                if DOUBLE in numbers:
                    return None
                return BOOLEAN if left == right == BOOLEAN and name[0] == "b" else BIGINT
            return DOUBLE if DOUBLE in numbers else BIGINT
        if name == "add" and (left == right == STRING or pa.types.is_list(left)):
            return merged(left, right)
        if name == "mod" and left == STRING:
            return STRING
        if name == "mul" and right == BIGINT and (left == STRING or pa.types.is_list(left)):
            return left
        return None

    def _power(
        self, base: pa.DataType | None, exponent: pa.DataType | None, written: Tree
    ) -> pa.DataType | None:
        whole = as_number(base) == as_number(exponent) == BIGINT
        if whole and isinstance(written, Const) and isinstance(written.value, int):
            return BIGINT if written.value >= 0 else DOUBLE
        return None  # a negative number to a fractional power is complex

    def _item(self, of: pa.DataType | None, index: Tree) -> pa.DataType | None:
        if of is None:
            return None
        if of == STRING:
            return STRING
        if pa.types.is_list(of):
            return of.value_type
        if pa.types.is_struct(of) and isinstance(index, Const) and isinstance(index.value, str):
            return self._attribute(of, index.value)
        return None

    def _attribute(self, of: pa.DataType | None, name: str) -> pa.DataType | None:
        if of is not None and pa.types.is_struct(of):
            return next((f.type for f in of if f.name == name), None)
        return None

    def _method(self, of: pa.DataType | None, name: str, tree: Tree) -> pa.DataType | None:
        if of == STRING:
            return _TEXT_METHODS.get(name)
        if of is not None and pa.types.is_list(of) and name in ("count", "index"):
            return BIGINT
        if of == DOUBLE and name == "is_integer":
            return BOOLEAN
        if of == BIGINT and name in ("bit_length", "bit_count"):
            return BIGINT
        if isinstance(tree, Const) and isinstance(tree.value, re.Pattern):
            text = isinstance(tree.value.pattern, str)
            return {"sub": STRING, "split": TEXTS}.get(name) if text else None
        return None

    def _call(self, tree: Python) -> pa.DataType | None:
        function, args = tree.function, tree.args
        if tree.result is not None:
            return tree.result
        if tree.like is not None:
            inside = self._arguments(tree)
            return None if inside is None else static_type(tree.like, inside)
        if isinstance(function, ScalarFunction):
            return function.result
        if function in (min, max) and len(args) > 1:
            common = self.of(args[0])
            for arg in args[1:]:
                common = merged(common, self.of(arg))
            return common
        if function is abs and len(args) == 1:
            return as_number(self.of(args[0]))
        if function is round:
            return self._rounded((*args, *(v for _, v in tree.keywords)))
        first = self.of(args[0]) if args else None
        if args and isinstance(args[0], Opaque) and args[0].elements is not None:
            first = pa.list_(args[0].elements)
        if function in (sorted, list, tuple) and first is not None and pa.types.is_list(first):
            return first
        if function in (sum, min, max) and first is not None and pa.types.is_list(first):
            return self._folded(tree, first.value_type)
        try:
            return _FUNCTIONS.get(function)
        except TypeError:  # a callable object that is not hashable
            return None

    def _arguments(self, tree: Python) -> Scope | None:
        """Return the scope in which a call is typed, if its arguments' types are known."""
        types = [self.of(arg) for arg in tree.args]
        fields = {str(i): ("", dtype) for i, dtype in enumerate(types) if dtype is not None}
        return Scope(fields) if len(fields) == len(types) else None

    def _rounded(self, args: tuple[Tree, ...]) -> pa.DataType | None:
        number = as_number(self.of(args[0]))
        if number == BIGINT or len(args) == 1:
            return None if number is None else BIGINT
        digits = args[1]
        if isinstance(digits, Const) and digits.value is None:
            return None if number is None else BIGINT
        return number if self.of(digits) == BIGINT else None

    def _folded(self, tree: Python, element: pa.DataType) -> pa.DataType | None:
        """Return the type of `sum`, `min` or `max` over a list."""
        if tree.function is sum:  # without elements, the sum is the int 0
            whole = element == NULL or as_number(element) == BIGINT
            return BIGINT if whole and len(tree.args) == 1 and not tree.keywords else None
        common: pa.DataType | None = element
        for name, value in tree.keywords:
            if name == "default":
                common = merged(common, self.of(value))
        return None if common == NULL else common
