"""Runs whose vertices are thrown away and rebuilt from marks, and random programs for them.

`replayed` runs a program step by step. At random steps every vertex whose stage has a horizon
takes a mark; at others it is replaced by a fresh one that loads the last mark, rehearses and goes
on. Streams compare what is written again with what was there, row by row.

`random_program` writes programs whose operators all have a horizon: each step takes a relation
with columns k and v and gives one, so that operators by k lie in one stage, on each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from weir.ingress.memory_partitions import MemoryPartition
from weir.local.runner import LocalRun
from weir.plan.horizon import Horizon, horizons
from weir.plan.program import Program
from weir.reliable.rebuildable_vertex import RebuildableVertex, needs_of
from weir.reliable.vertex import Snapshot, Vertex
from weir.runtime.source_vertex import SourceVertex
from weir.runtime.topology import VertexId, VertexSpec
from weir.runtime.vertices import make_vertex
from weir.script.program import parse_program
from weir.testing import with_output

Items = Sequence[Mapping[str, object]]


class ReplayRun(LocalRun):
    """A local run with a `RebuildableVertex` wherever the plan allows it."""

    known: tuple[Horizon, ...] = ()

    def make(self, spec: VertexSpec) -> Vertex | SourceVertex:
        self.known = self.known or horizons(self.plan)
        horizon = self.known[spec.stage]
        if spec.kind == "source" or not horizon.known:
            return super().make(spec)
        inputs = [
            self.streams[name].through(spec.view(input)) for input, name in enumerate(spec.inputs)
        ]
        return make_vertex(self.plan, spec, inputs, self.streams, horizon, marks=True)


@dataclass(slots=True)
class Outcome:
    """The ordered checksums of all streams; what was rebuilt, and how much was read for it."""

    checksums: Mapping[str, str]
    rebuilt: int = 0
    repeated: int = 0
    spared: int = 0


def _run(
    kind: type[LocalRun],
    program: Program,
    inputs: Mapping[str, Sequence[Items]],
    cut: int,
    parallelism: int,
) -> LocalRun:
    partitions = {
        s.name: [
            MemoryPartition(f"{s.name}[{i}]", items, s.declared)
            for i, items in enumerate(inputs[s.name])
        ]
        for s in program.sources
    }
    return kind(
        program,
        partitions,
        [lambda _, rows: None],
        cut=cut,
        parallelism=parallelism,
        check=True,
        keep=True,
    )


def undisturbed(
    program: Program, inputs: Mapping[str, Sequence[Items]], cut: int, parallelism: int
) -> Outcome:
    run = _run(LocalRun, program, inputs, cut, parallelism)
    run.run()
    return Outcome(run.checksums)


def replayed(
    program: Program,
    inputs: Mapping[str, Sequence[Items]],
    cut: int,
    parallelism: int,
    chance: Random,
) -> Outcome:
    run = _run(ReplayRun, program, inputs, cut, parallelism)
    outcome = Outcome({})
    marks: dict[VertexId, Snapshot] = {}
    while run.step():
        for vertex in _replayable(run):
            if chance.random() < 0.2:
                marks[vertex.name] = vertex.snapshot()
        for vertex in _replayable(run):
            if chance.random() < 0.2:
                _rebuild(run, vertex.name, marks.get(vertex.name), outcome)
        run.work_off()
    run.run()
    outcome.checksums = run.checksums
    return outcome


def _replayable(run: LocalRun) -> list[RebuildableVertex]:
    return [vertex for vertex in run.vertices.values() if isinstance(vertex, RebuildableVertex)]


def _rebuild(run: LocalRun, name: VertexId, mark: Snapshot | None, outcome: Outcome) -> None:
    fresh = run.make(run.topology.vertices[name])
    assert isinstance(fresh, RebuildableVertex)
    if mark is not None:
        fresh.load(mark)
        outcome.repeated += sum(mark.inputs) - sum(needs_of(mark))
        outcome.spared += sum(needs_of(mark))
    while fresh.execute():
        pass
    assert fresh.caught_up
    run.vertices[name] = fresh
    outcome.rebuilt += 1


# --- programs ------------------------------------------------------------------------------

Write = Callable[[Random, str, str], str]
"""A query over one relation, or over two."""


def _some(chance: Random, *texts: str) -> str:
    return chance.choice(texts)


def _aggregates(chance: Random) -> str:
    return _some(
        chance,
        "SUM(v)",
        "COUNT(*)",
        "FIRST(v)",
        "LAST(v)",
        "MAX(v)",
        "COUNT(DISTINCT v)",
        "QUANTILE_DISC(v, 0.5)",
        "SUM(v) FILTER (WHERE v > 1)",
    )


def _hopping(chance: Random, a: str, b: str) -> str:
    size, hop = chance.randint(1, 12), chance.randint(1, 8)
    window = f"HOPPING({size}, {hop}, {chance.randint(-3, 3)})"
    return f"SELECT k, {_aggregates(chance)} AS v FROM {a} GROUP BY k WITH {window}"


def _tumbling_of_all(chance: Random, a: str, b: str) -> str:
    window = f"TUMBLING({chance.randint(1, 9)})"
    return f"SELECT MIN(k) AS k, {_aggregates(chance)} AS v FROM {a} WITH {window}"


def _snapshot(chance: Random, a: str, b: str) -> str:
    return f"SELECT k, {_aggregates(chance)} AS v FROM {a} GROUP BY k WITH SNAPSHOT"


def _snapshot_of_all(chance: Random, a: str, b: str) -> str:
    return f"SELECT MAX(k) AS k, {_aggregates(chance)} AS v FROM {a}"


def _folded(chance: Random, a: str, b: str) -> str:
    window = _some(chance, "SNAPSHOT", f"HOPPING({chance.randint(1, 12)}, {chance.randint(1, 8)})")
    return f"SELECT k, Rolled(v) AS v FROM {a} GROUP BY k WITH {window}"


def _collected(chance: Random, a: str, b: str) -> str:
    inner = f"SELECT k, COLLECT(v) AS vs_ FROM {a} GROUP BY k WITH TUMBLING({chance.randint(1, 9)})"
    return f"SELECT k, EXPLODE(vs_) AS v FROM ({inner}) AS lists"


def _top(chance: Random, a: str, b: str) -> str:
    ties = _some(chance, "", " WITH TIES")
    return f"SELECT k, v FROM {a} ORDER BY v DESC, k LIMIT {chance.randint(1, 3)}{ties}"


def _top_of_window(chance: Random, a: str, b: str) -> str:
    window = f"TUMBLING({chance.randint(1, 9)})"
    select = f"SELECT k, COUNT(*) AS v FROM {a} GROUP BY k WITH {window}"
    return f"{select} ORDER BY v DESC, k LIMIT {chance.randint(1, 2)}"


def _chop(chance: Random, a: str, b: str) -> str:
    return f"SELECT * FROM {a} WITH CHOP({chance.randint(1, 6)}, {chance.randint(-2, 2)})"


def _lifetime(chance: Random, a: str, b: str) -> str:
    d, size, hop = chance.randint(1, 9), chance.randint(1, 8), chance.randint(1, 6)
    change = _some(
        chance,
        f"DURATION({d})",
        f"SHIFT({d - 5})",
        f"EXTEND({d - 4})",
        "POINT",
        "POINT_AT_END",
        "POINT_AT_END",
        f"HOP_LIFETIME({size}, {hop})",
        f"QUANTIZE({size}, {hop}, 1)",
        f"LIFETIME(vs - {d}, vs + {size})",
        f"LIFETIME(vs + {hop}, ve + {d})",
    )
    return f"SELECT * FROM {a} WITH {change}"


def _where(chance: Random, a: str, b: str) -> str:
    return f"SELECT k, v + 1 AS v FROM {a} WHERE v <> {chance.randint(0, 4)}"


def _join(kind: str) -> Write:
    def write(chance: Random, a: str, b: str) -> str:
        on = "l.k = r.k"
        if kind != "CLIP JOIN" and chance.random() < 0.3:
            on += " AND l.v <= r.v + 1"
        v = "l.v"
        if kind not in ("LEFT SEMI JOIN", "LEFT ANTI JOIN", "CLIP JOIN"):
            v = "COALESCE(r.v, -1) + COALESCE(l.v, -1)"
        k = "COALESCE(l.k, r.k)" if kind in ("RIGHT OUTER JOIN", "FULL OUTER JOIN") else "l.k"
        return f"SELECT {k} AS k, {v} AS v FROM {a} AS l {kind} {b} AS r ON {on}"

    return write


def _union(chance: Random, a: str, b: str) -> str:
    return f"SELECT k, v FROM {a} UNION ALL SELECT k, v FROM {b}"


JOINS = (
    "INNER JOIN",
    "LEFT OUTER JOIN",
    "RIGHT OUTER JOIN",
    "FULL OUTER JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    "CLIP JOIN",
)
STATEFUL: dict[str, Write] = {
    "hopping": _hopping,
    "tumbling of all": _tumbling_of_all,
    "snapshot": _snapshot,
    "snapshot of all": _snapshot_of_all,
    "folded by the user": _folded,
    "collect and explode": _collected,
    "top": _top,
    "top of window": _top_of_window,
    "chop": _chop,
    **{kind.lower(): _join(kind) for kind in JOINS},
}
OTHERS: dict[str, Write] = {"lifetime": _lifetime, "where": _where, "union": _union}

_IMPORT = f"IMPORT '{Path(__file__).parent / 'user_functions.py'}';"
_SOURCE = """
STREAM Raw{0} (vs BIGINT, ve BIGINT, k BIGINT, v BIGINT) FROM '{0}'
  WITH (vs = vs, ve = ve, delay = {1});
{0} = SELECT * FROM Raw{0} WITH CLIP_DURATION({2});
"""


def random_program(chance: Random, operators: Sequence[str]) -> Program:
    """A program that applies these operators in turn, the second input any relation so far."""
    text = _IMPORT + "".join(
        _SOURCE.format(name, chance.choice((0, 15)), chance.randint(1, 9)) for name in "AB"
    )
    relations = ["A", "B"]
    for number, name in enumerate(operators):
        left = relations[-1] if number else "A"
        right = chance.choice([r for r in relations if r != left])
        write = (STATEFUL | OTHERS)[name]
        text += f"R{number} = {write(chance, left, right)};\n"
        relations.append(f"R{number}")
    return with_output(parse_program(text), relations[-1])


def random_inputs(program: Program, chance: Random, rows: int) -> dict[str, list[list[dict]]]:
    """Two partitions a source: rows with gaps and bursts, in order but for the delay."""
    return {
        source.name: [_partition(chance, rows, source.options.delay) for _ in range(2)]
        for source in program.sources
    }


def _partition(chance: Random, rows: int, delay: int) -> list[dict]:
    now, items = 0, []
    for _ in range(rows):
        now += chance.choice((0, 0, 0, 1, 1, 2, 3, 30 if chance.random() < 0.05 else 1))
        vs = now - chance.randint(0, delay // 2) if delay else now
        ve = vs + chance.choice((1, 2, 3, 5, 8, 30))
        items.append({"vs": vs, "ve": ve, "k": chance.randint(0, 2), "v": chance.randint(0, 5)})
    return items


def clipped(
    text: str, inputs: Mapping[str, Sequence[Items]], ticks: int
) -> tuple[str, dict[str, Sequence[Items]]]:
    """A program whose streams are those of another, with lifetimes of so many ticks at most."""
    declared = re.findall(r"^STREAM (\w+) .*?;", text, re.MULTILINE | re.DOTALL)
    for name in declared:
        whole = re.search(rf"^STREAM {name} .*?;", text, re.MULTILINE | re.DOTALL)
        assert whole is not None
        raw = whole[0].replace(f"STREAM {name} ", f"STREAM Raw{name} ", 1)
        clip = f"{name} = SELECT * FROM Raw{name} WITH CLIP_DURATION({ticks});"
        text = text.replace(whole[0], f"{raw}\n{clip}", 1)
    return text, {f"Raw{name}": inputs[name] for name in declared}
