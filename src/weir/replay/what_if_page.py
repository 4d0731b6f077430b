"""Writes the page that shows the variants of a replay side by side.

It is one file with its plots as SVG, light or dark as the reader's system, and loads nothing from a
network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from weir.page.page_files import asset
from weir.replay.reports import EmittedOutput, ReplayReport
from weir.wording import counted

MOST_LINES = 8
"""More lines in one plot are hard to distinguish; there are as many colours."""
_WIDTH, _HEIGHT, _LEFT, _TOP = 720, 200, 64, 10

_STYLE = """
.plus { color: var(--c2); } .minus { color: var(--c3); } .same { color: var(--dim); }
svg { width: 100%; max-width: 45rem; height: auto; display: block; }
svg text { fill: var(--dim); font: 12px system-ui, sans-serif; } svg .ink { fill: var(--ink); }
"""
"""What is added to the look that Weir's pages share."""


@dataclass(frozen=True, slots=True)
class CountLine:
    """Holds the rows of one variant by spans of time, all of the same length."""

    label: str
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class EmittedCharts:
    """Holds what is plotted of one emitted stream: rows by variant, and over time."""

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
