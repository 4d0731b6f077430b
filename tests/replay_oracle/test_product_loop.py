"""The product's own serial loop (`weir.shadow`): the answers by hand, and those of the engine.

It was written apart from the oracle's; both have to be right for these tests to pass.
"""

from __future__ import annotations

import os

import pytest

from replay_oracle.cells import comparable
from replay_oracle.examples import Example
from replay_oracle.failing import draw_failing
from replay_oracle.found import FOUND
from replay_oracle.product_loop import shadow_run
from replay_oracle.programs import draw_case
from replay_oracle.worked import EXAMPLES
from weir.errors import PlanError, ScriptError
from weir.handlers.runs.running_event import running_with
from weir.shadow.restored_states import contents
from weir.shadow.serial_cells import same_as_key
from weir.shadow.serial_loop import SerialLoop, run_loop

APPS, FAILING = (5000, 200) if os.environ.get("WEIR_NIGHT") else (100, 12)
CHUNK = 25


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_answer_by_hand(example: Example) -> None:
    run = shadow_run(example.source, example.logs, example.params, end=example.to)
    result = run_loop(SerialLoop(run.serial), run.first.events)
    assert (result.failed is not None) == example.fails
    if example.fails:
        return
    rows = [(row.vs, *row.values) for row in result.rows.get("out", [])]
    assert comparable(rows) == comparable(list(example.out))
    last = max((event.vs for event in run.first.events), default=0)
    time = last if example.to is None else example.to
    with running_with(result.loop):
        for name, cells in example.state.items():
            found = contents(result.cells, name, time).items()
            wanted = {_key(k): comparable(v) for k, v in cells.items()}
            assert {key: comparable(cell.value) for key, cell in found} == wanted


def _key(key: object) -> object:
    return same_as_key(key if isinstance(key, tuple) else (key,))


@pytest.mark.parametrize("example", [*EXAMPLES, *FOUND], ids=lambda e: e.name)
def test_the_engine_agrees(example: Example) -> None:
    run = shadow_run(example.source, example.logs, example.params)
    count = run.compare()
    assert count == len(run.first.events) or example.fails


@pytest.mark.parametrize("first", range(0, APPS, CHUNK))
def test_random_apps_agree(first: int) -> None:
    same = 0
    for seed in range(first, first + CHUNK):
        case = draw_case(seed)
        try:
            run = shadow_run(case.source, case.logs, case.params, vectorise=seed % 3 != 0)
        except (PlanError, ScriptError):
            continue  # the engine's tests count what is refused
        assert run.compare() <= len(run.first.events), f"seed {seed}"
        same += 1
    assert same >= CHUNK // 2


def test_failing_apps_agree() -> None:
    failed = 0
    for seed in range(FAILING):
        case = draw_failing(seed)
        if case is None:
            continue
        try:
            run = shadow_run(case.source, case.logs, case.params)
        except (PlanError, ScriptError):
            continue
        failed += run.compare() < len(run.first.events)
    assert failed >= FAILING // 3
