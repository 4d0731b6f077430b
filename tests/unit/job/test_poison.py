"""Which deaths of hosts are laid to a vertex, count together, and end a job."""

import zlib

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, START, Batch
from weir.job.ledger import Ledger
from weir.job.poison import (
    PIECES,
    RELAPSES,
    Death,
    Phase,
    Step,
    Suspect,
    at_same_rows,
    cleared,
    pieces_for,
    sample,
    sentence,
    suspect,
    verdict,
)
from weir.reliable.object_names import record_key
from weir.reliable.objects import SEAL
from whole_ledger import read_base


def row(number: int, input: int = 0, pieces: int = 1, sample: str = "") -> Step:
    return Step("1.0", input=input, first=number, end=number + 1, pieces=pieces, sample=sample)


def claim(since: int, until: int, input: int = 0, at: int = 9) -> Step:
    return Step("1.0", "step", input, at, at, True, since, until, 1)


def wide(first: int, end: int, pieces: int = 0) -> Step:
    return Step("1.0", "step", 0, first, end, True, START, 5, pieces)


def deaths(*steps: Step | None, checkpoint: int = 0) -> tuple[Suspect, ...]:
    found: tuple[Suspect, ...] = ()
    for number, step in enumerate(steps):
        found = suspect(found, Death(f"h{number}", step, "exit code 3"), checkpoint)
    return found


# --- the same rows ------------------------------------------------------------------------------


def test_rows_are_the_same_by_input_and_number() -> None:
    assert at_same_rows(row(6), row(6))
    assert not at_same_rows(row(6), row(7))
    assert not at_same_rows(row(6), row(6, input=1))


def test_claims_are_the_same_by_the_event_times_that_they_let_go() -> None:
    """Whichever input claims last, and wherever it stands then."""
    assert at_same_rows(claim(3, 5), claim(4, 9, input=1, at=70))
    assert not at_same_rows(claim(3, 5), claim(5, 9))
    assert at_same_rows(claim(START, 5), claim(START, 2))
    assert not at_same_rows(claim(3, 5), row(9))


def test_a_claim_that_lets_nothing_go_is_the_same_by_its_position() -> None:
    assert at_same_rows(claim(3, 3), claim(3, 3))
    assert not at_same_rows(claim(3, 3), claim(3, 3, at=10))


def test_loading_is_the_same_as_loading() -> None:
    load, save = Step("1.0", "load"), Step("1.0", "snapshot")
    assert (
        at_same_rows(load, load) and not at_same_rows(load, save) and not at_same_rows(load, row(1))
    )


# --- smaller and smaller -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "pieces"),
    [
        (wide(0, 65_536), 65_536 // PIECES),
        (wide(0, 300), 1),
        (wide(7, 7), 1),
        (msgspec.structs.replace(wide(0, 65_536), left_out=65_536 - 512), 512 // PIECES),
        (row(7), 1),
        (Step("1.0"), 0),
        (Step("1.0", "load"), 0),
    ],
)
def test_what_was_died_at_is_done_in_smaller_pieces(step: Step, pieces: int) -> None:
    assert pieces_for(deaths(step)) == pieces


def test_two_deaths_lead_from_any_step_to_single_rows() -> None:
    first = wide(0, 65_536)
    second = wide(512, 768, pieces=pieces_for(deaths(first)))
    assert pieces_for(deaths(first, second)) == 1
    assert pieces_for(()) == 0


# --- counting ------------------------------------------------------------------------------------


def test_three_at_one_row_are_poison() -> None:
    assert not verdict(deaths(wide(0, 900), row(6), row(6)), 3)
    found = verdict(deaths(wide(0, 900), row(6), row(6), row(6)), 3)
    assert [s.death.session for s in found] == ["h1", "h2", "h3"]


def test_three_at_different_rows_are_not() -> None:
    assert not verdict(deaths(row(6), row(7), row(8), row(6), row(7)), 3)


def test_three_in_the_same_large_step_are_not() -> None:
    """Kills from outside often hit the same large step, or a vertex that is given one row anyway
    but has many waiting."""
    assert not verdict(deaths(*[wide(0, 65_536)] * 4), 3)
    assert not verdict(deaths(*[row(6, pieces=0)] * 4), 3)
    assert not verdict(deaths(*[wide(0, 256, pieces=1)] * 4), 3)


@pytest.mark.parametrize("phase", ["load", "snapshot"])
def test_a_state_that_cannot_be_loaded_or_saved_is_poison(phase: Phase) -> None:
    assert verdict(deaths(*[Step("1.0", phase)] * 3), 3)


def test_a_vertex_that_gets_no_further_ends_the_job_in_the_end() -> None:
    many = [row(number) for number in range(RELAPSES)]
    assert not verdict(deaths(*many[:-1]), 3)
    assert len(verdict(deaths(*many), 3)) == RELAPSES
    moved = (*deaths(*many[:-1]), *deaths(many[-1], checkpoint=1))
    assert not verdict(moved, 3)


# --- being cleared -------------------------------------------------------------------------------


def test_a_checkpoint_behind_the_rows_clears_a_vertex() -> None:
    known = deaths(row(6), row(9))
    assert cleared(known, (6,), (0,))[0].death.session == "h0"
    (left,) = cleared(known, (7,), (0,))
    assert left.death.session == "h1"
    assert cleared(known, (10,), (0,)) == ()


def test_a_checkpoint_right_before_a_claim_does_not() -> None:
    assert cleared(deaths(claim(3, 5, at=9)), (9,), (0,))
    assert not cleared(deaths(claim(3, 5, at=9)), (10,), (0,))


def test_some_checkpoints_that_are_each_further_do_too() -> None:
    left = deaths(claim(3, 5, at=9), Step("1.0", "load"))
    for inputs, before in (((1,), None), ((1,), (1,)), ((2,), (1,))):
        left = cleared(left, inputs, before)
        assert len(left) == 2
    assert cleared(left, (3,), (2,)) == ()


# --- what is told --------------------------------------------------------------------------------


def test_the_message_names_vertex_row_cause_and_what_to_do() -> None:
    found = deaths(row(6, sample="'a', 17"), row(6, sample="'a', 17"))
    text = sentence(found, {"1.0": "Project f(v)"})
    assert text == (
        "vertex 1.0, Project f(v), killed its host 2 times at row 6 of input 0 ('a', 17): "
        "exit code 3; everything is kept, so fix the function (--resume --accept-code-changes) or "
        "the row (--resume) and run again"
    )


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (wide(4, 9), "at rows 4 to 8 of input 0"),
        (claim(3, 5), "with the rows that waited for event time 5"),
        (claim(3, OPEN), "with the rows that waited for the end of its inputs"),
        (Step("1.0"), "in a step that had no rows yet"),
        (Step("1.0", "load"), "while its state was loaded"),
        (Step("1.0", "snapshot"), "while its state was saved"),
    ],
)
def test_where_a_vertex_was(step: Step, text: str) -> None:
    assert step.rows == text


def test_a_ledger_with_suspects_can_be_written_and_read() -> None:
    ledger = Ledger(suspects={"1.0": deaths(row(6), claim(3, 5), Step("1.0", "load"))})
    ledger.number = 3
    body = ledger.encode()
    assert read_base(record_key(3), body).suspects == ledger.suspects
    assert b'"place":0' in zlib.decompress(body[SEAL:]), (
        "records of earlier versions call a step's input so"
    )


def test_values_that_python_has_none_for_are_shown_too() -> None:
    """They are noted in the step: what raises there would be laid to the vertex."""
    times = pa.array([2**62]).cast(pa.timestamp("us"))
    days = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    nested = pa.StructArray.from_arrays([times], ["t"])
    columns = (pa.array(["x"]), times, days, nested)
    shown = sample(Batch(np.array([4]), np.array([5]), columns))
    far = "'+148108-07-06T14:00:27.387904Z'"
    assert shown == f"'x', {far}, '+5881580-07-11', {{'t': {far}}}"
