"""Compares the variants of a replay with the first: emitted rows, differences, and their times.

All figures come from the outputs, so they describe what is really there. The page that shows the
variants side by side is one file with plots in SVG. It is light or dark like the reader's system,
and loads nothing from a network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s, times
from weir.events.types import TIMESTAMP
from weir.events.value_text import format_timestamps
from weir.files.output_diff import compare_rows
from weir.files.saved_outputs import SavedOutput, open_outputs
from weir.page.page_files import asset
from weir.replay.reports import EmittedOutput, ReplayReport, VariantReport
from weir.wording import counted

PAGE = "what-if.html"
BUCKETS = 60
"""How many time spans the plots have."""


def compare_variants(report: ReplayReport, out: Path) -> ReplayReport:
    """Return the report with the differences between its variants, and write them to a page."""
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
    """Yield each emitted stream with the variants that have it."""
    for name in report.emitted_names:
        yield name, [(v, o) for v in report.variants for o in v.outputs if o.name == name]


def _beside(output: EmittedOutput, saved: SavedOutput, first: SavedOutput | None) -> EmittedOutput:
    """Count the rows that differ between an output and that of the first variant, if it has one."""
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
    """Count the rows of each variant by time span; return also the first and last time as text."""
    spans = [_span(output) for output in saved]
    present = [span for span in spans if span is not None]
    if not present:
        return [], "", ""
    whole = _TimeRange(min(s.first for s in present), max(s.last for s in present))
    # Python's integers, because times may be further apart than an int64 holds.
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


# --- the page -------------------------------------------------------------------------------

MOST_LINES = 8
"""The most lines in a plot: more are hard to distinguish, and there are no more colours."""
_WIDTH, _HEIGHT, _LEFT, _TOP = 720, 200, 64, 10

_STYLE = """
.plus { color: var(--c2); } .minus { color: var(--c3); } .same { color: var(--dim); }
svg { width: 100%; max-width: 45rem; height: auto; display: block; }
svg text { fill: var(--dim); font: 12px system-ui, sans-serif; } svg .ink { fill: var(--ink); }
"""
"""The styles that this page adds to those of all Weir's pages."""


@dataclass(frozen=True, slots=True)
class CountLine:
    """The number of rows of one variant in each time span; all spans have the same length."""

    label: str
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class EmittedCharts:
    """The plots of one emitted stream: rows by variant, and over time."""

    name: str
    labels: Sequence[str]
    rows: Sequence[int]
    lines: Sequence[CountLine]
    first: str
    last: str


def what_if_page(report: ReplayReport, charts: Sequence[EmittedCharts]) -> str:
    """Write the page."""
    title = f"What if: {report.app}"
    summary = (
        f"{counted(report.events, 'event')} in {counted(report.batches, 'batch', 'batches')}, "
        f"{counted(len(report.variants), 'variant')}. Differences are against the first variant, "
        f"{report.variants[0].label}."
    )
    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(summary)}</p>", _table(report)]
    for chart in charts:
        body.append(f"<h2>{escape(chart.name)}</h2>")
        body.append(_bars(chart))
        body.append(_lines(chart))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{asset('look.css')}{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body>\n</html>\n"
    )


# --- the table -----------------------------------------------------------------------------


def _table(report: ReplayReport) -> str:
    names = report.emitted_names
    heads = "".join(f"<th>{escape(n)}</th><th>new</th><th>gone</th><th>digest</th>" for n in names)
    rows = []
    for variant in report.variants:
        cells = "".join(_cells(report.beside_first(variant, name)) for name in names)
        rows.append(f"<tr><td>{escape(variant.label)}</td>{cells}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th>variant</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cells(output: EmittedOutput) -> str:
    digest = f"<code>{escape(output.digest[:12])}…</code>" if output.digest else "not emitted"
    return (
        f"<td>{output.rows:,}</td>{_change(output.only_here or 0, 'plus', '+')}"
        f"{_change(output.only_first or 0, 'minus', '−')}<td>{digest}</td>"
    )


def _change(count: int, kind: str, sign: str) -> str:
    return f'<td class="{kind}">{sign}{count:,}</td>' if count else '<td class="same">0</td>'


# --- plots ---------------------------------------------------------------------------------


def _bars(chart: EmittedCharts) -> str:
    """Draw the rows of each variant as a bar."""
    most, step = max((*chart.rows, 1)), 26
    left = min(300, 16 + 7 * max(len(label) for label in chart.labels))
    wide = _WIDTH - left - 90
    drawn = []
    for i, (label, rows) in enumerate(zip(chart.labels, chart.rows, strict=True)):
        y, width = i * step + 4, wide * rows / most
        shown = label if len(label) <= 40 else f"{label[:39]}…"
        drawn.append(
            f'<text class="ink" x="{left - 8}" y="{y + 13}" text-anchor="end">'
            f"{escape(shown)}</text>"
            f'<rect x="{left}" y="{y}" width="{width:.1f}" height="18" rx="2" '
            f'fill="var(--c{i % MOST_LINES})"><title>{escape(label)}: {rows:,}</title></rect>'
            f'<text x="{left + width + 6:.1f}" y="{y + 13}">{rows:,}</text>'
        )
    height = len(chart.rows) * step + 4
    return _svg(height, drawn, f"rows of {chart.name} by variant")


def _lines(chart: EmittedCharts) -> str:
    """Draw the rows of variants over time."""
    shown = chart.lines[:MOST_LINES]
    if not shown:
        return ""
    most = max(max(line.counts) for line in shown) or 1
    wide, high = _WIDTH - _LEFT - 16, _HEIGHT - _TOP - 30
    drawn = []
    for share in (0, 0.5, 1):
        y = _TOP + high * (1 - share)
        drawn.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="var(--line)"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{most * share:,.0f}</text>'
        )
    for i, line in enumerate(shown):
        last = max(1, len(line.counts) - 1)
        points = " ".join(
            f"{_LEFT + wide * at / last:.1f},{_TOP + high * (1 - count / most):.1f}"
            for at, count in enumerate(line.counts)
        )
        drawn.append(
            f'<polyline points="{points}" fill="none" stroke="var(--c{i})" stroke-width="1.6" '
            f'stroke-linejoin="round"><title>{escape(line.label)}</title></polyline>'
        )
    drawn.append(
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{escape(chart.first)}</text>'
        f'<text x="{_LEFT + wide}" y="{_HEIGHT - 8}" text-anchor="end">{escape(chart.last)}</text>'
    )
    legend = "".join(
        f'<li><i style="background: var(--c{i})"></i>{escape(line.label)}</li>'
        for i, line in enumerate(shown)
    )
    more = len(chart.lines) - len(shown)
    rest = f"<p>{counted(more, 'more variant')} in the table.</p>" if more else ""
    plot = _svg(_HEIGHT, drawn, f"rows of {chart.name} over time")
    return f'<p>Rows over time</p>{plot}<ul class="legend">{legend}</ul>{rest}'


def _svg(height: int, drawn: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(drawn)}</svg>"
    )
