"""State scans and final states as nodes, without any app, against the store of the loop.

Random scans: ports, cells of all types, merges of all kinds with conditions, reads between them;
run in cuts, in parallel, restarted from snapshots, with entries written twice.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from replay_oracle.cells import Kind, Merged, Store, comparable, copied
from replay_oracle.final_states import saved_values
from replay_oracle.logs import Rows, draw_logs
from weir.events.types import BIGINT, DOUBLE, STRING
from weir.plan.operators import FinalState, Source, SourceOptions, StateScan
from weir.plan.program import Output, Program
from weir.plan.states import Cell, MergeFunction, MergeKind, StateMerge, StateRead
from weir.testing import run_program

SCANS = 2000 if os.environ.get("WEIR_NIGHT") else 80
CHUNK = 20

COLUMNS = {"k": STRING, "u": BIGINT, "n": BIGINT, "x": DOUBLE, "s": STRING, "f": pa.bool_()}
TYPES = {
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BOOLEAN": pa.bool_(),
    "ints": pa.list_(BIGINT),
    "strs": pa.list_(STRING),
    "best": pa.list_(BIGINT),
}
DEFAULTS = {
    "BIGINT": (0, 7),
    "DOUBLE": (0.0, 0.1),
    "STRING": ("", None),
    "BOOLEAN": (False,),
    "ints": ((), (4,)),
    "strs": ((),),
    "best": ((), (4,)),
}
KINDS: dict[str, tuple[tuple[MergeKind, str], ...]] = {
    "BIGINT": (("add", "n"), ("add", "u"), ("max", "n"), ("min", "n"), ("set", "n"), ("call", "n")),
    "DOUBLE": (("add", "x"), ("add", "x"), ("max", "x"), ("set", "x"), ("call", "x")),
    "STRING": (("set", "s"), ("set", "k"), ("call", "s")),
    "BOOLEAN": (("set", "f"),),
    "ints": (("append", "n"), ("add_to_set", "u")),
    "strs": (("append", "k"), ("add_to_set", "s")),
    "best": (("top_k", "n"), ("top_k", "u")),
}


def _stepped(old: object, x: object) -> object:
    if isinstance(old, int):
        return (old * 3 + x) % 97  # type: ignore[operator]
    if isinstance(old, float):
        return old + x  # type: ignore[operator]
    return ((old or "") + (x or ""))[-5:]  # type: ignore[operator]


STEPPED = MergeFunction("stepped", _stepped)


@dataclass
class Drawn:
    """A `Drawn` scan has the node, the logs, and the kinds of its cells for the store."""

    node: StateScan
    logs: dict[str, list[Rows]]
    kinds: list[Kind]


def draw_scan(seed: int) -> Drawn:
    rng = random.Random(seed)
    names = [f"S{i}" for i in range(rng.choice([1, 2, 2, 3]))]
    columns = (("ts", BIGINT), *COLUMNS.items())
    ports = tuple(Source(n, columns, "", SourceOptions("ts"), i) for i, n in enumerate(names))
    key = rng.choice([("k",), ("u",), ("k", "u"), ("x",), ()])
    kinds, cells = [], []
    for i in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(list(TYPES))
        spans: dict[str, int] = {}
        if rng.random() < 0.5:
            spans[rng.choice(["last", "expires"])] = rng.choice([1, 2, 3, 5, 9, 30])
        default = rng.choice(DEFAULTS[name])
        kinds.append(Kind(f"c{i}", default, name, **spans))
        types = tuple(COLUMNS[c] for c in key)
        cells.append(Cell(f"c{i}", types, TYPES[name], default, **spans))
    orders = iter(rng.sample(range(40), 30))
    merges = tuple(
        tuple(_merge(rng, kinds, next(orders)) for _ in range(rng.choice([0, 1, 2, 3])))
        for _ in ports
    )
    reads = []
    for i in range(rng.choice([1, 2, 3])):
        order = next(orders)
        reads.append(StateRead(rng.randrange(len(cells)), f"r{i}", order, order))
    rng.shuffle(names)
    depth = ports[0].origin_depth(())
    node = StateScan(ports, (key,) * len(ports), tuple(cells), merges, tuple(reads), depth)
    logs = draw_logs(rng, {n: tuple(COLUMNS) for n in sorted(names)}, 30)
    return Drawn(node, logs, kinds)


def _merge(rng: random.Random, kinds: list[Kind], order: int) -> StateMerge:
    state = rng.randrange(len(kinds))
    kind, column = rng.choice(KINDS[kinds[state].type])
    function = STEPPED if kind == "call" else None
    condition = rng.choice([None, "f"])
    k = rng.choice([1, 2, 3]) if kind == "top_k" else 0
    return StateMerge(state, kind, (column,), order, order, condition, k, function)


# --- the loop ------------------------------------------------------------------------------------


def by_store(drawn: Drawn) -> tuple[list[tuple[object, ...]], Store, int]:
    """Take all requests one after the other; return the reader's rows with their answers."""
    node, store = drawn.node, Store()
    for kind in drawn.kinds:
        store.declare(kind)
    events = sorted(
        (row["ts"], port, partition, offset)
        for port, source in enumerate(node.streams)
        for partition, rows in enumerate(drawn.logs[source.name])  # type: ignore[union-attr]
        for offset, row in enumerate(rows)
    )
    came = []
    for _, port, partition, offset in events:
        row = drawn.logs[f"S{port}"][partition][offset]
        came += _event(node, store, port, row)
    return came, store, max((e[0] for e in events), default=0)  # type: ignore[type-var,return-value]


def _event(
    node: StateScan, store: Store, port: int, row: Mapping[str, object]
) -> list[tuple[object, ...]]:
    at: int = row["ts"]  # type: ignore[assignment]
    key = tuple(row[c] for c in node.keys[port])
    requests = [*node.merges[port], *(node.reads if port == 0 else ())]
    answers: dict[str, object] = {}
    for request in sorted(requests, key=lambda r: r.order):
        name = node.states[request.state].state
        if isinstance(request, StateRead):
            answers[request.column] = store.get(name, key, at)
        elif request.condition is None or row[request.condition] is True:
            store.merge(name, key, _merged(request, row, at))
    if port:
        return []
    values = [row[c] for c in COLUMNS] + [answers[r.column] for r in node.reads]
    return [(at, at + 1, *(comparable(copied(v)) for v in values))]


def _merged(request: StateMerge, row: Mapping[str, object], at: int) -> Merged:
    x = row[request.args[0]]
    if request.kind == "call":
        return Merged(at, "call", (), lambda old: _stepped(old, x))
    return Merged(at, request.kind, (x, request.k) if request.kind == "top_k" else (x,))


# --- the tests -----------------------------------------------------------------------------------


def _program(node: StateScan | FinalState) -> Program:
    sources = tuple(s for s in node.streams if isinstance(s, Source))
    return Program(sources, (("Out", node),), (Output("Out", node, ""),))


def _ways(seed: int) -> dict[str, int | None]:
    rng = random.Random(seed)
    how: dict[str, int | None] = {
        "cut": rng.choice([1, 7, None]),
        "parallelism": rng.choice([1, 2, 5]),
    }
    if rng.random() < 0.3:
        how |= rng.choice([{"snapshot_at": rng.randint(0, 4)}, {"duplicate_writes": seed}])
    return how


@pytest.mark.parametrize("first", range(0, SCANS, CHUNK))
def test_random_scans(first: int) -> None:
    for seed in range(first, first + CHUNK):
        drawn = draw_scan(seed)
        try:
            wanted, store, end = by_store(drawn)
        except TypeError:
            continue  # `top_k` of NULL
        how = _ways(seed)
        came = run_program(_program(drawn.node), drawn.logs, **how).rows  # type: ignore[arg-type]
        rows = [tuple(comparable(copied(v)) for n, v in row.items() if n != "ts") for row in came]
        assert Counter(rows) == Counter(wanted), f"seed {seed}, {how}: {drawn.node}"
        assert rows == wanted or how["parallelism"] != 1, f"order: seed {seed}, {how}"
        for number, kind in enumerate(drawn.kinds):
            _check_final(drawn, number, kind, store, end, f"seed {seed}, {how}")


def _check_final(drawn: Drawn, number: int, kind: Kind, store: Store, end: int, where: str) -> None:
    node = drawn.node
    merges = tuple(
        tuple(replace(m, state=0) for m in of_port if m.state == number) for of_port in node.merges
    )
    final = FinalState(node.streams, node.keys, node.states[number], merges, node.depth)
    rows = run_program(_program(final), drawn.logs, cut=7, parallelism=2).rows
    wanted = {k: comparable(v) for k, v in store.listed(kind.name, end)}
    assert wanted == saved_values(kind, rows, end), where
