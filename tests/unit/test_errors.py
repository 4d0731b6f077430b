"""The tree of errors: what they carry, and that all of them cross processes."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from weir import errors
from weir.errors import (
    DeterminismViolation,
    EventFailed,
    FailedRow,
    InputError,
    OperatorFailed,
    PlanError,
    ProgramPlace,
    ReplayDiffers,
    RunError,
    ScriptError,
    SnapshotCorrupt,
    UnknownAttribute,
    WeirError,
)

SAMPLES: list[WeirError] = [
    WeirError("plain"),
    ScriptError("no `x`", line=2, column=3, source="a\n\tb x", hint="write `y`"),
    ScriptError("without a source"),
    PlanError("cannot", position=(3, 4), hint="clip it"),
    PlanError("cannot"),
    InputError("NULL start", file="a.jsonl", line=7, column="vs"),
    InputError("torn"),
    RunError("failed"),
    OperatorFailed(function="f", file="rules.py", line=3, event={"v": 1}, cause="ValueError: no"),
    OperatorFailed(function="f", file="a.py", line=3, event="window [0, 5)", cause="no"),
    DeterminismViolation("other rows"),
    SnapshotCorrupt("lacks a table"),
    EventFailed("overflow", event={"v": 1}, place=ProgramPlace(2, 3, "a.weir", "a + 1")),
    EventFailed("overflow", event={"v": 1}, row=FailedRow(0, 1, (2, 3))),
    UnknownAttribute("no `x`", "x", hint="write y"),
    ReplayDiffers("`spam`", loop="3", engine="2"),
    ReplayDiffers(
        "",
        loop="fails",
        engine="goes on",
        number=3,
        event={"v": 1},
        input="a.jsonl, line 3",
        handler="judge",
        place=ProgramPlace(2, 1, "a.py", "assert e.v"),
    ),
]


def test_every_error_has_a_sample() -> None:
    found = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)]
    found.remove(errors.PlanWarning)
    assert set(found) == {type(e) for e in SAMPLES}


@pytest.mark.parametrize("error", SAMPLES, ids=repr)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_pickle(error: WeirError, protocol: int) -> None:
    back = pickle.loads(pickle.dumps(error, protocol))
    assert type(back) is type(error)
    assert str(back) == str(error) and back.args == error.args
    assert back.__dict__ == error.__dict__


@pytest.mark.parametrize("error", SAMPLES, ids=repr)
def test_errors_can_be_copied(error: WeirError) -> None:
    assert copy.copy(error).__dict__ == error.__dict__


def test_run_errors_are_run_errors() -> None:
    for kind in (OperatorFailed, DeterminismViolation, ReplayDiffers, SnapshotCorrupt):
        assert issubclass(kind, RunError)
    assert all(issubclass(type(e), WeirError) for e in SAMPLES)


def test_a_script_error_shows_line_and_caret_under_tabs() -> None:
    assert str(SAMPLES[1]).splitlines() == [
        "line 2, column 3: no `x`",
        "  \tb x",
        "  \t ^",
        "  hint: write `y`",
    ]
    assert str(SAMPLES[2]) == "line 1, column 1: without a source"
    assert ScriptError("x", line=9, source="one").source_line == ""


def test_messages_say_where() -> None:
    assert str(SAMPLES[3]) == "cannot; clip it"
    assert str(SAMPLES[5]) == "a.jsonl, line 7, column vs: NULL start"
    assert str(SAMPLES[6]) == "torn"
    assert str(SAMPLES[8]) == "f (rules.py:3) failed on event {'v': 1}: ValueError: no"
    assert str(SAMPLES[9]) == "f (a.py:3) failed on window [0, 5): no"
    assert str(SAMPLES[12]) == (
        "a.weir, line 2, column 3: overflow, on event {'v': 1}\n  a + 1\n    ^"
    )


def test_an_event_is_completed() -> None:
    error = copy.copy(SAMPLES[12])
    assert isinstance(error, EventFailed)
    error.complete({"v": 1, "w": 2}, "a.csv, line 9")
    assert str(error).startswith(
        "a.weir, line 2, column 3: overflow, on event {'v': 1, 'w': 2} (a.csv, line 9)\n"
    )
