"""Adding an operator touches its module, its method, its kernel, a kernel's test, a golden case
and a workload of the simulator.

Each node class (and each kind of window, lifetime change and join) must have all of them: this
is the list that grows when an operator is added, and what fails when a part of it is forgotten.
What the module must say (hold, horizon, keys, order, columns, filters, words) is in
`tests/unit/plan/test_operator_facts.py`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import weir
from weir.plan import lifetime_changes, operators, windows
from weir.plan.fluent.stream import Selection, Stream
from weir.plan.lifetime_changes import LifetimeChange
from weir.plan.operators import Aggregate, AlterLifetime, Join, JoinKind, Node
from weir.plan.program import row_outputs
from weir.plan.traversal import ordered_nodes
from weir.plan.windows import Window
from weir.simulator.workloads import make_workload, workload_names

ROOT = Path(__file__).parents[2]
SRC, TESTS = ROOT / "src" / "weir", ROOT / "tests"

NODES = {c.__name__ for c in get_args(Node)}
WINDOWS = {c.__name__ for c in get_args(Window)}
CHANGES = {c.__name__ for c in get_args(LifetimeChange)}

BY_REWRITES = {"PartialAggregate"}
"""Nodes that no user asks for: a rewrite makes them."""
BY_PYTHON = {"Recovery"}
"""Nodes that only the fluent API makes."""
BY_HANDLERS = {"Number", "Enter", "StateScan", "FinalState", "RowScan"}
"""Nodes that an app's event handlers are compiled to; no script and no method says them."""
ROUTES = {"Source", "Union", "Partition", "Recovery"}
"""Nodes that hold and compute nothing at run time: the cut into stages deals with them."""

# The method of the fluent API that makes each, and how a script says it.
METHODS = {
    "Source": "stream",
    "Project": "select",
    "Filter": "where",
    "Explode": "explode",
    "AlterLifetime": "duration",
    "Chop": "chop",
    "Stitch": "stitch",
    "Aggregate": "agg",
    "Distinct": "distinct",
    "Top": "top",
    "Join": "join",
    "Union": "union",
    "Apply": "process reduce combine",
    "Partition": "partition_by",
    "Recovery": "with_strategy",
    "Hopping": "window",
    "Session": "window",
    "CountWindow": "window",
    "SnapshotWindow": "window",
    "Duration": "duration",
    "SetLifetime": "lifetime",
    "Shift": "shift",
    "Extend": "extend",
    "ClipDuration": "clip_duration",
    "Point": "point",
    "PointAtEnd": "point_at_end",
    "Quantize": "quantize",
    "HopLifetime": "hop_lifetime",
}
KEYWORDS = {
    "Source": r"\bSTREAM\b",
    "Project": r"\bSELECT\b",
    "Filter": r"\bWHERE\b",
    "Explode": r"\bEXPLODE\(",
    "AlterLifetime": r"\bWITH \w+\(",
    "Chop": r"\bCHOP\(",
    "Stitch": r"\bSTITCH\b",
    "Aggregate": r"\bGROUP BY\b",
    "Distinct": r"\bSELECT DISTINCT\b",
    "Top": r"\bLIMIT\b",
    "Join": r"\bJOIN\b",
    "Union": r"\bUNION ALL\b",
    "Apply": r"\b(PROCESS|REDUCE|COMBINE)\b",
    "Partition": r"\bPARTITION BY\b",
    "PartialAggregate": r"SELECT (COUNT|SUM)\([^)]*\) AS \w+ FROM \w+ WITH (TUMBLING|HOPPING)",
    "Hopping": r"\b(HOPPING|TUMBLING)\(",
    "Session": r"\bSESSION\(",
    "CountWindow": r"WITH COUNT\(",
    "SnapshotWindow": r"\bSNAPSHOT\b",
    "Duration": r"WITH DURATION\(",
    "SetLifetime": r"\bLIFETIME\(",
    "Shift": r"\bSHIFT\(",
    "Extend": r"\bEXTEND\(",
    "ClipDuration": r"\bCLIP_DURATION\(",
    "Point": r"WITH POINT\b",
    "PointAtEnd": r"\bPOINT_AT_END\b",
    "Quantize": r"\bQUANTIZE\(",
    "HopLifetime": r"\bHOP_LIFETIME\(",
}
JOINS = {
    "inner": "INNER JOIN",
    "left": "LEFT OUTER JOIN",
    "right": "RIGHT OUTER JOIN",
    "full": "FULL OUTER JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI( SEMI)? JOIN",
    "clip": "CLIP JOIN",
    "asof": r"(?<!LEFT )ASOF JOIN",
    "left_asof": "LEFT ASOF JOIN",
}

EVERYTHING = sorted(NODES | WINDOWS | CHANGES)


@cache
def _cases() -> str:
    """The programs of all golden and conformance cases."""
    golden = sorted((TESTS / "golden").rglob("*.weir"))
    conformance = sorted((TESTS / "conformance").glob("*.jsonl"))
    return "\n".join(p.read_text() for p in (*golden, *conformance))


@cache
def _in_workloads() -> set[str]:
    """The nodes, windows, lifetime changes and joins of the simulator's programs."""
    programs = [make_workload(name, 0).program for name in workload_names()]
    nodes = ordered_nodes([node for program in programs for node in row_outputs(program)])
    found = {type(node).__name__ for node in nodes}
    found |= {type(node.window).__name__ for node in nodes if isinstance(node, Aggregate)}
    found |= {type(node.change).__name__ for node in nodes if isinstance(node, AlterLifetime)}
    return found | {node.kind for node in nodes if isinstance(node, Join)}


@cache
def _kernel_tests() -> str:
    return "\n".join(p.read_text() for p in sorted((TESTS / "unit" / "kernels").glob("test_*.py")))


@cache
def _matched_classes() -> set[str]:
    """The classes for which `make_kernel`, `make_transform` and the kernels' own `match`es have
    a case that does not refuse them."""
    files = [SRC / "reliable" / "chain.py", *sorted((SRC / "kernels").rglob("*.py"))]
    cases = (c for f in files for c in ast.walk(ast.parse(f.read_text())))
    return {
        name
        for case in cases
        if isinstance(case, ast.match_case) and not isinstance(case.body[-1], ast.Raise)
        for name in _classes_in(case.pattern)
    }


def _classes_in(pattern: ast.pattern) -> Iterator[str]:
    for part in ast.walk(pattern):
        if isinstance(part, ast.MatchClass) and isinstance(part.cls, ast.Name):
            yield part.cls.id


def test_these_lists_name_every_operator() -> None:
    assert set(KEYWORDS) == set(EVERYTHING) - BY_PYTHON - BY_HANDLERS
    assert set(METHODS) == set(EVERYTHING) - BY_REWRITES - BY_HANDLERS
    assert set(JOINS) == set(get_args(JoinKind))
    assert BY_REWRITES | BY_PYTHON | BY_HANDLERS | ROUTES <= NODES
    homes = (operators, windows, lifetime_changes)
    assert all(any(hasattr(home, name) for home in homes) for name in EVERYTHING)


@pytest.mark.parametrize("kind", get_args(Node), ids=lambda kind: str(kind.__name__))
def test_it_has_a_module_of_its_own(kind: type) -> None:
    others = {c.__module__ for c in get_args(Node) if c is not kind}
    assert kind.__module__.startswith("weir.plan.operators.") and kind.__module__ not in others


@pytest.mark.parametrize("name", sorted(METHODS))
def test_it_has_a_method(name: str) -> None:
    for method in METHODS[name].split():
        assert any(hasattr(place, method) for place in (Stream, Selection, weir))


@pytest.mark.parametrize("name", sorted(BY_REWRITES))
def test_a_rewrite_makes_it(name: str) -> None:
    others = (p for p in (SRC / "plan").rglob("*.py") if p.parent.name != "operators")
    # A call with arguments: a pattern of a `match` has none.
    assert any(re.search(rf"\b{name}\([^)]", p.read_text()) for p in others)


@pytest.mark.parametrize("name", sorted(BY_HANDLERS))
def test_handlers_are_compiled_to_it(name: str) -> None:
    compiling = (p.read_text() for p in sorted((SRC / "handlers").rglob("*.py")))
    assert any(re.search(rf"\b{name}\([^)]", text) for text in compiling)


@pytest.mark.parametrize("name", EVERYTHING)
def test_it_has_a_kernel_or_a_transform(name: str) -> None:
    assert name in _matched_classes() | ROUTES


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_kernel_test_runs_it(name: str) -> None:
    in_scripts = name in KEYWORDS and re.search(KEYWORDS[name], _kernel_tests())
    as_node = re.search(rf"\b{name}\(", _kernel_tests())
    assert in_scripts or as_node or name in ROUTES


@pytest.mark.parametrize("name", sorted(KEYWORDS))
def test_it_has_cases(name: str) -> None:
    assert re.search(KEYWORDS[name], _cases()), "no golden program and no conformance case has it"


@pytest.mark.parametrize("name", sorted({*EVERYTHING, *JOINS} - BY_REWRITES - BY_PYTHON))
def test_the_simulator_runs_it(name: str) -> None:
    assert name in _in_workloads()


@pytest.mark.parametrize("kind", sorted(JOINS))
def test_every_join_has_cases_and_a_kernel_test(kind: str) -> None:
    assert re.search(JOINS[kind], _cases())
    assert re.search(JOINS[kind], _kernel_tests())
