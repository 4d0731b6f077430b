"""SEMI and ANTI joins by keys alone: the answers of the pairwise kernel, at a cost that does not
depend on how many rows a key has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, START, Batch
from weir.kernels.kernel import Kernel
from weir.kernels.operators import presence, presence_loops
from weir.kernels.operators.joins import JoinKernel
from weir.kernels.operators.presence import PresenceKernel
from weir.kernels.structures import heaps_loops
from weir.plan.expressions import Literal
from weir.plan.operators import Join, Source, SourceOptions

A, B = (
    Source(
        name,
        (("vs", pa.int64()), (f"{name}.k", pa.string()), (f"{name}.v", pa.int64())),
        "a.jsonl",
        SourceOptions("vs"),
        index,
    )
    for index, name in enumerate("AB")
)
KEYS = (("A.k", "B.k"),)
KINDS = ["semi", "anti"]


def _rows(vs: np.ndarray, ve: np.ndarray, keys: list[str | None]) -> Batch:  # type: ignore[type-arg]
    """Rows in order; `v` tells them apart."""
    order = np.lexsort((ve, vs))
    payload = (pa.array([keys[i] for i in order], pa.string()), pa.array(order))
    return Batch(vs[order], ve[order], payload)


def _random(rng: np.random.Generator, count: int, longest: int) -> Batch:
    vs = rng.integers(0, 300, count)
    ve = np.where(rng.random(count) < 0.02, OPEN, vs + rng.integers(1, longest, count))
    return _rows(vs, ve, rng.choice(["hot", "hot", "hot", "b", None], count).tolist())


def _between(batch: Batch, start: int, cti: int) -> Batch:
    return batch.take((batch.vs >= start) & (batch.vs < cti))


def _listed(batch: Batch) -> list[tuple[object, ...]]:
    columns = [c.to_pylist() for c in batch.columns]
    return list(zip(batch.vs.tolist(), batch.ve.tolist(), *columns, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_every_step_is_that_of_the_kernel_that_pairs_rows(kind: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Long right rows make presences that grow, short ones make gaps.
    left = _random(rng, 150, int(rng.choice([4, 40, 200])))
    right = _random(rng, int(rng.choice([20, 150])), int(rng.choice([3, 8, 40])))
    node = Join(A, B, kind, KEYS)
    pairs: Kernel = JoinKernel(Join(A, B, kind, KEYS, Literal(True)))
    kernel: Kernel = PresenceKernel(node)
    start, given = START, 0
    for cti in [*np.unique(rng.integers(0, 500, 60)).tolist(), OPEN]:
        slices = [_between(left, start, cti), _between(right, start, cti)]
        (wanted, wanted_cti), (rows, out) = pairs.step(slices, cti), kernel.step(slices, cti)
        assert _listed(rows) == _listed(wanted)
        assert out == wanted_cti
        assert kernel.state_rows <= pairs.state_rows + 2  # a key's presence outlasts it by a tick
        if rng.random() < 0.3:
            tables = kernel.snapshot()
            kernel = PresenceKernel(node)
            kernel.load(tables)
        start, given = cti, given + len(rows)
    assert given > 0 and kernel.state_rows == 0


def test_one_right_column_may_be_a_key_twice() -> None:
    node = Join(A, B, "semi", (("A.k", "B.k"), ("A.k", "B.k")))
    kernel = PresenceKernel(node)
    rows = _rows(np.array([0]), np.array([9]), ["a"])
    nothing = _between(rows, 0, 0)
    kernel.step([nothing, rows], 1)
    fresh = PresenceKernel(node)
    fresh.load(kernel.snapshot())
    out, _ = fresh.step([_rows(np.array([1]), np.array([5]), ["a"]), nothing], OPEN)
    assert _listed(out) == [(1, 5, "a", 0)]


# --- cost ------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The lines that the kernel's loops have run, which are plain Python here."""
    for module in (presence, presence_loops, heaps_loops):
        for name, loop in vars(module).items():
            monkeypatch.setattr(module, name, getattr(loop, "py_func", loop))
    lines = [0]
    files = (presence.__file__, presence_loops.__file__, heaps_loops.__file__)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        lines[0] += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    yield lines
    sys.settrace(before)


def _hot(count: int) -> tuple[Batch, Batch]:
    """One key; all left rows are live until each right row, longer than the last, ends them."""
    rng = np.random.default_rng(count)
    vs = np.arange(count)
    left = _rows(vs, 2 * count + rng.permutation(count), ["hot"] * count)
    right = _rows(count + vs, 2 * count + 1 + vs, ["hot"] * count)
    return left, right


@pytest.mark.parametrize("kind", KINDS)
def test_a_hot_key_costs_no_more_than_its_rows(kind: Any, counted: list[int]) -> None:
    cost = {}
    for count in (250, 2_000):
        left, right = _hot(count)
        kernel = PresenceKernel(Join(A, B, kind, KEYS))
        counted[0] = 0
        start = START
        for cti in [*range(0, 3 * count, count // 25), OPEN]:
            kernel.step([_between(left, start, cti), _between(right, start, cti)], cti)
            start = cti
        cost[count] = counted[0]
    assert cost[250] > 250  # something was counted
    assert cost[2_000] <= 2 * 8 * cost[250]  # pairs would cost 64 times as much
