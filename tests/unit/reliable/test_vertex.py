"""The rules of rVertex: steps, snapshots, parts, pieces."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, Batch
from weir.plan.stages import Stage, StagedPlan
from weir.reliable.chain import Chain
from weir.reliable.memory_stream import MemoryStream
from weir.reliable.stream import Entry
from weir.reliable.vertex import RowSpan, Snapshot, Vertex
from weir.reliable.views import layout_of, view_of_part
from weir.runtime.program_plan import plan_program
from weir.script import parse_program
from weir.testing import with_output

TEXT = """
STREAM A (vs BIGINT, ve BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl';
STREAM B (vs BIGINT, ve BIGINT, k BIGINT, w STRING) FROM 'b.jsonl';
Out = SELECT A.k AS k, A.v AS v, B.w AS w FROM A LEFT OUTER JOIN B ON A.k == B.k;
"""
STEPS = 12


def _plan_stage() -> tuple[StagedPlan, Stage]:
    plan = plan_program(with_output(parse_program(TEXT), "Out"), 3).stages
    return plan, plan.stages[-1]


def _inputs() -> list[MemoryStream]:
    streams = [MemoryStream(name) for name in "AB"]
    for number in range(STEPS):
        vs = np.arange(4, dtype=np.int64) + 4 * number
        cti = OPEN if number == STEPS - 1 else 4 * number + 4
        a = Batch(vs, vs + 1 + vs % 9, (pa.array(vs % 3), pa.array(vs)))
        texts = pa.array([f"w{v}" if v % 4 else None for v in vs.tolist()])
        b = Batch(vs, vs + 1 + vs % 5, (pa.array((vs + 1) % 3), texts))
        # The second stream lags behind, so that rows wait in the merge.
        streams[0].write(Entry(4 * number, a, cti))
        streams[1].write(Entry(4 * number, b, max(cti - 6, 0) if cti != OPEN else OPEN))
    return streams


class Scene:
    """A vertex between streams."""

    def __init__(self, parts: int = 3) -> None:
        plan, stage = _plan_stage()
        self._plan, self._stage = plan, stage
        self.inputs = _inputs()
        self.out = MemoryStream("out", layout_of([((0,), parts), (None, 1)]), check=True)
        self.second = MemoryStream("second", check=True)
        self.vertex = self.fresh()

    def fresh(self) -> Vertex:
        chain = Chain(self._stage, self._plan.origins, [0, 1])
        return Vertex("the vertex", chain, self.inputs, [self.out, self.second])

    def finish(self) -> list[str]:
        while self.vertex.execute():
            pass
        return self.checksums()

    def checksums(self) -> list[str]:
        return [s.ordered_checksum for s in (self.out, self.second)]


@cache
def expected() -> list[str]:
    """The checksums of a run without any interruption."""
    return Scene().finish()


def test_it_does_something() -> None:
    scene = Scene()
    assert scene.finish() == expected()
    assert scene.out.end > 40 and scene.out.cti == OPEN == scene.vertex.cti
    assert scene.vertex.state_rows == 0
    assert not scene.vertex.execute()


@pytest.mark.parametrize("step", range(STEPS + 1))
def test_a_snapshot_at_any_step_goes_on_as_if_nothing_happened(step: int) -> None:
    scene = Scene()
    for _ in range(step):
        assert scene.vertex.execute()
    snapshot = scene.vertex.snapshot()
    assert snapshot.inputs == (4 * step, 4 * step)
    assert snapshot.outputs == (scene.out.end, scene.second.end)
    held = scene.vertex.state_rows
    scene.vertex = scene.fresh()
    scene.vertex.load(snapshot)
    assert scene.vertex.state_rows == held
    assert scene.finish() == expected()


@pytest.mark.parametrize("back", range(1, STEPS))
def test_an_earlier_snapshot_writes_the_same_rows_under_the_same_numbers(back: int) -> None:
    """The streams check: other rows would be a DeterminismViolation."""
    scene = Scene()
    snapshots: list[Snapshot] = [scene.vertex.snapshot()]
    while scene.vertex.execute():
        snapshots.append(scene.vertex.snapshot())
    assert scene.checksums() == expected()
    scene.vertex = scene.fresh()
    scene.vertex.load(snapshots[-back - 1])
    assert scene.finish() == expected()


def test_two_instances_write_each_row_once() -> None:
    scene = Scene()
    twin = scene.fresh()
    twin.name = "its twin"
    for input, stream in enumerate(scene.inputs):
        stream.register((twin.name, input), 0)
    for i in range(STEPS * 2):
        (twin if i % 3 else scene.vertex).execute()
    assert scene.finish() == expected()
    while twin.execute():
        pass
    assert scene.checksums() == expected()


def test_a_snapshot_is_arrow_data() -> None:
    scene = Scene()
    scene.vertex.execute()
    tables = scene.vertex.snapshot().tables
    assert all(isinstance(t, pa.Table) for t in tables.values())
    copies = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        copies[name] = pa.ipc.open_stream(sink.getvalue()).read_all()
    snapshot = scene.vertex.snapshot()
    scene.vertex = scene.fresh()
    scene.vertex.load(Snapshot(snapshot.inputs, snapshot.outputs, copies))
    assert scene.finish() == expected()


# --- parts and pieces ----------------------------------------------------------------------


def test_every_part_has_the_claim_and_a_key_is_in_one_part() -> None:
    scene = Scene()
    scene.finish()
    seen: dict[int, set[int]] = {}
    count = 0
    for part in range(3):
        scene.out.register(part, 0, view_of_part((0,), part, 3))
        claims = []
        while (entry := scene.out.read_next(part)) is not None:
            claims.append(entry.cti)
            count += len(entry.rows)
            for key in entry.rows.columns[0].to_pylist():
                seen.setdefault(key, set()).add(part)
        assert claims[-1] == OPEN
    assert len(seen) == 3 and all(len(parts) == 1 for parts in seen.values())
    assert count == scene.out.end == scene.second.end


@pytest.mark.parametrize("pieces", [1, 2, 3, 100])
def test_pieces_change_nothing_and_are_shown_as_they_come(pieces: int) -> None:
    scene = Scene()
    seen: list[RowSpan] = []
    scene.vertex.pieces = pieces
    scene.vertex.see = lambda span, rows: seen.append(span)
    assert scene.finish() == expected()
    rows = [s for s in seen if not s.claims]
    for input in (0, 1):
        numbers = [n for s in rows if s.input == input for n in range(s.first, s.end)]
        assert numbers == list(range(4 * STEPS))
    assert max(s.end - s.first for s in rows) == min(pieces, 4)
    times = [(s.since, s.until) for s in seen if s.since < s.until]
    assert all(before[1] == after[0] for before, after in pairwise(times))
    assert times[-1][1] == OPEN
    if pieces == 1:  # one event time goes with each claim
        assert len(times) >= 4 * STEPS


def test_what_is_not_in_pieces_is_shown_whole() -> None:
    scene = Scene()
    seen: list[RowSpan] = []
    scene.vertex.see = lambda span, rows: seen.append(span)
    assert scene.finish() == expected()
    assert [(s.input, s.first, s.end, s.claims) for s in seen[:3]] == [
        (0, 0, 4, True),
        (1, 0, 4, True),
        (0, 4, 8, True),
    ]
