"""`contains` is Python's `in`, on the bytes of texts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.kernels.substrings import contains

TEXTS = st.text(st.sampled_from("abé€\n"), max_size=12)


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
