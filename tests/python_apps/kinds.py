"""The kinds of values in drawn code: words for Python types, with their literals.

An `o` in front says "or None". Some kinds are narrower than a type, so that drawn code seldom
fails: `small` is an int from 0 to 9, `pos` one that is above 0, `plain` an int that an f-string of
Python 3.11 may hold.
"""

from __future__ import annotations

SQL = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "str": "STRING",
    "bool": "BOOLEAN",
    "oint": "BIGINT",
    "ostr": "STRING",
    "ints": "LIST(BIGINT)",
    "strs": "LIST(STRING)",
    "sdict": "STRUCT(n BIGINT, t STRING)",
    "items": "LIST(STRUCT(k STRING, n BIGINT))",
}
"""The kinds of columns, states and emitted fields, with their types."""

COLUMNS = {
    "k": "str",
    "u": "int",
    "n": "int",
    "s": "str",
    "v": "int",
    "m": "oint",
    "x": "float",
    "t": "ostr",
    "f": "bool",
    "tags": "strs",
    "nums": "ints",
    "d": "sdict",
}
"""The columns that events may have."""
ALWAYS = ("k", "u", "n", "s")
"""Those that every event type has."""

LITERALS: dict[str, tuple[str, ...]] = {
    "int": ("0", "1", "2", "3", "5", "-1", "-4", "10", "0x1F", "100"),
    "small": ("0", "1", "2", "3", "7", "9"),
    "pos": ("1", "2", "3", "4", "7"),
    "float": ("0.0", "0.5", "1.0", "-2.5", "0.1", "3.0", "1e3"),
    "str": ("'a'", "'b'", "''", "'ab'", "'x y'", "'A'", "'ß'", "'0'", "'a' 'b'"),
    "char": ("'a'", "'b'", "','", "' '", "'-'"),
    "bool": ("True", "False"),
    "oint": ("None", "0", "2"),
    "ostr": ("None", "'a'", "''"),
    "bytes": ("b'ab'", "b''", "b'\\x00z'"),
    "ints": ("[]", "[1]", "[3, 1, 2]", "[0, -1]"),
    "strs": ("[]", "['a']", "['b', 'a']", "['', 'ab']"),
    "floats": ("[]", "[0.5]", "[1.0, -2.5]"),
    "tints": ("()", "(1,)", "(2, 0)"),
    "tis": ("(1, 'a')", "(0, '')"),
    "pairs": ("[('a', 1)]", "[('a', 1), ('b', 2)]", "[]"),
    "nested": ("[[1], [2, 3]]", "[[]]", "[[0, 1]]"),
    "sint": ("set()", "{1, 2}", "{0}"),
    "sstr": ("{'a'}", "{'a', 'b'}", "set()"),
    "dsi": ("{}", "{'a': 1}", "{'a': 1, 'b': 2}"),
    "dis": ("{}", "{1: 'a'}", "{0: 'z', 2: 'b'}"),
    "sdict": ("{'n': 1, 't': 'a'}", "{'n': 0, 't': ''}"),
    "any": ("None", "...", "3j", "b''", "NotImplemented", "1_000"),
}

VARIABLE_KINDS = (
    *("int",) * 8,
    *("str",) * 5,
    *("float",) * 3,
    *("bool",) * 3,
    *("ints",) * 5,
    *("strs",) * 3,
    "oint",
    "ostr",
    "floats",
    "tints",
    "tis",
    "pairs",
    "nested",
    "sint",
    "sstr",
    "dsi",
    "dsi",
    "dis",
    "sdict",
    "bytes",
    "counter",
    "ddict",
    "deq",
    "dt",
    "td",
    "dec",
    "frac",
    "sio",
    "it",
    "fii",
    "fss",
    "f0i",
)
PLAIN_KINDS = (
    *("int",) * 6,
    *("str",) * 4,
    *("float",) * 3,
    *("bool",) * 3,
    "oint",
    "ostr",
    "ints",
    "strs",
)
"""Kinds of variables in handlers that are meant to run in columns."""

STATE_KINDS = (
    *("int",) * 6,
    *("float",) * 2,
    *("str",) * 4,
    "bool",
    "oint",
    "ostr",
    "ints",
    "ints",
    "strs",
    "sdict",
)
EMITTED_KINDS = ("int", "int", "float", "str", "bool", "oint", "ostr", "ints", "strs", "sdict")

DEFAULTS = {
    "int": ("0", "0", "1", "-2", "7"),
    "float": ("0.0", "0.0", "0.1", "1.5"),
    "str": ("'a'", "'b'", "'-'"),
    "bool": ("False", "False", "True"),
    "oint": ("None",),
    "ostr": ("None",),
    "ints": ("()", "(4,)"),
    "strs": ("()",),
    "sdict": ("{'n': 1, 't': 'o'}",),
}
