"""The engine gives the answers of the serial loop: to the worked examples, in all ways, and to
random apps, each in one of the ways (cuts of 1, 7 and all, parallelism 1, 2 and 5, vectorised
and not, some with an app behind them that sees the order of what is emitted). `WEIR_NIGHT=1` for
20 000 of them; `python -m replay_oracle` shows and shrinks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from replay_oracle.differences import (
    WAYS,
    How,
    Verdict,
    compared,
    judge,
    right_answer,
    way_of,
)
from replay_oracle.examples import Example
from replay_oracle.failing import draw_failing
from replay_oracle.found import FOUND
from replay_oracle.loop import AppFailed
from replay_oracle.probing import probed
from replay_oracle.programs import Case, draw_case
from replay_oracle.worked import EXAMPLES

APPS = 20_000 if os.environ.get("WEIR_NIGHT") else 500
CHUNK = 25
REFUSED = frozenset(
    (3, 25, 55, 65, 105, 186, 205, 295, 314, 372, 381, 385, 432, 471, 473, 493, 494)
)
"""The seeds below 500 that are refused. Each worker runs some of the seeds only, so the share of
those that are refused is held by this list; above 500, by what a worker has counted."""
MOST_REFUSED, ENOUGH = 0.05, 2000
FAILING, PROBED = (200, 1000) if os.environ.get("WEIR_NIGHT") else (12, 60)
SAME = Verdict("same")


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=[e.name for e in EXAMPLES])
def test_worked_example(number: int) -> None:
    example: Example = EXAMPLES[number]
    case = Case(0, example.source, dict(example.logs), dict(example.params))  # type: ignore[arg-type]
    how = replace(WAYS[5 * number % 18], numbered=True)
    verdict = judge(case, how)
    assert verdict.kind == "same", f"{how}\n{verdict.text}"


@pytest.fixture(scope="module")
def verdicts() -> Iterator[Counter[str]]:
    """Count what came of a worker's random apps; few of many may be refused."""
    counts: Counter[str] = Counter()
    yield counts
    if counts.total() >= ENOUGH:
        assert counts["refused"] <= MOST_REFUSED * counts.total(), counts


def test_few_random_apps_are_refused() -> None:
    assert len(REFUSED) <= MOST_REFUSED * 500


@pytest.mark.parametrize("first", range(0, APPS, CHUNK))
def test_random_apps(first: int, verdicts: Counter[str]) -> None:
    for seed in range(first, first + CHUNK):
        case, how = draw_case(seed), way_of(seed)
        verdict = judge(case, how)
        verdicts[verdict.kind] += 1
        if seed < 500:
            assert (verdict.kind == "refused") == (seed in REFUSED), f"seed {seed}: {verdict}"
        if verdict.kind not in ("same", "refused"):
            pytest.fail(f"seed {seed}, {how}: {verdict.kind}\n{verdict.text}\n{case.source}")


@pytest.mark.parametrize("how", [How(1, 5), How(None, 2), How(7, 1, False)], ids=str)
def test_one_app_in_many_ways(how: How) -> None:
    same = 0
    for seed in range(1000, 1010):
        verdict = judge(draw_case(seed), how)
        assert verdict.kind in ("same", "refused"), f"seed {seed}\n{verdict.text}"
        same += verdict.kind == "same"
    assert same >= 9


def test_a_failure_is_that_of_the_loop() -> None:
    failed = 0
    for seed in range(FAILING):
        case, how = draw_failing(seed), way_of(seed)
        if case is None:
            continue
        verdict = judge(case, how)
        assert verdict.kind in ("same", "refused"), f"seed {seed}, {how}\n{verdict.text}"
        failed += verdict.kind == "same" and isinstance(right_answer(case), AppFailed)
    assert failed >= 0.7 * FAILING


def test_saved_windows_are_worth_what_the_loop_says() -> None:
    asked = 0
    for seed in range(PROBED):
        found = probed(draw_case(seed))
        if found is None:
            continue
        case, begin = found
        how = replace(way_of(seed), halves=True, numbered=False, renew=False, begin=begin)
        verdict = judge(case, how)
        assert verdict.kind == "same", f"seed {seed}, {how}: {verdict.kind}\n{verdict.text}"
        asked += 1
    assert asked >= PROBED // 20


def test_another_failure_is_another_answer() -> None:
    mine = AppFailed("why", "h1", {"vs": 3, "k": "a"})
    assert compared(mine, AppFailed("said otherwise", "h1", {"vs": 3, "k": "a", "$x": 1})) == SAME
    for other in (AppFailed("", "h2", mine.event), AppFailed("", "h1", {"vs": 4, "k": "a"})):
        assert compared(mine, other).kind == "other"
    assert compared(mine, AppFailed("it could not run")).kind == "other"
    assert compared(mine, ({}, {})).kind == "went on"
    assert compared(({}, {}), mine).kind == "failed"


@pytest.mark.parametrize("example", FOUND, ids=lambda e: e.name)
def test_found_before(example: Example) -> None:
    case = Case(0, example.source, dict(example.logs), {})  # type: ignore[arg-type]
    ways = (
        How(),
        How(1, 5),
        How(7, 2, False, numbered=True),
        How(1, 2, renew=True),
        How(7, halves=True),
    )
    for how in ways:
        verdict = judge(case, how)
        assert verdict.kind == "same", f"{how}\n{verdict.text}"
