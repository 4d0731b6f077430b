"""Loops: what they take, what they refuse, and that no call compiles one again."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from weir.loops.argument_types import I64, Bool, I64s, I64Table, ReadBytes, U8s
from weir.loops.compiled import compiled, in_place, inlined
from weir.loops.loop import InnerLoop, Loop


@inlined
def _twice(value):
    return 2 * value


@in_place
def _added(value, other):
    return _twice(value) + other


@in_place
def total(values: I64s, more: I64, only_more: Bool):
    """Add numbers up."""
    result = more
    if not only_more:
        for value in values:
            result = _added(value, result)
    return result


@in_place
def first_byte(data: ReadBytes):
    return data[0]


@compiled
def rows_of(table: I64Table, data: U8s):
    return len(table), len(data)


NUMBERS = np.arange(4)


def test_a_loop_takes_what_it_declares() -> None:
    assert total(NUMBERS, 1, False) == 13
    assert total(NUMBERS, np.int64(1), np.bool_(True)) == 1
    assert total.__doc__ == "Add numbers up."
    assert rows_of(np.zeros((3, 2), np.int64), np.zeros(5, np.uint8)) == (3, 5)


@pytest.mark.parametrize(
    "arguments",
    [
        (NUMBERS.astype(float), 1, False),
        (NUMBERS.astype(np.int32), 1, False),
        (NUMBERS.astype(np.uint64), 1, False),
        (NUMBERS.reshape(2, 2), 1, False),
        ([1, 2], 1, False),
        (None, 1, False),
        (NUMBERS, "1", False),
        (NUMBERS, 1),
        (NUMBERS, 1, False, 1),
    ],
)
def test_a_call_with_other_types_names_the_loop_and_compiles_nothing(
    arguments: tuple[object, ...],
) -> None:
    assert isinstance(total, Loop)
    total(NUMBERS, 1, False)
    for loop in (total, Loop(total.py_func, {})):  # it refuses the first call, and later ones
        with pytest.raises(
            TypeError, match=r"^loop .*test_loop\.total takes \(array\(int64, 1d, C\)"
        ):
            loop(*arguments)
    assert total._entry.nopython_signatures == total._entry.nopython_signatures[:1]


@in_place
def fill(values: I64s, value: I64):
    for i in range(len(values)):
        values[i] = value


FOREIGN = (
    NUMBERS[::2],
    np.frombuffer(NUMBERS.tobytes(), np.int64),
    np.frombuffer(b"x" + NUMBERS.tobytes(), np.int64, offset=1),
)
"""Arrays with gaps, that are read-only, and that are not aligned."""


@pytest.mark.parametrize("values", FOREIGN)
def test_arrays_with_gaps_and_those_of_others_are_copied(values: I64s) -> None:
    assert isinstance(total, Loop)
    for loop in (total, Loop(total.py_func, {})):
        assert loop(values, 1, False) == 1 + 2 * values.sum()


@pytest.mark.parametrize("values", FOREIGN)
def test_a_loop_that_writes_to_them_refuses_them(values: I64s) -> None:
    before = values.tolist()
    with pytest.raises(TypeError, match=r"test_loop\.fill writes to an array that is not its own"):
        fill(values, 7)
    assert values.tolist() == before


def test_a_first_call_takes_no_float_for_an_integer() -> None:
    assert isinstance(total, Loop)
    fresh = Loop(total.py_func, {})
    with pytest.raises(TypeError, match="float64"):
        fresh(NUMBERS, 1.5, False)


def test_bytes_that_are_only_read_may_be_python_s() -> None:
    for data in (b"abc", bytearray(b"abc")):
        assert first_byte(np.frombuffer(data, np.uint8)) == ord("a")


def test_only_loops_call_an_inner_loop() -> None:
    """Without an entry for Python, a call of what Numba makes of it would crash the process."""
    assert isinstance(_added, InnerLoop) and not callable(_added)


def test_a_loop_calls_inner_loops_only() -> None:
    @compiled
    def outer(values: I64s):
        return total(values, 1, False)

    with pytest.raises(TypingError, match="Cannot determine Numba type of"):
        outer(NUMBERS)


def test_types_of_arguments_have_files_of_their_own() -> None:
    def one(values: I64s):
        return 1

    def other(values: U8s):
        return 1

    other.__qualname__ = one.__qualname__
    assert Loop(one, {}).file_name != Loop(other, {}).file_name
    assert Loop(one, {}).file_name == Loop(one, {}).file_name
