"""Mutated programs: each is a Program, which can be planned and explained, or a ScriptError with
its place; never a crash or a hang.

Small programs over two streams, one for each corner of the language, are cut, spliced and
garbled: by tokens, which keeps them close to right, and by characters, which does not; and some
are blown up: parts that come thousands of times, or within each other. Every mutation follows
from its seed alone. `WEIR_FUZZ=200000` (`make fuzz`) for so many.
"""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weir.errors import PlanError, ScriptError
from weir.plan.explain.explanation import Format, explain
from weir.plan.program import Program
from weir.runtime.program_plan import plan_program
from weir.script import parse_program

# Joins without an equality are right, and warned about.
pytestmark = pytest.mark.filterwarnings("ignore")

PROGRAMS_IN_ALL = int(os.environ.get("WEIR_FUZZ", "20000"))
CHUNKS = 8
CHUNK = PROGRAMS_IN_ALL // CHUNKS
LONGEST_SECONDS = 20
LONGEST_MESSAGE = 3000
BLOWN_UP = 0.01
FORMS: tuple[Format, ...] = ("text", "json", "dot")

STREAMS = """STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'a' WITH (delay = 2);
STREAM B (vs BIGINT, k STRING, x LIST(INT), s STRUCT(a INT, b DOUBLE)) FROM 'b';
"""
STATEMENTS = """
Out = SELECT k, v + 1 AS w, -v // 2 % 3 AS q FROM A WHERE v > 1 AND NOT k = 'x' OR v IS NULL;
Out = SELECT DISTINCT k FROM A WHERE v IN (1, 2, NULL) AND v BETWEEN 1 AND 5s;
Out = SELECT A.*, B.k AS j FROM A LEFT OUTER JOIN B ON A.k == B.k AND A.v < 3;
Out = SELECT A.v AS v FROM A CLIP JOIN B ON A.k = B.k LEFT ASOF JOIN B AS C ON A.k = C.k;
Out = SELECT A.k AS k FROM A LEFT ANTI SEMI JOIN B ON A.k = B.k CROSS JOIN B AS C;
Out = SELECT k, SUM(v) FILTER (WHERE v > 3) AS s FROM A GROUP BY k WITH HOPPING(5, 2);
Out = SELECT COUNT(DISTINCT v) AS c, QUANTILE_DISC(v, 0.5) AS q FROM A WITH TUMBLING(5s, 1);
Out = SELECT k, MAX(v) AS m FROM A GROUP BY k HAVING MAX(v) > 1 WITH SESSION(5) ORDER BY m LIMIT 2;
Out = SELECT LAST(v) AS l FROM A WITH COUNT(4, 2);
Out = SELECT * FROM A WITH SHIFT(-4) UNION ALL SELECT * FROM A ORDER BY v DESC LIMIT 2 WITH TIES;
Out = SELECT MIN(v) AS min FROM (SELECT * FROM A WITH HOP_LIFETIME(9, 3)) AS S WITH SNAPSHOT;
Out = SELECT k FROM A WITH LIFETIME(vs + 1, ve); X = SELECT k FROM Out WITH CHOP(5, 1);
Out = SELECT CASE WHEN v > 1 THEN 'a' ELSE k END AS c, CASE v WHEN 1 THEN 2 END AS d FROM A;
Out = SELECT CAST(v AS DOUBLE) AS d, TRY_CAST(k AS DECIMAL(9, 2)) AS e FROM A WITH POINT;
Out = SELECT EXPLODE(x) AS e, s.a AS a, ELEMENT_AT(x, 1) AS f FROM B WITH DURATION(3);
Out = SELECT UPPER(k) || 'y' AS u, SUBSTRING(k FROM 2 FOR 1) AS t FROM A WITH QUANTIZE(4, 2);
Out = SELECT EXTRACT(hour FROM TIMESTAMP '2024-01-01') AS h, DATE '2024-01-01' AS d FROM A;
Out = SELECT ARRAY_CONTAINS([1, 2], v) AS c, k LIKE 'a%' AS l, k NOT RLIKE 'b' AS r FROM A;
Out = SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 2 AS 'p' GROUP BY k WITH TUMBLING(5);
DECLARE @p DOUBLE = 0.9; DECLARE @d BIGINT = 5s; Out = SELECT v * @p AS w FROM A WITH EXTEND(@d);
OUTPUT A TO 'o.csv'; OUTPUT LATE OF A TO 'l'; OUTPUT BAD OF B TO 'b'; SET strategy = 'replay';
IMPORT 'nothing.py'; Out = REDUCE A ON k USING Op(30m, 'x'); C = COMBINE A WITH B ON k USING Op();
STREAM C ("a b" DECIMAL(5, 2), `t` TIMESTAMP) FROM 'c' WITH (vs = t, late = 'drop', bad = 'skip');
SET allow_unbounded = true; /* comment */ Out = SELECT "k" AS `q` FROM A -- comment
"""
PROGRAMS = [line for line in STATEMENTS.splitlines() if line]
TOKEN = re.compile(r"\s+|'[^']*'|\"[^\"]*\"|\w+|//|\|\||[<>=!]=|.", re.DOTALL)
TOKENS = sorted({t for line in PROGRAMS for t in TOKEN.findall(line) if not t.isspace()})
NOISE = (
    "\"'`()[]{}<>;,.:@#$%^&*-+=/\\|?!~_ \t\n\r\x00\x0b\x1b\x7f\x85\x9b\xa0é€ıß０😀abz059"
    "\ud800\udfff"
    "\u0301\u200b\u200f\u2028\u2029\u202e\ufeff\ufffe٣Ⅷ²ﬁǅ𝒜\U000e0041\U0010ffff"
)

Mutation = Callable[[random.Random, list[str]], list[str]]


def _delete(rng: random.Random, parts: list[str]) -> list[str]:
    at = rng.randrange(len(parts))
    return parts[:at] + parts[at + rng.choice((1, 1, 1, 2, 5)) :]


def _repeat(rng: random.Random, parts: list[str]) -> list[str]:
    at = rng.randrange(len(parts))
    return parts[:at] + parts[at : at + rng.randint(1, 4)] * rng.randint(2, 3) + parts[at:]


def _swap(rng: random.Random, parts: list[str]) -> list[str]:
    one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    parts[one], parts[other] = parts[other], parts[one]
    return parts


def _replace(rng: random.Random, parts: list[str]) -> list[str]:
    parts[rng.randrange(len(parts))] = rng.choice(TOKENS)
    return parts


def _insert(rng: random.Random, parts: list[str]) -> list[str]:
    parts.insert(rng.randrange(len(parts) + 1), f" {rng.choice(TOKENS)} ")
    return parts


def _splice(rng: random.Random, parts: list[str]) -> list[str]:
    other = TOKEN.findall(rng.choice(PROGRAMS))
    return parts[: rng.randrange(len(parts) + 1)] + other[rng.randrange(len(other)) :]


def _cut(rng: random.Random, parts: list[str]) -> list[str]:
    return parts[: rng.randrange(len(parts))]


def _garble(rng: random.Random, parts: list[str]) -> list[str]:
    text = list("".join(parts))
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        text[at : at + rng.randint(0, 1)] = rng.choice(NOISE)
    return text


def _blow_up(rng: random.Random, parts: list[str]) -> list[str]:
    """Something comes many times, beside itself or within itself."""
    at = rng.randrange(len(parts))
    some, often = parts[at : at + rng.randint(1, 6)], rng.choice((70, 300, 1000))
    if rng.random() < 0.5:
        return parts[:at] + some * often + parts[at:]
    left, right = rng.choice((("(", ")"), ("[", "]"), ("ABS(", ")"), ("NOT ", ""), ("- ", "")))
    return parts[:at] + [left] * often + some + [right] * often + parts[at + len(some) :]


MUTATIONS: tuple[Mutation, ...] = (
    _delete,
    _repeat,
    _swap,
    _replace,
    _insert,
    _splice,
    _cut,
    _garble,
    _garble,
)


def mutated(rng: random.Random) -> str:
    parts = TOKEN.findall(rng.choice(PROGRAMS))
    for _ in range(rng.choice((1, 1, 2, 3))):
        parts = rng.choice(MUTATIONS)(rng, parts) or [";"]
    if rng.random() < BLOWN_UP:
        parts = _blow_up(rng, parts)
    return STREAMS + "".join(parts) + rng.choice(("", "", "\nOUTPUT Out TO 'out.csv';"))


@contextmanager
def no_hang() -> Iterator[list[str]]:
    """Fails, with the program in the list, when one takes longer than LONGEST_SECONDS."""
    current = [""]

    def stop(_signal: int, _frame: object) -> None:
        pytest.fail(f"still parsing after {LONGEST_SECONDS} s: {current[0]!r}")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        yield current
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(text: str, directory: Path) -> str:
    """What came of the program; whatever else is raised names the program that did it."""
    try:
        program = parse_program(text, directory=directory)
    except ScriptError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines), text
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1, text
        shown = str(error)
        assert error.message and len(shown) < LONGEST_MESSAGE, text
        assert all(c.isprintable() or c in "\t\n\xa0" for c in shown), text
        return "error"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} from {text!r}") from error
    assert isinstance(program, Program)
    try:
        planned = plan_program(program, 3)
        for form in FORMS:
            explain(planned.program, planned.stages, form).encode()
    except PlanError as error:  # a strategy that one of its stages cannot have, say
        assert error.message and len(str(error)) < LONGEST_MESSAGE, text
        return "error"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} in the plan of {text!r}") from error
    return "program"


def test_the_corpus_is_right(tmp_path: Path) -> None:
    wrong = [p for p in PROGRAMS if outcome(STREAMS + p, tmp_path) == "error"]
    # IMPORT points at nothing, and the last has no `;`.
    assert wrong == [p for p in PROGRAMS if p.startswith("IMPORT") or p.endswith("comment")]


@pytest.mark.parametrize("seed", range(CHUNKS))
def test_mutated_programs(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    counts = {"program": 0, "error": 0}
    with no_hang() as current:
        for _ in range(CHUNK):
            current[0] = mutated(rng)
            signal.alarm(LONGEST_SECONDS)
            counts[outcome(current[0], tmp_path)] += 1
    # Mutations that always break a program, or never, would test little.
    assert counts["program"] > CHUNK // 50
    assert counts["error"] > CHUNK // 2
