"""Draws a program as SVG for a notebook: a box for each operator, in layers."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass

from weir.plan.operators import Node
from weir.plan.program import Program, row_outputs
from weir.plan.traversal import ordered_nodes

_CHARACTER, _LINE, _MARGIN, _GAP = 6.2, 14, 8, 26
_LABEL_WIDTH, _MOST_LINES = 40, 4


@dataclass(slots=True)
class _Box:
    lines: list[str]
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * _CHARACTER + 2 * _MARGIN

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + _MARGIN


def svg_of(program: Program) -> str:
    """Return the graph as an SVG element in the colours of its page, with inputs at the top."""
    nodes = ordered_nodes(row_outputs(program))
    boxes = {node: _Box(_lines(node)) for node in nodes}
    width, height = _lay_out(nodes, boxes)
    parts = [
        f'<path d="{_curve(boxes[below], boxes[node])}" fill="none" stroke="currentColor" '
        'stroke-opacity=".45"/>'
        for node in nodes
        for below in node.inputs
    ]
    parts += [_drawn(box) for box in boxes.values()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" style="max-width:100%" role="img" aria-label="the plan" '
        f'font-family="ui-monospace, monospace" font-size="10">{"".join(parts)}</svg>'
    )


def _lines(node: Node) -> list[str]:
    lines = textwrap.wrap(node.detail(), _LABEL_WIDTH)
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], "…"]
    return [type(node).__name__, *lines]


def _lay_out(nodes: list[Node], boxes: dict[Node, _Box]) -> tuple[float, float]:
    """Place each box below all its inputs, and close to the middle of them."""
    layers: list[list[Node]] = []
    level: dict[Node, int] = {}
    for node in nodes:
        level[node] = max((level[i] + 1 for i in node.inputs), default=0)
        while len(layers) <= level[node]:
            layers.append([])
        layers[level[node]].append(node)
    y = 2.0
    for layer in layers:
        layer.sort(key=lambda node: _middle([boxes[i] for i in node.inputs]))
        x = 2.0
        for node in layer:
            box = boxes[node]
            centered_x = _middle([boxes[i] for i in node.inputs]) - box.width / 2
            box.x, box.y = max(x, centered_x), y
            x = box.x + box.width + _GAP
        y += max(boxes[node].height for node in layer) + _GAP
    return max(b.x + b.width for b in boxes.values()) + 2, y - _GAP + 2


def _middle(boxes: list[_Box]) -> float:
    return sum(b.x + b.width / 2 for b in boxes) / len(boxes) if boxes else 0.0


def _curve(above: _Box, below: _Box) -> str:
    x1, y1 = above.x + above.width / 2, above.y + above.height
    x2, y2 = below.x + below.width / 2, below.y
    bend = (y1 + y2) / 2
    return f"M{x1:.1f} {y1:.1f} C{x1:.1f} {bend:.1f} {x2:.1f} {bend:.1f} {x2:.1f} {y2:.1f}"


def _drawn(box: _Box) -> str:
    first, *rest = (html.escape(line) for line in box.lines)
    x, y = box.x + _MARGIN, box.y + _LINE
    texts = f'<text x="{x:.1f}" y="{y:.1f}" font-weight="bold" fill="currentColor">{first}</text>'
    for number, line in enumerate(rest, 1):
        at = y + number * _LINE
        texts += f'<text x="{x:.1f}" y="{at:.1f}" fill="currentColor">{line}</text>'
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="4" fill="currentColor" fill-opacity=".06" stroke="currentColor" '
        f'stroke-opacity=".5"/>{texts}'
    )
