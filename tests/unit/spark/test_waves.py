"""Waves: what runs when, what it is called, and where rows go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weir.files.writers import OutputForm
from weir.ingress.memory_partitions import MemoryPartition
from weir.plan.program import Output, Program
from weir.runtime.outputs import output_schema
from weir.runtime.topology import OutletSpec, Topology, wire
from weir.runtime.vertices import source_of
from weir.script.program import parse_program
from weir.spark.offline.targets import Target
from weir.spark.offline.waves import Group, Job, Layout, group_of, make_job, make_layout

A = "STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl';"
SUMS = "S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5); OUTPUT S TO 'x.csv';"
B = "STREAM B (vs BIGINT, k BIGINT) FROM 'b.jsonl';"


def layout(text: str, *, parts: int = 2, parallelism: int = 3, kind: str = "file") -> Layout:
    program = parse_program(text)
    partitions = {
        s.name: [MemoryPartition(f"{s.name}{i}", [], s.declared) for i in range(parts)]
        for s in program.sources
    }
    targets = [
        Target(kind, n, OutputForm(".csv", output_schema(o)))  # type: ignore[arg-type]
        for n, o in enumerate(program.outputs)
    ]
    return make_layout(program, partitions, targets, parallelism)


def kinds(job: Job) -> list[list[str]]:
    """The waves in short: which stages, and `out` for a writer."""
    words = {"source": "stage", "inner": "stage", "sink": "out"}
    return [
        list(
            dict.fromkeys(
                f"{words[spec.kind]} {spec.stage}" for spec in map(job.spec, wave.values())
            )
        )
        for wave in job.waves
    ]


def readers(topology: Topology, vertex: str) -> Iterator[tuple[str, int]]:
    for stream in topology.vertices[vertex].outputs:
        yield from topology.readers_of.get(stream, ())


def test_a_stateless_program_has_no_wave_but_its_writers() -> None:
    text = f"{A} Out = SELECT k FROM A WHERE v > 1; OUTPUT Out TO 'x.csv';"
    assert kinds(make_job([layout(text)])) == [["out 0"]]
    folder = make_job([layout(text, kind="folder")])
    assert folder.waves == () and len(folder.sources[0]) == 2


def test_vertices_are_numbered_wave_by_wave() -> None:
    job = make_job([layout(f"{A} {SUMS}")])
    assert [list(wave) for wave in job.waves] == [[0, 1, 2], [3]]
    assert list(job.waves[0].values()) == [Group(0, f"1.{i}") for i in range(3)]
    assert job.waves[1][3] == Group(0, "sink.0")
    assert job.partition_of == {g: n for wave in job.waves for n, g in wave.items()}


def test_a_source_is_read_right_before_its_first_reader() -> None:
    text = f"""{A} {B}
        S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
        T = SELECT SUM(s) AS s, 1 AS k FROM S WITH TUMBLING(10);
        U = SELECT T.s AS s FROM T INNER JOIN B ON T.k == B.k;
        OUTPUT U TO 'x.csv';"""
    job = make_job([layout(text)])
    plan = job.layouts[0].plan
    first = {source_of(plan, job.spec(group)).name for group in job.sources[0]}
    assert first == {"A"}
    late = [n for n, places in enumerate(job.sources) if n and places]
    assert late == [2], "B is read for the wave of its join"


def test_a_stage_that_two_waves_read_runs_once() -> None:
    text = f"""{A}
        S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
        J = SELECT A.v AS v, S.s AS s FROM A INNER JOIN S ON A.k == S.k;
        OUTPUT J TO 'x.csv'; OUTPUT S TO 'y.csv';"""
    job = make_job([layout(text)])
    groups = [g for some in (*job.sources, *(w.values() for w in job.waves)) for g in some]
    topology = job.layouts[0].topology
    run = [spec.id for group in groups for spec in group_of(job.layouts[0], group.vertex)]
    assert sorted(run) == sorted(topology.vertices), "each vertex in one group"
    for group in groups:
        inside = {spec.id for spec in group_of(job.layouts[0], group.vertex)}
        for reader, _ in (r for v in inside for r in readers(topology, v)):
            assert reader in inside or Group(0, reader) in job.partition_of


def test_programs_of_a_job_share_waves_and_nothing_else() -> None:
    job = make_job([layout(f"{A} {SUMS}"), layout(f"{A} {SUMS}")])
    assert [list(wave) for wave in job.waves] == [[0, 1, 2, 3, 4, 5], [6, 7]]
    assert job.partition_of[Group(0, "1.0")] == 0 and job.partition_of[Group(1, "1.0")] == 3


def test_vertices_that_follow_directly_run_in_one_task() -> None:
    text = f"""{A}
        S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
        T = SELECT k, s FROM S WHERE s > 1; U = SELECT s FROM S;
        OUTPUT S TO 's.csv'; OUTPUT T TO 't.csv'; OUTPUT U TO 'u.csv';"""
    job = make_job([layout(text)])
    (root, *followers) = group_of(job.layouts[0], "1.2")
    assert root.id == "1.2" and {spec.index for spec in followers} == {2}
    assert [spec.stage for spec in followers] == [2, 3]
    assert kinds(job) == [["stage 1"], ["out 0", "out 1", "out 2"]]


def test_what_several_tasks_of_a_data_frame_run_is_one_vertex() -> None:
    made = layout(f"{A} {SUMS}", parts=1)
    (source,) = parse_program(f"{A} {SUMS}").sources
    frame = replace(source, has_origins=False)
    program = Program((frame,), (), (Output("Out", frame, "x/"),))
    job = make_job([make_layout(program, made.partitions, made.targets, 3)])
    assert job.layouts[0].open_stages == {0} and job.sources[0] == ()
    assert job.frames[0] == (Group(0, "0.0"),)


def test_a_group_ends_where_a_cycle_closes() -> None:
    text = f"""{A} S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
        T = SELECT k, s FROM S WHERE s > 1; U = SELECT s FROM T;
        OUTPUT S TO 's.csv'; OUTPUT T TO 't.csv'; OUTPUT U TO 'u.csv';"""
    made = layout(text, parallelism=1)
    specs = dict(made.topology.vertices)
    assert [spec.id for spec in group_of(made, "1.0")] == ["1.0", "2.0", "3.0"]
    back = OutletSpec("3.0/1")
    specs["3.0"] = replace(specs["3.0"], outlets=(*specs["3.0"].outlets, back))
    specs["2.0"] = replace(specs["2.0"], inputs=(*specs["2.0"].inputs, back.stream), ports=(0, 0))
    looped = replace(made, topology=wire(list(specs.values()), back=[back.stream]))
    assert [spec.id for spec in group_of(looped, "1.0")] == ["1.0", "2.0", "3.0"]
    assert kinds(make_job([looped])) == kinds(make_job([made]))
