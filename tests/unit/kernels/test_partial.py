"""Partial aggregates: the bytes of a state, the rows of panes, and when they come out."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, START, Batch, Int64s, concat_batches
from weir.events.types import BIGINT, BINARY, DOUBLE
from weir.kernels.aggregates.lanes import Lanes
from weir.kernels.aggregates.moments import Moment, make_moment
from weir.kernels.aggregates.states import MergedMoment, pack
from weir.kernels.operators.aggregate import AggregateKernel
from weir.kernels.operators.partial import PaneWindows
from weir.kernels.operators.windows import last_ended, windows_met
from weir.kernels.structures.panes import Panes
from weir.plan.aggregations import Aggregation
from weir.plan.operators import PartialAggregate, Source, SourceOptions, schema
from weir.plan.windows import Hopping

DOUBLES = [1.5, -2.25, 1e300, -1e300, 5e-324, 0.1, 1e-300, 3.0, -0.0, 2.0**1023, -(2.0**1023)]
SPECIALS = [float("nan"), float("inf"), float("-inf")]
INTS = [1, -1, 2**62, -(2**63), 2**63 - 1, 0, 2**32, -(2**32), 2**31]
DECIMAL = pa.decimal128(38, 3)

# --- states ------------------------------------------------------------------------------------


def lanes_of(moment: Moment, column: pa.Array) -> Int64s:
    """The moment of the whole column, as one row of lanes."""
    counted = np.asarray(column.is_valid())
    moment.fit(column, counted)
    lanes = np.zeros((len(column), len(moment.lane_names)), dtype=np.int64)
    moment.encode(column, counted, lanes, 0)
    total: Int64s = lanes.sum(axis=0, keepdims=True)
    return total


def state_of(values: Sequence[object], dtype: pa.DataType, *, met: Sequence[object] = ()) -> bytes:
    """The state of some values, in a moment whose lanes have `met` others before."""
    moment = make_moment(dtype, squares=True)
    if met:
        lanes_of(moment, pa.array(met, dtype))
    state = pack(lanes_of(moment, pa.array(values, dtype)), moment.lane_names)[0].as_py()
    assert isinstance(state, bytes)
    return state


@pytest.mark.parametrize("seed", range(20))
def test_equal_moments_are_equal_bytes_whatever_the_lanes(seed: int) -> None:
    chance = random.Random(seed)
    values = [chance.choice(DOUBLES + SPECIALS * (seed % 2)) for _ in range(chance.randint(0, 9))]
    shuffled = chance.sample(values, len(values))
    assert state_of(values, DOUBLE) == state_of(shuffled, DOUBLE, met=[*DOUBLES, *SPECIALS])


def test_a_sum_of_nothing_has_no_bytes() -> None:
    assert state_of([None], BIGINT) == b""
    assert state_of([0, 0], BIGINT) == bytes([0, 0, 1, 2, 0, 0, 0])  # n = 2
    assert state_of([1e300, -1e300], DOUBLE)[:7] == bytes([0, 0, 1, 2, 0, 0, 0])


def test_words_are_as_few_as_say_the_value() -> None:
    moment = make_moment(BIGINT, squares=False)
    sums = {
        2**31 - 1: [0, 1, *b"\xff\xff\xff\x7f"],
        2**31: [0, 2, *b"\x00\x00\x00\x80", *b"\x00\x00\x00\x00"],
        2**32: [1, 1, *b"\x01\x00\x00\x00"],
        -1: [0, 1, *b"\xff\xff\xff\xff"],
        -(2**31): [0, 1, *b"\x00\x00\x00\x80"],
        -(2**63): [1, 1, *b"\x00\x00\x00\x80"],
    }
    for value, words in sums.items():
        state = pack(lanes_of(moment, pa.array([value])), moment.lane_names)[0].as_py()
        assert list(state[7:]) == [4, *words], value


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("dtype", "pool"), [(BIGINT, INTS), (DOUBLE, DOUBLES), (DOUBLE, DOUBLES + SPECIALS)]
)
def test_merged_states_are_the_whole(dtype: pa.DataType, pool: list[object], seed: int) -> None:
    chance = random.Random(seed)
    shares = [[chance.choice([*pool, None]) for _ in range(chance.randint(0, 6))] for _ in range(4)]
    merged = MergedMoment(make_moment(dtype, squares=True))
    states = pa.array([state_of(share, dtype) for share in shares], BINARY)
    total = pack(lanes_of(merged, states), merged.lane_names)[0].as_py()
    assert total == state_of([v for share in shares for v in share], dtype)


def test_many_values_at_the_edge_of_their_type() -> None:
    for dtype, value in ((BIGINT, -(2**63)), (DECIMAL, pa.scalar(-(10**34), DECIMAL).as_py())):
        merged = MergedMoment(make_moment(dtype, squares=True))
        states = pa.array([state_of([value] * 1000, dtype)] * 30, BINARY)
        total = pack(lanes_of(merged, states), merged.lane_names)[0].as_py()
        assert total == state_of([value] * 30000, dtype)


def test_squares_may_reach_further_than_the_sum() -> None:
    for exponent in range(-600, 500, 7):
        value = 1.9 * 2.0**exponent
        merged = MergedMoment(make_moment(DOUBLE, squares=True))
        states = pa.array([state_of([value, -value], DOUBLE)] * 50, BINARY)
        total = pack(lanes_of(merged, states), merged.lane_names)[0].as_py()
        assert total == state_of([value, -value] * 50, DOUBLE)


def test_a_slice_of_states_is_read_from_its_own_offset() -> None:
    states = pa.array([state_of([i], BIGINT) for i in range(5)], BINARY).slice(2, 2)
    merged = MergedMoment(make_moment(BIGINT, squares=False))
    assert pack(lanes_of(merged, states), merged.lane_names)[0].as_py()[7:] == b"\x04\0\1\5\0\0\0"


def test_states_without_squares_are_read_from_states_with_them() -> None:
    merged = MergedMoment(make_moment(DOUBLE, squares=False))
    states = pa.array([state_of(DOUBLES, DOUBLE)] * 2, BINARY)
    total = merged.result("sum", lanes_of(merged, states), DOUBLE)
    assert total.to_pylist() == [2 * (1.5 - 2.25 + 0.1 + 3.0)]


def test_lanes_of_states_widen_from_batch_to_batch() -> None:
    source = Source("S", (("vs", BIGINT), ("p", BINARY)), "", SourceOptions("vs"), 0)
    lanes = Lanes([Aggregation("sum", ("p",), DOUBLE, of=DOUBLE)], schema(source))
    small = pa.array([state_of([5e-324], DOUBLE)], BINARY)
    large = pa.array([state_of([float("inf"), 1e300], DOUBLE)], BINARY)
    first, moved = lanes.encode([small], 1)
    assert moved is not None
    second, moved = lanes.encode([large], 1)
    assert moved is not None and second.shape[1] > first.shape[1]
    assert lanes.results(second)[0].to_pylist() == [float("inf")]


# --- panes -------------------------------------------------------------------------------------

WINDOWS = [Hopping(10, 10), Hopping(10, 3), Hopping(3, 10), Hopping(10, 4, -7), Hopping(1, 1, 5)]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_pane_lives_in_its_own_windows(window: Hopping) -> None:
    """Also at both ends of time, where the longest lifetime of a pane does not fit."""
    first = START + max(window.size + window.offset, 0)
    chance = random.Random(1)
    middles = [chance.randint(-100, 100) for _ in range(200)]
    vs = np.array([*middles, first, first + 1], dtype=np.int64)
    ve = vs + np.array([chance.choice([1, 2, 5, 17, 40]) for _ in vs])
    vs = np.concatenate([vs, vs, [OPEN - 100]])
    ve = np.concatenate([ve, np.full_like(ve, OPEN), [OPEN - 1]])
    starts, ends = windows_met(window, vs, ve)
    inside = starts < ends
    vs, ve, starts, ends = vs[inside], ve[inside], starts[inside], ends[inside]
    panes = Panes()
    windower = PaneWindows(panes, window)
    numbers, new = panes.encode(np.zeros_like(vs), starts, ends)
    windower.opened(new)
    due = windower.due(OPEN)
    index = {pane: i for i, pane in enumerate(due.gone.tolist())}
    rows = np.array([index[n] for n in numbers.tolist()])
    assert (due.results.vs[rows] <= vs).all()
    assert (due.results.ve[rows] >= ve).all()
    again = windows_met(window, due.results.vs[rows], due.results.ve[rows])
    assert [a.tolist() for a in again] == [starts.tolist(), ends.tolist()]


@pytest.mark.parametrize("window", WINDOWS)
def test_the_next_operator_knows_of_every_window_that_has_ended(window: Hopping) -> None:
    windower = PaneWindows(Panes(), window)
    for cti in range(-50, 50):
        out = windower.output_cti(cti)
        assert out <= cti
        assert last_ended(window, out) == last_ended(window, cti)
    assert [windower.output_cti(t) for t in (START, OPEN)] == [START, OPEN]


# --- the kernel --------------------------------------------------------------------------------

SOURCE = Source(
    "A",
    (("vs", BIGINT), ("ve", BIGINT), ("k", pa.string()), ("v", BIGINT), ("f", DOUBLE)),
    "",
    SourceOptions("vs", "ve"),
    0,
)
AGGREGATES = (
    ("$p0", Aggregation("moments", ("f",), BINARY, params=("squares",))),
    ("$p1", Aggregation("count_star", (), BIGINT)),
    ("$p2", Aggregation("max", ("k",), pa.string())),
    ("$p3", Aggregation("moments", ("v",), BINARY)),
)


def partial(keys: tuple[str, ...] = (), window: Hopping | None = None) -> PartialAggregate:
    return PartialAggregate(SOURCE, keys, AGGREGATES, window or Hopping(10, 4, 1))


def random_rows(seed: int, count: int = 200) -> Batch:
    chance = random.Random(seed)
    vs = np.sort(np.array([chance.randint(-60, 60) for _ in range(count)], dtype=np.int64))
    lengths = [chance.choice([1, 1, 4, 30, None]) for _ in range(count)]
    ve = [OPEN if n is None else v + n for v, n in zip(vs.tolist(), lengths, strict=True)]
    columns = (
        pa.array([chance.choice(["a", "b", None]) for _ in range(count)]),
        pa.array([chance.choice([*INTS, None]) for _ in range(count)], BIGINT),
        pa.array([chance.choice([*DOUBLES, *SPECIALS, None]) for _ in range(count)], DOUBLE),
    )
    return Batch(vs, np.array(ve, dtype=np.int64), columns)


def driven(
    node: PartialAggregate, rows: Batch, ctis: Sequence[int], *, reload: bool = False
) -> list[tuple[object, ...]]:
    """All rows that come out, in order; `reload` continues each step in a fresh kernel."""
    kernel = AggregateKernel(node)
    out, before, claimed = [], START, START
    for cti in (*ctis, OPEN):
        start, stop = np.searchsorted(rows.vs, [before, cti])
        batch, claim = kernel.step([rows.slice(int(start), int(stop))], cti)
        assert not len(batch) or batch.vs.min() >= claimed
        assert claim >= claimed
        out.append(batch)
        before, claimed = cti, claim
        if reload:
            tables = kernel.snapshot()
            kernel = AggregateKernel(node)
            kernel.load(tables)
    assert kernel.state_rows == 0
    whole = concat_batches(out)
    columns = [c.to_pylist() for c in whole.columns]
    return list(zip(whole.vs.tolist(), whole.ve.tolist(), *columns, strict=True))


@pytest.mark.parametrize("keys", [(), ("k",)])
@pytest.mark.parametrize("seed", range(5))
def test_any_cut_and_any_restart_give_the_same_rows(keys: tuple[str, ...], seed: int) -> None:
    node, rows = partial(keys), random_rows(seed)
    whole = driven(node, rows, [])
    assert len(whole) > 30
    assert driven(node, rows, range(-70, 70)) == whole
    assert driven(node, rows, range(-70, 140, 9)) == whole
    assert driven(node, rows, range(-70, 140, 7), reload=True) == whole


def test_a_pane_comes_out_when_its_first_window_ends() -> None:
    point = Batch(np.array([5]), np.array([6]), random_rows(0, 1).columns)
    kernel = AggregateKernel(partial(window=Hopping(10, 10)))
    rows, cti = kernel.step([point], 9)
    assert (len(rows), cti, kernel.state_rows > 0) == (0, 0, True)
    rows, cti = kernel.step([point.slice(0, 0)], 10)
    assert (rows.vs.tolist(), rows.ve.tolist(), cti) == ([0], [10], 10)
    assert kernel.state_rows == 0


def test_rows_between_windows_are_in_no_pane() -> None:
    kernel = AggregateKernel(partial(window=Hopping(3, 10)))
    between = Batch(np.array([5]), np.array([9]), random_rows(0, 1).columns)
    assert len(kernel.step([between], OPEN)[0]) == 0
