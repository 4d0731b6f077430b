"""Every loop with a mistake gives another answer to one of the worked examples, and (but for rare
ones) to one of the first random programs."""

from functools import cache

import pytest

from replay_oracle.differences import way_of
from replay_oracle.loop import AppFailed, Loop, comparable_answer, run_serially
from replay_oracle.programs import Case, draw_case
from replay_oracle.test_worked import differs
from replay_oracle.worked import EXAMPLES
from replay_oracle.wrong_loops import WRONG_LOOPS


@pytest.mark.parametrize("loop", WRONG_LOOPS, ids=lambda loop: loop.__name__)
def test_mistake_is_seen(loop: type[Loop]) -> None:
    assert any(differs(example, loop) for example in EXAMPLES)


RARE = {
    "LateFunctions",
    "ReadsProlong",
    "ZerosDiffer",
    "NaNsDiffer",
    "IntegersWrap",
    "NullAddsNothing",
    "FunctionSeesExact",
    "SumsOneByOne",
    "PlusIsExact",
    "ExpiresFromFirst",
}
"""Mistakes that few random programs meet; the worked examples see them."""


@cache
def _right(seed: int) -> tuple[Case, object]:
    case = draw_case(seed)
    answer = run_serially(case.source, case.logs, case.params)
    return case, comparable_answer(answer, numbered=way_of(seed).numbered)


def _differs(seed: int, loop: type[Loop]) -> bool:
    case, right = _right(seed)
    try:
        answer = run_serially(case.source, case.logs, case.params, loop=loop)
    except AppFailed:
        return True
    return comparable_answer(answer, numbered=way_of(seed).numbered) != right


@pytest.mark.parametrize("loop", WRONG_LOOPS, ids=lambda loop: loop.__name__)
def test_random_programs_see_it_too(loop: type[Loop]) -> None:
    if loop.__name__ not in RARE:
        assert any(_differs(seed, loop) for seed in range(120))
