"""The algebra is data: each operator has a module that states all facts about it.

`abstract.py` lists these facts. `Node` is the closed list of operators. Where code chooses by
operator (such as which kernel runs it), `assert_never` finds an operator that was forgotten.
"""

from __future__ import annotations

from typing import TypeAlias

from weir.plan.operators.abstract import computed, schema
from weir.plan.operators.aggregate import Aggregate
from weir.plan.operators.alter_lifetime import AlterLifetime
from weir.plan.operators.apply import Apply
from weir.plan.operators.chop import Chop
from weir.plan.operators.distinct import Distinct
from weir.plan.operators.enter import Enter
from weir.plan.operators.explode import Explode
from weir.plan.operators.filter import Filter
from weir.plan.operators.final_state import FinalState
from weir.plan.operators.join import Join, JoinKind
from weir.plan.operators.number import Number
from weir.plan.operators.partial_aggregate import PartialAggregate
from weir.plan.operators.partition import Partition
from weir.plan.operators.project import Project
from weir.plan.operators.recovery import Recovery
from weir.plan.operators.row_scan import RowScan
from weir.plan.operators.source import Source, SourceOptions
from weir.plan.operators.state_scan import StateScan
from weir.plan.operators.stitch import Stitch
from weir.plan.operators.top import Top
from weir.plan.operators.union import Union

Node: TypeAlias = (
    Source
    | Project
    | Filter
    | Explode
    | AlterLifetime
    | Chop
    | Stitch
    | Aggregate
    | PartialAggregate
    | Distinct
    | Top
    | Join
    | Union
    | Apply
    | Partition
    | Recovery
    | Number
    | Enter
    | StateScan
    | FinalState
    | RowScan
)

__all__ = [
    "Aggregate",
    "AlterLifetime",
    "Apply",
    "Chop",
    "Distinct",
    "Enter",
    "Explode",
    "Filter",
    "FinalState",
    "Join",
    "JoinKind",
    "Node",
    "Number",
    "PartialAggregate",
    "Partition",
    "Project",
    "Recovery",
    "RowScan",
    "Source",
    "SourceOptions",
    "StateScan",
    "Stitch",
    "Top",
    "Union",
    "computed",
    "schema",
]
