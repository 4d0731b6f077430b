"""`explain` shows what a program will do, for people and for machines.

It shows the logical plan with its named streams; the stages with their vertices, ports and keys;
the names of the streams between vertices (`*` stands for any vertex); what each vertex keeps; how
long each operator can hold rows back; how a live run recovers each stage, and why; and the outputs.
The result is text, a Graphviz graph (`dot.py`) or JSON.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from weir.events.types import type_name
from weir.plan.explain.dot import dot_of
from weir.plan.holds import longest_holds
from weir.plan.operators import Node, Source, schema
from weir.plan.operators.spans import NONE, Span
from weir.plan.program import DIRECT, Output, Program, row_outputs
from weir.plan.stages import Branch, Link, Port, Split, Stage, StagedPlan
from weir.plan.strategy import Choice, choose_strategies, default_strategy
from weir.plan.traversal import ordered_nodes, reader_counts
from weir.wording import counted

Format = Literal["text", "dot", "json"]

_WIDTH = 96
_BLANK = "\N{NO-BREAK SPACE}"


def explain(program: Program, staged: StagedPlan, format: Format = "text") -> str:
    """Return the plan in one of three forms; `staged` is the program cut into stages."""
    if format == "dot":
        return dot_of(staged)
    view = _View.of(program, staged)
    return _json(view) if format == "json" else "\n".join(_text(view)) + "\n"


def guarantee(output: Output) -> str:
    """Return how often a row reaches the output's sink when vertices fail and run again."""
    return "at least once" if output.path in DIRECT else "exactly once"


@dataclass(frozen=True, slots=True)
class _View:
    """A program with a number and a hold for every operator.

    It has labels for operators that the text shows separately: named streams, inputs, outputs, and
    operators with several readers.
    """

    program: Program
    staged: StagedPlan
    numbers: dict[Node, int]
    holds: dict[Node, Span]
    labels: dict[Node, str]
    choices: tuple[Choice, ...]
    outlets: tuple[tuple[Split, ...], ...]

    @classmethod
    def of(cls, program: Program, staged: StagedPlan) -> _View:
        planned = ordered_nodes(row_outputs(program))
        running = [n for s in staged.stages for n in s.operators if not isinstance(n, Branch)]
        nodes = ordered_nodes([*planned, *running])
        numbers = {node: number for number, node in enumerate(nodes)}
        names: dict[Node, list[str]] = {n: [n.name] for n in planned if isinstance(n, Source)}
        for name, node in (*program.streams, *((o.name, o.node) for o in program.outputs)):
            node_names = names.setdefault(node, [])
            if node in numbers and name not in node_names:
                node_names.append(name)
        labels = {
            node: ", ".join(node_names) for node, node_names in names.items() if node in numbers
        }
        for node, count in reader_counts(program, planned).items():
            if count > 1:
                labels.setdefault(node, f"#{numbers[node]}")
        choices = choose_strategies(staged, default_strategy(program))
        return cls(
            program, staged, numbers, longest_holds(nodes), labels, choices, staged.outlets()
        )


# --- text ----------------------------------------------------------------------------------


def _text(view: _View) -> Iterator[str]:
    yield "Plan"
    for node in ordered_nodes(row_outputs(view.program)):
        if node in view.labels:
            yield ""
            yield f"  {view.labels[node]} ="
            yield from _tree(node, view, 4)
    yield ""
    yield "Stages"
    for stage in view.staged.stages:
        yield ""
        yield from _stage(stage, view)
    yield ""
    yield "Outputs"
    yield ""
    for sink in view.staged.sinks:
        yield from _wrapped(_sink_line(sink.output, sink.stages), 2)


def _tree(root: Node, view: _View, indent: int) -> Iterator[str]:
    """Yield an operator and its inputs, down to operators with their own labels."""
    stack = [(root, indent)]
    while stack:
        node, depth = stack.pop()
        if node in view.labels and node is not root:
            yield " " * depth + view.labels[node]
            continue
        for line in _wrapped(f"{operator_text(node)} {_held(view.holds[node])}", depth):
            yield line.replace(_BLANK, " ")
        stack.extend((i, depth + 2) for i in reversed(node.inputs))


def operator_text(node: Node | Branch) -> str:
    """Return an operator and what it does, in one line."""
    if isinstance(node, Branch):
        return f"Branch {node.number} of a union"
    detail = node.detail()
    return f"{type(node).__name__} {detail}" if detail else type(node).__name__


def _held(hold: Span) -> str:
    # Spaces that must not become line breaks.
    return "" if hold == NONE else f" [holds rows: {hold}]".replace(" ", _BLANK)


def _stage(stage: Stage, view: _View) -> Iterator[str]:
    yield from _wrapped(f"stage {stage.number}: {_vertices(stage, view.staged)}", 2)
    for number, port in enumerate(stage.ports):
        yield from _field(f"port {number}", [_link(link) for link in port.links])
    nodes = [n for n in stage.operators if not isinstance(n, Branch)]
    yield from _field("runs", [operator_text(o) for o in stage.operators])
    yield from _field("writes", [f"{name}: {what}" for name, what, _ in _written(stage, view)])
    kept_here = [f"{type(n).__name__}: {n.kept()}" for n in nodes if n.kept()]
    yield from _field("keeps", kept_here or ["nothing"])
    holds = [f"{type(n).__name__}: {view.holds[n]}" for n in nodes if view.holds[n] != NONE]
    yield from _field("holds", holds or ["no row back"])
    choice = view.choices[stage.number]
    yield from _field("recover", [f"{choice.strategy}: {choice.why}"])


def _written(stage: Stage, view: _View) -> Iterator[tuple[str, str, Split]]:
    """Yield how other stages read the streams that the vertices of a stage write.

    Each is the name of the stream, what is read of it, and the split."""
    for split in view.outlets[stage.number]:
        if split.keys is None:
            yield f"{stage.number}.*/0", "all rows", split
        else:
            what = f"{counted(split.parts, 'part')}, by hash of {', '.join(split.keys)}"
            yield f"{stage.number}.*/0", what, split
    asked = {s.output.kind for s in view.staged.sinks if stage.number in view.staged.stages_of(s)}
    for kind in ("late", "bad"):
        if kind in asked:
            yield f"{stage.number}.*/{kind}", f"{kind} rows", Split()


def _vertices(stage: Stage, staged: StagedPlan) -> str:
    if stage.vertices is None:
        first = stage
        while first.ports:
            first = staged.stages[first.ports[0].links[0].stage]
        source = first.operators[0]
        assert isinstance(source, Source)
        text = f"a vertex for each partition of {source.name}"
    else:
        text = "1 vertex" if stage.vertices == 1 else f"{stage.vertices} vertices"
    if stage.split_by:
        text += f", split by {', '.join(stage.split_by)}"
    if stage.uid is not None:
        text += f", called '{stage.uid}'"
    return f"{text} ({stage.why_single})" if stage.why_single else text


def _link(link: Link) -> str:
    match link.channel:
        case "hash":
            return f"stage {link.stage}, by hash of {', '.join(link.keys)}"
        case "all":
            return f"stage {link.stage}, all vertices"
        case "forward":
            return f"stage {link.stage}, vertex by vertex"
    assert_never(link.channel)


def _sink_line(output: Output, stages: Sequence[int]) -> str:
    what = output.title
    target = f" to '{output.path}'" if output.path else ""
    written = [str(n) for n in stages]
    where = f", from stage {' and '.join(written)}" if written else ", from its ingress"
    return f"{what}{target}{where}; {guarantee(output)}"


def _field(name: str, entries: Sequence[str]) -> Iterator[str]:
    for index, entry in enumerate(entries):
        label = name if index == 0 else ""
        yield from textwrap.wrap(
            entry,
            _WIDTH,
            initial_indent=f"    {label:<8}",
            subsequent_indent=" " * 16,
        )


def _wrapped(line: str, indent: int) -> list[str]:
    # In deep trees, the text keeps at least half of the line.
    width = max(_WIDTH, indent + _WIDTH // 2)
    margin = " " * indent
    return textwrap.wrap(line, width, initial_indent=margin, subsequent_indent=margin + "    ")


# --- JSON ----------------------------------------------------------------------------------


def _json(view: _View) -> str:
    document = {
        "plan": [_node_entry(node, view) for node in view.numbers],
        "streams": {
            name: view.numbers[node] for name, node in view.program.streams if node in view.numbers
        },
        "stages": [_stage_entry(stage, view) for stage in view.staged.stages],
        "outputs": [
            {
                "name": sink.output.name,
                "kind": sink.output.kind,
                "path": sink.output.path,
                "node": view.numbers.get(sink.output.node),
                "stages": list(sink.stages),
                "guarantee": guarantee(sink.output),
            }
            for sink in view.staged.sinks
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _node_entry(node: Node, view: _View) -> dict[str, object]:
    return {
        "id": view.numbers[node],
        "op": type(node).__name__,
        "inputs": [view.numbers[i] for i in node.inputs],
        "columns": [{"name": n, "type": type_name(t)} for n, t in schema(node).columns],
        "detail": node.detail(),
        "keeps": node.kept(),
        "hold": str(view.holds[node]),
    }


def _stage_entry(stage: Stage, view: _View) -> dict[str, object]:
    nodes = [n for n in stage.operators if not isinstance(n, Branch)]
    holds = [view.holds[n] for n in nodes]
    return {
        "number": stage.number,
        "vertices": stage.vertices,
        "why_single": stage.why_single,
        "uid": stage.uid,
        "split_by": None if stage.split_by is None else list(stage.split_by),
        "ports": [_port_entry(port) for port in stage.ports],
        "operators": [
            {"branch": o.number} if isinstance(o, Branch) else {"node": view.numbers[o]}
            for o in stage.operators
        ],
        "writes": [
            {"streams": name, "keys": list(split.keys or ()), "parts": split.parts}
            for name, _, split in _written(stage, view)
        ],
        "keeps": [n.kept() for n in nodes if n.kept()],
        "hold": str(max(holds, default=NONE)),
        "strategy": str(view.choices[stage.number].strategy),
        "why_strategy": view.choices[stage.number].why,
        "horizon": view.choices[stage.number].horizon.ticks,
    }


def _port_entry(port: Port) -> list[dict[str, object]]:
    return [
        {"stage": link.stage, "channel": link.channel, "keys": list(link.keys)}
        for link in port.links
    ]
