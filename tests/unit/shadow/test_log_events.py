"""Events are read in log order, and the first of them can be read again by an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from weir.errors import InputError, PlanError
from weir.handlers.api.app import App
from weir.ingress.ingress import Ingress
from weir.ingress.memory_partitions import MemoryPartition
from weir.plan.operators import Source
from weir.shadow.app_shadow import OpenLog
from weir.shadow.log_events import first_events, ordered_events

Rows = Sequence[dict[str, object]]


def logs(*partitions: Rows, columns: str = "n BIGINT, at BIGINT", **options: Any) -> list[OpenLog]:
    """Partitions of one log."""
    source = App("a").events("e", columns, vs="at", **options).stream.node
    assert isinstance(source, Source)
    return [
        OpenLog(source, number, MemoryPartition(f"e[{number}]", rows, source.declared))
        for number, rows in enumerate(partitions)
    ]


def at(*times: int, first: int = 0) -> list[dict[str, object]]:
    return [{"n": first + i, "at": time} for i, time in enumerate(times)]


def numbers(opened: Sequence[OpenLog], size: int = 2) -> list[object]:
    return [placed.event.values[0] for placed in ordered_events(opened, size)]


def test_log_order_is_by_time_partition_and_offset() -> None:
    opened = logs(at(1, 2, 2, 5), at(2, 2, 3, first=10), at(first=20))
    for size in (1, 2, 100):
        assert numbers(opened, size) == [0, 1, 2, 10, 11, 12, 3]
    found = list(ordered_events(opened))
    assert [(p.rank, p.offset) for p in found][:4] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert (found[0].event.type, found[0].event.vs, found[0].event.ve) == ("e", 1, 2)


def test_event_types_are_in_order_of_declaration() -> None:
    app = App("a")
    opened = []
    for name in ("one", "two"):
        node = app.events(name, "n BIGINT, at BIGINT", vs="at").stream.node
        assert isinstance(node, Source)
        opened.append(OpenLog(node, 0, MemoryPartition(name, at(1, 2), node.declared)))
    found = [(p.event.type, p.event.vs) for p in ordered_events(opened)]
    assert found == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]


def test_rows_out_of_order_are_sorted_and_late_ones_are_none() -> None:
    opened = logs(at(5, 3, 9, 4, 8), delay=2, late="drop")
    for size in (1, 3):
        assert numbers(opened, size) == [1, 0, 4, 2]  # 4 comes after 9: it is late
    adjusted = logs(at(5, 3, 9, 4, 8), delay=2, late="adjust", lifetime=10)
    assert [p.event.vs for p in ordered_events(adjusted)] == [3, 5, 7, 8, 9]
    with pytest.raises(InputError, match="late"):
        numbers(logs(at(5, 4)))


def test_ends_may_be_open_and_values_of_any_type() -> None:
    columns = "n BIGINT, at BIGINT, till BIGINT, tags LIST(STRING), d DECIMAL(5, 2)"
    row = {"n": 1, "at": 3, "till": None, "tags": ["a", None], "d": None}
    (found,) = ordered_events(logs([row], columns=columns, ve="till"))
    assert found.event.ve is None
    assert found.event.values == (1, 3, None, ["a", None], None)


def test_a_value_that_python_does_not_have_is_named() -> None:
    rows = [{"n": n, "at": n, "t": 2**61 if n == 3 else n} for n in range(5)]
    opened = logs(rows, columns="n BIGINT, at BIGINT, t TIMESTAMP")
    with pytest.raises(PlanError, match=r"row 4 of e\[0\].*TIMESTAMP"):
        list(ordered_events(opened))
    found = first_events(opened, 100)  # those before it can be compared
    assert [event.values[0] for event in found.events] == [0, 1, 2] and not found.are_all


# --- the first events ----------------------------------------------------------------------------


def test_so_many_first_events() -> None:
    opened = logs(at(1, 2, 2, 5), at(2, 2, 3, first=10))
    found = first_events(opened, 4)
    assert [event.values[0] for event in found.events] == [0, 1, 2, 10]
    assert not found.are_all and first_events(opened, 7).are_all
    assert first_events(opened, 100).are_all


def test_an_engine_reads_them_again() -> None:
    opened = logs(at(5, 3, 9, 8), at(4, first=10), delay=2)
    found = first_events(opened, 100)
    assert [event.vs for event in found.events] == [3, 4, 5, 8, 9]
    for count, offsets in ((1, [[1], []]), (2, [[1], [0]]), (4, [[0, 1, 3], [0]])):
        parts = found.partitions(count)["e"]
        assert [part.name for part in parts] == ["e[0]", "e[1]"]
        seen = []
        for log, part in zip(opened, parts, strict=True):
            admitted = [
                Ingress(log.source, log.number, part.name).feed(chunk) for chunk in part.chunks()
            ]
            seen.append([int(o) for a in admitted for o in a.batch.origin[1]])
        assert seen == offsets
    assert found.place(0) == "e[0], row 2"


def test_rows_without_columns_are_rows() -> None:
    node = App("a").events("e", "vs BIGINT").stream.node
    assert isinstance(node, Source)
    rows = MemoryPartition("e", [{"vs": 1}, {"vs": 2}], node.declared)
    opened = [OpenLog(node, 0, rows)]
    found = first_events(opened, 5)
    (part,) = found.partitions(2)["e"]
    (chunk,) = part.chunks()
    batch = Ingress(opened[0].source, 0, "e").feed(chunk).batch
    assert batch.vs.tolist() == [1, 2] and batch.columns == ()
