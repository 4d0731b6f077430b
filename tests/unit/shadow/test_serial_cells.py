"""The cells of the serial loop, by the rules of docs/reference/handlers.md, worked by hand."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from weir.handlers.api.app import App
from weir.handlers.api.declarations import State
from weir.shadow.serial_cells import SerialCells, Unfit

BIGGEST = 2**63 - 1


def cells_of(**declared: Any) -> SerialCells:
    """One state, `s`."""
    state = App("a").state("s", **declared)
    return SerialCells({"s": state})


def merged(cells: SerialCells, *merges: tuple[Any, ...], key: object = "k") -> Any:
    """Merge (kind, argument …) one after the other; return what a read then sees."""
    for kind, *args in merges:
        cells.merge("s", (key,), kind, tuple(args))
    return cells.get("s", (key,))


def test_a_cell_is_the_default_until_something_is_merged() -> None:
    cells = cells_of(default=7)
    assert cells.get("s", ("k",)) == 7
    assert merged(cells, ("add", 1), key="other") == 8
    assert cells.get("s", ("k",)) == 7


@pytest.mark.parametrize(
    ("declared", "merges", "value"),
    [
        ({"default": 0}, [("set", 3), ("set", 2)], 2),
        ({"default": None, "type": "BIGINT"}, [("set", 3), ("set", None)], None),
        ({"default": 10}, [("add", 3), ("add", -1)], 12),
        ({"default": 0}, [("add", True), ("add", True)], 2),
        ({"default": 2}, [("max", 1)], 2),
        ({"default": 2}, [("max", 5), ("max", 4)], 5),
        ({"default": 2}, [("min", 5), ("min", 1)], 1),
        ({"default": "b"}, [("max", "a")], "b"),
        ({"default": 0}, [("add", BIGGEST - 1), ("add", 1)], BIGGEST),
        ({"default": 0.0}, [("set", 3)], 3.0),
        ({"default": 1.0}, [("max", math.nan), ("min", math.nan)], 1.0),
        ({"default": (), "type": "LIST(STRING)"}, [("append", "y"), ("append", None)], ["y", None]),
        (
            {"default": ["z"], "type": "LIST(STRING)"},
            [("add_to_set", "y"), ("add_to_set", "z"), ("add_to_set", "y")],
            ["z", "y"],
        ),
        (
            {"default": (), "type": "LIST(DOUBLE)"},
            [("add_to_set", 0.0), ("add_to_set", -0.0), ("add_to_set", 1.0)],
            [0.0, 1.0],
        ),
        (
            {"default": (), "type": "LIST(BIGINT)"},
            [("top_k", n, 3) for n in (2, 9, 9, 5, 1)],
            [9, 9, 5],
        ),
    ],
)
def test_what_a_merge_makes(declared: Any, merges: Any, value: object) -> None:
    assert merged(cells_of(**declared), *merges) == value


def test_top_k_puts_nan_first_and_of_equal_ones_the_earlier() -> None:
    cells = cells_of(default=(), type="LIST(DOUBLE)")
    found = merged(cells, *(("top_k", x, 3) for x in (0.0, math.nan, -0.0, 1.0)))
    assert math.isnan(found[0]) and found[1:] == [1.0, 0.0]
    assert math.copysign(1, found[2]) == 1


def test_add_to_set_knows_nan() -> None:
    cells = cells_of(default=(), type="LIST(DOUBLE)")
    assert len(merged(cells, ("add_to_set", math.nan), ("add_to_set", float("nan")))) == 1


@pytest.mark.parametrize(
    ("added", "total"),
    [
        ([1e16, 1.0, 1.0], 1e16 + 2),
        ([1e16, 1.0, 1.0, -1e16], 2.0),
        ([0.1] * 10, 1.0),
        ([1e308, 1e308], math.inf),
        ([1e308, 1e308, -1e308], 1e308),
        ([math.inf, 1.0], math.inf),
        ([-0.0, -0.0], 0.0),
    ],
)
def test_a_sum_of_doubles_is_exact(added: list[float], total: float) -> None:
    found = merged(cells_of(default=0.0), *(("add", x) for x in added))
    assert found == total and math.copysign(1, found) == 1


def test_infinities_and_nan_make_nan() -> None:
    assert math.isnan(merged(cells_of(default=0.0), ("add", math.inf), ("add", -math.inf)))
    assert math.isnan(merged(cells_of(default=0.0), ("add", math.nan), ("add", 1.0)))


def test_a_sum_that_is_set_or_called_goes_on_from_the_rounded_value() -> None:
    cells = cells_of(default=0.0)
    merged(cells, ("add", 1e16), ("add", 1.0))
    cells.merge("s", ("k",), "call", (), lambda old: old)
    assert merged(cells, ("add", 1.0)) == 1e16
    cells = cells_of(default=0.0)  # max leaves the sum that it is
    assert merged(cells, ("add", 1e16), ("add", 1.0), ("max", 1.0), ("add", 1.0)) == 1e16 + 2


@pytest.mark.parametrize(
    ("declared", "merges"),
    [
        ({"default": 0}, [("add", BIGGEST), ("add", 1)]),
        ({"default": 0, "type": "INT"}, [("add", 2**31)]),
        ({"default": 0}, [("set", 1.5)]),
        ({"default": ""}, [("set", True)]),
        ({"default": 0.0}, [("set", 2**53 + 1)]),
        ({"default": ""}, [("set", 1)]),
        ({"default": 0}, [("add", None)]),
        ({"default": 0}, [("max", None)]),
        ({"default": None, "type": "BIGINT"}, [("add", 1)]),
        ({"default": None, "type": "BIGINT"}, [("min", 1)]),
        ({"default": None, "type": "LIST(BIGINT)"}, [("append", 1)]),
        ({"default": (), "type": "LIST(BIGINT)"}, [("append", "x")]),
        ({"default": (), "type": "LIST(BIGINT)"}, [("top_k", None, 2)]),
    ],
)
def test_what_does_not_fit_fails_at_the_merge(declared: Any, merges: Any) -> None:
    cells = cells_of(**declared)
    for kind, *args in merges[:-1]:
        cells.merge("s", ("k",), kind, tuple(args))
    kind, *args = merges[-1]
    with pytest.raises(Unfit):
        cells.merge("s", ("k",), kind, tuple(args))


def test_a_bool_is_the_number_that_it_is() -> None:
    cells = cells_of(default=0, key="BIGINT, DOUBLE")
    cells.merge("s", (True, 2), "set", (True,))
    value = cells.get("s", (1, 2.0))
    assert value == 1 and type(value) is int
    assert cells.get("s", (True, 2)) == 1


def test_every_nan_is_one_object() -> None:
    cells = cells_of(default=(), type="LIST(DOUBLE)")
    cells.merge("s", ("k",), "append", (float("nan"),))
    assert cells.get("s", ("k",))[0] is math.nan


# --- keys --------------------------------------------------------------------------------------


def test_keys_are_equal_as_groups_are() -> None:
    cells = cells_of(default=0)
    for key in (0.0, -0.0, math.nan, float("nan"), None, None):
        cells.merge("s", (key,), "add", (1,))
    assert [cells.get("s", (key,)) for key in (0.0, math.nan, None)] == [2, 2, 2]


def test_a_key_may_have_several_parts() -> None:
    cells = cells_of(default=0)
    cells.merge("s", (1, "a"), "add", (1,))
    assert [cells.get("s", key) for key in ((1, "a"), ("a", 1), (1,))] == [1, 0, 0]


def test_a_key_fits_its_types() -> None:
    cells = cells_of(default=0, key="BIGINT, STRING")
    cells.merge("s", (1, None), "add", (1,))
    assert cells.get("s", (1, None)) == 1
    for key in ((1,), (1.0, "a"), ("a", 1)):
        with pytest.raises(Unfit, match="a key of s"):
            cells.merge("s", key, "add", (1,))
        with pytest.raises(Unfit, match="a key of s"):
            cells.get("s", key)


# --- copies ------------------------------------------------------------------------------------


def test_what_is_handed_out_is_a_copy() -> None:
    cells = cells_of(default={"n": 1, "tags": ["a"]}, type="STRUCT(n BIGINT, tags LIST(STRING))")
    for _ in range(2):  # the default, then a value
        found = cells.get("s", ("k",))
        assert type(found["tags"]) is list and found.n == 1
        found["n"] = 2
        found["tags"].append("b")
        assert cells.get("s", ("k",)) == {"n": 1, "tags": ["a"]}
        cells.merge("s", ("k",), "set", ({"n": 1, "tags": ["a"]},))


def test_what_is_merged_is_a_copy() -> None:
    cells = cells_of(default=(), type="LIST(LIST(BIGINT))")
    mine = [1]
    cells.merge("s", ("k",), "append", (mine,))
    mine.append(2)
    cells.merge("s", ("k",), "call", (), lambda old: old[0].append(3) or old[:0])
    assert cells.get("s", ("k",)) == []
    cells.merge("s", ("k",), "set", ([mine],))
    mine.append(4)
    assert cells.get("s", ("k",)) == [[1, 2]]


# --- time --------------------------------------------------------------------------------------


def test_a_cell_that_expires_is_the_default_again() -> None:
    cells = cells_of(default=100, expires=10)
    cells.now = 5
    cells.merge("s", ("k",), "add", (1,))
    seen = []
    for cells.now in (5, 14, 15):
        seen.append(cells.get("s", ("k",)))
    assert seen == [101, 101, 100]
    cells.merge("s", ("k",), "add", (1,))  # from the default
    assert cells.get("s", ("k",)) == 101


def test_a_window_sees_the_merges_of_its_span() -> None:
    cells = cells_of(default=0, last=10)
    for cells.now, n in ((0, 1), (5, 10), (10, 100)):
        cells.merge("s", ("k",), "add", (n,))
    seen = []
    for cells.now in (10, 14, 15, 19, 20):
        seen.append(cells.get("s", ("k",)))
    assert seen == [110, 110, 100, 100, 0]


def test_an_integer_in_a_window_has_to_fit_when_it_is_read() -> None:
    cells = cells_of(default=0, last=10)
    cells.merge("s", ("k",), "add", (BIGGEST,))
    cells.merge("s", ("k",), "add", (1,))
    with pytest.raises(TypeError, match="BIGINT"):
        cells.get("s", ("k",))
    cells.merge("s", ("k",), "add", (-1,))
    assert cells.get("s", ("k",)) == BIGGEST


def test_a_window_folds_all_kinds_in_order() -> None:
    cells = cells_of(default=1, last=10)
    assert merged(cells, ("add", 2), ("max", 7), ("add", 1), ("min", 5), ("set", 9)) == 9
    cells = cells_of(default=1, last=10)
    assert merged(cells, ("add", 2), ("max", 7), ("add", 1)) == 8


# --- functions ---------------------------------------------------------------------------------


def two_states(**window: Any) -> tuple[SerialCells, Callable[[object], object]]:
    """States `s` and `other`, and a function that adds what `other` has."""
    app = App("a")
    states: dict[str, State] = {
        "s": app.state("s", default=0, **window),
        "other": app.state("other", default=0),
    }
    cells = SerialCells(states)
    return cells, lambda old: old + cells.get("other", ("k",))


def test_a_function_sees_other_cells_as_they_are_before_the_merge() -> None:
    cells, plus_other = two_states()
    cells.merge("other", ("k",), "set", (5,))
    cells.merge("s", ("k",), "call", (), plus_other)
    cells.merge("other", ("k",), "set", (7,))
    assert cells.get("s", ("k",)) == 5


def test_a_function_in_a_window_sees_other_cells_as_they_were() -> None:
    cells, plus_other = two_states(last=10)
    cells.merge("other", ("k",), "set", (5,))
    cells.merge("s", ("k",), "call", (), plus_other)
    for key, value in (("j", 8), ("k", 6), ("k", 7)):
        cells.merge("other", (key,), "set", (value,))
    cells.merge("s", ("k",), "call", (), plus_other)
    assert cells.get("s", ("k",)) == 12
    cells.now = 10
    assert cells.get("s", ("k",)) == 0


def test_a_function_in_a_window_sees_other_windows_as_they_were() -> None:
    app = App("a")
    names = ("s", "other")
    cells = SerialCells({name: app.state(name, default=0, last=10) for name in names})
    cells.merge("other", ("k",), "add", (1,))
    cells.now = 5
    cells.merge("s", ("k",), "call", (), lambda old: cells.get("other", ("k",)))
    cells.merge("other", ("k",), "add", (10,))
    cells.now = 12  # by now the first is out of its window, and was not when `s` was merged into
    cells.merge("other", ("k",), "add", (100,))
    assert cells.get("s", ("k",)) == 1


def test_a_function_neither_merges_nor_emits() -> None:
    cells = cells_of(default=0)
    with pytest.raises(TypeError, match="may read, not merge"):
        cells.merge("s", ("k",), "call", (), lambda old: cells.merge("s", ("k",), "add", (1,)))
    with pytest.raises(TypeError, match="may read, not merge or emit"):
        cells.merge("s", ("k",), "call", (), lambda old: cells.refuse_in_function("app.emit()"))
    assert merged(cells, ("add", 1)) == 1  # it is over


def test_a_function_gets_a_struct_as_handlers_see_it() -> None:
    cells = cells_of(default={"n": 1}, type="STRUCT(n BIGINT)")
    for _ in range(2):
        cells.merge("s", ("k",), "call", (), lambda old: {"n": old.n + 1})
    assert cells.get("s", ("k",)).n == 3


def test_what_a_function_gives_has_to_fit() -> None:
    cells = cells_of(default=0)
    with pytest.raises(TypeError, match=r"BIGINT, not 0\.5"):
        cells.merge("s", ("k",), "call", (), lambda old: 0.5)
