"""Draws a staged plan as a Graphviz graph: a box for each stage, with its operators in it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from weir.plan.holds import longest_holds
from weir.plan.operators import Node
from weir.plan.operators.spans import NONE, Span
from weir.plan.stages import Branch, Link, Sink, Stage, StagedPlan

_LABEL_WIDTH = 44


def dot_of(staged: StagedPlan) -> str:
    """Return the graph's text, for `dot -Tsvg`."""
    return "\n".join(_lines(staged)) + "\n"


def _lines(staged: StagedPlan) -> Iterator[str]:
    running = [n for s in staged.stages for n in s.operators if not isinstance(n, Branch)]
    holds = longest_holds(running)
    yield "digraph weir {"
    yield "  rankdir=TB;"
    yield '  node [shape=box, fontname="Helvetica", fontsize=10];'
    yield '  edge [fontname="Helvetica", fontsize=9];'
    for stage in staged.stages:
        yield from _stage_lines(stage, holds)
    for stage in staged.stages:
        for port in stage.ports:
            for link in port.links:
                last = _name(staged.stages[link.stage], -1)
                yield f"  {last} -> {_name(stage, 0)} [label={_quoted(_channel(link))}];"
    for number, sink in enumerate(staged.sinks):
        yield from _sink_lines(number, sink, staged)
    yield "}"


def _stage_lines(stage: Stage, holds: dict[Node, Span]) -> Iterator[str]:
    yield f"  subgraph cluster_{stage.number} {{"
    yield f"    label={_quoted(_title(stage))};"
    for index, operator in enumerate(stage.operators):
        yield f"    {_name(stage, index)} [label={_quoted(_operator(operator, holds))}];"
    for index in range(1, len(stage.operators)):
        yield f"    {_name(stage, index - 1)} -> {_name(stage, index)};"
    yield "  }"


def _sink_lines(number: int, sink: Sink, staged: StagedPlan) -> Iterator[str]:
    output = sink.output
    what = output.title
    label = f"{what}\n{output.path}" if output.path else what
    yield f"  out{number} [shape=note, label={_quoted(label)}];"
    for stage in sink.stages:
        yield f"  {_name(staged.stages[stage], -1)} -> out{number};"
    if output.kind != "rows":
        for source in (s for s in staged.stages if output.node in s.operators):
            yield f"  {_name(source, 0)} -> out{number} [label={_quoted(output.kind)}];"


def _name(stage: Stage, index: int) -> str:
    return f"s{stage.number}_{index % len(stage.operators)}"


def _title(stage: Stage) -> str:
    count = "a vertex for each partition" if stage.vertices is None else f"x {stage.vertices}"
    called = f" '{stage.uid}'" if stage.uid is not None else ""
    split = f", split by {', '.join(stage.split_by)}" if stage.split_by else ""
    return f"stage {stage.number}{called} ({count}{split})"


def _operator(operator: Node | Branch, holds: dict[Node, Span]) -> str:
    if isinstance(operator, Branch):
        return f"Branch {operator.number}"
    lines = [type(operator).__name__, *textwrap.wrap(operator.detail(), _LABEL_WIDTH)]
    if holds[operator] != NONE:
        lines.append(f"holds rows: {holds[operator]}")
    return "\n".join(lines)


def _channel(link: Link) -> str:
    if link.channel == "hash":
        return f"hash of {', '.join(link.keys)}"
    return "all" if link.channel == "all" else "forward"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
