"""Zeros with a sign and NaN in DOUBLE states: as Python has them, but for exact sums and top_k."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import weir
from weir.testing import run

NAN = math.nan
VALUES = (0.0, -0.0, 1.0, -1.0, NAN)
LOGS = list(product(VALUES, repeat=3))
ROWS = [{"k": k, "x": xs[at], "at": at} for at in range(3) for k, xs in enumerate(LOGS)]
WAYS: list[dict[str, Any]] = [{}, {"cut": 7, "parallelism": 3}, {"cut": 50, "snapshot_at": 3}]
Fold = Callable[[float, float], float]


def shown(value: float) -> str:
    """A value with its sign."""
    return repr(value)


def app_of(merge: str, default: float, last: int | None, serial: bool) -> weir.App:
    app = weir.App("zeros")
    event = app.events("event", "k BIGINT, x DOUBLE, at BIGINT", vs="at", unit="tick")
    cell = app.state("cell", default=default, last=last)
    if merge == "set":

        @app.on(event)
        def note(e: Any) -> None:
            cell.set(e.k, e.x)

    elif merge == "max":

        @app.on(event)
        def note(e: Any) -> None:
            cell.max(e.k, e.x)

    elif merge == "min":

        @app.on(event)
        def note(e: Any) -> None:
            cell.min(e.k, e.x)

    else:

        @app.on(event)
        def note(e: Any) -> None:
            cell.add(e.k, e.x)

    @app.on(event)
    def tell(e: Any) -> None:
        app.emit("cells", value=cell.get(e.k))

    if serial:
        app.serial()
    return app


def exact_sum(old: float, x: float) -> float:
    return old + x or 0.0  # a sum that is zero has no sign


FOLDS: dict[str, Fold] = {"set": lambda old, x: x, "max": max, "min": min, "add": exact_sum}


def folded(fold: Fold, default: float, last: int | None) -> list[str]:
    """What each event reads: the fold over the events of its key, by a plain loop."""
    answers = []
    for row in ROWS:
        at, cell = row["at"], default
        for earlier in range(0 if last is None else max(at - last + 1, 0), at + 1):
            cell = fold(cell, LOGS[row["k"]][earlier])
        answers.append(shown(cell))
    return answers


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("last", [None, 2])
@pytest.mark.parametrize("default", [0.0, -0.0])
@pytest.mark.parametrize("merge", FOLDS)
def test_cells_are_those_of_a_plain_loop(
    merge: str, default: float, last: int | None, serial: bool
) -> None:
    wanted = folded(FOLDS[merge], default, last)
    for way in WAYS:
        rows = run(
            app_of(merge, default, last, serial), {"event": ROWS}, stream="cells", **way
        ).rows
        values = [row["value"] for row in rows]
        if "parallelism" in way:  # rows of one time come in another order
            assert sorted(map(str, map(shown, values))) == sorted(wanted)
        else:
            assert [shown(value) for value in values] == wanted


def test_a_nan_is_the_largest_of_top_k_and_never_wins_max() -> None:
    app = weir.App("nans")
    event = app.events("event", "x DOUBLE, at BIGINT", vs="at", unit="tick")
    largest = app.state("largest", default=0.0)
    best = app.state("best", default=[], type="LIST(DOUBLE)")

    @app.on(event)
    def note(e: Any) -> None:
        largest.max(0, e.x)
        best.top_k(0, e.x, 2)

    @app.on(event)
    def tell(e: Any) -> None:
        app.emit("out", largest=largest.get(0), best=best.get(0))

    rows = run(
        app, {"event": [{"x": x, "at": n} for n, x in enumerate((1.0, NAN, 2.0))]}, stream="out"
    ).rows
    assert [row["largest"] for row in rows] == [1.0, 1.0, 2.0]
    assert [shown(x) for x in rows[2]["best"]] == ["nan", "2.0"]  # type: ignore[attr-defined]
