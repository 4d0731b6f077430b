"""Waves: what runs when, what it is called, and where rows go."""

from __future__ import annotations

from weir.files.writers import OutputForm
from weir.ingress.memory import MemoryPartition
from weir.runtime.outputs import output_schema
from weir.script.program import parse_program
from weir.spark.offline.targets import Target
from weir.spark.offline.waves import GroupPlace, Job, Piece, Route, SinkPlace, make_job, make_piece

A = "STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl';"
SUMS = "S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5); OUTPUT S TO 'x.csv';"
B = "STREAM B (vs BIGINT, k BIGINT) FROM 'b.jsonl';"


def piece(text: str, *, parts: int = 2, parallelism: int = 3, kind: str = "file") -> Piece:
    program = parse_program(text)
    partitions = {
        s.name: [MemoryPartition(f"{s.name}{i}", [], s.declared) for i in range(parts)]
        for s in program.sources
    }
    targets = [
        Target(kind, n, OutputForm(".csv", output_schema(o)))  # type: ignore[arg-type]
        for n, o in enumerate(program.outputs)
    ]
    return make_piece(program, partitions, targets, parallelism)


def kinds(job: Job) -> list[list[str]]:
    """The waves in short: which stages, and `out` for a writer."""
    return [
        list(
            dict.fromkeys(
                f"stage {p.stage}" if isinstance(p, GroupPlace) else f"out {p.sink}"
                for p in wave.values()
            )
        )
        for wave in job.waves
    ]


def test_a_stateless_program_has_no_wave_but_its_writers() -> None:
    text = f"{A} Out = SELECT k FROM A WHERE v > 1; OUTPUT Out TO 'x.csv';"
    assert kinds(make_job([piece(text)])) == [["out 0"]]
    folder = make_job([piece(text, kind="folder")])
    assert folder.waves == () and len(folder.sources[0]) == 2


def test_vertices_are_numbered_wave_by_wave() -> None:
    job = make_job([piece(f"{A} {SUMS}")])
    assert [list(wave) for wave in job.waves] == [[0, 1, 2], [3]]
    assert job.waves[1][3] == SinkPlace(0, 0)
    assert job.routes[0, 0] == (Route(0, 3, 0, ("k",)),)
    assert job.sink_routes[0, 0] == Route(3, 1, 0)


def test_a_source_is_read_right_before_its_first_reader() -> None:
    text = f"""{A} {B}
        S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
        T = SELECT SUM(s) AS s, 1 AS k FROM S WITH TUMBLING(10);
        U = SELECT T.s AS s FROM T INNER JOIN B ON T.k == B.k;
        OUTPUT U TO 'x.csv';"""
    job = make_job([piece(text)])
    stages = job.pieces[0].plan.stages
    first = {stages[p.stage].operators[0].name for p in job.sources[0]}  # type: ignore[union-attr]
    assert first == {"A"}
    late = [n for n, places in enumerate(job.sources) if n and places]
    assert late == [2], "B is read for the wave of its join"


def test_a_stage_that_two_waves_read_runs_once() -> None:
    text = f"""{A}
        S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
        J = SELECT A.v AS v, S.s AS s FROM A INNER JOIN S ON A.k == S.k;
        OUTPUT J TO 'x.csv'; OUTPUT S TO 'y.csv';"""
    job = make_job([piece(text)])
    roots = [
        p.stage
        for places in (*job.sources, *(w.values() for w in job.waves))
        for p in places
        if isinstance(p, GroupPlace) and p.index == 0
    ]
    assert len(roots) == len(set(roots))
    readers = {route.first for route in job.routes[0, 0]} | {
        route.first for routes in job.routes.values() for route in routes
    }
    assert all(partition in set().union(*job.waves) for partition in readers)


def test_programs_of_a_job_share_waves_and_nothing_else() -> None:
    job = make_job([piece(f"{A} {SUMS}"), piece(f"{A} {SUMS}")])
    assert [list(wave) for wave in job.waves] == [[0, 1, 2, 3, 4, 5], [6, 7]]
    assert job.routes[0, 0][0].first == 0 and job.routes[1, 0][0].first == 3
