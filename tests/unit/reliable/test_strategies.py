"""What each strategy answers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from weir.plan.strategy import parse_strategy
from weir.reliable.strategies import (
    CheckpointStrategy,
    ReplayStrategy,
    ReplicateStrategy,
    Strategy,
    make_strategy,
)


@dataclass(frozen=True)
class Stored:
    outputs: tuple[int, ...]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("checkpoint(3s)", CheckpointStrategy(3.0)),
        ("replay", ReplayStrategy(10.0)),
        ("replicate(3)", ReplicateStrategy(10.0, 3)),
    ],
)
def test_a_name_makes_its_strategy(text: str, made: Strategy) -> None:
    assert make_strategy(parse_strategy(text)) == made


@pytest.mark.parametrize(
    ("strategy", "copies", "marks"),
    [
        (CheckpointStrategy(2.0), 1, False),
        (ReplayStrategy(2.0), 1, True),
        (ReplicateStrategy(2.0, 3), 3, False),
    ],
)
def test_what_they_answer(strategy: Strategy, copies: int, marks: bool) -> None:
    assert (strategy.copies, strategy.takes_marks) == (copies, marks)
    assert not strategy.is_due(1.9) and strategy.is_due(2.0)
    stored = [Stored((1, 1)), Stored((3, 2)), Stored((5, 9))]
    assert strategy.usable(stored, (5, 9)) == stored[2]
    assert strategy.usable(stored, (9, 8)) == stored[1]
    assert strategy.usable(stored, (0, 9)) is None
    assert not strategy.sets_back("1.0", lambda vertex: ("0.0",))
