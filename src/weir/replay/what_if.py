"""Compares the variants of a replay with the first: emitted rows, differing rows, and when.

Everything is read from the outputs, so it describes what is really there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s, times
from weir.events.types import TIMESTAMP
from weir.events.value_text import format_timestamps
from weir.files.output_diff import compare_rows
from weir.files.saved_outputs import SavedOutput, open_outputs
from weir.replay.reports import EmittedOutput, ReplayReport, VariantReport
from weir.replay.what_if_page import CountLine, EmittedCharts, what_if_page

PAGE = "what-if.html"
BUCKETS = 60
"""How many spans of time the plots have."""


def compare_variants(report: ReplayReport, out: Path) -> ReplayReport:
    """Return the report with the differences between its variants, and write a page of them."""
    compared: dict[tuple[str, str], EmittedOutput] = {}
    charts = []
    for name, outputs in _by_name(report):
        saved = open_outputs([output.path for _, output in outputs])
        first = saved[0] if outputs[0][0] is report.variants[0] else None
        for (variant, output), saved_output in zip(outputs, saved, strict=True):
            compared[variant.folder, name] = _beside(output, saved_output, first)
        labels = [variant.label for variant, _ in outputs]
        rows = [output.rows for _, output in outputs]
        charts.append(EmittedCharts(name, labels, rows, *_over_time(labels, saved)))
    variants = tuple(
        msgspec.structs.replace(v, outputs=tuple(compared[v.folder, o.name] for o in v.outputs))
        for v in report.variants
    )
    page = out / PAGE
    done = msgspec.structs.replace(report, variants=variants, page=str(page))
    page.write_text(what_if_page(done, charts), encoding="utf-8")
    return done


def _by_name(
    report: ReplayReport,
) -> Iterator[tuple[str, list[tuple[VariantReport, EmittedOutput]]]]:
    """Give each emitted stream with the variants that have it."""
    for name in report.emitted_names:
        yield name, [(v, o) for v in report.variants for o in v.outputs if o.name == name]


def _beside(output: EmittedOutput, saved: SavedOutput, first: SavedOutput | None) -> EmittedOutput:
    """Count the rows that an output and that of the first variant, if it has one, do not share."""
    if saved is first:
        here, gone = 0, 0
    elif first is None:
        here, gone = output.rows, 0
    else:
        rows = compare_rows(saved, first, lambda rows: None)
        here, gone = rows.only_a, rows.only_b
    return msgspec.structs.replace(output, only_here=here, only_first=gone)


# --- over time -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TimeRange:
    first: int
    last: int


def _over_time(
    labels: Sequence[str], saved: Sequence[SavedOutput]
) -> tuple[list[CountLine], str, str]:
    """Count the rows of each variant by spans of time; and write the first and the last time."""
    spans = [_span(output) for output in saved]
    present = [span for span in spans if span is not None]
    if not present:
        return [], "", ""
    whole = _TimeRange(min(s.first for s in present), max(s.last for s in present))
    # In Python's integers: times may lie further apart than int64 counts.
    edges = [whole.first + (whole.last - whole.first) * i // BUCKETS for i in range(1, BUCKETS)]
    lines = [
        CountLine(label, _counted(output, np.array(edges, dtype=np.int64)))
        for label, output in zip(labels, saved, strict=True)
    ]
    time = saved[0].form.schema.time
    return lines, _time_text(whole.first, time), _time_text(whole.last, time)


def _span(output: SavedOutput) -> _TimeRange | None:
    ranges = [(int(vs.min()), int(vs.max())) for vs in _starts(output)]
    return (
        _TimeRange(min(f for f, _ in ranges), max(last for _, last in ranges)) if ranges else None
    )


def _counted(output: SavedOutput, edges: Int64s) -> list[int]:
    counts = np.zeros(BUCKETS, dtype=np.int64)
    for vs in _starts(output):
        counts += np.bincount(np.searchsorted(edges, vs, side="right"), minlength=BUCKETS)
    return [int(count) for count in counts]


def _starts(output: SavedOutput) -> Iterator[Int64s]:
    for file in output.files:
        for batch in output.batches(file):
            yield batch.vs


def _time_text(ticks: int, time: pa.DataType) -> str:
    if time != TIMESTAMP:
        return str(ticks)
    return str(format_timestamps(times(np.array([ticks]), time))[0].as_py())
