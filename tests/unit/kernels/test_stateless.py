"""Operators without state against their rules, row by row in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, START, Batch
from weir.events.types import BIGINT, STRING
from weir.kernels.operators.stateless import Transform, make_transform, true_rows
from weir.plan.lifetime_changes import (
    ClipDuration,
    Duration,
    Extend,
    HopLifetime,
    LifetimeChange,
    Point,
    PointAtEnd,
    Quantize,
    Shift,
)
from weir.plan.operators import AlterLifetime, Explode, Filter, Project, Source, SourceOptions
from weir.script import parse_program

LISTS = pa.list_(STRING)
SOURCE = Source(
    "A",
    (("vs", BIGINT), ("ve", BIGINT), ("v", BIGINT), ("l", LISTS)),
    "a.jsonl",
    SourceOptions("vs", "ve"),
    0,
)
Life = tuple[int, int]


def _batch(lives: list[Life], lists: list[object] | None = None) -> Batch:
    count = len(lives)
    columns = (
        pa.array(range(count), BIGINT),
        pa.array(lists if lists is not None else [None] * count, LISTS),
    )
    vs, ve = (np.array([life[i] for life in lives], dtype=np.int64) for i in (0, 1))
    return Batch(vs, ve, columns, (np.zeros(count, np.int64), np.arange(count)))


def _floor(t: int, hop: int, offset: int) -> int:
    return offset + (t - offset) // hop * hop


def _ceil(t: int, hop: int, offset: int) -> int:
    return offset - (offset - t) // hop * hop


def _quantize(s: int, h: int, o: int) -> Callable[[int, int], Life | None]:
    def rule(vs: int, ve: int) -> Life | None:
        start = _floor(vs, h, o)
        if ve == OPEN:
            return start, OPEN
        latest = max(ve + h - 1, vs + s)
        return start, next(t for t in range(latest, latest - h, -1) if (t - o - s) % h == 0)

    return rule


def _hop(s: int, h: int, o: int) -> Callable[[int, int], Life | None]:
    def rule(vs: int, ve: int) -> Life | None:
        b = _ceil(vs, h, o)
        if h > s:
            return (b, b + s) if b - vs < s else None
        return b, _ceil(vs + s, h, o)

    return rule


def _moved(t: int, d: int) -> int:
    return t if t == OPEN else t + d


RULES: list[tuple[LifetimeChange, Callable[[int, int], Life | None], Callable[[int], int]]] = [
    (Duration(5), lambda vs, ve: (vs, vs + 5), lambda c: c),
    (Shift(7), lambda vs, ve: (vs + 7, _moved(ve, 7)), lambda c: c + 7),
    (Shift(-7), lambda vs, ve: (vs - 7, _moved(ve, -7)), lambda c: c - 7),
    (Extend(3), lambda vs, ve: (vs, _moved(ve, 3)), lambda c: c),
    (Extend(-3), lambda vs, ve: (vs, _moved(ve, -3)), lambda c: c),
    (ClipDuration(4), lambda vs, ve: (vs, min(ve, vs + 4)), lambda c: c),
    (Point(), lambda vs, ve: (vs, vs + 1), lambda c: c),
    (PointAtEnd(), lambda vs, ve: None if ve == OPEN else (ve, ve + 1), lambda c: c),
    (Quantize(6, 2), _quantize(6, 2, 0), lambda c: _floor(c, 2, 0)),
    (Quantize(5, 3, 1), _quantize(5, 3, 1), lambda c: _floor(c, 3, 1)),
    (HopLifetime(6, 2), _hop(6, 2, 0), lambda c: _ceil(c, 2, 0)),
    (HopLifetime(5, 3, 1), _hop(5, 3, 1), lambda c: _ceil(c, 3, 1)),
    (HopLifetime(2, 5, 3), _hop(2, 5, 3), lambda c: _ceil(c, 5, 3)),
]


@pytest.mark.parametrize(("change", "rule", "cti"), RULES, ids=[str(r[0]) for r in RULES])
def test_lifetimes(
    change: LifetimeChange,
    rule: Callable[[int, int], Life | None],
    cti: Callable[[int], int],
) -> None:
    chance = random.Random(str(change))
    lives = []
    for _ in range(200):
        vs = chance.randint(-30, 30)
        lives.append((vs, OPEN if chance.random() < 0.2 else vs + chance.randint(1, 12)))
    transform = make_transform(AlterLifetime(SOURCE, change))
    out = transform.rows(_batch(lives))
    made = [(i, rule(vs, ve)) for i, (vs, ve) in enumerate(lives)]
    expected = [(i, life) for i, life in made if life is not None and life[0] < life[1]]
    assert list(zip(out.vs.tolist(), out.ve.tolist(), strict=True)) == [
        life for _, life in expected
    ]
    # The payload and the origin stay with their rows.
    assert out.columns[0].to_pylist() == out.origin[1].tolist() == [i for i, _ in expected]
    for c in range(-20, 20):
        assert transform.cti(c) == cti(c)
    assert transform.cti(OPEN) == OPEN and transform.cti(START) == START


@pytest.mark.parametrize(("change", "rule", "cti"), RULES, ids=[str(r[0]) for r in RULES])
def test_no_row_starts_before_the_cti(
    change: LifetimeChange, rule: Callable[[int, int], Life | None], cti: object
) -> None:
    transform = make_transform(AlterLifetime(SOURCE, change))
    for c in range(-12, 12):
        out = transform.rows(_batch([(c + i, c + i + 9) for i in range(8)]))
        assert (out.vs >= transform.cti(c)).all()


def test_set_lifetime() -> None:
    text = "SELECT * FROM A WITH LIFETIME(vs + 2, CASE WHEN v < 2 THEN vs + v * 4 END)"
    node = _planned(text, AlterLifetime)
    out = make_transform(node).rows(_batch([(1, 3), (1, 3), (5, OPEN)]))
    # v = 0 would end before it starts, v = 1 ends at 5, v = 2 has no end.
    assert out.vs.tolist() == [3, 7] and out.ve.tolist() == [5, OPEN]
    assert make_transform(node).cti(10) == 12


def _transform(node: Project | Filter | Explode) -> Transform:
    made = make_transform(node)
    assert made.cti(5) == 5
    return made


def _planned(text: str, kind: type) -> Project | Filter | AlterLifetime:
    """The first node of this kind in the plan of `Out`."""
    declared = "STREAM A (vs BIGINT, ve BIGINT, v BIGINT, l LIST(STRING)) FROM 'a.jsonl';"
    node = dict(parse_program(f"{declared} Out = {text};").streams)["Out"]
    while not isinstance(node, kind):
        node = node.input  # type: ignore[union-attr]
    return node  # type: ignore[return-value]


def test_project() -> None:
    batch = _batch([(i, i + 1) for i in range(4)])
    node = _planned("SELECT v * 2 AS w, v, vs AS t FROM A", Project)
    out = _transform(node).rows(batch)  # type: ignore[arg-type]
    assert [c.to_pylist() for c in out.columns] == [[0, 2, 4, 6], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert out.origin == batch.origin


def test_a_filter_keeps_what_is_true_not_what_is_unknown() -> None:
    node = _planned("SELECT v FROM A WHERE v > 1", Filter)
    times = np.arange(4)
    columns = (pa.array([None, 1, 2, 3], BIGINT), pa.nulls(4, LISTS))
    batch = Batch(times, times + 1, columns, (times,))
    out = make_transform(node).rows(batch)
    assert out.columns[0].to_pylist() == [2, 3] and out.origin[0].tolist() == [2, 3]
    kept = batch.slice(2, 4)
    assert make_transform(node).rows(kept) is kept, "nothing to do: no copy"


@pytest.mark.parametrize("start", [0, 1, 2])
def test_explode_numbers_the_elements(start: int) -> None:
    lists = [["a", "b"], None, [], [None, "c"], ["d"]]
    batch = _batch([(i, i + 1) for i in range(5)], lists).slice(start, 5)
    out = _transform(Explode(SOURCE, "l")).rows(batch)
    expected = [
        (i, e, n)
        for i, elements in enumerate(lists)
        if i >= start
        for n, e in enumerate(elements or [])
    ]
    rows = zip(out.vs.tolist(), out.columns[1].to_pylist(), out.origin[2].tolist(), strict=True)
    assert list(rows) == expected
    assert out.columns[0].to_pylist() == out.origin[1].tolist() == [i for i, _, _ in expected]
    bare = Batch(batch.vs, batch.ve, batch.columns)
    assert _transform(Explode(SOURCE, "l")).rows(bare).origin == ()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 8, 63, 64, 65, 1000])
def test_true_rows_of_slices(share: float, count: int) -> None:
    bits = np.random.default_rng(count).random(count + 20) < share
    for start in (0, 3, 8):
        mask = pa.array(bits).slice(start, count)
        assert true_rows(mask).tolist() == np.flatnonzero(bits[start : start + count]).tolist()
