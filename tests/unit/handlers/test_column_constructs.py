"""Each entry of the list of what runs in columns means what CPython makes of it, and changes
nothing: calls of all of them, in an app that runs in columns, beside the oracle's loop."""

from __future__ import annotations

import math
import re

import pytest

from handler_apps import app_of
from replay_oracle.differences import How, judge
from replay_oracle.programs import Case
from weir.handlers.planning.app_compiler import flow_of
from weir.handlers.planning.app_explanation import ways
from weir.handlers.reading.column_constructs import LISTED_FUNCTIONS, LISTED_METHODS

FUNCTIONS = {
    "abs": "abs(e.n); abs(e.x)",
    "all": "all([e.n, e.x, 1]); all(e.xs)",
    "any": "any([e.n, e.x, 0]); any(e.xs)",
    "ascii": "ascii(e.s)",
    "bin": "bin(e.n)",
    "bool": "bool(e.s); bool(e.x); bool(e.xs)",
    "chr": "chr(abs(e.n) % 1000)",
    "dict": "dict(a=e.n, b=e.s)['b']",
    "divmod": "divmod(e.n, 7)",
    "float": "float(e.n); float('1.5')",
    "format": "format(e.x, '.3f'); format(e.n, '+d')",
    "frozenset": "e.n in frozenset((1, 2, e.n)); len(frozenset(e.xs))",
    "hex": "hex(e.n)",
    "int": "int(e.y); int('12')",
    "isinstance": "isinstance(e.n, int); isinstance(e.s, (int, str))",
    "len": "len(e.s); len(e.xs)",
    "list": "list(e.xs); list(e.s)",
    "max": "max(e.n, 3); max(e.x, e.y); max([e.n, 1])",
    "min": "min(e.n, 3); min(e.x, e.y); min([e.n, 1])",
    "oct": "oct(e.n)",
    "ord": "ord(e.c)",
    "pow": "pow(e.n % 10, 3); pow(e.n % 10, 3, 7)",
    "repr": "repr(e.s); repr(e.x)",
    "round": "round(e.y); round(e.y, 1); round(e.n, -1)",
    "set": "e.n in set((1, e.n)); len(set(e.xs))",
    "sorted": "sorted(e.xs); sorted(e.xs, reverse=True)",
    "str": "str(e.n); str(e.x); str(e.s)",
    "sum": "sum(e.xs); sum([e.n, 1], 5)",
    "tuple": "tuple(e.xs)",
}
RE = {
    "search": r"bool(re.search('[a-k]+', e.s))",
    "match": r"bool(re.match('a.*', e.s, re.I))",
    "fullmatch": r"re.fullmatch(r'[^\W\d]+', e.s, re.I) is None",
    "sub": r"re.sub('[aeiou]', '*', e.s)",
    "split": r"re.split(' ', e.s)",
    "findall": r"re.findall('[a-z]', e.s)",
}
MATH = {
    **dict.fromkeys(("comb", "perm"), "(abs(e.n) % 10, 3)"),
    **dict.fromkeys(("copysign", "fmod", "hypot", "remainder", "nextafter"), "(e.y, 3.5)"),
    "atan2": "(e.y, 2.0)",
    "dist": "([e.y], [2.0])",
    "factorial": "(abs(e.n) % 10)",
    "fsum": "([e.y, 0.1])",
    "gcd": "(e.n, 12)",
    "lcm": "(e.n % 100, 12)",
    "isqrt": "(abs(e.n))",
    "isclose": "(e.y, e.y + 1e-12)",
    "ldexp": "(e.y, 3)",
    "pow": "(2.0, e.y % 8)",
    "prod": "([e.y, 2])",
    "frexp": "(e.y)",
    "modf": "(e.y)",
    "log": "(abs(e.y) + 1, 3)",
    "sumprod": "([e.y], [2.0])",
    "fma": "(e.y, 2.0, 1.0)",
    "cbrt": "(e.y)",
    **dict.fromkeys(("acos", "asin", "atanh"), "(e.y / 1000)"),
    **dict.fromkeys(
        ("acosh", "gamma", "lgamma", "log10", "log1p", "log2", "sqrt"), "(abs(e.y) + 1)"
    ),
    **dict.fromkeys(("cosh", "sinh", "exp", "exp2", "expm1"), "(e.y % 9)"),
}
METHODS = {
    "str": """
        e.s.capitalize(); e.s.casefold(); e.s.center(9, '*'); e.s.count('a'); e.s.encode('utf-8');
        e.s.endswith('k'); e.s.endswith(('k', 'c')); e.s.expandtabs(4); e.s.find('s');
        '{}-{}'.format(e.s, e.n); (e.s + 'z').index('z'); e.s.isalnum(); e.s.isalpha();
        e.s.isascii();
        e.s.isdecimal(); e.s.isdigit(); e.s.isidentifier(); e.s.islower(); e.s.isnumeric();
        e.s.isprintable(); e.s.isspace(); e.s.istitle(); e.s.isupper(); ','.join([e.s, 'b']);
        e.s.ljust(9); e.s.lower(); e.s.lstrip(' a'); e.s.partition('s'); e.s.removeprefix('a');
        e.s.removesuffix('k'); e.s.replace('a', 'bb', 1); e.s.rfind('s'); ('z' + e.s).rindex('z');
        e.s.rjust(9, '0'); e.s.rpartition('s'); e.s.rsplit('s', 1); e.s.rstrip(); e.s.split();
        e.s.split('s'); e.s.splitlines(); e.s.startswith('a', 0); e.s.strip(); e.s.swapcase();
        e.s.title(); e.s.translate({97: 'X'}); e.s.upper(); e.s.zfill(9)""",
    "bytes": """
        e.b.count(b'a'); e.b.decode('latin-1'); e.b.endswith(b'c'); e.b.find(b'b'); e.b.hex();
        (e.b + b'z').index(b'z'); e.b.startswith(b'a')""",
    "int": "e.n.bit_count(); e.n.bit_length()",
    "float": "e.y.as_integer_ratio(); e.y.hex(); e.y.is_integer()",
    "bool": "e.ok.bit_count(); e.ok.bit_length()",
    "list": "e.xs.copy(); e.xs.count(2); (e.xs + [9]).index(9)",
    "dict": "{'a': e.n}.copy()['a']; {'a': e.n}.get('b', 4); {1: 'x'}.get(e.n)",
    "re.Pattern": """
        WORD.findall(e.s); WORD.fullmatch(e.s) is None; bool(WORD.match(e.s));
        WORD.search(e.s) is not None; WORD.split(e.s); WORD.sub('-', e.s)""",
}
IMPORTS = """
import math
import re
import weir

app = weir.App("listed")
"""
APP = """
WORD = re.compile('[a-m]')
listed = app.events(
    "listed",
    "n BIGINT, x DOUBLE, y DOUBLE, s STRING, c STRING, b BINARY, ok BOOLEAN, xs LIST(BIGINT),"
    " ts BIGINT",
    vs="ts",
)

@app.on(listed)
def h(e):
"""
TEXTS = ["ask", "", "Straße", "K ſ", "a\tb\nc", "12٣", "ΑΣ ς", "ǅ Title", "abc" * 9, " a "]
NUMBERS = [0, 1, -7, 2**53 + 1, 2**63 - 1, -(2**63) + 1, 12, 5, 100, 33]
DOUBLES = [0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), 1e300, 0.1, -1e-9, 7.0]
FINITE = [0.0, -0.0, 1.5, -2.5, 3.25, 999.5, 12.125, 0.1, -1e-9, 7.0]
ROWS = [
    {
        "n": n,
        "x": x,
        "y": y,
        "s": s,
        "c": "aßK☃\n"[i % 5],
        "b": b"abc"[: i % 4],
        "ok": i % 2 == 0,
        "xs": [1, 2, 2][: i % 4],
        "ts": i,
    }
    for i, (n, x, y, s) in enumerate(zip(NUMBERS, DOUBLES, FINITE, TEXTS, strict=True))
]


def calls() -> dict[str, list[str]]:
    """Return calls of all entries, by where they are listed."""
    told = {name: text.split("; ") for name, text in FUNCTIONS.items()}
    told |= {f"re.{name}": [text] for name, text in RE.items()}
    for name, function in vars(math).items():
        if callable(function) and function in LISTED_FUNCTIONS:
            told[f"math.{name}"] = [f"math.{name}{MATH.get(name, '(e.y)')}"]
    for kind, text in METHODS.items():
        told[f"methods of {kind}"] = [one.strip() for one in text.split(";") if one.strip()]
    return told


def test_every_entry_has_a_call() -> None:
    named = {eval(name, {"math": math, "re": re}) for name in calls() if "methods" not in name}
    assert named == LISTED_FUNCTIONS
    for kind, names in LISTED_METHODS.items():
        found = {name for name in names if f".{name}(" in METHODS[kind]}
        assert found == names, kind


def app_text(name: str) -> str:
    emits = [f"    app.emit('out{i}', v=repr({call}))" for i, call in enumerate(calls()[name])]
    return "\n".join((APP, *emits, ""))


@pytest.mark.parametrize("name", calls())
def test_they_run_in_columns_as_cpython_runs_them(name: str) -> None:
    assert ways(flow_of(app_of(app_text(name)))) == {"h": "columns"}
    case = Case(0, IMPORTS + app_text(name), {"listed": [ROWS]}, {})
    verdict = judge(case, How(cut=3))
    assert verdict.kind == "same", verdict.text
