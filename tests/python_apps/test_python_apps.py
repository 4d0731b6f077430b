"""Apps drawn from Python's grammar: the engine gives what the serial loop gives, fails where it
does, or refuses before the run. `WEIR_NIGHT=1` for 6000 of them; `python -m python_apps` shows
and shrinks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from python_apps.apps import DrawnApp, draw_app
from python_apps.found import FOUND, LOGS, source_of
from python_apps.found_seeds import SEEDS
from python_apps.node_kinds import Coverage
from python_apps.verdicts import RunWay, judge, way_of

APPS = 6000 if os.environ.get("WEIR_NIGHT") else 1000
CHUNK = 50
ENOUGH = 1000
"""Apps from which on what they have together is looked at."""


class Tally:
    """A `Tally` counts what came of all apps."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.coverage = Coverage()


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    """Most apps are accepted, many of them staged; every kind of node is in accepted apps and in
    refused ones."""
    found = Tally()
    yield found
    counts = found.verdicts
    total = counts.total() - counts["staged"]
    if total >= ENOUGH:
        assert counts["same"] >= total / 2, counts
        assert counts["staged"] >= counts["same"] / 4, counts
        assert counts["guard"] <= total / 100, counts
        assert counts["slow"] <= total / 500, counts
        assert not found.coverage.missing(), found.coverage.table()


@pytest.mark.xdist_group("python apps")
@pytest.mark.parametrize("first", range(0, APPS, CHUNK))
def test_drawn_apps(first: int, tally: Tally) -> None:
    for seed in range(first, first + CHUNK):
        _check(seed, tally)


def test_apps_that_were_wrong_once() -> None:
    for seed in SEEDS:
        _check(seed, Tally())


@pytest.mark.parametrize(("name", "kind", "body"), FOUND, ids=[name for name, _, _ in FOUND])
def test_small_app_that_was_wrong_once(name: str, kind: str, body: str) -> None:
    drawn = DrawnApp(0, source_of(body), LOGS)
    for way in (RunWay(), RunWay(1, 1, numbered=True), RunWay(7, 2, renew=True)):
        verdict = judge(drawn, way)
        assert verdict.kind == kind, f"{way}\n{verdict.text}"


def _check(seed: int, tally: Tally) -> None:
    drawn, way = draw_app(seed), way_of(seed)
    verdict = judge(drawn, way)
    if verdict.is_wrong:
        pytest.fail(f"seed {seed}, {way}: {verdict.kind}\n{verdict.text}\n{drawn.source}")
    tally.verdicts[verdict.kind] += 1
    if verdict.kind in ("same", "refused"):
        tally.verdicts["staged"] += verdict.kind == "same" and verdict.is_staged
        tally.coverage.note(drawn.source, is_refused=verdict.kind == "refused")
