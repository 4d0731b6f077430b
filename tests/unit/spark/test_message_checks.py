"""What a broken peer sends is refused with its reason, and never believed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from machine.jobs import checkpoint, order, report, says, segment, topology
from weir.errors import RunError
from weir.job.messages import DRIVER, Orders, Preparing, Report, VertexReport
from weir.reliable.objects import ObjectRef
from weir.spark.live.message_checks import (
    read_orders,
    read_preparing,
    read_report,
)

pack = msgspec.msgpack.encode


def vertex(name: str = "1.0", **changed: object) -> VertexReport:
    given: dict[str, object] = {"inputs": (1,), "outputs": (1,)} | changed
    return says(name, 1, **given)  # type: ignore[arg-type]


def test_what_is_right_comes_through() -> None:
    said = report("a", 1, vertex(), vertex("0.0", checkpoints=(checkpoint("0.0", 1, 5, 5),)))
    assert read_report(pack(said), topology(), 1) == said
    ordered = Orders(1, 2, "a", (order("1.0", restart=checkpoint("1.0", 1, 1, 1)),))
    assert read_orders(pack(ordered), topology()) == ordered


def test_a_host_that_gets_ready_says_which_it_is() -> None:
    said = Preparing(1, "w1", 3, 30)
    assert read_preparing(pack(said), 2) == said
    for wrong, told in [
        (Preparing(2, "w1", 0, 0), "slot 2 of 2 hosts"),
        (Preparing(DRIVER, "w1", 0, 0), "slot -1 of 2 hosts"),
        (Preparing(0, "w1", -3, 30), "the number -3"),
        ({"slot": 0}, "missing required field"),
    ]:
        with pytest.raises(RunError, match=told):
            read_preparing(pack(wrong), 2)


def test_a_vertex_that_is_loading_has_no_positions() -> None:
    said = report("a", 1, VertexReport("1.0", 1, "loading"))
    assert read_report(pack(said), topology(), 1) == said


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", "truncated"),
        (b"\xff\x00", "Expected `object`"),
        (b"\x81\xa1\xff\x01", "a report that cannot be used"),
        (pack({"session": "a"}), "missing required field"),
        (report("a", -1), "the number -1"),
        (msgspec.structs.replace(report("a", 1), since=3), "the number -2"),
        (msgspec.structs.replace(report("a", 1), taken=-1), "the number -1"),
        (msgspec.structs.replace(report("a", 1), slot=1), "slot 1 of 1 hosts"),
        (msgspec.structs.replace(report("a", 1), slot=-1), "slot -1"),
        (report("a", 1, vertex("9.9")), "a vertex '9.9', which the job does not have"),
        (report("a", 1, vertex(inputs=(1, 2))), "2 inputs and 1 outputs"),
        (report("a", 1, vertex(outputs=(-1,))), "the number -1"),
        (report("a", 1, vertex(events=-1)), "vertex 1.0 that cannot be used: the number -1"),
        (report("a", 1, vertex(cti=2**64 - 1)), "the time 18446744073709551615"),
        (report("a", 1, vertex(events=2**63)), "the number 9223372036854775808"),
        (report("a", 1, vertex(segments={"0.0/0": ()})), "which it does not write"),
        (
            report("a", 1, vertex(segments={"1.0/0": (segment("1.0/0", 3, 1),)})),
            "the number -2",
        ),
        (
            report(
                "a",
                1,
                vertex(
                    segments={
                        "1.0/0": (
                            msgspec.structs.replace(segment("x", 0, 1), ref=ObjectRef("job")),
                        )
                    }
                ),
            ),
            "a segment 'job'",
        ),
        (
            report(
                "a", 1, vertex("sink.0", outputs=(), checkpoints=(checkpoint("sink.0", 1, 1, 1),))
            ),
            "of other inputs and outputs",
        ),
    ],
)
def test_reports_that_cannot_be_used(said: bytes | Report, told: str) -> None:
    body = said if isinstance(said, bytes) else pack(said)
    with pytest.raises(RunError, match=told):
        read_report(body, topology(), 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x91",
        pack(Orders(1, 1, "a", (order("9.9"),))),
        pack(Orders(1, 1, "a", dropped=("9.9",))),
        pack(Orders(1, 1, "a", served={"9.9": ()})),
        pack(Orders(1, 1, "a", collect={"9.9/0": 4})),
        pack(Orders(1, 1, "a", collect={"1.0/0": -4})),
        pack(Orders(1, 1, "a", floors={"1.0/0": -4})),
        pack(Orders(1, 1, "a", segments={"9.9/0": ()})),
        pack(Orders(1, 1, "a", since=2, upto=1)),
        pack(Orders(1, 1, "a", taken=-1)),
        pack(Orders(1, 1, "a", (order("1.0", collect={"1.0/0": -4}),))),
        pack(Orders(1, 1, "a", (order("sink.0", restart=checkpoint("sink.0", 1, 1, 1)),))),
    ],
)
def test_orders_that_cannot_be_used(body: bytes) -> None:
    with pytest.raises(RunError, match=r"orders.* that cannot be used.*same version of Weir"):
        read_orders(body, topology())


@pytest.mark.parametrize("start", [b"", b"\x81\xa1z"])
@pytest.mark.parametrize(
    "read",
    [
        lambda b: read_orders(b, topology()),
        lambda b: read_report(b, topology(), 1),
    ],
)
def test_deep_nesting_is_no_crash(read: Callable[[bytes], object], start: bytes) -> None:
    with pytest.raises(RunError, match="cannot be used"):
        read(start + b"\x91" * 200_000)
