"""Random inputs: few rows with small times, so that ties, touching lifetimes and duplicates
are frequent; open events, NULLs, strange floats and strings; partitions, CTIs, lateness.

An input is what a source reads: for each partition the items in offset order, in the format
of `weir conform` (`{"vs": 1, "ve": 5, "k": "a", …}` or `{"$cti": 4}`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hypothesis import strategies as st

from property.relations import chance

Item = dict[str, object]

COLUMNS = (
    ("k", "STRING"),
    ("v", "BIGINT"),
    ("f", "DOUBLE"),
    ("b", "BOOLEAN"),
    ("x", "LIST(BIGINT)"),
    ("s", "STRUCT(a DOUBLE, b LIST(STRING))"),
)
"""The payload of every generated source."""

STRINGS = ("a", "ab", "abc", "b", "", "é", "e\u0301", "日本", "\U0001f30a", "z", "Z")
PLAIN_FLOATS = (0.0, 1.0, 0.5, -2.5, 0.1, 0.2, 3.0)
STRANGE_FLOATS = (
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    -1e300,
    1.7976931348623157e308,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1e16,
    1.0,
)


@dataclass(frozen=True, slots=True)
class Input:
    """One stream's declaration options and data."""

    name: str
    integers: str
    """What `v` is declared as: BIGINT, or INT, which widens to it wherever they meet."""
    options: str
    partitions: list[list[Item]]

    @property
    def declaration(self) -> str:
        types = dict(COLUMNS) | {"v": self.integers}
        columns = ", ".join(f"{name} {dtype}" for name, dtype in types.items())
        return (
            f"STREAM {self.name} (vs BIGINT, ve BIGINT, {columns}) FROM '{self.name}.jsonl'"
            f" WITH (vs = vs, ve = ve{self.options});"
        )


_lengths = st.sampled_from((1, 1, 2, 3, 4, 5, 8, 15, None))
_keys = st.sampled_from(("a", "a", "b", "ab", None))
_ints = st.sampled_from((0, 1, 2, 3, 4, 4, 7, -1, None))
_bools = st.sampled_from((True, False, None))
_lists = st.sampled_from((None, [], [1], [2, 1], [1, None, 1], [3, 3]))
_structs = st.sampled_from(
    (
        None,
        {"a": None, "b": None},
        {"a": 0.0, "b": ["a"]},
        {"a": -0.0, "b": ["a"]},
        {"a": 0.0, "b": ["a", None]},
        {"a": math.nan, "b": []},
    )
)


def _payloads(draw: st.DrawFn) -> st.SearchStrategy[tuple[object, ...]]:
    """Each example keeps to few values of each kind, so that rows are often equal."""
    strings = draw(st.sampled_from((_keys, st.sampled_from((*STRINGS, None)))))
    kinds = ((*PLAIN_FLOATS, None), (*STRANGE_FLOATS, math.nan, None))
    floats = st.sampled_from(draw(st.sampled_from(kinds)))
    return st.tuples(strings, _ints, floats, _bools, _lists, _structs)


@st.composite
def inputs(draw: st.DrawFn, name: str, *, max_rows: int = 12) -> Input:
    """A stream whose late rows, if any, are dropped or adjusted, never an error."""
    payloads = _payloads(draw)
    integers = "INT" if chance(draw, 4) else "BIGINT"
    endless = chance(draw, 4)
    times = st.tuples(st.integers(-2, draw(st.sampled_from((4, 8, 20)))), _lengths, payloads)
    count = draw(st.sampled_from((1, 1, 1, 2, 3)))
    least = min(draw(st.sampled_from((0, 4, 8, 6, 8, 4))), max_rows)
    rows = draw(st.lists(times, min_size=least, max_size=max_rows))
    partitions: list[list[Item]] = [[] for _ in range(count)]
    for vs, length, payload in rows:
        if length is None and not endless:
            length = 6
        item: Item = {"vs": vs, "ve": None if length is None else vs + length}
        item |= dict(zip((n for n, _ in COLUMNS), payload, strict=True))
        partitions[draw(st.integers(0, count - 1)) if count > 1 else 0].append(item)
    if not chance(draw, 2):
        ordered = [sorted(p, key=lambda item: item["vs"]) for p in partitions]
        return Input(name, integers, "", [_with_honest_ctis(draw, p) for p in ordered])
    late = draw(st.sampled_from(("drop", "adjust")))
    delay = draw(st.sampled_from((0, 1, 3, 10, 30)))
    options = f", delay = {delay}, late = '{late}'"
    return Input(name, integers, options, [_with_any_ctis(draw, p) for p in partitions])


def _with_honest_ctis(draw: st.DrawFn, items: list[Item]) -> list[Item]:
    """CTIs that no later row contradicts, at some density."""
    density = draw(st.sampled_from((0, 1, 3)))
    result: list[Item] = []
    for item in items:
        if density and draw(st.integers(0, 3)) > 3 - density:
            result.append({"$cti": item["vs"] - draw(st.sampled_from((0, 0, 1, 5)))})
        result.append(item)
    return result


def _with_any_ctis(draw: st.DrawFn, items: list[Item]) -> list[Item]:
    result: list[Item] = []
    for item in items:
        result.append(item)
        if chance(draw, 6):
            result.append({"$cti": draw(st.integers(-2, 20))})
    return result
