"""Programs that a live run refuses.

Over a finite input, every row comes out in the end, at the CTI at infinity. Over a source without
an end, it may never come out. A row that others can continue is held for as long as they do; so are
the output CTI, all later rows of the output, and the state. A live run refuses such a program
unless it says `SET allow_unbounded = TRUE`.

A live run makes checkpoints, so it also refuses state that no checkpoint can keep: a window of
merged functions. A replay in one piece, or a local or offline run, keeps such cells in memory only.
"""

from __future__ import annotations

from collections.abc import Callable

from weir.errors import PlanError
from weir.plan.holds import longest_lifetimes
from weir.plan.operators import Node, RowScan, Source
from weir.plan.operators.spans import UNBOUNDED
from weir.plan.program import Program, row_outputs
from weir.plan.traversal import ordered_nodes


def refuse_unbounded(program: Program, has_no_end: Callable[[Source], bool]) -> None:
    """Raise PlanError if an operator over a source without an end can hold rows back forever.

    A program may allow that (`SET allow_unbounded = TRUE`).
    """
    if dict(program.settings).get("allow_unbounded"):
        return
    lives = longest_lifetimes(row_outputs(program))
    fed_by: dict[Node, Source | None] = {}
    for node in lives:
        if isinstance(node, Source):
            fed_by[node] = node if has_no_end(node) else None
            continue
        source = next((fed_by[i] for i in node.inputs if fed_by[i] is not None), None)
        fed_by[node] = source
        below = [lives[i] for i in node.inputs]
        if source is not None and node.longest_hold(below) == UNBOUNDED:
            step = node.horizon_step(below)
            raise PlanError(
                f"{_stream_of(node, program)} could hold rows back forever, since {source.name} "
                f"has no end. {step.endless}",
                hint=f"{step.instead}; or SET allow_unbounded = TRUE",
            )


def _stream_of(node: Node, program: Program) -> str:
    """Return the name of the first stream that the operator is a part of."""
    outputs = ((output.name, output.node) for output in program.outputs)
    named = (*program.streams, *outputs)
    return next(name for name, stream in named if node in ordered_nodes([stream]))


def unsaved_cells(program: Program) -> str:
    """Return a text that names the cells that no snapshot can keep; empty if all can be kept."""
    nodes = ordered_nodes(output.node for output in program.outputs)
    scans = (node for node in nodes if isinstance(node, RowScan))
    return next((scan.code.unsaved for scan in scans if scan.code.unsaved), "")


def refuse_unsaved(program: Program) -> None:
    """Raise PlanError if no checkpoint could keep all cells of a program."""
    cells = unsaved_cells(program)
    if cells:
        hint = "use add, set, max, min, append, add_to_set or top_k there, or no app.serial()"
        raise PlanError(f"{cells}: no checkpoint of a live run can keep that", hint=hint)
