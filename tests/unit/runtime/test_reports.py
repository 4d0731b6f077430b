"""The report of a run: what its source vertices read and its sinks got, put together."""

from __future__ import annotations

from weir.plan.program import Output
from weir.reliable.digest import Digest
from weir.runtime.reports import (
    InputReport,
    OutputReport,
    RunReport,
    SinkTotal,
    SourceTotal,
    run_report,
)
from weir.script.program import parse_program

(SOURCE,) = parse_program("STREAM A (vs BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'o.csv';").sources


def test_vertices_add_up_by_source() -> None:
    read = [
        SourceTotal("0.0", "A", 5, 1, 0),
        SourceTotal("1.0", "B", 7, 0, 0),
        SourceTotal("0.1", "A", 3, 2, 4),
    ]
    report = run_report("there", read, [])
    assert report == RunReport(15, (InputReport("A", 2, 3, 4), InputReport("B", 1, 0, 0)), ())


def test_several_tasks_of_one_vertex_are_one_partition() -> None:
    read = [SourceTotal("0.0", "A", events, 0, 0) for events in (0, 4, 5)]
    assert run_report("there", read, []).inputs == (InputReport("A", 1, 0, 0),)
    assert run_report("there", read, []).events == 9


def test_outputs_have_their_digests_and_paths() -> None:
    written = [
        SinkTotal(Output("A", SOURCE, "o.csv"), Digest(10, 2)),
        SinkTotal(Output("A", SOURCE, "/far/late.csv", "late"), Digest()),
    ]
    first, second = run_report("there", [], written).outputs
    assert first == OutputReport("A", "rows", "there/o.csv", 2, str(Digest(10, 2)))
    assert (second.path, second.rows, second.title) == ("/far/late.csv", 0, "late rows of A")
