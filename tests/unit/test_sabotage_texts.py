"""`make sabotage` can plant each of its bugs: what it replaces is there, once."""

from pathlib import Path

import pytest

from sabotage.bugs import Bug
from sabotage.collected import all_bugs

SRC = Path(__file__).parents[2] / "src" / "weir"


@pytest.mark.parametrize("bug", all_bugs(), ids=lambda bug: bug.name)
def test_the_text_of_a_bug_is_there_once(bug: Bug) -> None:
    assert (SRC / bug.file).read_text(encoding="utf-8").count(bug.text) == 1
    assert bug.by != bug.text
