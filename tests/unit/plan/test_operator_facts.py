"""Every operator states all its facts, and they agree with one another.

The facts are looked at on real nodes: those of all golden programs, as they are written and as
they are run, one that only Python makes, and those that event handlers are compiled to.
"""

from __future__ import annotations

import warnings
from abc import ABC
from functools import cache
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from weir.events.types import BIGINT, STRING
from weir.plan.expressions import Column, Literal
from weir.plan.holds import longest_lifetimes
from weir.plan.operators import (
    Enter,
    Filter,
    FinalState,
    Node,
    Number,
    Recovery,
    RowScan,
    Source,
    StateScan,
    Top,
    schema,
)
from weir.plan.operators.abstract import Operator
from weir.plan.operators.facts import HorizonStep, Meet, Pushed
from weir.plan.operators.grouping import Grouping
from weir.plan.operators.node_class import node_class
from weir.plan.operators.roles import (
    EqualRows,
    OneInput,
    RowByRow,
    SameColumns,
    SameRows,
    Stateful,
)
from weir.plan.operators.scanning import Answering, Scanning
from weir.plan.operators.spans import LONGEST_LIFETIME, NONE, UNBOUNDED, Span
from weir.plan.program import row_outputs
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.states import Cell, RowCode, RowEffect, RowRunner, StateMerge, StateRead
from weir.plan.traversal import ordered_nodes
from weir.script.program import parse_program

GOLDEN = Path(__file__).parents[2] / "golden" / "programs"

FACTS = {
    "inputs",
    "over",
    "schema_over",
    "passed_columns",
    "stateless",
    "meeting",
    "sees_order",
    "origin_depth",
    "longest_lifetime",
    "longest_hold",
    "horizon_step",
    "by_position",
    "columns_read",
    "slimmed",
    "pushed",
    "kept",
    "detail",
}

KINDS = {kind.__name__: kind for kind in get_args(Node)}


@cache
def nodes_by_kind() -> dict[str, list[Node]]:
    """Nodes of every kind."""
    roots: list[Node] = []
    for path in sorted(GOLDEN.glob("*.weir")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a theta join
            program = parse_program(path.read_text(), directory=path.parent)
        roots += [*row_outputs(program), *row_outputs(rewrite(program))]
    roots.append(Recovery(roots[0], "replay"))
    roots += _of_handlers()
    found: dict[str, list[Node]] = {name: [] for name in KINDS}
    for node in ordered_nodes(roots):
        found[type(node).__name__].append(node)
    return found


def _of_handlers() -> list[Node]:
    program = parse_program(
        "STREAM A (k STRING, v BIGINT, c BOOLEAN, vs BIGINT) FROM 'a.jsonl' WITH (vs = vs);"
        "OUTPUT A TO 'o.jsonl';"
    )
    (events,) = row_outputs(program)
    entered = Enter(Number(events), 1, 2)
    forever = Cell("n", (STRING,), BIGINT, 0)
    window = Cell("w", (STRING,), BIGINT, 0, last=10)
    merges = (
        (StateMerge(0, "add", ("v",), 0, 0), StateMerge(1, "add", ("v",), 1, 1, condition="c")),
        (StateMerge(1, "max", ("v",), 0, 0),),
    )
    reads = (StateRead(0, "sum", 2, 2), StateRead(1, "recent", 3, 3))
    both, by = (entered, Enter(Number(events), 0, 2)), (("k",), ("k",))
    final = FinalState(both, by, forever, ((merges[0][0],), ()), 2)
    effects = (RowEffect("out", pa.list_(pa.struct([("k", STRING)])), is_list=True),)
    code, places = RowCode("ring", _no_code), ((0,), (1,))
    return [
        StateScan(both, by, (forever, window), merges, reads, 2),
        StateScan(both, by, (window,), ((), (StateMerge(0, "add", ("v",), 0, 0),)), (), 2),
        StateScan((entered, final), (("k",), ("key0",)), (forever,), ((), ()), reads[:1], 2, (1,)),
        RowScan(both, by, (forever,), code, by, places, ((), ()), effects, 2, out_ports=2),
        RowScan(both, by, (window,), code, by[:1], places[:1], merges[1:] * 2, effects, 2),
        RowScan(
            both[:1], by[:1], (forever,), code, by[:1], places[:1], ((),), effects, 2, passes=True
        ),
        RowScan(both[:1], ((),), (), code, by[:1], places[:1], ((),), effects, 2),
    ]


def _no_code(*_: object) -> RowRunner:
    raise AssertionError("it is not run")


each_kind = pytest.mark.parametrize("kind", sorted(KINDS))


# --- no fact has a default -----------------------------------------------------------------


def test_an_operator_must_state_every_fact() -> None:
    assert Operator.__abstractmethods__ == FACTS


ROLES: dict[type[Operator], set[str]] = {
    OneInput: {"inputs", "over"},
    SameColumns: {"inputs", "over", "by_position", "schema_over", "passed_columns", "slimmed"},
    Stateful: {"stateless", "origin_depth"},
    RowByRow: {
        *("inputs", "over"),
        *("stateless", "meeting", "sees_order", "origin_depth", "longest_hold", "kept"),
    },
    SameRows: FACTS - {"columns_read", "pushed", "detail"},
    EqualRows: FACTS - {"sees_order", "horizon_step", "pushed", "kept", "detail"},
    Grouping: {
        *("inputs", "over", "by_position", "stateless", "origin_depth"),
        *("schema_over", "passed_columns", "columns_read", "detail"),
    },
    Scanning: {"inputs", "over", "by_position", "stateless", "meeting"},
    Answering: {
        *("inputs", "over", "by_position", "stateless", "meeting", "passed_columns"),
        *("sees_order", "origin_depth", "longest_lifetime", "longest_hold"),
    },
}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: str(role.__name__))
def test_a_role_says_what_follows_from_it_and_no_more(role: type[Operator]) -> None:
    assert FACTS - role.__abstractmethods__ == ROLES[role]


def test_there_are_no_other_roles() -> None:
    found = {base for kind in KINDS.values() for base in kind.__mro__[1:]}
    assert found == {*ROLES, Operator, ABC, object}


@pytest.mark.parametrize("forgotten", sorted(FACTS))
def test_an_operator_without_a_fact_cannot_be_made(forgotten: str) -> None:
    stated = {name: getattr(Source, name) for name in FACTS - {forgotten}}
    dummy = node_class(type("Dummy", (Operator,), stated))
    with pytest.raises(TypeError, match=f"abstract.*'?{forgotten}"):
        dummy()


def test_with_all_facts_it_can() -> None:
    dummy = node_class(type("Dummy", (Operator,), {n: getattr(Source, n) for n in FACTS}))
    assert dummy() == dummy()


# --- the facts of real nodes ---------------------------------------------------------------


@each_kind
def test_there_are_such_nodes(kind: str) -> None:
    assert nodes_by_kind()[kind]


@each_kind
def test_inputs(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        again = node.over(node.inputs)
        assert again == node and again.inputs == node.inputs
        if node.inputs:
            others = [Filter(i, Literal(True)) for i in node.inputs]
            assert node.over(others).inputs == tuple(others)
            assert schema(node.over(others)) == schema(node)


@each_kind
def test_keys_and_passed_columns(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        meeting = node.meeting()
        if not isinstance(meeting, Meet):
            assert len(meeting) == len(node.inputs) and len({len(keys) for keys in meeting}) == 1
            for keys, below in zip(meeting, node.inputs, strict=True):
                assert keys and set(keys) <= set(schema(below).names)
        for port, below in enumerate(node.inputs):
            for name, source in node.passed_columns(port).items():
                assert schema(node).type_of(name) == schema(below).type_of(source)


@each_kind
def test_order_and_origins(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        ports = len(node.inputs)
        for port in range(ports):
            assert node.sees_order(port) in (True, False)
        assert node.origin_depth([0] * ports) == 0 or isinstance(node, Source | Number)
        # Only operators that treat each row alone know where a row comes from, and scans, whose
        # rows are their reader's.
        keeps = node.stateless or isinstance(node, Number | StateScan | RowScan)
        assert not node.origin_depth([1] * ports) or keeps


@each_kind
def test_time(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        known = longest_lifetimes([node])
        lives = [known[i] for i in node.inputs]
        assert isinstance(node.longest_lifetime(lives), Span)
        hold, step = node.longest_hold(lives), node.horizon_step(lives)
        assert isinstance(hold, Span) and isinstance(step, HorizonStep)
        assert bool(step.endless) == bool(step.instead)
        if node.stateless:
            assert hold == NONE and node.kept() == ""
        elif not step.endless:  # what is held back is not lost
            assert hold.known and step.lag >= hold.ticks
        if not hold.known:
            assert step.endless, "rows that are held without a bound cannot be rebuilt from input"


@each_kind
def test_what_may_hold_rows_for_ever_says_why_and_what_would_not(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        for life in (NONE, LONGEST_LIFETIME, UNBOUNDED):
            lives = [life] * len(node.inputs)
            if node.longest_hold(lives) == UNBOUNDED:
                step = node.horizon_step(lives)
                assert step.endless and step.instead


@each_kind
def test_columns(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        whole = frozenset(schema(node).names)
        for wanted in (whole, frozenset[str]()):
            slim = node.slimmed(wanted)
            assert wanted <= set(schema(slim).names) <= whole
            for names, below in zip(slim.columns_read(wanted), node.inputs, strict=True):
                assert names <= set(schema(below).names)
        assert node.by_position in (True, False)


@each_kind
def test_filters(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        known = longest_lifetimes([node])
        lives = [known[i] for i in node.inputs]
        arriving = tuple(Column(n, type=t) for n, t in schema(node).columns)
        for predicates in ((), arriving):
            pushed = node.pushed(predicates, lives)
            assert isinstance(pushed, Pushed) and len(pushed.below) == len(node.inputs)
            assert set(pushed.above) <= set(predicates)
            assert not node.by_position or len({len(below) for below in pushed.below}) == 1


@each_kind
def test_words(kind: str) -> None:
    for node in nodes_by_kind()[kind]:
        assert isinstance(node.detail(), str)
        windowed = isinstance(node, Top) and node.scope == "window"
        bare = isinstance(node, RowScan) and not node.states
        assert (node.stateless or windowed or bare) != bool(node.kept())
