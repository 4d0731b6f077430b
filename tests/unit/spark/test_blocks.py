"""Blocks: rows come back as they went, blocks are small, writers hold little."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import Batch
from weir.reliable.log import batch_bytes
from weir.reliable.stream import Entry
from weir.spark.offline.blocks import (
    COLLECTED,
    BlockRow,
    Blocks,
    decode,
    encode,
    read_block,
    row_record,
    rows_of,
)


def batch(count: int, *, origin: bool = False, width: int = 10) -> Batch:
    vs = np.arange(count, dtype=np.int64)[::-1].copy()
    texts = pa.array([None if i % 7 == 0 else "x" * width for i in range(count)])
    columns = (texts, pa.array([[i, None] for i in range(count)], pa.list_(pa.int64())))
    return Batch(vs, vs + 5, columns, (vs * 2, vs * 3) if origin else ())


@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("count", [1, 100])
def test_rows_come_back(count: int, origin: bool) -> None:
    sent = batch(count + 3, origin=origin).slice(2, 2 + count)
    came = decode(encode(sent), 2)
    assert came.vs.tolist() == sent.vs.tolist() and came.ve.tolist() == sent.ve.tolist()
    assert [o.tolist() for o in came.origin] == [o.tolist() for o in sent.origin]
    assert [c.to_pylist() for c in came.columns] == [c.to_pylist() for c in sent.columns]


def test_a_row_of_an_exchange_comes_back_aligned() -> None:
    sent = BlockRow(3, 1, -9, encode(batch(5)))
    (came,) = rows_of(row_record(sent))
    assert came[:3] == sent[:3]
    rows = decode(came.block, 2)
    assert rows.vs.flags.aligned and rows.vs.tolist() == [4, 3, 2, 1, 0]


def blocks_of(out: Blocks) -> list[BlockRow]:
    return [row for record in out.drain() for row in rows_of(record)]


def test_a_full_stream_makes_blocks_that_are_small_enough() -> None:
    out = Blocks(block_bytes=2_000)
    stream = out.stream(4, 1)
    stream.write(Entry(0, batch(3), 0))
    assert blocks_of(out) == []
    stream.write(Entry(3, batch(200), 0))
    made = blocks_of(out)
    assert len(made) > 1 and {(b.partition, b.input) for b in made} == {(4, 1)}
    rows = [decode(b.block, 2) for b in made]
    assert max(batch_bytes(r) for r in rows) <= 2_000
    assert [b.first_vs for b in made] == [r.vs.min() for r in rows]
    assert np.concatenate([r.vs for r in rows]).tolist() == [2, 1, 0, *range(199, -1, -1)]


def test_a_row_larger_than_a_block_is_one() -> None:
    out = Blocks(block_bytes=100)
    out.stream(0, 0).write(Entry(0, batch(3, width=500), 0))
    assert [len(decode(b.block, 2)) for b in blocks_of(out)] == [1, 1, 1]


def test_writers_hold_little_in_all() -> None:
    out = Blocks(block_bytes=1 << 20, held_bytes=5_000)
    streams = [out.stream(n, 0) for n in range(20)]
    sent = 0
    for stream in streams:
        stream.write(Entry(0, batch(20), 0))
        sent += 20
        assert sum(s.held_bytes for s in streams) <= 5_000
    early = blocks_of(out)
    assert early
    out.flush()
    assert sum(len(decode(b.block, 2)) for b in [*early, *blocks_of(out)]) == sent


def test_blocks_for_vertices_lie_in_a_file_of_the_folder(tmp_path: Path) -> None:
    out = Blocks(str(tmp_path), block_bytes=2_000)
    for partition in (0, 7):
        out.stream(partition, 1).write(Entry(0, batch(90), 0))
    out.stream(COLLECTED, 0).write(Entry(0, batch(3), 0))
    out.flush()
    found: dict[int, list[int]] = {}
    for row in blocks_of(out):
        block = read_block(str(tmp_path), row.block) if row.partition >= 0 else row.block
        assert row.partition == COLLECTED or len(row.block) < 100
        found.setdefault(row.partition, []).extend(decode(block, 2).vs.tolist())
    down = list(range(89, -1, -1))
    assert found == {0: down, 7: down, COLLECTED: [2, 1, 0]}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_task_without_blocks_makes_no_file(tmp_path: Path) -> None:
    out = Blocks(str(tmp_path))
    out.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_few_rows_do_not_keep_the_batch_they_came_in() -> None:
    out = Blocks()
    stream = out.stream(0, 0)
    before = pa.total_allocated_bytes()
    for _ in range(50):
        large = batch(20_000)
        stream.write(Entry(0, large.slice(5, 8), 0))
        del large
    assert pa.total_allocated_bytes() - before < 1 << 20
