"""Refuses state in live runs that no checkpoint can hold: a window of merged functions.

A replay in one piece, or a local or offline run, keeps such cells in memory only. A live run makes
checkpoints, so it refuses them before anything runs.
"""

from __future__ import annotations

from weir.errors import PlanError
from weir.plan.operators import RowScan
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes


def unsaved_cells(program: Program) -> str:
    """Say in words which cells of a program no snapshot can keep; nothing if all can be kept."""
    nodes = ordered_nodes(output.node for output in program.outputs)
    scans = (node for node in nodes if isinstance(node, RowScan))
    return next((scan.code.unsaved for scan in scans if scan.code.unsaved), "")


def refuse_unsaved(program: Program) -> None:
    """Raise PlanError if no checkpoint could keep all cells of a program."""
    cells = unsaved_cells(program)
    if cells:
        hint = "use add, set, max, min, append, add_to_set or top_k there, or no app.serial()"
        raise PlanError(f"{cells}: no checkpoint of a live run can keep that", hint=hint)
