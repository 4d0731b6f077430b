"""The driver's preparation of the loops of a job: what comes of it, what is said meanwhile."""

import threading

import pytest

from weir.job.messages import DRIVER, Preparing
from weir.loops.code_cache import Code, kind
from weir.loops.loop import Loop
from weir.script.program import parse_program
from weir.spark.live import loop_search
from weir.spark.live.loop_search import LoopSearch

PROGRAM = parse_program("STREAM A (vs BIGINT) FROM 'a.csv'; OUTPUT A TO 'out.csv';")


def test_the_code_that_a_program_needs_is_found() -> None:
    told: list[Preparing] = []
    code = LoopSearch(PROGRAM).code(told.append)
    assert code.kind == kind()
    assert "events.hashing_loops.sum_halves" in code.loops
    assert len(code.files) == len(code.loops)


def test_while_it_lasts_signs_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = threading.Event()

    def compile_long(loops: list[Loop]) -> Code:
        assert enough.wait(10.0)
        return Code(kind(), (), {})

    told: list[Preparing] = []

    def tell(preparing: Preparing) -> None:
        told.append(preparing)
        if len(told) == 3:
            enough.set()

    monkeypatch.setattr(loop_search, "packed", compile_long)
    monkeypatch.setattr(loop_search, "SIGN_AFTER", 0.01)
    monkeypatch.setattr(loop_search, "PULSE_EVERY", 0.01)
    assert LoopSearch(PROGRAM).code(tell).files == {}
    assert len(told) >= 3 and {preparing.slot for preparing in told} == {DRIVER}


def test_whoever_asks_gets_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_search, "packed", lambda loops: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        LoopSearch(PROGRAM).code(lambda preparing: None)
