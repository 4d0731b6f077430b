"""A vertex that is rebuilt from its input gives the rows and numbers of one that never failed.

For every operator with a horizon, alone and on each other: random programs over random input,
with marks taken and vertices rebuilt from them at random steps. All streams inside have the same
ordered checksums as in the run that nothing happened to. Then the programs of the other property
tests, with all that the language has, over inputs whose lifetimes are clipped.
"""

from __future__ import annotations

from random import Random
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.examples import LONG, check_examples
from property.replaying import (
    OTHERS,
    STATEFUL,
    Outcome,
    clipped,
    random_inputs,
    random_program,
    replayed,
    undisturbed,
)
from property.strategies import OPERATORS, Example, programs
from weir.errors import WeirError
from weir.script.program import parse_program
from weir.testing import with_output

pytestmark = pytest.mark.filterwarnings("ignore:.*a join without an equality")

COUNT = 200 if LONG else 5


def _check(chance: Random, operators: list[str], rows: int) -> Outcome:
    program = random_program(chance, operators)
    inputs = random_inputs(program, chance, rows)
    cut, parallelism = chance.choice((1, 3, 7, 20)), chance.choice((1, 2))
    wanted = undisturbed(program, inputs, cut, parallelism)
    found = replayed(program, inputs, cut, parallelism, chance)
    assert found.checksums == wanted.checksums
    return found


@pytest.mark.parametrize("operator", [*STATEFUL, *OTHERS])
def test_each_operator(operator: str) -> None:
    rebuilt = repeated = spared = 0
    for number in range(COUNT):
        chance = Random(crc32(f"{operator} {number}".encode()))
        found = _check(chance, [operator], 60)
        rebuilt, repeated = rebuilt + found.rebuilt, repeated + found.repeated
        spared += found.spared
    if operator in STATEFUL and operator != "chop":  # which alone is in its source's stage
        assert rebuilt and repeated and spared


@pytest.mark.parametrize("number", range(10))
def test_operators_on_each_other(number: int) -> None:
    names = [*STATEFUL, *OTHERS, "lifetime"]
    for attempt in range(COUNT):
        chance = Random(crc32(f"chain {number} {attempt}".encode()))
        operators = [chance.choice(names) for _ in range(chance.randint(2, 4))]
        _check(chance, operators, 40)


@pytest.mark.parametrize("operator", OPERATORS)
def test_all_that_the_language_has(operator: str, request: pytest.FixtureRequest) -> None:
    more = st.lists(st.sampled_from(OPERATORS), max_size=2)

    @given(more.flatmap(lambda m: programs([operator, *m])), st.data())
    def check(example: Example, data: st.DataObject) -> None:
        text, inputs = clipped(example.text, example.inputs, data.draw(st.integers(1, 6), "clip"))
        program = with_output(parse_program(text), "Out")
        cut, parallelism = data.draw(st.sampled_from((1, 2, 5))), data.draw(st.integers(1, 3))
        try:
            wanted = undisturbed(program, inputs, cut, parallelism)
        except WeirError:
            return
        found = replayed(program, inputs, cut, parallelism, Random(data.draw(st.integers(0, 99))))
        assert found.checksums == wanted.checksums, text

    check_examples(check, 10, request)
