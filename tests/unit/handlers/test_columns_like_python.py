"""Every construct as a column against CPython, on values that tell the two apart.

An expression is evaluated by `eval` for each row. The rows that have a value are computed in one
batch, as columns and row by row, and must have the same values; each row that raises must raise the
same alone. Those of COLUMNS must be column expressions; without CPython's help they must give the
same or fail.
"""

import itertools
import math
import random
import re

import numpy as np
import pyarrow as pa
import pytest

from unit.handlers.expression_trees import KNOWN, tree_of
from weir.errors import OperatorFailed, RunError
from weir.events.batch import OPEN, Batch
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from weir.handlers.columns.column_values import Scope, column_of, truth_of, type_of, why_row_by_row
from weir.handlers.trees.values import Op
from weir.kernels.expressions.evaluator import PYTHON_BUILDERS, compile_expression
from weir.plan.expressions import Call, Expr, walk
from weir.plan.schema import Schema

INTS = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -7,
    10,
    2**31,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    -(2**62),
    2**63 - 1,
    -(2**63),
    None,
]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    0.1,
    0.285,
    1.005,
    2.675,
    1e16,
    2.0**53,
    2.0**63,
    -(2.0**63),
    1e300,
    -1e300,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    3.0,
    None,
]
TEXTS = [
    "",
    "a",
    "A",
    "b",
    "ab",
    "aba",
    "Straße",
    "ß",
    "İ",
    "ſ",
    "K",
    "٣",
    "²",
    "ⅷ",
    "a\n",
    "\n",
    "a@b.co",
    "x a.b-c@d-e.com\n",
    "é@b.co",
    "x y",
    " \t a \x1c",
    "\u2003a\u2003",
    "\x00",
    "😀b",
    "e\u0301",
    "ΑΣ",
    "aaaa",
    "aXa",
    "12",
    "0",
    " 12 ",
    "ab,cd,",
    ",",
    "a" * 40,
    "\r\n",
    "1\n",
    "Ab1",
    "_",
    "ǅ",
    "\x85",
    "\xa0",
    "None",
    "a b",
    None,
]
BOOLS = [True, False, None]
LISTS = [[], [1], [1, 2, 3], [3, 1, 2], [None], [0], [2**62, 2**62], None]
WORDS = [[], ["a"], ["b", "a"], [None, "a"], [""], None]
COLUMNS_OF = {
    "a": (BIGINT, INTS),
    "b": (BIGINT, INTS),
    "c": (BIGINT, INTS),
    "i": (INT, [0, 5, -3, None]),
    "x": (DOUBLE, FLOATS),
    "y": (DOUBLE, FLOATS),
    "s": (STRING, TEXTS),
    "t": (STRING, TEXTS),
    "p": (BOOLEAN, BOOLS),
    "q": (BOOLEAN, BOOLS),
    "l": (pa.list_(BIGINT), LISTS),
    "w": (pa.list_(STRING), WORDS),
}
CONSTANTS = {
    "EMAIL": re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"),
    "WORD": re.compile(r"\bab?\b", re.IGNORECASE),
    "NAN": math.nan,
    "INF": math.inf,
    "BIG": 2**70,
    "ABC": ("a", "b", "c"),
    "SET": frozenset(("a", "ß")),
    "NUMBERS": (1, 2, 3),
}

COLUMNS = """
a + b; a - b; a * b; a / b; a // b; a % b; -a; +a; ~a; abs(a); a & b; a | b; a ^ b
x + y; x - y; x * y; x / y; x // y; x % y; -x; +x; abs(x)
a + x; a - x; x * a; a / x; x / a; a // x; x // a; a % x; x % a
a + 1; 1 + a; a * 2; 2 * a; a - 10; a // 2; a % 2; a // -2; a % -3; a / 2; 2 / a; 10 // a; 10 % a
-7 // a; -7 % a; a ** 2; a // 7; a % 7; -a // 2; x * 1.2; x + 1; 1 - x; x / 3; x // 0.1; x % 0.1
p + 1; p + q; p * a; p / 2; p - q; -p; ~p; p & q; p | q; p ^ q; p & a; a | p; p + x; abs(p); +p
i + 1; i * i; i + a; i / 2; -i; i // 2; i + 2147483647
a * b // 3; (a + b) - b; a * a - a * a; (a * b) % 1000; a * b > c; -(-a); a * 4 // 4 == a
a == b; a != b; a < b; a <= b; a > b; a >= b; x == y; x != y; x < y; x <= y; x > y; x >= y
a == x; a != x; a < x; a <= x; a > x; a >= x; x < a; x == a; a == 0; a != 1; a > 2 * b
x > 0.2 * y; a > 0.2 * b; x == 0; x != 0.5; x > NAN; x == NAN; x < INF; a < INF
p == q; p != q; p == 1; p == a; p < a; p == x; p < q; p >= q; i == a; i < a; i == 5
s == t; s != t; s < t; s <= t; s > t; s >= t; s == "a"; "a" < s; s == ""; s == "None"
a == None; None == a; s != None; a is None; a is not None; None is a; s is None; x is not None
p is True; p is False; p is not True; a < b < c; 0 <= a <= 10; a == b == c; "a" <= s <= "b"
0 < x < 1; a < x < b; not a; not x; not s; not p; not l; not (a > 1 and b > 1)
a and b; a or b; x and y; x or y; s and t; s or t; p and q; p or q; a and b and c; a or b or c
a and 10 // a; 10 // a if p else b
a or 0; a or 5; s or "none"; x or 0.5; a and a + 1; p and a > 1; p or a > 1
a != 0 and 10 / a > 2; x != 0 and 1 / x > y; a is not None and a > 5
a is None or a > 5; a is not None and b is not None and a + b > c; s is not None and len(s) > 2
a if p else b; a if a else b; a if a > b else b; x if x > y else y; s if p else t; a if p else None
None if p else s; 10 // a if a != 0 else 0; 10 / a if a else 0.0; a if p else b if q else c
(a if p else b) + 1; 1 if a > 1 else 2 if a > 0 else 3; True if p else False; p if q else True
None if a is None else a + 1; a + 1 if a is not None else 0; "big" if a > 10 else "small"
bool(a); bool(x); bool(s); bool(p); bool(l); bool(w); bool(None); bool(a) + 1
len(s); len(l); len(w); len(s) > 3; len(s) + a; len(s) / 2
int(x); int(a); int(p); float(a); float(x); float(p); str(a); str(p); str(s); str(x); int(x / 2)
round(x); round(x, 2); round(x, 0); round(x, 1); round(x, 5); round(a); round(a, 2); round(p)
round(x, None); round(x * 1.2, 2); round(a / 3, 2); round(x, 15)
min(a, b); max(a, b); min(x, y); max(x, y); max(a, 0); min(x, 1.0); max(s, t); min(s, "b")
max(a, b, c); min(a, b, 5); max(x, y, 0.0); max(0.0, x); min(0.0, x)
s + t; s + "!"; "<" + s + ">"; f"{s}"; f"{a}"; f"{p}"; f"{x}"; f"{s}-{a}"; f"a={a}, s={s!s}"; f""
f"{a}{b}{s}{p}"; f"x"; f"{a + 1}:{s.lower()}"; f"{i}"; "k" + str(a)
"a" in s; "a" not in s; s in t; "" in s; s in "abc"; "ab" in s; "ß" in s; "@" in s; "\\n" in s
a in (1, 2, 3); a not in (1, 2); s in ("a", "b"); s in ABC; s in SET; a in NUMBERS; x in (0.0, 1.0)
x in (1, 2.5); s in ("a", None); a in [1, 2]; a in {1, 2}; a in (b, c); p in (True,); a in (True, 2)
s not in SET; a in (1,); x in (0, 1); s in [t]; p in (1, 0); x not in (0.5,)
s.lower(); s.upper(); s.casefold(); s.strip(); s.lstrip(); s.rstrip(); s.strip("a"); s.strip("a ")
s.lstrip("ab"); s.rstrip("\\n"); s.strip(""); s.strip("ß"); s.isdigit(); s.isalpha(); s.isalnum()
s.isspace(); s.isupper(); s.islower(); s.isascii(); s.isdecimal(); s.isnumeric()
s.startswith("a"); s.endswith("a"); s.startswith(""); s.startswith(("a", "A")); s.endswith((",",))
s.startswith("ß"); s.endswith("\\n"); s.find("a"); s.find(""); s.find("b"); s.find("ß")
s.count("a"); s.count("aa"); s.count(""); s.count("ß"); s.replace("a", "b"); s.replace("a", "")
s.replace("aa", "a"); s.replace("", "-"); s.replace("ß", "ss"); s.split(","); s.split("ab")
s.split(",")[0]; s.split(",")[1]; s.split(",")[-1]; len(s.split(",")); s.lower() == t.lower()
s.strip().lower(); s.lower().startswith("a"); s.upper() in ("A", "SS"); "a" in s.lower()
s[0]; s[-1]; s[1]; s[-2]; s[:2]; s[1:]; s[1:3]; s[-2:]; s[:-1]; s[1:-1]; s[-3:-1]; s[3:1]; s[:0]
s[:]; s[0:100]; s[-100:2]; s[2:2]; s[5:]; s[-1:]; s[-1:0]; s[0] == "a"; s[:1] == t[:1]; s[::1]
l[0]; l[-1]; l[1]; w[0]; w[-1]; l[0] + 1; w[0] == "a"; l[-3]; len(l) > 1 and l[1] > 1
EMAIL.search(s) is not None; EMAIL.search(s) is None; bool(EMAIL.search(s)); not EMAIL.search(s)
bool(re.search("a$", s)); bool(re.search(r"\\d", s)); bool(re.match(r"\\w+", s))
bool(re.fullmatch(r"\\w+", s)); bool(re.fullmatch("a$", s)); bool(re.search("^a", s))
bool(re.search(r"\\s", s)); bool(re.search(r"\\S", s)); bool(re.search(r"\\W", s))
bool(re.search(r"\\D", s)); bool(re.search(r"a.", s)); bool(re.search(r"a.", s, re.DOTALL))
bool(re.search(r"AB", s, re.I)); bool(re.search(r"[^a]", s)); bool(re.search(r"[^A]", s, re.I))
bool(re.search(r"a|b$", s)); bool(re.search(r"(a|X)+$", s)); bool(re.search(r"a{2,3}", s))
bool(re.search(r"\\ba\\b", s)); bool(re.search(r"[\\s,]", s)); bool(re.search(r"[^\\s\\w]", s))
bool(re.search(r"a\\Z", s)); bool(re.search(r"\\Aa", s)); bool(re.search("", s))
bool(re.search(r"ß", s)); bool(re.search(r"[a-ß]", s)); bool(re.search(r"k", s, re.I))
bool(re.search(r"[Z-a]", s, re.I)); bool(re.search(r"\\w", s, re.ASCII))
bool(re.search(r"a*?b", s))
bool(WORD.search(s)); bool(re.search(r"^(?:a|ab)$", s)); bool(re.search(r"(?P<n>a)b", s))
bool(re.search(r"[\\]\\-]", s)); bool(re.search(r"\\.", s)); bool(re.match("a|$", s))
bool(re.search(r" a b ", s, re.VERBOSE)); bool(re.search(r"(?i)AB", s)); bool(re.search(r"[ſ]", s))
EMAIL.search(s) is not None and a > 1; a > 1 and bool(EMAIL.search(s))
bool(re.search("s", s, re.I)); bool(re.search("ß", s, re.I))
a in l; s in w; a not in l; p in [True, False]; (a, s) == (b, t); (a, s) != (b, t); (a,) == (b,)
math.sqrt(x); math.sqrt(a); math.floor(x); math.ceil(x); math.ceil(a); math.trunc(x); math.isnan(x)
math.isinf(x); math.isfinite(a); math.fabs(x); math.sqrt(a * a + b * b); 3 in l; "a" in w
a > 2 * 3 + 1; a in (1, 2 - 3); a * (60 * 60); -(2 + 3) * x; a // (3 - 1)
vs + 1; vs > 20; ve is None; ve is not None and ve > vs; vs // 10; ve
a; x; s; p; l; w; 1; 1.5; "a"; True; None; i
"""

ROWS = """
l or w == None; a == 0 or 10 // a
i ** i; a ** 3; x ** 2; 2 ** i; a << 1; a >> 1; s * 2; s * i; s % a; "%s" % s; l + l; l * 2; l[1:]
l == l
a + s; s + a; s < a; a < s; x & 1; s - t; -s; abs(s); a == s; p == s; l < l; w == l
max((), default=0); max(l, default=0); min(l, default=None); round(x, ndigits=1); max((a, b))
sorted(l, reverse=True); sum(l, start=1); sum(())
2 in (1, 2, len(s)); (a, 10 // b) == (c, 1)
a + None; None + 1; a if p else 1.5; a or 1.5; p and a; a or p; (a if p else x) > 1
a in (1, "a"); a + BIG; BIG // (a or 1); a < BIG; round(a, -1); round(x, -1)
round(x, a); int(s); float(s); float(s) * 2; int("12"); repr(s); repr(x); ascii(s); ord(s); chr(a)
sum(l); sorted(l); sorted(w); min(l); max(l); any(l); all(l); list(w); tuple(l); len((a, b))
min(a, x); max(a, 0.5); min(s, t, key=len); max(a, b, key=abs); divmod(a, b)[0]; pow(a, 2)
s.title(); s.capitalize(); s.swapcase(); s.zfill(3); s.center(5); s.split(); s.split(None, 1)
s.rfind("a")
s.index("a"); s.partition(",")[0]; s.rsplit(",", 1); s.splitlines(); s.encode(); ",".join(w)
s.find("a", 1)
s.startswith(t); s.endswith(t); s.replace(t, "x"); s.replace("a", "b", 1); s.split(t); s.count(t)
s.isidentifier(); s.isprintable(); s.istitle(); s.removeprefix("a"); s.format(a); s.strip(t)
s[a]; s[::2]; s[::-1]; s[a:b]; l[a]; l[::-1]; f"{a:5}"; f"{x:.2f}"; f"{s!r}"; f"{s:>5}"; f"{l}"
f"{a:,}"
{"a": 1}.get(s, 0); (a, b)[0]; [a, b][1]; (x, s) == (y, t); (a, s) == (b,); {"a": a}["a"]
a in {b: 1}
math.log(x); math.exp(x); math.pow(x, 2); a in w; x in l; math.log(a or 1)
x.is_integer(); a.bit_length(); a.real; EMAIL.sub("-", s); re.sub("a", "b", s); re.split(",", s)
EMAIL.search(s).group(); re.match(r"(a)(b)?", s).group(1) if re.match("a", s) else None
bool(re.search(r"(a)\\1", s)); bool(re.search(r"a(?=b)", s)); bool(re.search(r"a$b?", s))
bool(re.search(r"^a", s, re.M)); bool(re.search(r"(?:a?){0,2}b", s)); bool(re.search(r"\\B", s))
bool(re.search(r"(?i:A)b", s)); bool(re.search(s, t))
isinstance(a, int); hex(a); str(l); bool(a) and s; sum(l) > 3 and len(l) > 1
"""

MOST_ROWS, MOST_FAILURES, ALONE = 240, 6, 20


def listed(text: str) -> list[str]:
    return [e.strip() for line in text.strip().splitlines() for e in line.split("; ") if e.strip()]


def used(source: str) -> list[str]:
    names = set(re.findall(r"(?<![\w.\"'])[a-z]\w*", re.sub(r"\"[^\"]*\"", "", source)))
    names |= set(re.findall(r"\{(\w)", source))
    return [n for n in COLUMNS_OF if n in names]


def rows_of(source: str) -> list[dict[str, object]]:
    names = used(source)
    given = [COLUMNS_OF[n][1] for n in names]
    if math.prod(map(len, given)) > 10_000:
        chance = random.Random(source)
        every = [tuple(map(chance.choice, given)) for _ in range(MOST_ROWS)]
    else:
        every = list(itertools.product(*given))
        if len(every) > MOST_ROWS:
            every = random.Random(source).sample(every, MOST_ROWS)
    return [dict(zip(names, values, strict=True)) for values in every]


def instants(row: int) -> dict[str, object]:
    return {"vs": 10 * row, "ve": None if row % 3 == 2 else 10 * row + 5}


SCHEMA = Schema(tuple((n, dtype) for n, (dtype, _) in COLUMNS_OF.items()), BIGINT)
FIELDS = {n: (n, dtype) for n, (dtype, _) in COLUMNS_OF.items()}
SCOPE = Scope(fields=FIELDS, where="app.py", handler="judge")
PLAIN = Scope(fields=FIELDS, where="app.py", handler="judge", vectorise=False)


def batch_of(rows: list[tuple[int, dict[str, object]]]) -> Batch:
    numbers = np.array([n for n, _ in rows], dtype=np.int64)
    ends = [OPEN if instants(n)["ve"] is None else instants(n)["ve"] for n, _ in rows]
    columns = (
        pa.array([row.get(name) for _, row in rows], dtype)
        for name, (dtype, _) in COLUMNS_OF.items()
    )
    return Batch(numbers * 10, np.array(ends, dtype=np.int64), tuple(columns))


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or one.hex() == other.hex()
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def fitting(value: object, dtype: pa.DataType) -> object:
    """The value as the column has it; OverflowError where it cannot."""
    if value is None:
        return None
    if dtype == BOOLEAN and type(value) is not bool:
        raise OverflowError
    if dtype in (BIGINT, INT):
        if not isinstance(value, int) or not -(2**63) <= value < 2**63:
            raise OverflowError
        return int(value)
    if dtype == DOUBLE and isinstance(value, int):
        if float(value) != value:
            raise OverflowError
        return float(value)
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, list):
        return [fitting(v, dtype.value_type) for v in value]
    if isinstance(value, str):
        value.encode()
    return value


def expected(
    source: str, rows: list[dict[str, object]], dtype: pa.DataType
) -> tuple[list[tuple[int, object]], list[tuple[int, str]]]:
    """The values of the rows that have one, and the kinds of the exceptions of the others."""
    code = compile(source, "x", "eval")
    values, failures = [], []
    for number, row in enumerate(rows):
        try:
            value = eval(code, {**KNOWN, **CONSTANTS}, {**row, **instants(number)})
        except Exception as error:
            failures.append((number, type(error).__name__))
            continue
        try:
            values.append((number, fitting(value, dtype)))
        except (OverflowError, UnicodeEncodeError):
            failures.append((number, "a value must be"))
    return values, failures


def bare(expr: Expr) -> Expr:
    """The column expression, without CPython's help."""
    return expr.args[0] if isinstance(expr, Call) and expr.function == "py_rows" else expr


def typed(source: str) -> pa.DataType:
    dtype = type_of(tree_of(source, CONSTANTS), SCOPE)
    return BIGINT if dtype is None or dtype == pa.null() else dtype


def compare(source: str, dtype: pa.DataType, *exprs: Expr, any_error: bool = False) -> None:
    """All expressions have the values of the source, and fail as it fails (which of two errors is
    raised may depend on what is shared)."""
    rows = rows_of(source)
    values, failures = expected(source, rows, dtype)
    batch = batch_of([(n, rows[n]) for n, _ in values])
    chance = random.Random(source)
    failing = [
        (batch_of([(n, rows[n])]), kind)
        for n, kind in chance.sample(failures, min(len(failures), MOST_FAILURES))
    ]
    for expr in exprs:
        evaluate = compile_expression(expr, SCHEMA)
        got = evaluate(batch)
        assert got.type == dtype
        for (number, wanted), found in zip(values, got.to_pylist(), strict=True):
            assert same(found, wanted), f"{source} on {rows[number]}: {found!r}, not {wanted!r}"
        for one, kind in failing:
            with pytest.raises(OperatorFailed, match=None if any_error else kind) as caught:
                evaluate(one)
            assert (caught.value.file, caught.value.line) == ("app.py", 1)
            assert caught.value.function == "judge"


def compare_alone(source: str, dtype: pa.DataType, expr: Expr) -> None:
    """The column expression gives the same without CPython, or fails."""
    rows = rows_of(source)
    values, failures = expected(source, rows, dtype)
    evaluate = compile_expression(expr, SCHEMA)
    chance = random.Random(source)
    for number, wanted in chance.sample(values, min(len(values), ALONE)):
        try:
            (found,) = evaluate(batch_of([(number, rows[number])])).to_pylist()
        except RunError:
            continue
        assert same(found, wanted), f"{source} on {rows[number]}: {found!r}, not {wanted!r}"
    for number, _ in chance.sample(failures, min(len(failures), ALONE)):
        with pytest.raises(RunError):
            evaluate(batch_of([(number, rows[number])]))


def both_ways(source: str, dtype: pa.DataType, *, any_error: bool = False) -> None:
    tree = tree_of(source, CONSTANTS)
    plain = column_of(tree, PLAIN, dtype)
    assert not any(isinstance(e, Call) and e.function.startswith("py_") for e in walk(plain))
    compare(source, dtype, column_of(tree, SCOPE, dtype), plain, any_error=any_error)
    truths = truth_of(tree, SCOPE), truth_of(tree, PLAIN)
    compare(f"bool({source})", BOOLEAN, *truths, any_error=any_error)


@pytest.mark.parametrize("source", listed(COLUMNS))
def test_columns(source: str) -> None:
    tree, dtype = tree_of(source, CONSTANTS), typed(source)
    assert why_row_by_row(tree, SCOPE) == ""
    both_ways(source, dtype)
    compare_alone(source, dtype, bare(column_of(tree, SCOPE, dtype)))


@pytest.mark.parametrize("source", listed(ROWS))
def test_rows(source: str) -> None:
    assert why_row_by_row(tree_of(source, CONSTANTS), SCOPE) != ""
    both_ways(source, typed(source))


# Fails on some rows, and has values on others.
CHECKED = """
10 // a; a * b; x / y; math.sqrt(x); len(s); s[0]; l[1]; s.lower(); int(x); a < b; a and 10 // a
a; s is None; s.split(",")[1]; 10 // a if p else b; a ** 3; int(s); sum(l); s.index("a"); l == l
"""


def checked(source: str) -> Op:
    """The value is computed for its failure only: it is true of all that have one."""
    return Op("checked", (tree_of(source, CONSTANTS),), line=1)


@pytest.mark.parametrize("source", listed(CHECKED))
def test_checks(source: str) -> None:
    in_columns = source in listed(COLUMNS)
    assert (why_row_by_row(checked(source), SCOPE) == "") == in_columns
    exprs = [column_of(checked(source), scope, BOOLEAN) for scope in (SCOPE, PLAIN)]
    exprs += [truth_of(checked(source), scope) for scope in (SCOPE, PLAIN)]
    # A list that begins with the value, so that it is computed, is true.
    compare(f"[{source}] != []", BOOLEAN, *exprs)
    if in_columns:
        assert {"py_checked"} <= functions_of(bare(exprs[0]))
        compare_alone(f"[{source}] != []", BOOLEAN, bare(exprs[0]))


@pytest.mark.parametrize("source", listed(CHECKED))
def test_what_fails_is_null_where_it_is_tried(source: str) -> None:
    dtype, rows = typed(source), rows_of(source)
    values, failures = expected(source, rows, dtype)
    wanted = dict(values) | {number: None for number, _ in failures}
    tried = Op("tried", (tree_of(source, CONSTANTS),), line=1)
    for scope in (SCOPE, PLAIN):
        expr = column_of(tried, scope, dtype)
        assert isinstance(expr, Call) and expr.function == "py_tried"
        evaluate = compile_expression(expr, SCHEMA)
        # All at once, where some fail; those that fail; and no row at all.
        for numbers in (sorted(wanted), [number for number, _ in failures], []):
            column = evaluate(batch_of([(number, rows[number]) for number in numbers]))
            assert column.type == dtype and len(column) == len(numbers)
            for number, found in zip(numbers, column.to_pylist(), strict=True):
                assert same(found, wanted[number]), f"{source} on {rows[number]}: {found!r}"


def test_some_of_what_is_tried_fails() -> None:
    failing = [s for s in listed(CHECKED) if expected(s, rows_of(s), typed(s))[1]]
    assert len(failing) > 12 and len(listed(CHECKED)) > len(failing)


def functions_of(expr: Expr) -> set[str]:
    return {part.function for part in walk(expr) if isinstance(part, Call)}


def test_every_function_is_tried() -> None:
    trees = [tree_of(source, CONSTANTS) for source in listed(COLUMNS)]
    trees += [checked(source) for source in set(listed(CHECKED)) & set(listed(COLUMNS))]
    used_ones = {
        name
        for tree in trees
        for name in functions_of(bare(column_of(tree, SCOPE, type_of(tree, SCOPE))))
        if name.startswith("py_")
    }
    # Structs have a test of their own; ints become DOUBLE only where that is wanted.
    assert used_ones == set(PYTHON_BUILDERS) - {"py_field", "py_exact_float"}


def test_there_are_enough() -> None:
    assert len(listed(COLUMNS)) >= 250
    assert len(set(listed(COLUMNS) + listed(ROWS))) == len(listed(COLUMNS) + listed(ROWS))
