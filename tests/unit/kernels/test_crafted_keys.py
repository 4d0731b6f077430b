"""Keys that somebody chose to do harm: none are taken for equal, none cost more than others.

The golden keys have one stable hash (`events/hashing.py`) or had one pane; how such keys are found
is in `tests/attack/key_collisions.py`. Before hashes had a secret each of these programs gave a
wrong answer, without a word.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import weir
from attack.key_collisions import crowded_numbers, crowded_priorities, equal_tuples
from weir.events.hashing import hash_rows
from weir.events.types import BIGINT, STRING
from weir.kernels.structures.keys import KeyIndex
from weir.testing import run

NUMBERS = ((4678635480500618626, 5324447904835209949), (1148036874452007116, -5331889659083060515))
"""Two keys (a, b) of one stable hash."""
TEXTS = (("", "\0" * 8), ("\0" * 8, ""))
"""The same, without a search: its words do not tell where a text ends."""
CASES = [("BIGINT", NUMBERS), ("STRING", TEXTS)]


@pytest.mark.parametrize(("dtype", "keys"), [(BIGINT, NUMBERS), (STRING, TEXTS)])
def test_the_stable_hash_takes_them_for_equal(dtype: pa.DataType, keys: tuple) -> None:  # type: ignore[type-arg]
    """It is a format, and stays what it is; so the keys below are what an attacker would send."""
    assert keys[0] != keys[1]
    columns = [pa.array([key[i] for key in keys], dtype) for i in (0, 1)]
    for words in hash_rows(columns, 2):
        assert words[0] == words[1]


def _rows(keys: tuple, name: str = "v") -> list[dict[str, object]]:  # type: ignore[type-arg]
    return [{"vs": 1, "ve": 9, "a": a, "b": b, name: i} for i, (a, b) in enumerate(keys)]


def _streams(dtype: str) -> str:
    return f"""
        STREAM A (vs BIGINT, ve BIGINT, a {dtype}, b {dtype}, v BIGINT) FROM 'a.jsonl';
        STREAM B (vs BIGINT, ve BIGINT, a {dtype}, b {dtype}, w BIGINT) FROM 'b.jsonl';
        One = SELECT a, b FROM B WHERE w = 0;
    """


QUERIES = {
    "SELECT a, b, COUNT(*) AS n FROM A GROUP BY a, b WITH TUMBLING(10)": 2,
    "SELECT a, b, MAX(v) AS m FROM A GROUP BY a, b WITH SNAPSHOT": 2,
    "SELECT a, b, SUM(v) AS s FROM A GROUP BY a, b WITH SESSION(3)": 2,
    "SELECT a, b, LAST(v) AS l FROM A GROUP BY a, b WITH COUNT(1)": 2,
    "SELECT DISTINCT a, b FROM A": 2,
    "SELECT a, b FROM A WITH STITCH": 2,
    "SELECT v, w FROM A INNER JOIN B ON A.a = B.a AND A.b = B.b": 2,
    "SELECT v, w FROM A FULL OUTER JOIN B ON A.a = B.a AND A.b = B.b": 2,
    "SELECT v FROM A LEFT SEMI JOIN One ON A.a = One.a AND A.b = One.b": 1,
    "SELECT v FROM A LEFT ANTI JOIN One ON A.a = One.a AND A.b = One.b": 1,
    "SELECT v FROM A LEFT SEMI JOIN One ON A.a = One.a AND A.b = One.b AND A.v >= 0": 1,
    "SELECT v, w FROM A ASOF JOIN B ON A.a = B.a AND A.b = B.b": 2,
}


@pytest.mark.parametrize(("dtype", "keys"), CASES)
@pytest.mark.parametrize("query", QUERIES)
def test_each_key_has_its_own_rows(query: str, dtype: str, keys: tuple) -> None:  # type: ignore[type-arg]
    inputs = {"A": _rows(keys), "B": _rows(keys, "w")}
    found = run(f"{_streams(dtype)} Out = {query};", inputs).rows
    assert len(found) == QUERIES[query]
    if "a" in found[0]:
        assert {(row["a"], row["b"]) for row in found} == set(keys)
    for row in found:
        assert row.get("n", 1) == 1
        assert row.get("v", 0) == row.get("w", row.get("v", 0)), "the row of another key"


@pytest.mark.parametrize(("dtype", "keys"), CASES)
def test_structs_and_distinct_counts(dtype: str, keys: tuple) -> None:  # type: ignore[type-arg]
    text = f"""
        STREAM A (vs BIGINT, p STRUCT(a {dtype}, b {dtype})) FROM 'a.jsonl';
        Out = SELECT COUNT(DISTINCT p) AS n FROM A WITH TUMBLING(10);
    """
    rows = [{"vs": 1, "p": {"a": a, "b": b}} for a, b in keys]
    assert [row["n"] for row in run(text, {"A": rows}).rows] == [2]


@pytest.mark.parametrize(("dtype", "keys"), CASES)
def test_states_of_apps(dtype: str, keys: tuple) -> None:  # type: ignore[type-arg]
    app = weir.App("counts")
    event = app.events("event", f"a {dtype}, b {dtype}, at BIGINT", vs="at")
    seen = app.state("seen", default=0)

    @app.on(event)
    def count(e):  # type: ignore[no-untyped-def]
        seen.add((e.a, e.b), 1)
        app.emit("counted", n=seen.get((e.a, e.b)))

    rows = [{"a": a, "b": b, "at": 1} for a, b in keys]
    found = run(app, {"event": rows}, stream="counted").rows
    assert [row["n"] for row in found] == [1, 1]


PANES = [(1000, 4072651443614126061), (3111088431428539200, 3111088431428539205)]
"""Lifetimes that had one pane in the groups 0 and 3."""


def test_each_group_has_its_own_panes() -> None:
    text = """
        STREAM A (vs BIGINT, ve BIGINT, k BIGINT) FROM 'a.jsonl';
        Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH SNAPSHOT;
    """
    between = [{"vs": PANES[0][0], "ve": PANES[0][1] - k, "k": k} for k in (1, 2)]
    crafted = [{"vs": vs, "ve": ve, "k": k} for k, (vs, ve) in zip((0, 3), PANES, strict=True)]
    rows = [crafted[0], *between, crafted[1]]
    assert sorted(row["k"] for row in run(text, {"A": rows}).rows) == [0, 1, 2, 3]


# --- work ----------------------------------------------------------------------------------


def _steps(first: np.ndarray, slots: int) -> int:  # type: ignore[type-arg]
    """How many slots a table with linear probing looks at to take these keys in."""
    homes = np.sort((first & np.uint64(slots - 1)).astype(np.int64))
    places = np.maximum.accumulate(homes - np.arange(len(homes))) + np.arange(len(homes))
    return int((places - homes).sum()) + len(homes)


def test_the_stable_hash_makes_one_run_of_crowded_keys() -> None:
    crowded = crowded_numbers(20_000)
    assert len(np.unique(crowded)) == 20_000
    first, _ = hash_rows([pa.array(crowded)], len(crowded))
    assert _steps(first, 1 << 16) == 20_000 * 20_001 // 2


@pytest.mark.parametrize("extra", [0, 1])
def test_crowded_keys_cost_no_more_than_others(extra: int) -> None:
    """Work, not time: with a PRF a key costs about 1.2 steps at this load. 240 000 such keys cost
    52 s of CPU instead of 1.2 s once."""
    count = 240_000
    random = np.random.default_rng(1).integers(-(2**63), 2**63, count)
    for numbers in (crowded_numbers(count), random, np.arange(count)):
        index = KeyIndex()
        columns = [pa.array(numbers)] * (1 + extra)
        first, second = index.hashes(columns, count)
        assert _steps(first, 1 << 20) < 1.3 * count
        assert len(np.unique(index.encode(first, second))) == count
        assert _longest_run(index) < 200


def _longest_run(index: KeyIndex) -> int:
    taken = np.concatenate([[False], index._table >= 0, [False]])
    ends = np.flatnonzero(taken[1:] != taken[:-1])
    return int((ends[1::2] - ends[::2]).max())


REDUCED = """
    STREAM A (vs BIGINT, a BIGINT, b BIGINT) FROM 'a.jsonl';
    IMPORT 'sums.py';
    Out = REDUCE A ON a, b USING Count();
"""
COUNT = """
import weir

@weir.operator(columns={"n": "BIGINT"})
class Count:
    n: int = 0
    def on_event(self, event, ctx):
        self.n += 1
        ctx.emit(n=self.n)
"""


def test_tuples_of_one_hash_cost_an_operator_no_more_than_others(tmp_path: Path) -> None:
    """By CPU time, as a ratio: comparing each with all would take a hundred times as long."""
    (tmp_path / "sums.py").write_text(COUNT, encoding="utf-8")
    crafted = equal_tuples(10_000)
    assert len(set(crafted)) == 10_000
    assert len({hash(key) for key in crafted}) == 1
    seconds = []
    for keys in ([(i, i) for i in range(10_000)], crafted) * 2:
        rows = {"A": [{"vs": 1, "a": a, "b": b} for a, b in keys]}
        began = time.process_time()
        found = run(REDUCED, rows, directory=tmp_path).rows
        seconds.append(time.process_time() - began)
        assert [row["n"] for row in found] == [1] * 10_000
    assert min(seconds[1::2]) < 3 * min(seconds[::2])


def test_values_in_the_order_of_old_priorities() -> None:
    """They made a list of the tree once, and the path in it was longer than there was room for:
    what lay beyond was overwritten, and the process died from some thousand values on."""
    count = 3_000
    ranks = crowded_priorities(count)
    values, late = -ranks, count // 2 + np.argsort(ranks[count // 2 :])[-50:]
    values[late] = np.arange(50)  # above all: for each of these the whole list is split
    columns = {"vs": np.arange(count), "ve": np.full(count, count), "v": values}
    text = """
        STREAM A (vs BIGINT, ve BIGINT, v BIGINT) FROM 'a.jsonl';
        Out = SELECT QUANTILE_DISC(v, 0) AS low, QUANTILE_DISC(v, 1) AS high FROM A WITH SNAPSHOT;
    """
    found = run(text, {"A": pa.table(columns)}).rows
    assert [row["low"] for row in found] == np.minimum.accumulate(values).tolist()
    assert [row["high"] for row in found] == np.maximum.accumulate(values).tolist()
