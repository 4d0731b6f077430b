"""Every operator, alone and composed, gives the oracle's rows, however it is run.

For each random program and input: the rows are the oracle's (a multiset, exact, NaN equal to
NaN); their order and every stream's checksum do not depend on where the input is cut; the
multiset does not depend on parallelism; nothing depends on a snapshot and load at any step, nor
on entries that are written again.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import Row, canonical
from oracle.rows import payload_key
from property.engine import run
from property.examples import check_examples
from property.reference import Outcome, oracle_run
from property.strategies import OPERATORS, Example, programs

pytestmark = pytest.mark.filterwarnings("ignore:.*a join without an equality")

_cuts = st.sampled_from((1, 1, 2, 3, 5, 7))
_steps = st.integers(0, 12)
_seeds = st.integers(0, 2**16)
_parallelisms = st.integers(2, 4)


@st.composite
def _chains(draw: st.DrawFn, first: str, least: int, most: int) -> Example:
    more = draw(st.lists(st.sampled_from(OPERATORS), min_size=least - 1, max_size=most - 1))
    return draw(programs([first, *more], max_rows=10))


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_operator(operator: str, request: pytest.FixtureRequest) -> None:
    @given(programs([operator]), st.data())
    def check(example: Example, data: st.DataObject) -> None:
        _check(example, data)

    check_examples(check, 45, request)


@pytest.mark.parametrize("first", OPERATORS)
def test_compositions(first: str, request: pytest.FixtureRequest) -> None:
    @given(_chains(first, 2, 4), st.data())
    def check(example: Example, data: st.DataObject) -> None:
        _check(example, data)

    check_examples(check, 45, request)


def _check(example: Example, data: st.DataObject) -> None:
    text, inputs = example.text, example.inputs
    plain = run(text, inputs)
    _same_as_oracle(example, plain)
    cut, parallelism = data.draw(_cuts, "cut"), data.draw(_parallelisms, "parallelism")
    whole = run(text, inputs, cut=cut)
    _same_streams(example, plain, whole)
    assert _ordered(whole.rows) == _ordered(plain.rows), _report(example, f"cut {cut}: order")
    split = run(text, inputs, cut=cut, parallelism=parallelism)
    _same_rows(example, plain, split)
    step, seed = data.draw(_steps, "snapshot at"), data.draw(_seeds, "duplicates")
    resumed = run(text, inputs, cut=cut, parallelism=parallelism, snapshot_at=step)
    _same_streams(example, split, resumed)
    again = run(text, inputs, cut=cut, parallelism=parallelism, duplicate_writes=seed)
    _same_streams(example, split, again)


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


def _ordered(rows: list[Row]) -> list[object]:
    return [(r.vs, r.ve, payload_key(r.payload)) for r in rows]


def _difference(wanted: Outcome, found: Outcome) -> str:
    """What one multiset has and the other has not; empty when they are equal."""
    rows, others = canonical(wanted.rows), canonical(found.rows)
    lines = [f"missing    {row} * {n}" for row, n in (rows - others).items()]
    lines += [f"unexpected {row} * {n}" for row, n in (others - rows).items()]
    return "\n".join(lines)


def _report(example: Example, what: str) -> str:
    return f"{what}\n\n{example.text}\n\ninputs = {example.inputs!r}"
