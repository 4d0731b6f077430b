"""The serial loop gives the answers that were worked out by hand."""

import pytest

from replay_oracle.cells import comparable
from replay_oracle.examples import Example
from replay_oracle.loop import AppFailed, Loop, run_serially
from replay_oracle.worked import EXAMPLES


def differs(example: Example, loop: type[Loop] = Loop) -> str:
    """Say in what an answer differs from the one by hand; empty when it does not."""
    try:
        answer = run_serially(example.source, example.logs, example.params, example.to, loop)
    except AppFailed as error:
        return "" if example.fails else str(error)
    if example.fails:
        return "it did not fail"
    rows = [(e.vs, *(v for _, v in e.fields)) for e in answer.emits.get("out", ())]
    if comparable(rows) != comparable(list(example.out)):
        return f"emits {rows}"
    for name, cells in example.state.items():
        wanted = {_key(k): comparable(v) for k, v in cells.items()}
        if {k: comparable(v) for k, v in answer.state[name].items()} != wanted:
            return f"state {name}: {answer.state[name]}"
    return ""


def _key(key: object) -> object:
    return comparable(key if isinstance(key, tuple) else (key,))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_answer_by_hand(example: Example) -> None:
    assert differs(example) == ""


def test_every_sentence_has_an_example() -> None:
    names = [e.name for e in EXAMPLES]
    assert len(names) == len(set(names)) >= 60
