"""Adding an operator touches its node, its method, its kernel, a kernel's test and a golden case.

Each node class (and each kind of window, lifetime change and join) must have all of them: this
is the list that grows when an operator is added, and what fails when a part of it is forgotten.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import weir
from weir.plan import nodes
from weir.plan.nodes import JoinKind, LifetimeChange, Node, Window
from weir.plan.stream import Selection, Stream

ROOT = Path(__file__).parents[2]
SRC, TESTS = ROOT / "src" / "weir", ROOT / "tests"

NODES = {c.__name__ for c in get_args(Node)}
WINDOWS = {c.__name__ for c in get_args(Window)}
CHANGES = {c.__name__ for c in get_args(LifetimeChange)}

BY_REWRITES = {"PartialAggregate"}
"""Nodes that no user asks for: a rewrite makes them."""
ROUTES = {"Source", "Union", "Partition"}
"""Nodes that hold and compute nothing at run time: the cut into stages deals with them."""

# The method of the fluent API that makes each, and how a script says it.
METHODS = {
    "Source": "stream", "Project": "select", "Filter": "where", "Explode": "explode",
    "AlterLifetime": "duration", "Chop": "chop", "Stitch": "stitch", "Aggregate": "agg",
    "Distinct": "distinct", "Top": "top", "Join": "join", "Union": "union",
    "Apply": "process reduce combine", "Partition": "partition_by",
    "Hopping": "window", "Session": "window", "CountWindow": "window", "Snapshot": "window",
    "Duration": "duration", "SetLifetime": "lifetime", "Shift": "shift", "Extend": "extend",
    "ClipDuration": "clip_duration", "Point": "point", "PointAtEnd": "point_at_end",
    "Quantize": "quantize", "HopLifetime": "hop_lifetime",
}  # fmt: skip
KEYWORDS = {
    "Source": r"\bSTREAM\b", "Project": r"\bSELECT\b", "Filter": r"\bWHERE\b",
    "Explode": r"\bEXPLODE\(", "AlterLifetime": r"\bWITH \w+\(", "Chop": r"\bCHOP\(",
    "Stitch": r"\bSTITCH\b", "Aggregate": r"\bGROUP BY\b", "Distinct": r"\bSELECT DISTINCT\b",
    "Top": r"\bLIMIT\b", "Join": r"\bJOIN\b", "Union": r"\bUNION ALL\b",
    "Apply": r"\b(PROCESS|REDUCE|COMBINE)\b", "Partition": r"\bPARTITION BY\b",
    "PartialAggregate": r"SELECT (COUNT|SUM)\([^)]*\) AS \w+ FROM \w+ WITH (TUMBLING|HOPPING)",
    "Hopping": r"\b(HOPPING|TUMBLING)\(", "Session": r"\bSESSION\(",
    "CountWindow": r"WITH COUNT\(", "Snapshot": r"\bSNAPSHOT\b",
    "Duration": r"WITH DURATION\(", "SetLifetime": r"\bLIFETIME\(", "Shift": r"\bSHIFT\(",
    "Extend": r"\bEXTEND\(", "ClipDuration": r"\bCLIP_DURATION\(", "Point": r"WITH POINT\b",
    "PointAtEnd": r"\bPOINT_AT_END\b", "Quantize": r"\bQUANTIZE\(",
    "HopLifetime": r"\bHOP_LIFETIME\(",
}  # fmt: skip
JOINS = {
    "inner": "INNER JOIN", "left": "LEFT OUTER JOIN", "right": "RIGHT OUTER JOIN",
    "full": "FULL OUTER JOIN", "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI( SEMI)? JOIN",
    "clip": "CLIP JOIN", "asof": r"(?<!LEFT )ASOF JOIN", "left_asof": "LEFT ASOF JOIN",
}  # fmt: skip

EVERYTHING = sorted(NODES | WINDOWS | CHANGES)


@cache
def _cases() -> str:
    """The programs of all golden and conformance cases."""
    golden = sorted((TESTS / "golden").rglob("*.weir"))
    conformance = sorted((TESTS / "conformance").glob("*.jsonl"))
    return "\n".join(p.read_text() for p in (*golden, *conformance))


@cache
def _kernel_tests() -> str:
    return "\n".join(p.read_text() for p in sorted((TESTS / "unit" / "kernels").glob("test_*.py")))


@cache
def _matched_classes() -> set[str]:
    """The classes that `make_kernel`, `make_transform` and the kernels' own `match`es name."""
    found: set[str] = set()
    files = [SRC / "reliable" / "chain.py", *sorted((SRC / "kernels").rglob("*.py"))]
    for path in files:
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.MatchClass) and isinstance(part.cls, ast.Name):
                found.add(part.cls.id)
    return found


def test_these_lists_name_every_operator() -> None:
    assert set(KEYWORDS) == set(EVERYTHING)
    assert set(METHODS) == set(EVERYTHING) - BY_REWRITES
    assert set(JOINS) == set(get_args(JoinKind))
    assert BY_REWRITES | ROUTES <= NODES
    assert all(hasattr(nodes, name) for name in EVERYTHING)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_it_has_a_method(name: str) -> None:
    for method in METHODS[name].split():
        assert any(hasattr(place, method) for place in (Stream, Selection, weir))


@pytest.mark.parametrize("name", sorted(BY_REWRITES))
def test_a_rewrite_makes_it(name: str) -> None:
    others = (p for p in (SRC / "plan").rglob("*.py") if p.name != "nodes.py")
    # A call with arguments: a pattern of a `match` has none.
    assert any(re.search(rf"\b{name}\([^)]", p.read_text()) for p in others)


@pytest.mark.parametrize("name", EVERYTHING)
def test_it_has_a_kernel_or_a_transform(name: str) -> None:
    assert name in _matched_classes() | ROUTES


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_kernel_test_runs_it(name: str) -> None:
    in_scripts = re.search(KEYWORDS[name], _kernel_tests())
    as_node = re.search(rf"\b{name}\(", _kernel_tests())
    assert in_scripts or as_node or name in ROUTES


@pytest.mark.parametrize("name", EVERYTHING)
def test_it_has_cases(name: str) -> None:
    assert re.search(KEYWORDS[name], _cases()), "no golden program and no conformance case has it"


@pytest.mark.parametrize("kind", sorted(JOINS))
def test_every_join_has_cases_and_a_kernel_test(kind: str) -> None:
    assert re.search(JOINS[kind], _cases())
    assert re.search(JOINS[kind], _kernel_tests())
