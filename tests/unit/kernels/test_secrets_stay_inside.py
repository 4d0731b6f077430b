"""No secret of a kernel shows: not in its rows, their order or numbers, nor in its snapshots.

Every workload of the simulator (so every operator) runs step by step under some secrets. After each
step the state of all vertices is taken as bytes. Also when instances are replaced on the way by
others, which draw their own secrets and load a snapshot, as after a loss.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count

import pyarrow as pa
import pytest

from weir.events.batch import Batch
from weir.kernels.structures import key_secrets, keys, treap_nodes
from weir.local.runner import LocalRun
from weir.simulator.followed_workloads import PROGRAMS as FOLLOWED
from weir.simulator.workloads import Workload, make_workload, workload_names

NAMES = [name for name in workload_names() if name not in FOLLOWED]  # those need a feed
Draw = Callable[[], bytes]
Evidence = list[object]


def _zeros() -> Draw:
    return lambda: bytes(16)


def _counted() -> Draw:
    numbers = count(1)
    return lambda: next(numbers).to_bytes(16, "little")


def _fresh() -> Draw:
    return key_secrets.fresh_secret


def _evidence(
    workload: Workload, draw: Draw, patch: pytest.MonkeyPatch, replaced: int | None = None
) -> Evidence:
    """All that can be seen of a run: rows as they come out, positions and tables after each step;
    after step `replaced` all vertices are fresh instances."""
    for module in (keys, treap_nodes):
        patch.setattr(module, "fresh_secret", draw)
    seen: Evidence = []

    def emit(stream: int, rows: Batch) -> None:
        seen.append((stream, _bytes(rows)))

    emits = [emit] * len(workload.program.outputs)
    run = LocalRun(
        workload.program,
        workload.partitions,
        emits,
        cut=7,
        parallelism=2,
        check=True,
        keep=True,
    )
    number, more = 0, True
    while more:
        more = run.step()
        for name, vertex in sorted(run.vertices.items()):
            snapshot = vertex.snapshot()
            tables = {title: _as_bytes(table) for title, table in snapshot.tables.items()}
            seen.append((name, snapshot.inputs, snapshot.outputs, tables))
            if number == replaced:
                run.restart(name)
        number += 1
    return [*seen, run.checksums]


def _bytes(rows: Batch) -> bytes:
    arrays = [pa.array(rows.vs), pa.array(rows.ve), *rows.columns]
    return _as_bytes(pa.table(arrays, names=[str(i) for i in range(len(arrays))]))


def _as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


@cache
def _workload(name: str) -> Workload:
    return make_workload(name, 1)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_depends_on_secrets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [_evidence(_workload(name), make(), monkeypatch) for make in (_zeros, _counted, _fresh)]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_depends_on_those_of_recovered_instances(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their state may lie in another order than before, but in the same one whatever the secret."""
    runs = [_evidence(_workload(name), make(), monkeypatch, 3) for make in (_zeros, _fresh)]
    assert runs[0] == runs[1]
    whole = _evidence(_workload(name), _fresh(), monkeypatch)
    assert runs[0][-1] == whole[-1], "rows or their numbers"


def test_every_index_draws_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []

    def draw() -> bytes:
        drawn.append(key_secrets.fresh_secret())
        return drawn[-1]

    _evidence(_workload("hopping"), draw, monkeypatch)
    assert len(drawn) > 4
    assert len(set(drawn)) == len(drawn)
    assert {len(secret) for secret in drawn} == {16}
