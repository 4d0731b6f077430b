"""Every loop with a mistake gives another answer to one of the worked examples."""

import pytest

from replay_oracle.loop import Loop
from replay_oracle.test_worked import differs
from replay_oracle.worked import EXAMPLES
from replay_oracle.wrong_loops import WRONG_LOOPS


@pytest.mark.parametrize("loop", WRONG_LOOPS, ids=lambda loop: loop.__name__)
def test_mistake_is_seen(loop: type[Loop]) -> None:
    assert any(differs(example, loop) for example in EXAMPLES)
