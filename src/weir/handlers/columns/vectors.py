"""Translates values to column expressions that mean exactly the same as in CPython.

Contract
1. `vector(tree)` gives an expression over `py_…` functions (`kernels/expressions/python_*.py`)
   and the language's own CASE, AND, OR and NOT, or raises `NotAColumn`.
2. Wherever the expression has a value, it is CPython's. Where CPython would raise, or could have a
   value that does not fit the column's type (an int beyond 64 bits), the expression fails, and
   CPython computes the row instead (`py_rows`, in `column_values.py`).
3. NULL is None. Only operations that Python allows on None accept it: `is`, `==`, truth, `in`,
   f-strings.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP, type_name
from weir.handlers.columns.python_writer import conversion_of
from weir.handlers.columns.vector_calls import called, match_test, method
from weir.handlers.columns.vector_parts import (
    as_int,
    chosen,
    is_plain,
    literal,
    negated,
    never_null,
    options_of,
    sign_of,
    words,
)
from weir.handlers.trees.scope import (
    NotAColumn,
    Scope,
    first_line,
    from_below,
    is_leaf,
    leaf_column,
    remembered,
)
from weir.handlers.trees.static_types import as_number, static_type
from weir.handlers.trees.values import Attribute, Const, Method, Op, Python, Tree
from weir.plan.expressions import Call, Cast, Expr, Literal

_ARITHMETIC = frozenset(("add", "sub", "mul", "truediv", "floordiv", "mod"))
_BITS = frozenset(("bitand", "bitor", "bitxor"))
_ORDER = frozenset(("lt", "le", "gt", "ge"))
_ORDERED = (STRING, TIMESTAMP, DATE)
_LONGEST = 1 << 40
"""A number of characters that no text can have."""


class Vectors:
    """Translates the values of one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._is_preparing = False

    def static(self, tree: Tree) -> pa.DataType:
        """Return the static type of a value; NotAColumn if it is not known."""
        dtype = static_type(tree, self.scope)
        if dtype is None:
            raise NotAColumn(first_line(tree), f"the type of {words(tree)} is not known")
        return dtype

    def vector(self, tree: Tree) -> Expr:
        """Return the value as a column expression of its static type (INT as BIGINT)."""
        self._prepare(tree, "vector")
        return self._once("vector", tree, self._vector)

    def _prepare(self, tree: Tree, what: str) -> None:
        if not self._is_preparing:
            self._is_preparing = True
            from_below(tree, self.scope, what, self._tried)
            self._is_preparing = False

    def _tried(self, tree: Tree) -> None:
        static_type(tree, self.scope)
        for what, work in (("vector", self._vector), ("truth", self._truth)):
            with suppress(NotAColumn):  # kept, and raised again for later calls
                self._once(what, tree, work)

    def truth(self, tree: Tree) -> Expr:
        """Return Python's truth of the value: BOOLEAN, never NULL."""
        self._prepare(tree, "truth")
        return self._once("truth", tree, self._truth)

    def _once(self, what: str, tree: Tree, work: Callable[[Tree], Expr]) -> Expr:
        def tried() -> Expr | NotAColumn:
            try:
                return work(tree)
            except NotAColumn as reason:
                return reason

        result = remembered(self.scope, what, tree, tried)
        if isinstance(result, NotAColumn):
            raise NotAColumn(result.line, result.why)
        return result

    def _vector(self, tree: Tree) -> Expr:
        if is_leaf(tree):
            column = leaf_column(tree, self.scope)
            return Cast(column, type=BIGINT) if column.type == INT else column
        match tree:
            case Const(value=value):
                return literal(value, tree.line)
            case Op():
                return self._operation(tree)
            case Attribute(of=of, name=name):
                return self._field(of, name, tree)
            case Method():
                return method(tree, self)
            case Python():
                return called(tree, self)
        raise NotAColumn(first_line(tree), f"{words(tree)} has no column")

    def _truth(self, tree: Tree) -> Expr:
        match tree:
            case Op(name="not", args=(arg,)):
                return negated(self.truth(arg))
            case Op(name="and" | "or" as name, args=args):
                return Call(name, tuple(map(self.truth, args)), type=BOOLEAN)
            case Op(name="if", args=(test, then, otherwise)):
                return chosen(self.truth(test), self.truth(then), self.truth(otherwise))
            case Const(value=value):
                return Literal(bool(value), type=BOOLEAN)
            case Python(function=function, args=(arg,), keywords=()) if function is bool:
                return self.truth(arg)
        is_match = match_test(tree, self)
        if is_match is not None:
            return is_match
        value = self.vector(tree)
        if value.type == BOOLEAN and never_null(value):
            return value
        return Call("py_truth", (value,), type=BOOLEAN)

    def number(self, tree: Tree) -> Expr:
        """Return a number as BIGINT or DOUBLE; bools are ints."""
        value = self.vector(tree)
        if as_number(value.type) is None:
            assert value.type is not None
            name = "None" if value.type == NULL else type_name(value.type)
            raise NotAColumn(first_line(tree), f"arithmetic on {name} is done by Python")
        return as_int(value) if value.type == BOOLEAN else value

    # --- operations ------------------------------------------------------------------------

    def _operation(self, tree: Op) -> Expr:
        name, args = tree.name, tree.args
        if name in _ARITHMETIC:
            return self._arithmetic(tree)
        if name in ("eq", "ne"):
            return self._equality(tree)
        if name in _ORDER:
            return self._order(tree)
        match name:
            case "and" | "or":
                return self._operand(tree)
            case "not":
                return self.truth(tree)
            case "if":
                then, otherwise = self._alike(args[1:], tree)
                return chosen(self.truth(args[0]), then, otherwise)
            case "is" | "isnot":
                return self._identity(tree)
            case "in" | "notin":
                return self._membership(tree)
            case "neg" | "pos" | "invert":
                return self._unary(tree)
            case "pow":
                return self._power(tree)
            case "item":
                return self._item(tree)
            case "slice":
                return self._slice(tree)
            case "join":
                parts = tuple(map(self.vector, args))
                return Call("py_concat", parts, type=STRING) if parts else literal("", tree.line)
            case "format":
                return self._format(tree)
            case "checked":
                return Call("py_checked", (self.vector(args[0]),), type=BOOLEAN)
        if name in _BITS:
            return self._bits(tree)
        raise NotAColumn(tree.line, f"`{sign_of(name)}` is done by Python")

    def _arithmetic(self, tree: Op) -> Expr:
        left, right = (self.vector(a) for a in tree.args)
        if tree.name == "add" and left.type == right.type == STRING:
            return Call("py_concat", (left, right), type=STRING)
        left, right = (self.number(a) for a in tree.args)
        whole = left.type == right.type == BIGINT and tree.name != "truediv"
        return Call(f"py_{tree.name}", (left, right), type=BIGINT if whole else DOUBLE)

    def _bits(self, tree: Op) -> Expr:
        if all(self.static(a) == BOOLEAN for a in tree.args):
            dtype, args = BOOLEAN, tuple(map(self.vector, tree.args))
        else:
            dtype, args = BIGINT, tuple(map(self.number, tree.args))
        if any(a.type != dtype for a in args):
            raise NotAColumn(tree.line, "bits of anything but an int are done by Python")
        return Call(f"py_{tree.name}", args, type=dtype)

    def _unary(self, tree: Op) -> Expr:
        value = self.number(tree.args[0])
        if tree.name == "invert" and value.type != BIGINT:
            raise NotAColumn(tree.line, "`~` of anything but an int is done by Python")
        return Call(f"py_{tree.name}", (value,), type=value.type)

    def _power(self, tree: Op) -> Expr:
        base, exponent = tree.args
        squares = isinstance(exponent, Const) and type(exponent.value) is int
        if squares and exponent == Const(2) and self.static(base) == BIGINT:
            value = self.number(base)
            return Call("py_mul", (value, value), type=BIGINT)
        raise NotAColumn(tree.line, "`**` is done by Python")

    def _equality(self, tree: Op) -> Expr:
        match tree.args:
            case (Op(name="tuple", args=one), Op(name="tuple", args=two)) if one:
                return self._equal_tuples(one, two, tree)
        left, right = (self.vector(a) for a in tree.args)
        numbers = as_number(left.type), as_number(right.type)
        if NULL in (left.type, right.type):
            other = left if right.type == NULL else right
            test = Call("is_null", (other,), type=BOOLEAN)
            return test if tree.name == "eq" else negated(test)
        if None not in numbers and left.type != right.type:
            left, right = (as_int(v) if v.type == BOOLEAN else v for v in (left, right))
        elif left.type != right.type or left.type not in (BOOLEAN, BIGINT, DOUBLE, *_ORDERED):
            raise NotAColumn(tree.line, f"`{sign_of(tree.name)}` of such values is done by Python")
        return Call(f"py_{tree.name}", (left, right), type=BOOLEAN)

    def _equal_tuples(self, one: tuple[Tree, ...], two: tuple[Tree, ...], tree: Op) -> Expr:
        # Within a tuple, a NaN equals itself if it is the same object. Also, Python computes
        # all parts before it compares the first.
        parts = *one, *two
        floats = any(self.static(a) == DOUBLE for a in parts)
        if len(one) != len(two) or floats or not all(map(is_plain, parts)):
            raise NotAColumn(tree.line, "such tuples are compared by Python")
        tests = tuple(
            self._equality(Op("eq", pair, line=tree.line)) for pair in zip(one, two, strict=True)
        )
        same = tests[0] if len(tests) == 1 else Call("and", tests, type=BOOLEAN)
        return same if tree.name == "eq" else negated(same)

    def _order(self, tree: Op) -> Expr:
        left, right = (self.vector(a) for a in tree.args)
        if left.type != right.type or left.type not in _ORDERED:
            left, right = (self.number(a) for a in tree.args)
        return Call(f"py_{tree.name}", (left, right), type=BOOLEAN)

    def _identity(self, tree: Op) -> Expr:
        left, right = tree.args
        if isinstance(left, Const) and left.value is None:
            left, right = right, left
        if not (
            isinstance(right, Const)
            and (right.value is None or right.value is True or right.value is False)
        ):
            raise NotAColumn(tree.line, "`is` is done by Python, but for None, True and False")
        if right.value is None:
            is_match = match_test(left, self)
            test = (
                Call("is_null", (self.vector(left),), type=BOOLEAN)
                if is_match is None
                else negated(is_match)
            )
        elif self.static(left) == BOOLEAN:
            test = Call("py_eq", (self.vector(left), literal(right.value, 0)), type=BOOLEAN)
        else:
            raise NotAColumn(tree.line, f"`is {right.value}` of anything but a bool")
        return test if tree.name == "is" else negated(test)

    def _membership(self, tree: Op) -> Expr:
        value, within = tree.args
        if self._is_text(within):
            sought, text = self.vector(value), self.vector(within)
            if sought.type != STRING:
                raise NotAColumn(tree.line, "`in` a str takes a str")
            test: Expr = Call("py_contains", (text, sought), type=BOOLEAN)
        else:
            test = self._one_of(value, within, tree)
        return test if tree.name == "in" else negated(test)

    def _is_text(self, tree: Tree) -> bool:
        return bool(static_type(tree, self.scope) == STRING)

    def _one_of(self, value: Tree, within: Tree, tree: Op) -> Expr:
        options = options_of(within)
        if options is None:
            return self._in_list(value, within, tree)
        if not all(map(is_plain, options)):
            # Python computes all of them before it compares; OR would skip some.
            raise NotAColumn(tree.line, "`in` of what is computed there is done by Python")
        tests = [self._equality(Op("eq", (value, o), line=tree.line)) for o in options]
        for option in options:
            # Python finds a NaN if it is the same object.
            is_number = isinstance(option, Const) and option.value == option.value
            if not is_number and DOUBLE in (self.static(value), self.static(option)):
                raise NotAColumn(tree.line, "NaN is looked for by Python")
        if not tests:
            raise NotAColumn(tree.line, "`in` of nothing")
        return tests[0] if len(tests) == 1 else Call("or", tuple(tests), type=BOOLEAN)

    def _in_list(self, value: Tree, within: Tree, tree: Op) -> Expr:
        sought, elements = self.vector(value), self.vector(within)
        if sought.type in (BIGINT, STRING, BOOLEAN) and elements.type == pa.list_(sought.type):
            return Call("py_in_list", (sought, elements), type=BOOLEAN)
        raise NotAColumn(tree.line, "`in` of such a list is done by Python")

    def _operand(self, tree: Op) -> Expr:
        """Translate `and` and `or`, whose value is one of their operands."""
        values = self._alike(tree.args, tree)
        result = values[-1]
        for arg, value in zip(reversed(tree.args[:-1]), reversed(values[:-1]), strict=True):
            test = self.truth(arg)
            then, otherwise = (result, value) if tree.name == "and" else (value, result)
            result = chosen(test, then, otherwise)
        return result

    def _alike(self, trees: tuple[Tree, ...], tree: Op) -> tuple[Expr, ...]:
        """Translate values that can take each other's place, and so must have one type."""
        values = tuple(map(self.vector, trees))
        types = {v.type for v in values} - {NULL}
        if len(types) > 1:
            names = " or ".join(sorted(type_name(t) for t in types))
            raise NotAColumn(tree.line, f"the value is {names}, row by row")
        dtype = next(iter(types), NULL)
        return tuple(Literal(None, type=dtype) if v.type == NULL else v for v in values)

    def _item(self, tree: Op) -> Expr:
        of, index = tree.args
        if isinstance(index, Const) and isinstance(index.value, str):
            return self._field(of, index.value, tree)
        value = self.vector(of)
        if not isinstance(index, Const) or type(index.value) is not int:
            raise NotAColumn(tree.line, "an index that is not a constant is Python's")
        at = literal(index.value, tree.line)
        if value.type == STRING:
            return Call("py_character", (value, at), type=STRING)
        assert value.type is not None
        if pa.types.is_list(value.type):
            return Call("py_item", (value, at), type=value.type.value_type)
        raise NotAColumn(tree.line, f"an item of {type_name(value.type)} is Python's")

    def _slice(self, tree: Op) -> Expr:
        value = self.vector(tree.args[0])
        start, stop, step = (_bound(a, tree) for a in tree.args[1:])
        if value.type != STRING or step not in (None, 1):
            raise NotAColumn(tree.line, "only a str is cut as a column, by steps of 1")
        cuts = (Literal(start or 0, type=BIGINT), Literal(stop, type=BIGINT))
        return Call("py_slice", (value, *cuts), type=STRING)

    def _field(self, of: Tree, name: str, tree: Tree) -> Expr:
        value = self.vector(of)
        assert value.type is not None
        if not pa.types.is_struct(value.type):
            raise NotAColumn(first_line(tree), f"`.{name}` is Python's")
        for member in value.type:
            if member.name == name:
                args = (value, Literal(name, type=STRING))
                field_value: Expr = Call("py_field", args, type=member.type)
                return Cast(field_value, type=BIGINT) if member.type == INT else field_value
        raise NotAColumn(first_line(tree), f"no field `{name}` in {type_name(value.type)}")

    def _format(self, tree: Op) -> Expr:
        value, _, spec = tree.args
        written = spec.value if isinstance(spec, Const) else "?"
        plain = static_type(value, self.scope) in (STRING, BIGINT, INT, BOOLEAN, DOUBLE)
        if not plain or conversion_of(tree.args[1]) not in ("", "s") or written not in (None, ""):
            raise NotAColumn(tree.line, "an f-string with a format is Python's")
        return Call("py_str", (self.vector(value),), type=STRING)


def _bound(tree: Tree, of: Op) -> int | None:
    """Return a constant bound of a slice, clamped to the longest possible text, or None."""
    value = tree.value if isinstance(tree, Const) else tree
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise NotAColumn(of.line, "only a str is cut as a column, at constants")
    return max(-_LONGEST, min(_LONGEST, value))
