"""Every kernel alone, on the oracle's rows of its inputs, under any schedule of CTIs.

What comes out is the oracle's multiset; its order is the same under every schedule, also when
the kernel is thrown away after some steps and a fresh one loads its snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import OracleError, Row, canonical, evaluate
from oracle.evaluate import Inputs
from oracle.rows import payload_key
from property.examples import check_examples
from property.reference import oracle_inputs
from property.stepping import Schedule, Stateless, drive, make_kernel, transform
from property.strategies import OPERATORS, Example, programs
from weir.plan.operators import Node
from weir.script.program import parse_program

pytestmark = pytest.mark.filterwarnings("ignore:.*a join without an equality")


@st.composite
def _schedules(draw: st.DrawFn) -> Schedule:
    ctis = draw(st.lists(st.integers(-8, 45), max_size=10, unique=True))
    reloads = draw(st.frozensets(st.integers(0, 10), max_size=3))
    return Schedule(tuple(sorted(ctis)), reloads)


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_kernel(operator: str, request: pytest.FixtureRequest) -> None:
    @given(programs([operator]) | programs(["union", "lifetime", operator]), _schedules())
    def check(example: Example, schedule: Schedule) -> None:
        program = parse_program(example.text)
        inputs = oracle_inputs(program, example.inputs)
        for node in _all_nodes(dict(program.streams)["Out"]):
            _check(example, node, inputs, schedule)

    check_examples(check, 40, request)


def _all_nodes(node: Node) -> Iterator[Node]:
    yield node
    for below in node.inputs:
        yield from _all_nodes(below)


def _check(example: Example, node: Node, inputs: Inputs, schedule: Schedule) -> None:
    try:
        wanted = evaluate(node, inputs)
    except OracleError:
        return  # whole programs that must fail are the engine's tests' business
    below = [evaluate(i, inputs) for i in node.inputs]
    place = f"\n\n{node}\n\n{example.text}\n\ninputs of the kernel = {below}"
    if isinstance(node, Stateless):
        runs = [transform(node, below[0], ctis) for ctis in ((), schedule.ctis)]
    elif make_kernel(node) is not None:
        schedules = (Schedule(()), Schedule(schedule.ctis), schedule)
        runs = [drive(node, below, chosen) for chosen in schedules]
    else:
        return
    missing, unexpected = _difference(wanted, runs[0])
    assert not missing + unexpected, f"missing {missing}, unexpected {unexpected}{place}"
    for run in runs[1:]:
        assert _ordered(run) == _ordered(runs[0]), f"{schedule}{place}"


def _difference(wanted: list[Row], found: list[Row]) -> tuple[list[object], list[object]]:
    rows, others = canonical(wanted), canonical(found)
    return list((rows - others).elements()), list((others - rows).elements())


def _ordered(rows: list[Row]) -> list[object]:
    return [(r.vs, r.ve, payload_key(r.payload)) for r in rows]
