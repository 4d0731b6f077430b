"""Every operator, alone and composed, gives the oracle's rows, however it is run.

For each random program and input: the rows are the oracle's (a multiset, exact, NaN equal to
NaN); every stream inside carries the same rows in the same order wherever the input is cut; the
multiset does not depend on parallelism; nothing depends on a snapshot and load at any step, nor
on entries that are written again. (A stateless chain over several partitions gives several
streams, and the order between streams means nothing: so order is compared by checksums.)
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import canonical
from property.engine import run
from property.examples import check_examples
from property.reference import Outcome, oracle_run
from property.strategies import OPERATORS, Example, programs

pytestmark = pytest.mark.filterwarnings("ignore:.*a join without an equality")

_cuts = st.sampled_from((1, 1, 2, 3, 5, 7))
_steps = st.none() | st.integers(0, 12)
_seeds = st.none() | st.integers(0, 2**16)
_parallelisms = st.integers(1, 4)


@st.composite
def _chains(draw: st.DrawFn, first: str, least: int, most: int) -> Example:
    more = draw(st.lists(st.sampled_from(OPERATORS), min_size=least - 1, max_size=most - 1))
    return draw(programs([first, *more], max_rows=10))


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_operator(operator: str, request: pytest.FixtureRequest) -> None:
    @given(programs([operator]), st.data())
    def check(example: Example, data: st.DataObject) -> None:
        _check(example, data)

    check_examples(check, 16, request)


@pytest.mark.parametrize("first", OPERATORS)
def test_compositions(first: str, request: pytest.FixtureRequest) -> None:
    @given(_chains(first, 2, 4), st.data())
    def check(example: Example, data: st.DataObject) -> None:
        _check(example, data)

    check_examples(check, 24, request)


def _check(example: Example, data: st.DataObject) -> None:
    text, inputs = example.text, example.inputs
    plain = run(text, inputs)
    _same_as_oracle(example, plain)
    cut = data.draw(_cuts, "cut")
    _same_streams(example, plain, run(text, inputs, cut=cut))
    parallelism = data.draw(_parallelisms, "parallelism")
    disturbed = run(
        text,
        inputs,
        cut=cut,
        parallelism=parallelism,
        snapshot_at=data.draw(_steps, "snapshot at"),
        duplicate_writes=data.draw(_seeds, "duplicates"),
    )
    if parallelism == 1:
        _same_streams(example, plain, disturbed)
    _same_rows(example, plain, disturbed)


def _same_as_oracle(example: Example, found: Outcome) -> None:
    wanted = oracle_run(example.text, example.inputs)
    if wanted.error is not None:
        assert found.error is not None, _report(example, f"no error: {wanted.error}")
        assert wanted.error in found.error.lower(), _report(example, found.error)
        return
    assert found.error is None, _report(example, str(found.error))
    difference = _difference(wanted, found)
    assert not difference, _report(example, difference)


def _same_rows(example: Example, one: Outcome, other: Outcome) -> None:
    assert (one.error is None) == (other.error is None), _report(example, f"{one} {other}")
    difference = _difference(one, other)
    assert not difference, _report(example, difference)
    assert one.digest == other.digest, _report(example, "equal rows, other digests")


def _same_streams(example: Example, one: Outcome, other: Outcome) -> None:
    """Every stream inside carried the same rows in the same order."""
    _same_rows(example, one, other)
    assert one.checksums == other.checksums, _report(example, "other checksums")


def _difference(wanted: Outcome, found: Outcome) -> str:
    """What one multiset has and the other has not; empty when they are equal."""
    rows, others = canonical(wanted.rows), canonical(found.rows)
    lines = [f"missing    {row} * {n}" for row, n in (rows - others).items()]
    lines += [f"unexpected {row} * {n}" for row, n in (others - rows).items()]
    return "\n".join(lines)


def _report(example: Example, what: str) -> str:
    return f"{what}\n\n{example.text}\n\ninputs = {example.inputs!r}"
