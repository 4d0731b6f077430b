"""State scans against a plain loop over all requests (`scan_reference.py`): any cut, a snapshot at
each step, keys that are equal in odd ways, windows and expiry to the tick."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from unit.kernels.saved_values import cells_as_of
from unit.kernels.scan_reference import ReferenceRow, ReferenceScan, same_key
from weir.errors import OperatorFailed, RunError
from weir.events.batch import OPEN, Batch, concat_batches
from weir.events.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.kernels.kernel import Kernel
from weir.kernels.kernel_table import make_kernel
from weir.kernels.operators.stateless import make_transform
from weir.plan.expressions import Literal
from weir.plan.operators import (
    Enter,
    FinalState,
    Number,
    Source,
    SourceOptions,
    StateScan,
    schema,
)
from weir.plan.saved_states import key_names
from weir.plan.states import Cell, MergeFunction, MergeKind, StateMerge, StateRead

COLUMNS = (
    ("k", DOUBLE),
    ("j", STRING),
    ("c", BOOLEAN),
    ("i", BIGINT),
    ("n", INT),
    ("d", DOUBLE),
    ("s", STRING),
    ("b", BOOLEAN),
    ("t", TIMESTAMP),
    ("day", DATE),
)
EARLY = datetime(1950, 1, 1, tzinfo=ZoneInfo("UTC"))
KEYS = (0.0, -0.0, math.nan, -math.nan, None, 1.5)


def source(index: int = 0) -> Source:
    return Source(f"S{index}", (*COLUMNS, ("vs", BIGINT)), "", SourceOptions("vs"), index)


def batch(rows: Sequence[ReferenceRow], nested: bool) -> Batch:
    vs = np.array([row.vs for row in rows], dtype=np.int64)
    columns = tuple(pa.array([r.values[name] for r in rows], t) for name, t in COLUMNS)
    depth = 3 if nested else 2
    origins = [(*row.event, *row.element) for row in rows]
    return Batch(
        vs,
        vs + 1,
        columns,
        tuple(np.array([o[i] for o in origins], dtype=np.int64) for i in range(depth)),
    )


def below(rows: Sequence[ReferenceRow], time: int) -> int:
    return sum(row.vs < time for row in rows)


def answers(
    node: StateScan,
    ports: Sequence[Sequence[ReferenceRow]],
    nested: Sequence[bool],
    cuts: Sequence[int],
    restart: bool,
) -> list[list[Any]]:
    """The columns of answers, with the input cut at these times."""
    kernel, outs, done = make_kernel(node), [], [0] * len(ports)
    for cti in (*cuts, OPEN):
        ends = [below(rows, cti) for rows in ports]
        slices = [batch(r[a:b], n) for r, a, b, n in zip(ports, done, ends, nested, strict=True)]
        out, reached = kernel.step(slices, cti)
        assert reached == cti and [o.tolist() for o in out.origin] == [
            o.tolist() for o in slices[0].origin
        ]
        outs.append(out)
        done = ends
        if restart:
            kernel = restarted(kernel, node)
    return [c.to_pylist() for c in concat_batches(outs).columns[len(COLUMNS) :]]


def restarted(kernel: Kernel, node: StateScan | FinalState) -> Kernel:
    again = make_kernel(node)
    again.load(kernel.snapshot())
    return again


# --- random scans ----------------------------------------------------------------------------

ADD_UP = MergeFunction("add_up", lambda old, x: old + x, 1, "add_float")
DOUBLED = MergeFunction("doubled", lambda old, x: 2 * old + x, 2)
KINDS: list[tuple[pa.DataType, Any, list[tuple[str, str]]]] = [
    (BIGINT, 0, [("add", "i"), ("add", "n")]),
    (BIGINT, 7, [("add", "i"), ("set", "i"), ("max", "i"), ("min", "n")]),
    (INT, -1, [("set", "n"), ("max", "n")]),
    (DOUBLE, 0.5, [("add", "d")]),
    (DOUBLE, 0.0, [("add", "d"), ("set", "d"), ("max", "d")]),
    (DOUBLE, 0.0, [("add_float", "d"), ("min", "d")]),
    (DOUBLE, 0.0, [("add_float", "d"), ("add", "d")]),
    (BOOLEAN, False, [("set", "b")]),
    (STRING, "-", [("set", "s")]),
    (STRING, None, [("set", "s")]),
    (TIMESTAMP, None, [("set", "t")]),
    (TIMESTAMP, EARLY, [("set", "t")]),
    (DATE, None, [("set", "day")]),
    (BIGINT, 1, [("doubled", "i"), ("set", "i")]),
    (pa.list_(BIGINT), (), [("append", "i"), ("top_k", "i")]),
    (pa.list_(DOUBLE), (), [("add_to_set", "d")]),
    (pa.list_(STRING), ("x",), [("append", "s"), ("add_to_set", "s")]),
]


def random_values(rng: random.Random) -> dict[str, Any]:
    return {
        "k": rng.choice(KEYS),
        "j": rng.choice(("a", "b")),
        "c": rng.choice((True, False, None)),
        "i": rng.randrange(-5, 6),
        "n": rng.randrange(-5, 6),
        "d": rng.choice((1e16, 1.0, -1e16, 0.1, 5e-324, 0.0, -3.5, 1e300, -1e300, math.inf)),
        "s": rng.choice(("x", "yy", "", None)),
        "b": rng.random() < 0.5,
        "t": rng.choice((None, datetime(2020, 1, 2, 3, tzinfo=ZoneInfo("UTC")), EARLY)),
        "day": rng.choice((None, date(1960, 1, 2), date(2020, 1, 2))),
    }


def random_rows(
    rng: random.Random, events: Sequence[tuple[int, tuple[int, int]]], nested: bool
) -> list[ReferenceRow]:
    rows = []
    for vs, event in events:
        for element in range(rng.randrange(3)) if nested else (None,):
            at = () if element is None else (element,)
            rows.append(ReferenceRow(vs, event, at, random_values(rng)))
    return rows


def random_merge(rng: random.Random, state: int, cell_kinds: Any, order: int, block: int) -> Any:
    kind, arg = rng.choice(cell_kinds)
    if rng.random() < 0.3:
        dtype = dict(COLUMNS)[arg]
        arg = Literal(random_values(rng)[arg], type=dtype)
    condition = rng.choice((None, "c"))
    function = {"add_float": ADD_UP, "doubled": DOUBLED}.get(kind)
    return StateMerge(
        state,
        "call" if function else kind,
        (arg,),
        order,
        block,
        condition,
        2 if kind == "top_k" else 0,
        function,
    )


def random_scan(rng: random.Random) -> tuple[StateScan, list[list[ReferenceRow]], list[bool]]:
    chosen = rng.choices(KINDS, k=rng.randrange(1, 4))
    keys = rng.choice((("k",), ("k", "j"), ()))
    types = tuple(dict(COLUMNS)[name] for name in keys)
    ends: list[dict[str, int]] = [{}, {}, {"last": 4}, {"expires": 3}]
    states = [
        Cell(f"s{i}", types, t, default, **rng.choice(ends))
        for i, (t, default, _) in enumerate(chosen)
    ]
    events = [
        [(vs, (kind, n)) for n, vs in enumerate(sorted(rng.choices(range(12), k=10)))]
        for kind in range(2)
    ]
    ports: list[list[ReferenceRow]] = []
    nested, merges = [], []
    for port in range(rng.randrange(1, 4)):
        deep = rng.random() < 0.3
        block = rng.randrange(4)
        ports.append(random_rows(rng, events[rng.randrange(2)], deep))
        nested.append(deep)
        orders = rng.sample(range(20), rng.randrange(3))
        merges.append(
            tuple(
                random_merge(
                    rng,
                    s := rng.randrange(len(states)),
                    chosen[s][2],
                    order * 3 + port,
                    block if deep else order,
                )
                for order in sorted(orders)
            )
        )
    loop = rng.randrange(4)
    reads = []
    for i, order in enumerate(sorted(rng.sample(range(20), rng.randrange(1, 4)))):
        block = loop if nested[0] else order
        reads.append(StateRead(rng.randrange(len(states)), f"r{i}", order * 3, block))
    streams = tuple(source(i) for i in range(len(ports)))
    node = StateScan(streams, (keys,) * len(ports), tuple(states), tuple(merges), tuple(reads), 2)
    return node, ports, nested


def shown(columns: list[list[Any]]) -> str:
    return repr(columns)  # tells −0 from 0, and NaN is NaN


@pytest.mark.parametrize("seed", range(60))
def test_random_scans(seed: int) -> None:
    rng = random.Random(seed)
    node, ports, nested = random_scan(rng)
    wanted = ReferenceScan(node.states).run(ports, node.keys, node.merges, node.reads)
    assert shown(answers(node, ports, nested, (), False)) == shown(wanted)
    assert shown(answers(node, ports, nested, range(1, 12), True)) == shown(wanted)
    cuts = sorted(rng.sample(range(1, 12), 3))
    assert shown(answers(node, ports, nested, cuts, rng.random() < 0.5)) == shown(wanted)


# --- final states ----------------------------------------------------------------------------


def final(node: StateScan, state: int, streams: int, restored: bool = False) -> FinalState:
    mine = tuple(tuple(replace(m, state=0) for m in ms if m.state == state) for ms in node.merges)
    made = FinalState(node.streams, node.keys, node.states[state], mine, 2)
    if not restored:
        return made
    names = key_names(made.state)
    return replace(
        made,
        streams=(*node.streams, made),
        keys=(*node.keys, names),
        merges=(*mine, ()),
        restored=streams,
    )


def saved(rows: Batch, node: FinalState) -> pa.Table:
    columns = dict(zip(schema(node).names, rows.columns, strict=True))
    return pa.table({"vs": rows.vs, **columns})


def cells(table: pa.Table, node: FinalState, time: int) -> dict[Any, str]:
    functions = {"call doubled": DOUBLED.function, "call add_up": ADD_UP.function}
    found = cells_as_of(table, node.state, time, functions)
    names = key_names(node.state)
    return {
        same_key([row[name] for name in names]): repr(row["value"]) for row in found.to_pylist()
    }


@pytest.mark.parametrize("seed", range(40))
def test_final_states_go_on_where_they_were_saved(seed: int) -> None:
    rng = random.Random(seed)
    node, ports, nested = random_scan(rng)
    reference = ReferenceScan(node.states)
    reference.run(ports, node.keys, node.merges, node.reads)
    for state, cell in enumerate(node.states):
        whole = final(node, state, len(ports))
        kernel = make_kernel(whole)
        out, _ = kernel.step([batch(r, n) for r, n in zip(ports, nested, strict=True)], OPEN)
        keys = [key for of, key in reference.seen if of == state]
        default = list(cell.default) if pa.types.is_list(cell.type) else cell.default
        for time in (11, 12, 13, 14, 20):
            wanted = {key: repr(reference.value(state, key, time)) for key in keys}
            wanted = {key: value for key, value in wanted.items() if value != repr(default)}
            assert cells(saved(out, whole), whole, time) == wanted
        # In two runs, cut anywhere in the log, with a restart in between.
        parts = [cut_anywhere(rows, (6, rng.randrange(2), rng.randrange(10))) for rows in ports]
        first, _ = make_kernel(whole).step(
            [batch(p[0], n) for p, n in zip(parts, nested, strict=True)], OPEN
        )
        second = make_kernel(final(node, state, len(ports), restored=True))
        rest = [batch(p[1], n) for p, n in zip(parts, nested, strict=True)]
        assert second.step([*(b.slice(0, 0) for b in rest), first], 6)[1] < -(2**60)
        second = restarted(second, final(node, state, len(ports), restored=True))
        again, _ = second.step([*rest, first.slice(0, 0)], OPEN)
        assert shown([c.to_pylist() for c in again.columns]) == shown(
            [c.to_pylist() for c in out.columns]
        )
        assert again.vs.tolist() == out.vs.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_final_states_leave_out_what_has_ended(seed: int) -> None:
    rng = random.Random(seed)
    node, ports, nested = random_scan(rng)
    for state, cell in enumerate(node.states):
        whole = final(node, state, len(ports))
        slices = [batch(r, n) for r, n in zip(ports, nested, strict=True)]
        out, _ = make_kernel(whole).step(slices, OPEN)
        last = max((int(b.vs.max()) for b in slices if len(b)), default=0)
        trimmed = replace(whole, as_of=last)
        once, _ = make_kernel(trimmed).step(slices, OPEN)
        span = cell.last or cell.expires
        alive = out.vs + span > last if span else out.vs == out.vs
        assert once.vs.tolist() == out.vs[alive].tolist()
        for time in (last, last + 1, 20):
            assert cells(saved(once, whole), whole, time) == cells(saved(out, whole), whole, time)
        # In two runs, the first of which leaves out what has ended by its end.
        parts = [cut_anywhere(rows, (6, rng.randrange(2), rng.randrange(10))) for rows in ports]
        first, _ = make_kernel(replace(whole, as_of=6)).step(
            [batch(p[0], n) for p, n in zip(parts, nested, strict=True)], OPEN
        )
        going_on = replace(final(node, state, len(ports), restored=True), as_of=last)
        rest = [batch(p[1], n) for p, n in zip(parts, nested, strict=True)]
        again, _ = make_kernel(going_on).step([*rest, first], OPEN)
        assert again.vs.tolist() == once.vs.tolist()
        assert shown([c.to_pylist() for c in again.columns]) == shown(
            [c.to_pylist() for c in once.columns]
        )


@pytest.mark.parametrize("kind", ["expires", "last"])
@pytest.mark.parametrize("merged", ["add", "append"])
def test_a_final_state_keeps_what_lives(kind: str, merged: MergeKind) -> None:
    dtype, default = (BIGINT, 0) if merged == "add" else (pa.list_(BIGINT), ())
    cell = replace(Cell("s", (BIGINT,), dtype, default), **{kind: 10})
    merge = StateMerge(0, merged, ("k",), 0, 0)
    source = Source("S", (("k", BIGINT), ("vs", BIGINT)), "", SourceOptions("vs"), 0)
    kernel = make_kernel(FinalState((source,), (("k",),), cell, ((merge,),), 1, as_of=10**6))
    most = 0
    for start in range(0, 50_000, 1000):
        vs = np.arange(start, start + 1000)
        kernel.step([Batch(vs, vs + 1, (pa.array(vs),), (vs, vs))], start + 1000)
        most = max(most, kernel.state_rows)
    assert most < 5000


def cut_anywhere(
    rows: Sequence[ReferenceRow], at: tuple[int, int, int]
) -> tuple[list[ReferenceRow], list[ReferenceRow]]:
    def before(row: ReferenceRow) -> bool:
        return (row.vs, *row.event) < at

    return [r for r in rows if before(r)], [r for r in rows if not before(r)]


# --- what fails ------------------------------------------------------------------------------


def row(vs: int, **values: Any) -> ReferenceRow:
    known = {"k": 1.0, "j": "a", "c": True, "i": 1, "n": 1, "d": 1.0, "s": "x", "b": True}
    return ReferenceRow(vs, (0, vs), (), {**known, "t": None, "day": None, **values})


def scan(cell: Cell, *merges: StateMerge) -> StateScan:
    return StateScan((source(),), (("k",),), (cell,), (merges,), (StateRead(0, "r", 9, 9),), 2)


@pytest.mark.parametrize(("dtype", "most"), [(BIGINT, 2**63 - 1), (INT, 2**31 - 1)])
def test_integers_beyond_their_type_are_an_error(dtype: pa.DataType, most: int) -> None:
    node = scan(Cell("s", (DOUBLE,), dtype, most - 1), StateMerge(0, "add", ("i",), 0, 0))
    rows = [row(1), row(2, k=2.0), row(3, i=-1), row(4)]
    assert answers(node, [rows], [False], (), False) == [[most, most, most - 1, most]]
    with pytest.raises(RunError, match=r"overflow: add state s .*k = 1.0, on event .*'vs': 5"):
        answers(node, [[*rows, row(5)]], [False], (), False)


def test_a_window_fails_where_it_is_read() -> None:
    for kinds in (("add",), ("add", "max")):  # compiled, and not
        merges = [StateMerge(0, kind, ("i",), n, n, "c") for n, kind in enumerate(kinds)]
        node = scan(Cell("s", (DOUBLE,), BIGINT, 2**63 - 2, last=3), *merges[:1], *merges[1:])
        rows = [row(1), row(2, i=-1), row(3, i=0)]
        got = answers(node, [rows], [False], (), False)
        assert got == [[2**63 - 1, 2**63 - 2, 2**63 - 2]]
        with pytest.raises(RunError, match=r"state s .*on event .*'vs': 4"):
            answers(node, [[*rows, row(4, i=3)]], [False], (), False)
        # Later it fits again: what was in between and not read does no harm.
        kernel = make_kernel(node)
        kernel.right_from = 5
        out, _ = kernel.step([batch([*rows, row(4, i=3), row(6, i=-5)], False)], OPEN)
        assert out.columns[-1].to_pylist()[-1] == 2**63 - 4


@pytest.mark.parametrize("kind", ["add", "max", "min"])
def test_null_is_no_argument(kind: Any) -> None:
    merge = StateMerge(0, kind, ("i",), 0, 0)
    with pytest.raises(RunError, match=f"{kind} of NULL into a cell of s, at k = 1.0, on event"):
        answers(
            scan(Cell("s", (DOUBLE,), BIGINT, 0), merge), [[row(1, i=None)]], [False], (), False
        )
    with pytest.raises(RunError, match=f"{kind} into a cell of s that is NULL"):
        answers(scan(Cell("s", (DOUBLE,), BIGINT, None), merge), [[row(1)]], [False], (), False)


def test_a_merge_function_that_fails_is_named() -> None:
    def broken(old: int, x: int) -> object:
        return 1 // (x - 3)

    merge = StateMerge(0, "call", ("i",), 0, 0, None, 0, MergeFunction("broken", broken, 1))
    for cell in (Cell("s", (DOUBLE,), BIGINT, 0), Cell("s", (DOUBLE,), BIGINT, 0, last=5)):
        with pytest.raises(OperatorFailed, match=r"broken .*test_state_scan.*'vs': 2.*division"):
            answers(scan(cell, merge), [[row(1), row(2, i=3)]], [False], (), False)
    wrong = MergeFunction("wrong", lambda old, x: "text", 1)
    merge = replace(merge, function=wrong)
    with pytest.raises(RunError, match="state s must be BIGINT, not 'text'"):
        answers(scan(Cell("s", (DOUBLE,), BIGINT, 0), merge), [[row(1)]], [False], (), False)


def test_functions_of_two_states_may_share_a_name() -> None:
    functions = (MergeFunction("f", lambda old, x: old + x), MergeFunction("f", lambda old, x: -x))
    cells = tuple(Cell(name, (DOUBLE,), BIGINT, 0) for name in "st")
    merges = tuple(
        StateMerge(i, "call", ("i",), i, i, None, 0, function)
        for i, function in enumerate(functions)
    )
    reads = tuple(StateRead(i, f"r{i}", 9 + i, 9 + i) for i in range(2))
    node = StateScan((source(),), (("k",),), cells, (merges,), reads, 2)
    assert answers(node, [[row(1, i=3), row(2, i=4)]], [False], (2,), True) == [[3, 7], [-3, -4]]


# --- what is kept ----------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [{"last": 10}, {"expires": 10}])
@pytest.mark.parametrize(("dtype", "kind", "arg"), [(BIGINT, "add", "i"), (STRING, "set", "s")])
def test_cells_that_have_ended_are_dropped(
    ends: dict[str, int], dtype: pa.DataType, kind: Any, arg: str
) -> None:
    cell = Cell("s", (DOUBLE,), dtype, 0 if dtype == BIGINT else "", **ends)
    kernel = make_kernel(scan(cell, StateMerge(0, kind, (arg,), 0, 0)))
    most = 0
    for start in range(0, 20_000, 500):
        rows = [row(t, k=float(t)) for t in range(start, start + 500)]
        kernel.step([batch(rows, False)], start + 500)
        most = max(most, kernel.state_rows)
    assert most <= 2 * 1024 + 1000


def test_reads_of_other_keys_keep_nothing() -> None:
    node = scan(Cell("s", (DOUBLE,), BIGINT, 0), StateMerge(0, "add", ("i",), 0, 0, "c"))
    kernel = make_kernel(node)
    kernel.step([batch([row(t, k=float(t), c=t == 7) for t in range(50)], False)], 50)
    assert kernel.state_rows == 1


# --- rows with origins of their own ----------------------------------------------------------


def test_number_counts_within_an_instant() -> None:
    kernel = make_kernel(Number(source()))
    out, cti = kernel.step([batch([row(1), row(1), row(3)], False)], 5)
    assert cti == 5 and [o.tolist() for o in out.origin] == [[0, 1, 0]]
    out, _ = kernel.step([batch([row(5)], False)], 6)
    assert [o.tolist() for o in out.origin] == [[0]] and kernel.state_rows == 0


def test_enter_puts_the_event_type_in_front() -> None:
    enter = make_transform(Enter(source(), 7, 4)).rows
    out = enter(batch([row(1), row(2)], False))
    assert [o.tolist() for o in out.origin] == [[7, 7], [0, 0], [1, 2], [-1, -1]]
    assert enter(Batch(out.vs, out.ve, out.columns)).origin == ()


def test_enter_puts_a_place_behind_the_event() -> None:
    rows = batch([row(1), row(2)], False)
    entered = make_transform(Enter(source(), 7, 4, behind=2)).rows(rows)
    assert [o.tolist() for o in entered.origin] == [[0, 0], [1, 2], [7, 7], [-1, -1]]
    element = Batch(rows.vs, rows.ve, rows.columns, (*rows.origin, np.array([5, 6])))
    deeper = make_transform(Enter(source(), 7, 4, behind=2)).rows(element)
    assert [o.tolist() for o in deeper.origin] == [[0, 0], [1, 2], [7, 7], [5, 6]]
