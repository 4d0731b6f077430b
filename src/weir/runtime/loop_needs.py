"""Which compiled loops a program needs, by its operators.

A loop that is missing here is compiled when it is first called, in the middle of a stream; one too
many costs a moment of compiling, once on a machine. So a module of loops is taken whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

from weir.events import batch_loops, hashing_loops, order_bytes_loops, order_loops
from weir.files import json_nesting_loops, json_scan_loops
from weir.ingress import ingress_loops
from weir.kernels.aggregates import (
    distinct_counts_loops,
    exact_loops,
    forest_loops,
    measures_loops,
    ordered_loops,
    states_loops,
)
from weir.kernels.aggregates.lanes import ADDITIVE
from weir.kernels.expressions import functions_hashes_loops, substrings_loops
from weir.kernels.operators import (
    asof_loops,
    clip_loops,
    counter_windows_loops,
    distinct_loops,
    joins_loops,
    presence_loops,
    stateless_loops,
    stitch_loops,
    top_loops,
    windows_loops,
)
from weir.kernels.structures import (
    buckets_loops,
    chains_loops,
    coverage_loops,
    fast_cells_loops,
    heaps_loops,
    key_hashes_loops,
    keys_loops,
    panes_loops,
    requests_loops,
    rows_loops,
    time_queue_loops,
)
from weir.loops.loop import Loop, loops_of
from weir.plan.aggregations import Aggregation
from weir.plan.expressions import Call, Expr, walk
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
    schema,
)
from weir.plan.operators.abstract import Operator
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes
from weir.plan.windows import CountWindow, Session
from weir.runtime.program_plan import plan_program

ALWAYS = (batch_loops, hashing_loops, ingress_loops, order_loops, stateless_loops)
"""What the way of every row needs."""
JSON = (json_nesting_loops, json_scan_loops)
KEYS = (key_hashes_loops, keys_loops, rows_loops)
"""What operators with keys, or with rows that they hold, need."""
PANES = (*KEYS, panes_loops, time_queue_loops, windows_loops)
TREES = (chains_loops, forest_loops, order_bytes_loops, ordered_loops)
CELLS = (exact_loops, fast_cells_loops, panes_loops, requests_loops)
FUNCTIONS = {
    "xxhash64": functions_hashes_loops,
    "contains": substrings_loops,
    "like": substrings_loops,
    "py_contains": substrings_loops,
    "py_matches": substrings_loops,
    "py_split": substrings_loops,
    "split": substrings_loops,
}
"""The functions that call loops."""
SELDOM = frozenset(
    {
        # lists
        "events.hashing_loops.fold_elements",
        "events.order_bytes_loops.listed_elements",
        "kernels.structures.key_hashes_loops.hash_lists",
        # several partitions, checksums of streams, snapshots
        "events.hashing_loops.by_cell",
        "events.hashing_loops.fold_rows",
        "kernels.aggregates.distinct_counts_loops.numbers_in",
        # more rows than tables hold before they grow
        "kernels.structures.keys_loops.rehashed",
        "kernels.structures.time_queue_loops.drop_stale",
        "kernels.structures.time_queue_loops.merge_runs",
        # rows that are not plain
        "files.json_nesting_loops.goes_beyond",
        "files.json_nesting_loops.most_opened",
        "kernels.operators.stateless_loops.repeated",
    }
)
"""Loops that runs over few plain rows in one process do not need."""


def needed_loops(program: Program, *, complete: bool) -> list[Loop]:
    """List the loops that a program needs; if not complete, without those that a small run seldom
    calls, which is then ready sooner."""
    plans = [plan_program(program)]
    if complete:
        plans.append(plan_program(program, pays=lambda node: True))  # aggregates in two phases
    nodes = ordered_nodes(o.node for plan in plans for o in plan.program.outputs)
    modules = {*ALWAYS, *(module for node in nodes for module in _modules(node))}
    loops = loops_of(module.__name__ for module in modules)
    return loops if complete else [loop for loop in loops if loop.name not in SELDOM]


def all_loops() -> list[Loop]:
    """List all loops that any program needs."""
    nodes = (*ALWAYS, *JSON, *PANES, *TREES, *CELLS, *FUNCTIONS.values())
    return loops_of(module.__name__ for module in {*nodes, *_OF_OPERATORS})


_OF_OPERATORS = (
    asof_loops,
    buckets_loops,
    clip_loops,
    counter_windows_loops,
    coverage_loops,
    distinct_counts_loops,
    distinct_loops,
    heaps_loops,
    joins_loops,
    measures_loops,
    presence_loops,
    states_loops,
    stitch_loops,
    top_loops,
)


def _modules(node: Node) -> Iterator[ModuleType]:
    """List the modules of loops that an operator needs."""
    for function in _functions(node):
        if function in FUNCTIONS:
            yield FUNCTIONS[function]
    match node:
        case Source():
            yield from JSON if ".json" in node.path.lower() else ()
        case Aggregate() | PartialAggregate():
            yield from (*PANES, measures_loops)
            if isinstance(node.window, Session | CountWindow):
                yield counter_windows_loops
            for _, aggregation in node.aggregates:
                yield from _aggregation(aggregation, schema(node.input).type_of)
        case Join():
            yield from (*KEYS, time_queue_loops)
            yield from _join(node)
        case Distinct():
            yield from (*PANES, distinct_loops)
        case Stitch():
            yield from (*PANES, stitch_loops)
        case Top():
            yield from (*PANES, *TREES, top_loops)
        case Chop():
            yield from (rows_loops, time_queue_loops)
        case Apply():
            yield from KEYS
        case StateScan() | FinalState() | RowScan():
            yield from (*KEYS, *CELLS)
        case Project() | Filter() | Explode() | AlterLifetime() | Enter():
            pass
        case Union() | Partition() | Recovery() | Number():
            pass


def _aggregation(aggregation: Aggregation, type_of: Any) -> Iterable[ModuleType]:
    if aggregation.function == "count_distinct":
        return (distinct_counts_loops,)
    if aggregation.function not in ADDITIVE:
        return TREES
    if aggregation.of is not None or aggregation.function == "moments":
        return (exact_loops, states_loops)
    is_exact = any(pa.types.is_floating(type_of(name)) for name in aggregation.args)
    return (exact_loops,) if is_exact else ()


def _join(node: Join) -> Iterable[ModuleType]:
    match node.kind:
        case "clip":
            return (clip_loops, buckets_loops)
        case "asof" | "left_asof":
            return (asof_loops,)
        case "semi" | "anti" if node.condition is None:
            return (presence_loops, heaps_loops)
        case "inner":
            return (joins_loops, buckets_loops)
    return (joins_loops, buckets_loops, coverage_loops)


def _functions(part: object) -> Iterator[str]:
    """List the built-in functions that a part of an operator calls."""
    match part:
        case Expr():
            yield from (each.function for each in walk(part) if isinstance(each, Call))
        case tuple():
            for each in part:
                yield from _functions(each)
        case _ if is_dataclass(part) and not isinstance(part, type):
            for each in fields(part):
                value = getattr(part, each.name)
                if not isinstance(value, Operator):
                    yield from _functions(value)
