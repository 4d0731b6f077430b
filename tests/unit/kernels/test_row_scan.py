"""Row scans: the code of handlers, run row by row over cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import OperatorFailed, RunError
from weir.events.batch import OPEN, Batch
from weir.events.types import BIGINT, DOUBLE, STRING
from weir.events.user_copies import StructValue
from weir.kernels.kernel_table import make_kernel
from weir.plan.operators import RowScan, Source, SourceOptions
from weir.plan.states import (
    Accessors,
    Cell,
    CellFailure,
    EffectRows,
    MergeFunction,
    RowCode,
    RowCursor,
    RowEffect,
    RowRun,
    StateMerge,
    WindowCall,
)

LISTS = pa.list_(BIGINT)
POINT = pa.struct([("x", BIGINT), ("y", LISTS)])
EMITTED = pa.list_(pa.struct([("v", BIGINT), ("w", STRING)]))


def _source(index: int, dtype: pa.DataType = BIGINT) -> Source:
    columns = (("k", STRING), ("v", dtype), ("vs", BIGINT))
    return Source(f"S{index}", columns, "", SourceOptions("vs"), index)


def _rows(*rows: tuple[int, int, str | None, Any], dtype: pa.DataType = BIGINT) -> Batch:
    """Rows of (vs, number, key, value)."""
    vs = np.array([r[0] for r in rows], dtype=np.int64)
    number = np.array([r[1] for r in rows], dtype=np.int64)
    keys = pa.array([r[2] for r in rows], STRING)
    return Batch(vs, vs + 1, (keys, pa.array([r[3] for r in rows], dtype)), (number,))


# --- a runner of code that a test writes -------------------------------------------------------

States = Sequence[Accessors]
Give = Callable[..., None]
Code = Callable[[Any, Any, States, Give], None]
"""What a row's code does with the key, the value, the states, and what it gives out by: the number
of the effect, then its values."""


@dataclass
class _Runner:
    """Runs one function for each port and place, as handlers are run (`RowRunner`)."""

    codes: Sequence[Sequence[Code]]
    states: States
    cursor: RowCursor
    effects: Sequence[EffectRows]
    checked: Callable[[], None]
    keyed: bool

    @property
    def runs(self) -> list[list[RowRun]]:
        return [[self._run(code) for code in codes] for codes in self.codes]

    def _run(self, code: Code) -> RowRun:
        def run(row: tuple[Any, ...]) -> None:
            self.cursor.now, _, key, value = row
            self.cursor.key = key if self.keyed else None
            code(key, value, self.states, self._give)
            if self.cursor.failure is not None:
                raise self.cursor.failure

        return run

    def _give(self, effect: int, *values: object) -> None:
        entries = self.effects[effect]
        settled = [settle(v) for settle, v in zip(entries.settle, values, strict=True)]
        entries.rows.append(self.cursor.row)
        for column, value in zip(entries.columns, settled, strict=True):
            column.append(value)

    def loop(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for self.cursor.row, row in enumerate(rows):
            for run in self.runs[0]:
                run(row)

    def bound(self) -> AbstractContextManager[None]:
        return nullcontext()

    def check(self) -> None:
        self.checked()


def _row_code(
    *codes: Sequence[Code], checked: Callable[[], None] = lambda: None, keyed: bool = True
) -> RowCode:
    def make(states: States, cursor: RowCursor, effects: Sequence[EffectRows]) -> _Runner:
        return _Runner(codes, states, cursor, effects, checked, keyed)

    return RowCode("rule", make)


def scan(
    cell: Cell,
    code: Code,
    effect: pa.DataType = BIGINT,
    dtype: pa.DataType = BIGINT,
    checked: Callable[[], None] = lambda: None,
    *,
    keyed: bool = True,
) -> RowScan:
    """A scan of one state and one port that gives out a value for each row."""
    return RowScan(
        (_source(0, dtype),),
        (("k",) if keyed else (),),
        (cell,),
        _row_code([code], checked=checked, keyed=keyed),
        (("k", "v"),),
        ((0,),),
        ((),),
        (RowEffect("e", effect),),
        1,
        passes=True,
    )


def effects(node: RowScan, *rows: Any, dtype: pa.DataType = BIGINT, cut: bool = False) -> list[Any]:
    """The effects of all rows: in one step, or each in a step of its own with a restart after."""
    kernel = make_kernel(node)
    if not cut:
        return kernel.step([_rows(*rows, dtype=dtype)], OPEN)[0].columns[-1].to_pylist()
    given: list[Any] = []
    for row in rows:
        given += kernel.step([_rows(row, dtype=dtype)], row[0] + 1)[0].columns[-1].to_pylist()
        tables = kernel.snapshot()
        kernel = make_kernel(node)
        kernel.load(tables)
    return given


def counting(kind: str) -> Code:
    def code(key: Any, value: Any, states: States, give: Give) -> None:
        give(0, states[0]["get"](key))
        states[0][kind](key, value, *((2,) if kind == "top_k" else ()))

    return code


# --- rows --------------------------------------------------------------------------------------


def _first_of_key(key: Any, value: Any, states: States, give: Give) -> None:
    if states[0]["get"](key):
        give(1, value, "again")
        return
    states[0]["set"](key, True)
    give(0, value)


def _two_ports(**options: Any) -> RowScan:
    seen = Cell("seen", (STRING,), pa.bool_(), False)
    given = (RowEffect("first", BIGINT), RowEffect("more", EMITTED, is_list=True))
    return RowScan(
        (_source(0), _source(1)),
        (("k",),) * 2,
        (seen,),
        _row_code([_first_of_key], [_first_of_key]),
        (("k", "v"),) * 2,
        ((3,), (2,)),
        ((), ()),
        given,
        1,
        **options,
    )


MINE = ((1, 5, "a", 1), (1, 6, "a", 2), (2, 7, None, 3), (2, 8, None, 4), (2, 9, "b", 5))


def test_code_runs_row_by_row() -> None:
    out, cti = make_kernel(_two_ports(passes=True)).step([_rows(*MINE), _rows((2, 9, "b", 7))], 9)
    # At the same event the second port's place comes first, so `b` was seen there.
    assert cti == 9
    assert out.columns[0].to_pylist() == ["a", "a", None, None, "b"]
    assert out.columns[2].to_pylist() == [1, None, 3, None, None]
    again = [[], [{"v": 2, "w": "again"}], [], [{"v": 4, "w": "again"}], [{"v": 5, "w": "again"}]]
    assert out.columns[3].to_pylist() == again
    assert out.origin[0].tolist() == [5, 6, 7, 8, 9]


def test_rows_of_several_ports_come_out_in_order() -> None:
    slices = [_rows(*MINE), _rows((0, 4, "b", 7), (2, 9, "b", 8))]
    out, _ = make_kernel(_two_ports(out_ports=2)).step(slices, OPEN)
    assert out.vs.tolist() == [0, 1, 1, 2, 2, 2, 2]
    assert out.origin[0].tolist() == [4, 5, 6, 7, 8, 9, 9]
    assert out.columns[0].to_pylist() == [7, 1, None, 3, None, None, None]
    assert [len(rows) for rows in out.columns[1].to_pylist()] == [0, 0, 1, 0, 1, 1, 1]


def test_an_effect_has_all_that_a_row_gives_out_in_order() -> None:
    def code(key: Any, value: Any, states: States, give: Give) -> None:
        for n in range(value):
            give(0, n, str(key))

    node = RowScan(
        (_source(0),),
        ((),),
        (),
        _row_code([code], keyed=False),
        (("k", "v"),),
        ((0,),),
        ((),),
        (RowEffect("e", EMITTED, is_list=True),),
        1,
    )
    rows = _rows((1, 0, "a", 2), (1, 1, "b", 0), (2, 2, "c", 1))
    out, _ = make_kernel(node).step([rows], OPEN)
    wanted = [[{"v": 0, "w": "a"}, {"v": 1, "w": "a"}], [], [{"v": 0, "w": "c"}]]
    assert out.columns[0].to_pylist() == wanted


def test_handlers_of_an_event_run_one_after_the_other() -> None:
    def doubled(key: Any, value: Any, states: States, give: Give) -> None:
        states[0]["merge"](key, lambda old: old * 2)
        give(0, states[0]["get"](key))

    def added(key: Any, value: Any, states: States, give: Give) -> None:
        states[0]["add"](key, value)

    cell = Cell("s", (STRING,), BIGINT, 1)
    node = replace(scan(cell, added), code=_row_code([added, doubled]), places=((0, 1),))
    assert effects(node, (1, 0, "a", 2), (1, 1, "b", 5), (2, 2, "a", 1)) == [6, 12, 14]
    assert effects(node, (1, 0, "a", 2), (1, 1, "b", 5), (2, 2, "a", 1), cut=True) == [6, 12, 14]


def test_rows_of_ports_without_code_merge_between() -> None:
    function = MergeFunction("twice", lambda old, v: 2 * old + v)
    merges = (
        StateMerge(0, "add", ("v",), 1, 1),
        StateMerge(0, "call", ("v",), 2, 2, function=function),
    )
    node = RowScan(
        (_source(0), _source(1)),
        (("k",),) * 2,
        (Cell("s", (STRING,), BIGINT, 0),),
        _row_code([counting("add")]),
        (("k", "v"),),
        ((0,),),
        ((), merges),
        (RowEffect("e", BIGINT),),
        1,
        passes=True,
    )
    others = _rows((1, 0, "a", 10), (2, 2, "b", 1))
    mine = _rows((1, 1, "a", 1), (1, 1, "b", 1), (3, 3, "a", 1), (3, 4, "b", 1))
    # a: 10, then 2 * 10 + 10; b: 1 of its own, + 1, then 2 * 2 + 1
    out, _ = make_kernel(node).step([mine, others], OPEN)
    assert out.columns[-1].to_pylist() == [30, 0, 31, 5]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_batches_of_any_size_change_nothing(size: int) -> None:
    rows = [(t // 3, t, "abc"[t % 3] if t % 5 else None, t % 7) for t in range(60)]
    node = scan(Cell("s", (STRING,), BIGINT, 0, last=9), counting("add"))
    kernel, given = make_kernel(node), []
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        given += kernel.step([_rows(*part)], part[-1][0])[0].columns[-1].to_pylist()
    assert given == effects(node, *rows)
    assert given[-3:] == [
        sum(v for t, _, k, v in rows[:at] if k == rows[at][2] and rows[at][0] < t + 9)
        for at in (57, 58, 59)
    ]


def test_a_step_without_rows_gives_none() -> None:
    out, cti = make_kernel(_two_ports(out_ports=2)).step([_rows(), _rows()], 7)
    assert (len(out), cti, len(out.columns)) == (0, 7, 2)


# --- cells -------------------------------------------------------------------------------------

KINDS: list[tuple[Any, pa.DataType, Any, list[Any]]] = [
    ("add", BIGINT, 0, [0, 3, 4, 0, 9]),
    ("max", BIGINT, 0, [0, 3, 3, 0, 5]),
    ("min", BIGINT, 9, [9, 3, 1, 9, 1]),
    ("set", BIGINT, None, [None, 3, 1, None, 5]),
    ("append", LISTS, (), [[], [3], [3, 1], [], [3, 1, 5]]),
    ("add_to_set", LISTS, (1,), [[1], [1, 3], [1, 3], [1], [1, 3, 5]]),
    ("top_k", LISTS, (), [[], [3], [3, 1], [], [5, 3]]),
]
ROWS = ((1, 0, "a", 3), (2, 1, "a", 1), (3, 2, "a", 5), (3, 3, None, 7), (4, 4, "a", 2))


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("kind", "dtype", "default", "wanted"), KINDS)
def test_cells_go_on_after_a_restart(
    kind: Any, dtype: pa.DataType, default: Any, wanted: list[Any], cut: bool, keyed: bool
) -> None:
    cell = Cell("s", (STRING,), dtype, default)
    assert effects(scan(cell, counting(kind), dtype, keyed=keyed), *ROWS, cut=cut) == wanted


@pytest.mark.parametrize("cut", [False, True])
def test_windows_and_ends_to_the_tick(cut: bool) -> None:
    last = Cell("s", (STRING,), BIGINT, 0, last=2)
    # Reads come before the merges of their own row.
    assert effects(scan(last, counting("add")), *ROWS, cut=cut) == [0, 3, 1, 0, 5]
    expires = Cell("s", (STRING,), BIGINT, 0, expires=2)
    rows = ((1, 0, "a", 3), (2, 1, "a", 1), (4, 2, "a", 5), (5, 3, "a", 1))
    assert effects(scan(expires, counting("add")), *rows, cut=cut) == [0, 3, 0, 5]


@pytest.mark.parametrize("cut", [False, True])
def test_sums_of_doubles_are_exact(cut: bool) -> None:
    node = scan(Cell("s", (STRING,), DOUBLE, 0.0), counting("add"), DOUBLE, DOUBLE)
    rows = [(t, t, "a", v) for t, v in enumerate((1e16, 1.0, 1.0, -1e16, 0.0))]
    got = effects(node, *rows, dtype=DOUBLE, cut=cut)
    assert got == [0.0, 1e16, 1e16, 1e16 + 2, 2.0]


@pytest.mark.parametrize("cut", [False, True])
def test_keys_are_compared_as_groups_are(cut: bool) -> None:
    keys = iter((0.0, -0.0, math.nan, -math.nan, None, None) * 2)

    def code(key: Any, value: Any, states: States, give: Give) -> None:
        mine = (next(keys), [1, next(keys)])
        next(keys)
        give(0, states[0]["get"](mine))
        states[0]["add"](mine, 1)

    cell = Cell("s", (DOUBLE, pa.list_(DOUBLE)), BIGINT, 0)
    rows = [(t, t, "a", 0) for t in range(4)]
    assert effects(scan(cell, code, keyed=False), *rows, cut=cut) == [0, 0, 1, 1]


def test_keys_and_values_are_settled() -> None:
    def code(key: Any, value: Any, states: States, give: Give) -> None:
        states[0]["add"](True, True)
        give(0, states[0]["get"](1))

    cell = Cell("s", (BIGINT,), BIGINT, 0)
    assert effects(scan(cell, code, keyed=False), *ROWS[:2], cut=True) == [1, 2]


def test_every_nan_is_one_object() -> None:
    def code(key: Any, value: Any, states: States, give: Give) -> None:
        states[0]["set"](key, float("nan"))
        give(0, (value is math.nan) + 2 * (states[0]["get"](key) is math.nan))

    for ends in ({}, {"last": 9}, {"expires": 9}):
        node = scan(Cell("s", (STRING,), DOUBLE, 0.0, **ends), code, dtype=DOUBLE)
        assert effects(node, (1, 0, "a", -math.nan), (2, 1, "a", 1.0), dtype=DOUBLE) == [3, 2]


@pytest.mark.parametrize("ends", [{"last": 10}, {"expires": 10}])
def test_cells_that_have_ended_are_dropped(ends: dict[str, int]) -> None:
    kernel = make_kernel(scan(Cell("s", (STRING,), BIGINT, 0, **ends), counting("add")))
    most = 0
    for start in range(0, 8000, 200):
        rows = [(t, t, str(t), 1) for t in range(start, start + 200)]
        kernel.step([_rows(*rows)], start + 200)
        most = max(most, kernel.state_rows)
    assert most <= 2 * 1024 + 400


# --- copies ------------------------------------------------------------------------------------


def test_what_code_does_to_a_value_changes_only_a_copy() -> None:
    cell = Cell("s", (STRING,), LISTS, (1,))

    def change_state(key: Any, value: Any, states: States, give: Give) -> None:
        mine = states[0]["get"](key)
        assert type(mine) is list
        mine.extend([7, 8])
        give(0, states[0]["get"](key))

    assert effects(scan(cell, change_state, LISTS), *ROWS[:2]) == [[1], [1]]
    mine = [5]

    def keep(key: Any, value: Any, states: States, give: Give) -> None:
        states[0]["set"](key, mine)
        mine.append(6)
        give(0, states[0]["get"](key))
        mine.append(7)

    assert effects(scan(cell, keep, LISTS), (1, 0, "a", 1)) == [[5]]

    def change_old(key: Any, value: Any, states: States, give: Give) -> None:
        held: list[list[int]] = []

        def grown(old: list[int]) -> list[int]:
            old.append(2)
            held.append(old)
            return old

        states[0]["merge"](key, grown)
        held[0].append(3)
        give(0, states[0]["get"](key))

    assert effects(scan(cell, change_old, LISTS), *ROWS[:2]) == [[1, 2], [1, 2, 2]]


def test_a_struct_is_a_dict_with_attributes() -> None:
    def code(key: Any, value: Any, states: States, give: Give) -> None:
        before = states[0]["get"](key)
        assert type(before) is StructValue
        before.y.append(99)
        states[0]["set"](key, value)
        give(0, states[0]["get"](key).y[0] + states[0]["get"](key)["x"] + len(before.y))

    cell = Cell("s", (STRING,), POINT, (("x", 0), ("y", ())))
    rows = ((1, 0, "a", {"x": 1, "y": [2]}), (2, 1, "a", {"x": 5, "y": [6, 7]}))
    for cut in (False, True):
        assert effects(scan(cell, code, dtype=POINT), *rows, dtype=POINT, cut=cut) == [4, 13]


# --- guards ------------------------------------------------------------------------------------

_CELL = Cell("s", (STRING,), BIGINT, 0)


def _caught(code: Code) -> Code:
    """The same code, by somebody who catches all that it raises."""

    def careless(key: Any, value: Any, states: States, give: Give) -> None:
        try:
            code(key, value, states, give)
        except Exception:
            give(0, -1)

    return careless


def _other_key(key: Any, value: Any, states: States, give: Give) -> None:
    states[0]["get"]("other")


def _merge_in_merge(key: Any, value: Any, states: States, give: Give) -> None:
    states[0]["merge"](key, lambda old: states[0]["add"](key, 1) or old)


def _wrong_key(key: Any, value: Any, states: States, give: Give) -> None:
    states[0]["add"](1, 0)


def _many_parts(key: Any, value: Any, states: States, give: Give) -> None:
    states[0]["get"]((key, key))


def _too_large(key: Any, value: Any, states: States, give: Give) -> None:
    states[0]["add"](key, 2**63 - 1)
    states[0]["add"](key, 1)


def _wrong_value(key: Any, value: Any, states: States, give: Give) -> None:
    states[0]["set"](key, "x")


def _wrong_result(key: Any, value: Any, states: States, give: Give) -> None:
    states[0]["merge"](key, lambda old: "x")


REFUSED: list[tuple[Code, bool, str]] = [
    (_other_key, True, r"s is used with the key 'other'.*only 'a'.*was planned for this event"),
    (_merge_in_merge, True, r"s is merged inside of a merge function of s; merge it before"),
    (_wrong_key, False, r"a key of s must be STRING, not 1"),
    (_wrong_key, True, r"a key of s must be STRING, not 1"),
    (_many_parts, False, r"a key of s has 1 parts, not 2"),
    (_too_large, True, r"state s must be BIGINT, not 922"),
    (_wrong_value, True, r"set of s takes BIGINT, not 'x'"),
    (_wrong_result, True, r"merge of s takes BIGINT, not 'x'"),
]


@pytest.mark.parametrize(("code", "keyed", "why"), REFUSED)
def test_a_state_that_refuses_ends_the_run_even_if_code_catches_it(
    code: Code, keyed: bool, why: str
) -> None:
    row = (1, 0, "a", 4)
    for run in (code, _caught(code)):
        with pytest.raises(OperatorFailed, match=rf"rule .*'vs': 1.*{why}"):
            effects(scan(_CELL, run, keyed=keyed), row)


def test_an_access_that_was_kept_from_an_earlier_run_is_refused() -> None:
    kept: list[Any] = []

    def code(key: Any, value: Any, states: States, give: Give) -> None:
        kept.append(states[0]["get"])

    effects(scan(_CELL, code, keyed=False), (1, 0, "a", 4))
    with pytest.raises(CellFailure, match=r"a method of s was kept from an earlier run"):
        kept[0]("a")


def test_what_is_checked_ends_a_step_at_the_end_and_a_snapshot() -> None:
    checks: list[str] = []

    def checked() -> None:
        checks.append("")
        raise RunError("it keeps a counter")

    kernel = make_kernel(scan(_CELL, counting("add"), checked=checked))
    kernel.step([_rows(*ROWS[:1])], 2)
    assert not checks
    with pytest.raises(RunError, match="it keeps a counter"):
        kernel.snapshot()
    with pytest.raises(RunError, match="it keeps a counter"):
        kernel.step([_rows(*ROWS[1:2])], OPEN)


# --- failures ----------------------------------------------------------------------------------


def test_what_fails_names_the_event() -> None:
    def broken(key: Any, value: Any, states: States, give: Give) -> None:
        give(0, 1 // (value - 4))

    with pytest.raises(OperatorFailed, match=r"'v': 4.*ZeroDivisionError"):
        effects(scan(_CELL, broken), (1, 0, "a", 1), (1, 1, "a", 4))

    def misfit(key: Any, value: Any, states: States, give: Give) -> None:
        give(0, "x")

    with pytest.raises(OperatorFailed, match=r"event .*'v': 4.*BIGINT, not 'x'"):
        effects(scan(_CELL, misfit), (1, 0, "a", 4))

    def only_second(key: Any, value: Any, states: States, give: Give) -> None:
        if value == 8:
            raise ValueError("eight")

    node = replace(_two_ports(out_ports=2), code=_row_code([only_second], [only_second]))
    with pytest.raises(OperatorFailed, match=r"'vs': 3.*'v': 8.*ValueError: eight"):
        make_kernel(node).step([_rows(*MINE), _rows((0, 4, "b", 7), (3, 9, "b", 8))], OPEN)


def test_windows_of_functions_and_what_a_checkpoint_keeps_of_them() -> None:
    def twice(old: int, value: int) -> int:
        return 2 * old + value

    def code(key: Any, value: Any, states: States, give: Give) -> None:
        states[0]["merge_call"](key, (value,), twice, "call twice")
        give(0, states[0]["get"](key))

    node = replace(
        scan(Cell("s", (STRING,), BIGINT, 1, last=5), code),
        calls=(WindowCall(0, MergeFunction("twice", twice), (BIGINT,)),),
    )
    for cut in (False, True):
        assert effects(node, *ROWS[:2], (9, 5, "a", 4), cut=cut) == [5, 11, 6]

    def unnamed(key: Any, value: Any, states: States, give: Give) -> None:
        states[0]["merge"](key, lambda old: 2 * old + value)
        give(0, states[0]["get"](key))

    bare = scan(Cell("s", (STRING,), BIGINT, 1, last=5), unnamed)
    assert effects(bare, *ROWS[:2]) == [5, 11]
    with pytest.raises(RunError, match=r"a checkpoint cannot keep the window of s, .*; use"):
        effects(bare, *ROWS[:2], cut=True)
