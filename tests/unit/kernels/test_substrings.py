"""`contains` is Python's `in` and `split` its `split`, on the bytes of texts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.kernels.expressions.substrings import contains, split

TEXTS = st.text(st.sampled_from("abé€\n"), max_size=12)


@settings(deadline=None)
@given(st.lists(st.none() | TEXTS, max_size=8), TEXTS, st.integers(0, 3), st.integers(0, 3))
def test_against_in(texts: list[str | None], sought: str, skip: int, drop: int) -> None:
    column = pa.array(texts, pa.string()).slice(skip, max(0, len(texts) - skip - drop))
    wanted = [None if t is None else sought in t for t in column.to_pylist()]
    assert contains(column, sought).to_pylist() == wanted


@pytest.mark.parametrize("sought", ["aab", "b", "aaaa", "ba"])
def test_texts_that_nearly_match(sought: str) -> None:
    texts = ["aaab", "aabaab", "", "baaa", "aab" * 9, "aa", "b"]
    wanted = [sought in t for t in texts]
    assert contains(pa.array(texts), sought).to_pylist() == wanted


LONG = st.lists(st.sampled_from(["needle", "needl", "n", "e", " " * 7, "x" * 40]), max_size=9)


@settings(deadline=None)
@given(st.lists(LONG.map("".join), max_size=12), st.sampled_from(["needle", "ne", "xn", "lex"]))
def test_against_in_where_whole_blocks_are_skipped(texts: list[str], sought: str) -> None:
    column = pa.array(texts, pa.string())
    assert contains(column, sought).to_pylist() == [sought in text for text in texts]


def test_a_text_does_not_reach_into_the_next_one() -> None:
    texts = ["x" * 61 + "nee", "dle" + "x" * 61] * 3
    assert contains(pa.array(texts), "needle").to_pylist() == [False] * 6


PLACES = st.integers(0, 3)
SEPARATORS = st.sampled_from(["a", "b", "é", "€", "ab", "aa", "aab", "\n"])


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.none() | TEXTS, max_size=8), SEPARATORS, PLACES, PLACES)
def test_against_split(texts: list[str | None], separator: str, skip: int, drop: int) -> None:
    column = pa.array(texts, pa.string()).slice(skip, max(0, len(texts) - skip - drop))
    parts = split(column, separator)
    parts.validate(full=True)
    assert parts.type == pa.list_(pa.string())
    wanted = [None if t is None else t.split(separator) for t in column.to_pylist()]
    assert parts.to_pylist() == wanted


@pytest.mark.parametrize("separator", ["b", "bc"])
def test_bytes_under_a_null_are_no_part(separator: str) -> None:
    hidden = pa.array([True, False, True])
    full = pa.array(["abca", "bcbc", "a"])
    buffers = [pa.array([1, 0, 1], pa.int64()).cast(pa.bool_()).buffers()[1], *full.buffers()[1:]]
    column = pa.Array.from_buffers(pa.string(), 3, buffers)
    parts = split(column, separator)
    assert [parts.is_valid()[i].as_py() for i in range(3)] == hidden.to_pylist()
    assert len(parts.flatten()) == 3
    assert len(parts.values) == 3
