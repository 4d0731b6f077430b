"""Chooses the kernel of each operator with state; every runner uses it.

Operators without state are transforms (`operators/stateless.py`).
"""

from __future__ import annotations

from typing import assert_never

from weir.errors import PlanError
from weir.kernels.kernel import Kernel
from weir.kernels.operators.aggregate import AggregateKernel
from weir.kernels.operators.apply import ApplyKernel
from weir.kernels.operators.asof import AsofKernel
from weir.kernels.operators.chop import ChopKernel
from weir.kernels.operators.clip import ClipKernel
from weir.kernels.operators.distinct import DistinctKernel
from weir.kernels.operators.final_state import FinalStateKernel
from weir.kernels.operators.joins import JoinKernel
from weir.kernels.operators.number import NumberKernel
from weir.kernels.operators.presence import PresenceKernel
from weir.kernels.operators.row_scan import RowScanKernel
from weir.kernels.operators.state_scan import StateScanKernel
from weir.kernels.operators.stitch import StitchKernel
from weir.kernels.operators.top import TopOfInstant, TopOfWindow
from weir.plan.operators import (
    Aggregate,
    AlterLifetime,
    Apply,
    Chop,
    Distinct,
    Enter,
    Explode,
    Filter,
    FinalState,
    Join,
    Node,
    Number,
    PartialAggregate,
    Partition,
    Project,
    Recovery,
    RowScan,
    Source,
    StateScan,
    Stitch,
    Top,
    Union,
)


def make_kernel(node: Node) -> Kernel:
    """Return a new kernel for a stateful operator."""
    match node:
        case Aggregate() | PartialAggregate():
            return AggregateKernel(node)
        case Join(kind="clip"):
            return ClipKernel(node)
        case Join(kind="asof" | "left_asof"):
            return AsofKernel(node)
        case Join(kind="semi" | "anti", condition=None):
            return PresenceKernel(node)
        case Join():
            return JoinKernel(node)
        case Distinct():
            return DistinctKernel(node)
        case Stitch():
            return StitchKernel(node)
        case Chop():
            return ChopKernel(node)
        case Top():
            return TopOfWindow(node) if node.scope == "window" else TopOfInstant(node)
        case Apply():
            return ApplyKernel(node)
        case Number():
            return NumberKernel(node)
        case StateScan():
            return StateScanKernel(node)
        case FinalState():
            return FinalStateKernel(node)
        case RowScan():
            return RowScanKernel(node)
        case Project() | Filter() | Explode() | AlterLifetime() | Enter():
            raise PlanError(f"{type(node).__name__} has no kernel of its own: it is a transform")
        case Source() | Union() | Partition() | Recovery():
            raise PlanError(f"{type(node).__name__} has no kernel of its own: it only routes rows")
    assert_never(node)
