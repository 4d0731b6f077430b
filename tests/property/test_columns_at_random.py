"""Random expressions and random patterns, as columns against CPython.

WEIR_NIGHT=1 tries many more.
"""

import os
import random
import re

import pytest

from unit.handlers.expression_trees import tree_of
from unit.handlers.test_columns_like_python import (
    CONSTANTS,
    SCHEMA,
    SCOPE,
    batch_of,
    both_ways,
    typed,
)
from weir.handlers.columns.column_values import truth_of, why_row_by_row
from weir.handlers.columns.patterns import ascii_pattern
from weir.handlers.trees.scope import NotAColumn
from weir.kernels.expressions.evaluator import compile_expression

SEEDS = 3000 if "WEIR_NIGHT" in os.environ else 60
PATTERNS = 20000 if "WEIR_NIGHT" in os.environ else 600


class Sources:
    """Random sources, by the type of their value; few of them raise for most rows."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def one(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def int(self, depth: int) -> str:
        if depth <= 0:
            return self.one("a", "b", "c", "i", "0", "1", "2", "-3", "7", "len(s)", "len(l)")
        a, b = self.int(depth - 1), self.int(depth - 1)
        f, t, c = self.float(depth - 1), self.text(depth - 1), self.bool(depth - 1)
        return self.one(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} // {b})",
            f"({a} % {b})",
            f"-{a}",
            f"abs({a})",
            f"({a} & {b})",
            f"({a} if {c} else {b})",
            f"({a} or {b})",
            f"({a} and {b})",
            f"max({a}, {b})",
            f"min({a}, {b})",
            f"int({f})",
            f"round({f})",
            f"len({t})",
            f"({c} + {a})",
            f"{t}.count('a')",
            f"{t}.find('a')",
            f"int({c})",
            f"({a} // {b} if {b} else 0)",
            f"~{a}",
            f"({a} ** 2)",
        )

    def float(self, depth: int) -> str:
        if depth <= 0:
            return self.one("x", "y", "0.5", "1.5", "-2.0", "1e300", "0.1")
        a, b = self.float(depth - 1), self.float(depth - 1)
        i, c = self.int(depth - 1), self.bool(depth - 1)
        return self.one(
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} / {b})",
            f"({a} // {b})",
            f"({a} % {b})",
            f"({a} + {i})",
            f"({i} * {a})",
            f"({i} / {i})",
            f"-{a}",
            f"abs({a})",
            f"({a} if {c} else {b})",
            f"({a} or {b})",
            f"max({a}, {b})",
            f"min({a}, {b})",
            f"round({a}, 2)",
            f"float({i})",
            f"({a} / {b} if {b} else 0.0)",
            f"({i} / 3)",
        )

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self.one("s", "t", "'a'", "''", "'Ab'")
        a, b = self.text(depth - 1), self.text(depth - 1)
        i, c = self.int(depth - 1), self.bool(depth - 1)
        parts = "i", "a + 1", "s", "p", "x"  # a part of an f-string has no quotes before 3.12
        return self.one(
            f"({a} + {b})",
            f"{a}.lower()",
            f"{a}.upper()",
            f"{a}.strip()",
            f"{a}.strip('a ')",
            f"{a}[1:]",
            f"{a}[:2]",
            f"{a}[-2:]",
            f"{a}.replace('a', 'bb')",
            f"{a}.rstrip()",
            f"({a} if {c} else {b})",
            f"({a} or {b})",
            f"str({i})",
            f"max({a}, {b})",
            f"{a}[1:-1]",
            f"f'{{{self.one(*parts)}}}:{{{self.one(*parts)}}}'",
            f"{a}.split(',')[0]",
            f"str({c})",
        )

    def bool(self, depth: int) -> str:
        if depth <= 0:
            return self.one("p", "q", "True", "(a is None)", "(s is not None)")
        a, b = self.bool(depth - 1), self.bool(depth - 1)
        i, j = self.int(depth - 1), self.int(depth - 1)
        f, g = self.float(depth - 1), self.float(depth - 1)
        t, u = self.text(depth - 1), self.text(depth - 1)
        sign = self.one("==", "!=", "<", "<=", ">", ">=")
        return self.one(
            f"({i} {sign} {j})",
            f"({f} {sign} {g})",
            f"({i} {sign} {g})",
            f"({t} {sign} {u})",
            f"({a} and {b})",
            f"({a} or {b})",
            f"(not {a})",
            f"({t} in {u})",
            f"({i} in (1, 2, {j}))",
            f"({i} is None)",
            f"({a} {sign} {b})",
            f"{t}.startswith('a')",
            f"bool({i})",
            f"({i} {sign} {j} {sign} {f})",
            f"({a} if {b} else {a})",
            f"bool({t})",
            f"({i} != 0 and 10 / {i} > {f})",
            f"{t}.isalpha()",
            f"(EMAIL.search({t}) is None)",
        )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_expressions(seed: int) -> None:
    sources = Sources(seed)
    kind = sources.chance.choice(("int", "float", "text", "bool"))
    source = getattr(sources, kind)(sources.chance.randint(1, 3))
    both_ways(source, typed(source), any_error=True)


def test_most_random_expressions_are_columns() -> None:
    found = [Sources(seed).bool(2) for seed in range(100)]
    by_rows = [s for s in found if why_row_by_row(tree_of(s, CONSTANTS), SCOPE, condition=True)]
    assert len(by_rows) < 30


# --- patterns ------------------------------------------------------------------------------


def random_pattern(chance: random.Random, depth: int) -> str:
    if depth <= 0:
        return chance.choice(
            [
                "a",
                "b",
                "A",
                "@",
                ".",
                r"\.",
                r"\d",
                r"\w",
                r"\s",
                r"\W",
                r"\S",
                r"\D",
                "[ab]",
                "[^a]",
                r"[\w.-]",
                "[a-c]",
                r"[^\s@]",
                r"\b",
                "^",
                "$",
                r"\Z",
                "\n",
                "1",
                "_",
                "[B-b]",
                r"\n",
                "é",
                "[^é]",
            ]
        )
    inner = [random_pattern(chance, depth - 1) for _ in range(2)]
    return chance.choice(
        [
            inner[0] + inner[1],
            f"({inner[0]}|{inner[1]})",
            f"(?:{inner[0]})+",
            f"(?:{inner[0]})*",
            f"(?:{inner[0]})?",
            f"(?:{inner[0]}){{1,2}}",
            f"{inner[0]}+?{inner[1]}",
            f"(?:{inner[0]})*?{inner[1]}",
            inner[0] + inner[1],
        ]
    )


def random_text(chance: random.Random) -> str:
    size = chance.randint(0, 7)
    return "".join(chance.choice("aabbAB@. .1_\n\t\x1c\x0bc-é") for _ in range(size))


def test_random_patterns() -> None:
    chance = random.Random(11)
    tried = 0
    for _ in range(PATTERNS):
        source = random_pattern(chance, chance.randint(1, 3))
        flags = chance.choice([0, 0, re.IGNORECASE, re.DOTALL, re.ASCII])
        how = chance.choice(["search", "match", "fullmatch"])
        try:
            pattern = re.compile(source, flags)
            ascii_pattern(pattern, how, 1)
        except (re.error, NotAColumn):
            continue
        tried += 1
        texts = [random_text(chance) for _ in range(40)]
        expr = truth_of(tree_of(f"P.{how}(s)", {"P": pattern}), SCOPE)
        batch = batch_of([(n, {"s": text}) for n, text in enumerate(texts)])
        found = compile_expression(expr, SCHEMA)(batch).to_pylist()
        wanted = [getattr(pattern, how)(text) is not None for text in texts]
        for text, one, other in zip(texts, found, wanted, strict=True):
            assert one == other, f"{how} of {source!r} {flags} in {text!r}: {one}"
    assert tried > PATTERNS // 4
