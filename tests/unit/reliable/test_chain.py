"""The chain of a stage: which kernel runs what, and snapshots of all its steps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weir.errors import PlanError
from weir.events.batch import OPEN, START, Batch, concat_batches
from weir.kernels.kernel_table import make_kernel
from weir.kernels.operators.aggregate import AggregateKernel
from weir.kernels.operators.apply import ApplyKernel
from weir.kernels.operators.asof import AsofKernel
from weir.kernels.operators.chop import ChopKernel
from weir.kernels.operators.clip import ClipKernel
from weir.kernels.operators.distinct import DistinctKernel
from weir.kernels.operators.joins import JoinKernel
from weir.kernels.operators.presence import PresenceKernel
from weir.kernels.operators.stitch import StitchKernel
from weir.kernels.operators.top import TopOfInstant, TopOfWindow
from weir.plan.expressions import Literal
from weir.plan.operators import Chop, Distinct, Join, Source, SourceOptions, Stitch, Top
from weir.reliable.chain import Chain
from weir.reliable.digest import digest
from weir.runtime.program_plan import plan_program
from weir.script import parse_program
from weir.testing import with_output

A, B = (
    Source(
        name,
        (("vs", pa.int64()), (f"{name}.k", pa.int64())),
        "a.jsonl",
        SourceOptions("vs"),
        index,
    )
    for index, name in enumerate("AB")
)
TEXT = """
STREAM A (vs BIGINT, ve BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl';
Out = SELECT DISTINCT n FROM
  (SELECT k, COUNT(*) AS n FROM
     (SELECT k, v FROM A WHERE v > 0 WITH CHOP(4)) AS pieces GROUP BY k WITH SNAPSHOT) AS counts;
"""


@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi", "anti"])
def test_joins_have_one_kernel(kind: str) -> None:
    keys = (("A.k", "B.k"),)
    node = Join(A, B, kind, keys, Literal(True))  # type: ignore[arg-type]
    assert type(make_kernel(node)) is JoinKernel
    by_keys_alone = PresenceKernel if kind in ("semi", "anti") else JoinKernel
    assert type(make_kernel(Join(A, B, kind, keys))) is by_keys_alone  # type: ignore[arg-type]


def test_each_operator_has_its_kernel() -> None:
    keys = (("A.k", "B.k"),)
    expected = {
        Join(A, B, "clip", keys): ClipKernel,
        Join(A, B, "asof", keys): AsofKernel,
        Join(A, B, "left_asof", keys): AsofKernel,
        Distinct(A): DistinctKernel,
        Stitch(A): StitchKernel,
        Chop(A, 5): ChopKernel,
        Top(A, (), 1, False, "window"): TopOfWindow,
        Top(A, (), 1, False, "instant"): TopOfInstant,
    }
    for node, kernel in expected.items():
        assert type(make_kernel(node)) is kernel
    for kernel in (AggregateKernel, ApplyKernel):
        assert kernel.__doc__ is not None  # built from scripts in other tests


def test_other_nodes_have_none() -> None:
    with pytest.raises(PlanError, match="Source has no kernel of its own"):
        make_kernel(A)


def _chains() -> list[Chain]:
    plan = plan_program(with_output(parse_program(TEXT), "Out")).stages
    return [
        Chain(stage, plan.origins, [i for i, p in enumerate(stage.ports) for _ in p.links] or [0])
        for stage in plan.stages
    ]


def _input(start: int, stop: int) -> Batch:
    vs = np.arange(start, stop, dtype=np.int64) // 3
    numbers = np.arange(start, stop, dtype=np.int64)
    return Batch(vs, vs + 1 + numbers % 11, (pa.array(numbers % 4), pa.array(numbers % 5 - 1)))


def _run(restart_at: int | None, step: int = 7) -> tuple[Batch, int]:
    chains, out, cti = _chains(), list[Batch](), START
    for number, start in enumerate(range(0, 210, step)):
        rows = _input(start, min(start + step, 210))
        cti = OPEN if start + step >= 210 else int(_input(start + step, start + step + 1).vs[0])
        for chain in chains:
            chain.push(0, rows, cti)
            pulled, cti = chain.pull()
            rows = chain.empty() if pulled is None else pulled
        out.append(Batch(rows.vs, rows.ve, rows.columns))
        if number == restart_at:
            fresh = _chains()
            for old, new in zip(chains, fresh, strict=True):
                new.load(old.snapshot())
                assert new.state_rows == old.state_rows
                assert new.pull() == (None, old.pull()[1])
            chains = fresh
    assert sum(chain.state_rows for chain in chains) == 0
    return concat_batches(out), cti


def test_a_chain_restarted_at_any_step_goes_on_as_before() -> None:
    whole, cti = _run(None)
    assert cti == OPEN and len(whole) > 20
    for restart_at in range(30):
        again, _ = _run(restart_at)
        assert again.vs.tolist() == whole.vs.tolist()
        assert again.ve.tolist() == whole.ve.tolist()
        assert digest(again) == digest(whole)


def test_cuts_change_nothing() -> None:
    whole, _ = _run(None)
    for step in (1, 2, 50, 210):
        other, _ = _run(None, step)
        assert other.vs.tolist() == whole.vs.tolist() and digest(other) == digest(whole)


def test_a_snapshot_is_tables_named_by_their_step() -> None:
    chain = _chains()[-1]
    names = set(chain.snapshot())
    assert "progress" in names
    assert {n.split(".")[0] for n in names - {"progress"}} <= {str(i) for i in range(9)}
    assert all(isinstance(t, pa.Table) for t in chain.snapshot().values())
