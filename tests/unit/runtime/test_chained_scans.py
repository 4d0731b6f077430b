"""Rows keep their order from one scan to the next: the origins of a scan's rows travel with them.

Two scans with different keys, with an exchange between them. The second appends to lists, so every
change of order shows.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from weir.events.types import BIGINT, STRING
from weir.plan.expressions import Column
from weir.plan.operators import Enter, Number, Project, Source, SourceOptions, StateScan
from weir.plan.program import Output, Program
from weir.plan.states import Cell, StateMerge, StateRead
from weir.testing import run_program

COLUMNS = {"id": BIGINT, "a": STRING, "b": STRING}
KEYS = "pqrst"


def source(name: str, index: int) -> Source:
    declared = (*COLUMNS.items(), ("vs", BIGINT))
    return Source(name, declared, f"{name}.jsonl", SourceOptions("vs"), index)


def chained(*, numbered: bool) -> Program:
    """Events of two types; what the first scan reads is what the second appends, by other keys."""
    sources = (source("Later", 0), source("First", 1))
    # The type that was declared last comes first within an instant.
    number = Number if numbered else lambda node: node
    later, first = (
        Enter(number(node), kind, 3) for node, kind in zip(sources, (1, 0), strict=True)
    )
    count = Cell("count", (STRING,), BIGINT, 0)
    seen = Cell("seen", (STRING,), pa.list_(BIGINT), ())
    merges = ((StateMerge(0, "add", ("id",), 1, 1),), (StateMerge(0, "set", ("id",), 0, 0),))
    reads = (StateRead(0, "before", 0, 0),)
    one = StateScan((later, first), (("a",), ("a",)), (count,), merges, reads, 3)
    columns = tuple((n, Column(n, type=t)) for n, t in (("b", STRING), ("before", BIGINT)))
    two = StateScan(
        (Project(one, columns), first),
        (("b",), ("b",)),
        (seen,),
        ((StateMerge(0, "append", ("before",), 1, 1),), (StateMerge(0, "append", ("id",), 0, 0),)),
        (StateRead(0, "list", 2, 2),),
        3,
    )
    return Program(sources, (), (Output("O", two, "O.jsonl"),))


def expected(later: list[dict[str, Any]], first: list[dict[str, Any]]) -> list[Any]:
    counts: dict[str, int] = {}
    lists: dict[str, list[int]] = {}
    found = []
    both = [(row["vs"], 1, i, row) for i, row in enumerate(later)]
    both += [(row["vs"], 0, i, row) for i, row in enumerate(first)]
    for vs, kind, _, row in sorted(both, key=lambda r: r[:3]):
        if not kind:
            counts[row["a"]] = row["id"]
            lists.setdefault(row["b"], []).append(row["id"])
            continue
        before = counts.get(row["a"], 0)
        counts[row["a"]] = before + row["id"]
        lists.setdefault(row["b"], []).append(before)
        found.append((vs, row["b"], before, tuple(lists[row["b"]])))
    return sorted(found)


def log(rng: random.Random, start: int, *, by_payload: bool) -> list[dict[str, Any]]:
    rows = [
        {"vs": rng.randrange(12), "id": start + i, "a": rng.choice(KEYS), "b": rng.choice(KEYS)}
        for i in range(30)
    ]
    return sorted(rows, key=lambda r: (r["vs"], r["id"]) if by_payload else r["vs"])


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize(("parallelism", "cut"), [(1, None), (2, 7), (5, 3)])
def test_order_goes_on(numbered: bool, parallelism: int, cut: int | None) -> None:
    rng = random.Random(parallelism)
    logs = {
        "Later": log(rng, 1, by_payload=numbered),
        "First": log(rng, 1000, by_payload=numbered),
    }
    for snapshot_at, duplicates in ((None, None), (7, None), (None, 3)):
        result = run_program(
            chained(numbered=numbered),
            {name: [rows] for name, rows in logs.items()},
            parallelism=parallelism,
            cut=cut,
            snapshot_at=snapshot_at,
            duplicate_writes=duplicates,
        )
        rows = [(r["vs"], r["b"], r["before"], tuple(r["list"])) for r in result.rows]
        assert sorted(rows) == expected(logs["Later"], logs["First"])
