"""Steps that make more rows than memory holds are refused before they make them."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from weir import Stream, collect, count, hopping, session, snapshot, stream, tumbling
from weir.errors import EventFailed, RunError
from weir.events.batch import OPEN, Batch
from weir.kernels import room
from weir.kernels.kernel_table import make_kernel
from weir.kernels.room import memory_limit
from weir.plan.operators import Project

A = stream("A", {"vs": "BIGINT", "ve": "BIGINT"}, "a.jsonl", vs="vs", ve="ve")
FAR = 2**60
LONG = [{"vs": 0, "ve": FAR}, {"vs": 1, "ve": FAR}]
Change = Callable[[Stream], Stream]
FLOODS: list[tuple[Change, str]] = [
    (lambda a: a.window(tumbling(1)).agg(n=count()), r"TUMBLING\(1us\) gives 1,152,921,504"),
    (lambda a: a.window(hopping(10, 3)).agg(n=count()), r"HOPPING\(10us, 3us\) gives 384,30"),
    (lambda a: a.chop(1), r"CHOP\(1us\) gives 2,305,843,009"),
    (lambda a: a.chop(7, 3), r"CHOP\(7us\) gives 329,406,144"),
]


@pytest.mark.parametrize(("change", "message"), FLOODS)
def test_a_flood_of_rows_is_refused(change: Change, message: str) -> None:
    with pytest.raises(RunError, match=f"{message}.* rows at once.*CLIP_DURATION"):
        collect(change(A), inputs={"A": LONG})


@pytest.mark.parametrize(("change", "message"), FLOODS)
def test_a_little_at_a_time_is_fine(change: Change, message: str) -> None:
    """An event that is valid for very long is in few windows that end now: live it never hurts."""
    node = change(A).node
    while isinstance(node, Project):
        node = node.input
    kernel = make_kernel(node)
    rows = Batch(np.array([0, 1]), np.array([FAR, FAR]), ())
    out, _ = kernel.step([rows], 1000)
    assert len(out) >= 142
    nothing = Batch(rows.vs[:0], rows.ve[:0], ())
    assert len(kernel.step([nothing], 2000)[0]) >= 142
    with pytest.raises(RunError, match="rows at once"):
        kernel.step([nothing], OPEN)


@pytest.mark.parametrize("size", [1, 10**6, 2**40, 2**61, 2**62 - 1])
def test_other_windows_and_lifetimes_make_few_rows(size: int) -> None:
    changes: list[Change] = [
        lambda a: a.window(session(size)).agg(n=count()),
        lambda a: a.duration(size).window(snapshot()).agg(n=count()),
        lambda a: a.duration(size).window(tumbling(2**62 - 1)).agg(n=count()),
        lambda a: a.quantize(size, 1),
        lambda a: a.quantize(size, size),
        lambda a: a.hop_lifetime(size, 1),
        lambda a: a.hop_lifetime(1, size),
        lambda a: a.extend(size),
        lambda a: a.clip_duration(size),
        lambda a: a.lifetime("vs", "ve"),
    ]
    for change in changes:
        try:
            rows = collect(change(A), inputs={"A": LONG})
        except EventFailed as error:
            assert size == 2**62 - 1 and "beyond ±2⁶² ticks" in str(error)  # as the semantics say
        else:
            assert rows.num_rows <= 3


def test_the_limit_is_that_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "memory_limit", lambda: 100 * room.ROW_BYTES)
    rows = [{"vs": 0, "ve": 100}]
    chopped = A.chop(1)
    assert collect(chopped, inputs={"A": rows}).num_rows == 100
    with pytest.raises(RunError, match="gives 101 rows at once"):
        collect(chopped, inputs={"A": [{"vs": 0, "ve": 101}]})


def test_the_limit_is_the_smallest_that_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cgroup")
    limit = folder / "memory.max"
    monkeypatch.setattr(room, "_CGROUPS", (limit, folder / "none"))
    machine = memory_limit.__wrapped__()
    assert 2**27 < machine <= 2**40
    for text, expected in (("max\n", machine), ("65536\n", 65536), (f"{2**63 - 4096}\n", machine)):
        limit.write_text(text, encoding="ascii")
        assert memory_limit.__wrapped__() == expected


def test_many_groups_of_one_window_each_are_fine() -> None:
    """Rows that windows do not multiply count too, and fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        keyed = stream("K", {"vs": "BIGINT", "k": "BIGINT"}, "k.jsonl", vs="vs")
        counts = keyed.group_by("k").window(tumbling(10)).agg(n=count())
        rows = [{"vs": 1, "k": k} for k in range(1000)]
        assert collect(counts, inputs={"K": rows}).num_rows == 1000
