"""Cuts a plan into stages: what runs in one vertex, and how rows travel between vertices.

A stage is a chain of operators between two exchanges; each of its vertices runs the whole chain
over its share of the rows. The cut depends only on the program; `parallelism` only sets how many
vertices a keyed stage has.

Rules
1. A stateless operator joins the stage of its input. So does a stateful one if its input comes from
   one stage, has no other readers, and is split by a subset of the operator's keys. An operator in
   which no rows meet joins whatever feeds it. If its input has other readers, it begins a stage
   whose vertices stand beside the input's.
2. Any other stateful operator begins a stage: each input is split by the hash of its key columns
   or, if rows of all keys may meet, goes to the stage's only vertex. A scan is split by some of its
   keys if the next one needs no others (`scan_splits`).
3. UNION ALL is not an operator at run time: a reader of it reads all its branches. Stateless
   operators above a union run in each branch.
4. A node with several readers, or one that is an output and has a reader, ends its stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from weir.plan.binding.partitioning import checked
from weir.plan.limits import check_vertices
from weir.plan.operators import Node, Partition, Source, Union, schema
from weir.plan.operators.facts import Meet, Meeting
from weir.plan.operators.scanning import Scanning
from weir.plan.origins import origin_depths
from weir.plan.program import Output, Program, row_outputs
from weir.plan.schema import Schema
from weir.plan.traversal import ordered_nodes, reader_counts

Channel = Literal["forward", "hash", "all"]


@dataclass(frozen=True, slots=True)
class Branch:
    """Marks rows of a union's branch; its number becomes part of origins of this depth."""

    input: Node
    depth: int
    number: int


@dataclass(frozen=True, slots=True)
class Link:
    """How a stage reads another.

    `forward`: vertex i reads from vertex i; `hash`: rows are split by the hash of these columns;
    `all`: the only vertex reads from every vertex.
    """

    stage: int
    channel: Channel
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Port:
    """One input of a stage's first operator."""

    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A chain of `operators` in order; the first reads the ports (a source stage has none).

    `vertices` is None for a source stage, and for a stage that is forwarded from one: it has one
    vertex for each partition of the data.
    """

    number: int
    ports: tuple[Port, ...]
    operators: tuple[Node | Branch, ...]
    vertices: int | None
    split_by: tuple[str, ...] | None
    uid: str | None = None
    why_single: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """How a stage writes its rows at one outlet.

    With `keys`, rows are split by their hash into `parts` parts; without keys, all go to one
    stream.
    """

    keys: tuple[str, ...] | None = None
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Sink:
    """An output and the stages that write it."""

    output: Output
    stages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """The stages of a program, its outputs, and the origin depth of every node."""

    stages: tuple[Stage, ...]
    sinks: tuple[Sink, ...]
    origins: dict[Node, int]

    def vertex_counts(self, partitions: Callable[[Source], int]) -> tuple[int, ...]:
        """Return the number of vertices of each stage; `partitions` returns a source's count."""
        counts: list[int] = []
        for stage in self.stages:
            if stage.vertices is not None:
                counts.append(stage.vertices)
            elif stage.ports:  # forwarded from a source stage: as many as that has
                counts.append(counts[stage.ports[0].links[0].stage])
            else:
                source = stage.operators[0]
                assert isinstance(source, Source)
                counts.append(partitions(source))
        return tuple(counts)

    def stages_of(self, sink: Sink) -> tuple[int, ...]:
        """Return the stages that write an output; its source's stages write late and bad rows."""
        if sink.output.kind == "rows":
            return sink.stages
        return tuple(
            s.number for s in self.stages if not s.ports and s.operators[0] == sink.output.node
        )

    def outlets(self) -> tuple[tuple[Split, ...], ...]:
        """Return the outlets of each stage, in the order of their numbers.

        There is one for each way in which other stages read its rows, however many stages share it.
        """
        splits_of_stages: list[dict[Split, None]] = [{} for _ in self.stages]
        for stage in self.stages:
            for _, link in links_of(stage):
                splits_of_stages[link.stage][split_of(link, stage)] = None
        for sink in self.sinks:
            for number in sink.stages:
                splits_of_stages[number][Split()] = None
        return tuple(tuple(splits) for splits in splits_of_stages)


@dataclass(slots=True)
class _Draft:
    """An unfinished stage.

    `split_by` has the columns that its rows are split by now. None means that they are not split by
    columns; `()` with one vertex means that all rows are in that vertex.
    """

    number: int
    ports: tuple[Port, ...]
    vertices: int | None
    split_by: tuple[str, ...] | None
    operators: list[Node | Branch] = field(default_factory=list)
    uid: str | None = None
    why_single: str = ""

    def freeze(self) -> Stage:
        return Stage(
            self.number,
            self.ports,
            tuple(self.operators),
            self.vertices,
            self.split_by,
            self.uid,
            self.why_single,
        )


def cut_stages(program: Program, parallelism: int = 1) -> StagedPlan:
    """Cut a (rewritten) program into stages."""
    check_vertices(parallelism, "parallelism")
    for node in ordered_nodes(row_outputs(program)):
        checked(node)
    return _Cutter(program, parallelism).cut()


class _Cutter:
    """Walks a program from its inputs up and collects the stages."""

    def __init__(self, program: Program, parallelism: int) -> None:
        self._program = program
        self._parallelism = parallelism
        self._drafts: list[_Draft] = []
        self._drafted: dict[Node, list[_Draft]] = {}
        self._origins = origin_depths(program)
        nodes = ordered_nodes(row_outputs(program))
        self._readers = reader_counts(program, nodes)
        self._scan_splits = scan_splits(nodes)

    def cut(self) -> StagedPlan:
        sinks = []
        for output in self._program.outputs:
            drafts = self._drafts_of(
                output.node
            )  # late and bad rows come with their source's stage
            numbers = tuple(d.number for d in drafts) if output.kind == "rows" else ()
            sinks.append(Sink(output, numbers))
        return StagedPlan(tuple(d.freeze() for d in self._drafts), tuple(sinks), self._origins)

    def _drafts_of(self, node: Node) -> list[_Draft]:
        """Return the stages whose output rows are the node's rows."""
        if node not in self._drafted:
            # Inputs first: deep plans would exceed Python's recursion limit.
            for below in ordered_nodes([node]):
                if below not in self._drafted:
                    self._drafted[below] = self._drafts_of_one(below)
        return self._drafted[node]

    def _drafts_of_one(self, node: Node) -> list[_Draft]:
        if isinstance(node, Source):
            return [self._begin((), None, None, node)]
        if isinstance(node, Union):
            return self._drafts_of_union(node)
        if node.meeting() is Meet.NEVER:
            (below,) = node.inputs  # only a union runs wherever the rows of several inputs are
            return [self._extended(draft, node, below) for draft in self._drafted[below]]
        return [self._draft_of_stateful(node)]

    def _drafts_of_union(self, node: Union) -> list[_Draft]:
        depth = max(self._origins[i] for i in node.branches)
        drafts = []
        for number, below in enumerate(node.branches):
            for draft in self._drafted[below]:
                drafts.append(self._extended(draft, Branch(below, depth, number), below))
        return drafts

    def _extended(self, draft: _Draft, step: Node | Branch, below: Node) -> _Draft:
        """Return the stage with one more operator over `below`.

        If others read its rows, return a new stage after it instead."""
        if self._readers[below] > 1:
            port = Port((Link(draft.number, "forward"),))
            draft = self._begin((port,), draft.vertices, draft.split_by)
            draft.why_single = ""
        draft.operators.append(step)
        if draft.split_by is not None and not isinstance(step, Branch):
            draft.split_by = _carried(draft.split_by, step)
        return draft

    def _draft_of_stateful(self, node: Node) -> _Draft:
        meeting, below = node.meeting(), node.inputs
        feeding = [self._drafted[i] for i in below]
        hint = _partition_hint(below[0])
        if len(below) == 1 and len(feeding[0]) == 1:
            draft = feeding[0][0]
            named = hint is not None and (hint.uid != draft.uid or self._readers[below[0]] > 1)
            if self._suits(draft, meeting) and not named:
                return self._extended(draft, node, below[0])
        if isinstance(meeting, Meet):
            ports = tuple(Port(tuple(Link(d.number, "all") for d in ds)) for ds in feeding)
            why = f"{type(node).__name__} without keys sees all rows together"
            return self._begin(ports, 1, (), node, why_single=why)
        by, count, uid = self._scan_splits.get(node, meeting[0]), self._parallelism, None
        if hint is not None and set(hint.keys) <= set(meeting[0]):
            by, count, uid = hint.keys, hint.count, hint.uid
        indices = [meeting[0].index(k) for k in by]
        split = [tuple(k[p] for p in indices) for k in meeting]
        ports = tuple(
            Port(tuple(Link(d.number, "hash", split[i]) for d in ds))
            for i, ds in enumerate(feeding)
        )
        return self._begin(ports, count, _split_of_result(node, split), node, uid=uid)

    @staticmethod
    def _suits(draft: _Draft, meeting: Meeting) -> bool:
        """Tell whether rows that may meet are already in the same vertex.

        It must not consider how many vertices there are: the cut depends only on the program.
        """
        if draft.split_by is None:
            return False
        if isinstance(meeting, Meet):
            return not draft.split_by
        return set(draft.split_by) <= set(meeting[0])

    def _begin(
        self,
        ports: tuple[Port, ...],
        vertices: int | None,
        split_by: tuple[str, ...] | None,
        node: Node | None = None,
        *,
        uid: str | None = None,
        why_single: str = "",
    ) -> _Draft:
        draft = _Draft(len(self._drafts), ports, vertices, split_by, uid=uid, why_single=why_single)
        if node is not None:
            draft.operators.append(node)
        self._drafts.append(draft)
        return draft


def _split_of_result(node: Node, split: list[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the columns by which the rows of a stateful operator are split.

    These are the split columns of one of its inputs, if they are still in its rows.
    """
    carried = (_carried(columns, node, port) for port, columns in enumerate(split))
    return next((columns for columns in carried if columns is not None), None)


def split_of(link: Link, reader: Stage) -> Split:
    """Return how a stage's rows are split that `reader` reads by this link."""
    if link.channel != "hash":
        return Split()
    assert reader.vertices is not None
    return Split(link.keys, reader.vertices)


def links_of(stage: Stage) -> list[tuple[int, Link]]:
    """Return the links of a stage, each with the number of its port."""
    return [(number, link) for number, port in enumerate(stage.ports) for link in port.links]


def stage_schema(stage: Stage) -> Schema:
    """Return the columns of a stage's rows."""
    last = stage.operators[-1]
    return schema(last.input if isinstance(last, Branch) else last)


def _carried(split_by: tuple[str, ...], node: Node, port: int = 0) -> tuple[str, ...] | None:
    """Return the names of an input's split columns above the operator; None if one is lost."""
    names = {below: name for name, below in node.passed_columns(port).items()}
    return tuple(names[k] for k in split_by) if all(k in names for k in split_by) else None


def _partition_hint(node: Node) -> Partition | None:
    """Return the PARTITION BY below, with its columns under their names at this node.

    It goes down through operators that run wherever their rows are. Return None if one of the
    columns is lost on the way.
    """
    above: list[Node] = []
    while not isinstance(node, Partition):
        if len(node.inputs) != 1 or node.meeting() is not Meet.NEVER:
            return None
        above.append(node)
        (node,) = node.inputs
    keys: tuple[str, ...] | None = node.keys
    for operator in reversed(above):
        keys = None if keys is None else _carried(keys, operator)
    return None if keys is None else replace(node, keys=keys)


def scan_splits(nodes: Sequence[Node]) -> Mapping[Node, tuple[str, ...]]:
    """Return for each scan the columns of its first input by which its rows are split.

    These are its keys, or some of them. The nodes come with inputs before their readers.

    All rows of a scan pass on. If the next scan over them has fewer keys (messages by sender and
    recipient, then by sender), splitting by those serves both: the rows stay where they are. If the
    fewer keys are skewed, the next scan would have that skew anyway.
    """
    requested: dict[Node, list[tuple[str, ...]]] = {node: [] for node in nodes}
    chosen: dict[Node, tuple[str, ...]] = {}
    for node in reversed(nodes):
        if isinstance(node, Scanning):
            keys = node.keys[0]
            chosen[node] = next((w for w in requested[node] if set(w) <= set(keys)), keys)
            joins = keys and len(node.inputs) == 1
            asked: Iterable[tuple[str, ...]] = [chosen[node]] if joins else []
        elif node.meeting() is Meet.NEVER and not isinstance(node, Partition):
            asked = requested[node]
        else:
            continue
        for port, below in enumerate(node.inputs):
            names = node.passed_columns(port)
            requested[below] += [
                tuple(names[n] for n in w) for w in asked if set(w) <= names.keys()
            ]
    return chosen
