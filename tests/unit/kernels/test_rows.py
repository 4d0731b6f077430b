"""RowStore against a dict of rows, for every type of column."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import Batch
from weir.kernels.structures.rows import RowStore, bitmap, raw_values, valid_mask
from weir.kernels.structures.rows_loops import gather_bytes

LIST, STRUCT = pa.list_(pa.string()), pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))])
NARROW, WIDE = pa.decimal128(9, 2), pa.decimal128(38, 3)
TIMESTAMP = pa.timestamp("us", tz="UTC")


def _text(chance: random.Random) -> str:
    return "".join(chance.choice("aäẞ\0 ") for _ in range(chance.choice([0, 1, 3, 40])))


MAKERS = {
    pa.int64(): lambda c: c.randint(-(2**63), 2**63 - 1),
    pa.int32(): lambda c: c.randint(-(2**31), 2**31 - 1),
    pa.float64(): lambda c: c.choice([0.0, -0.0, math.inf, c.random()]),
    pa.bool_(): lambda c: c.random() < 0.5,
    pa.string(): _text,
    pa.binary(): lambda c: c.randbytes(c.choice([0, 1, 9])),
    TIMESTAMP: lambda c: (
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        + datetime.timedelta(microseconds=c.randrange(10**12))
    ),
    pa.date32(): lambda c: datetime.date(1960, 1, 1) + datetime.timedelta(days=c.randrange(40000)),
    NARROW: lambda c: Decimal(c.randint(-(10**8), 10**8)).scaleb(-2),
    WIDE: lambda c: Decimal(c.randint(-(10**34), 10**34)).scaleb(-3),
    LIST: lambda c: [c.choice(["x", None, ""]) for _ in range(c.randrange(3))],
    STRUCT: lambda c: {"a": c.choice([None, 1]), "b": c.choice([None, [], [1.5]])},
}
TYPES = [*MAKERS, pa.null()]


def _value(dtype: pa.DataType, chance: random.Random) -> object:
    if pa.types.is_null(dtype) or chance.random() < 0.2:
        return None
    return MAKERS[dtype](chance)


def _batch(rows: list[tuple[object, ...]], types: list[pa.DataType]) -> Batch:
    times = np.arange(len(rows), dtype=np.int64)
    columns = tuple(pa.array([row[i] for row in rows], t) for i, t in enumerate(types))
    return Batch(times, times + 5, columns)


def _repr(value: object) -> str:
    return repr(value)  # tells −0.0 from 0.0, which == does not


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_any_operations_do_what_a_dict_does(dtype: pa.DataType, seed: int) -> None:
    chance = random.Random(seed)
    store, model = RowStore([dtype]), dict[int, tuple[int, object]]()
    most = 0
    for _ in range(80):
        values = [_value(dtype, chance) for _ in range(chance.randrange(60))]
        # A slice, so that offsets into buffers count.
        padded = _batch([(_value(dtype, chance),), *((v,) for v in values)], [dtype])
        part = padded.slice(1, len(values) + 1)
        slots = store.add(part).tolist()
        assert not set(slots) & set(model), "a slot in use was given away"
        model |= dict(zip(slots, zip(part.vs.tolist(), values, strict=True), strict=True))
        most = max(most, len(model))
        assert len(store) == len(model)
        assert store.held().tolist() == sorted(model)
        asked = [chance.choice(sorted(model)) for _ in range(20)] if model else []
        taken = store.take(np.array(asked, dtype=np.int64))
        taken.columns[0].validate(full=True)
        assert taken.columns[0].type == dtype
        assert taken.vs.tolist() == [model[s][0] for s in asked]
        assert _repr(taken.columns[0].to_pylist()) == _repr(
            pa.array([model[s][1] for s in asked], dtype).to_pylist()
        )
        gone = chance.sample(sorted(model), chance.randrange(len(model) + 1))
        store.free(np.array(gone, dtype=np.int64))
        for slot in gone:
            del model[slot]
    assert most > 64, "it never grew"
    assert store.capacity <= max(64, 2 * most)


def test_columns_of_a_row_stay_together() -> None:
    types = [pa.int64(), pa.string(), WIDE, LIST]
    rows = [(i, f"t{i}", Decimal(i).scaleb(-3), [str(i)]) for i in range(300)]
    store = RowStore(types)
    slots = store.add(_batch(rows, types))
    back = [2, 299, 0, 2]
    columns = store.columns(slots[back])
    assert list(zip(*(c.to_pylist() for c in columns), strict=True)) == [rows[i] for i in back]


def test_a_store_without_columns_keeps_lifetimes() -> None:
    store = RowStore([])
    slots = store.add(Batch(np.array([3, 1]), np.array([4, 9]), ()))
    taken = store.take(slots[::-1])
    assert (taken.vs.tolist(), taken.ve.tolist(), taken.columns) == ([1, 3], [9, 4], ())


def test_slots_are_reused_before_the_store_grows() -> None:
    store = RowStore([pa.string()])
    for i in range(1_000):
        slots = store.add(_batch([(f"text number {i}",)] * 50, [pa.string()]))
        assert max(slots.tolist()) < 64
        store.free(slots)
    assert store.capacity == 64


def test_dead_bytes_are_given_back() -> None:
    store = RowStore([pa.string()])
    kept = store.add(_batch([("keep" * 10,)], [pa.string()]))
    for i in range(1_000):
        slots = store.add(_batch([(f"{i:100}",)], [pa.string()]))
        store.free(slots)
    _, _, buffer = store.bytes_of(0)
    assert len(buffer) < 1_000
    assert store.columns(kept)[0].to_pylist() == ["keep" * 10]


def test_bytes_under_a_null_take_no_part() -> None:
    valid = pa.array([True, False]).buffers()[1]
    texts = pa.array(["ab", "hidden"])
    column = pa.StringArray.from_buffers(2, *texts.buffers()[1:], valid, 1, 0)
    store = RowStore([pa.string()])
    slots = store.add(Batch(np.array([0, 0]), np.array([1, 1]), (column,)))
    assert store.columns(slots)[0].to_pylist() == ["ab", None]
    for _ in range(300):  # the buffer is rewritten now and then
        store.free(store.add(_batch([("x" * 50,)], [pa.string()])))
    assert store.columns(slots)[0].to_pylist() == ["ab", None]


def test_a_null_comes_and_goes() -> None:
    """The first NULL of a fixed column makes its mask; a slot forgets the NULL before it."""
    store = RowStore([pa.int64()])
    first = store.add(_batch([(1,), (2,)], [pa.int64()]))
    null = store.add(_batch([(None,)], [pa.int64()]))
    assert store.columns(np.concatenate([first, null]))[0].to_pylist() == [1, 2, None]
    store.free(null)
    again = store.add(_batch([(3,)], [pa.int64()]))
    assert again.tolist() == null.tolist()
    assert store.columns(again)[0].to_pylist() == [3]


def test_parts_of_arrow() -> None:
    column = pa.array([None, 1, None, 2]).slice(1)
    assert valid_mask(column).tolist() == [True, False, True]
    assert bitmap(np.array([True, True])) is None
    assert raw_values(pa.array([9, 7, 8]).slice(1)).tolist() == [7, 8]
    assert raw_values(pa.array([True, None, False])).tolist() == [1, 0, 0]
    buffer = np.frombuffer(bytearray(b"hello"), dtype=np.uint8)
    pieces = gather_bytes(buffer, np.array([3, 0]), np.array([0, 2, 3]))
    assert pieces.tobytes() == b"loh"


def test_times_inside_lists_and_structs_may_be_beyond_python_s_dates() -> None:
    far = pa.array([2**61, None, -(2**61)], pa.int64()).cast(TIMESTAMP)
    days = pa.array([2**30, 1, None], pa.int32()).cast(pa.date32())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), far)
    structs = pa.StructArray.from_arrays(
        [far, days], ["t", "d"], mask=pa.array([False] * 2 + [True])
    )
    times = np.zeros(3, dtype=np.int64)
    store = RowStore([lists.type, structs.type])
    found = store.columns(store.add(Batch(times, times, (lists, structs))))
    assert found[0].equals(lists) and found[1].equals(structs)
