"""Situations on purpose, where the seeds come by chance."""

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from weir.conform.cases import case_partitions, case_program, read_cases
from weir.ingress.memory_partitions import MemoryPartition
from weir.job.record_reader import last_record
from weir.job.signals import EndJob
from weir.script.program import parse_program
from weir.simulator.faults import KINDS, Faults
from weir.simulator.simulate import SeedResult, Wish, draw_job, minimise, run_seed
from weir.simulator.workloads import Workload, choose, make_workload
from weir.simulator.world import World

CASES = sorted((Path(__file__).parents[1] / "conformance").glob("*.jsonl"))

OFTEN = {
    "lose": 0.4,
    "double": 0.5,
    "reorder": 0.3,
    "crash": 2.0,
    "relapse": 0.3,
    "freeze": 1.0,
    "cut": 1.0,
    "manager_crash": 2.0,
    "manager_freeze": 1.0,
    "second_manager": 2.0,
    "stop": 1.0,
    "write_fails": 0.4,
    "read_fails": 0.5,
    "delete_fails": 0.9,
    "late_writes": 1.0,
    "full": 0.5,
    "flips": 0.2,
    "slow": 0.8,
    "jump": 1.0,
    "harm": 3.0,
    "fall": 0.3,
    "busy": 3.0,
    "hang_up": 5.0,
    "apart": 3.0,
}
NEEDS_DEATHS = ("relapse", "late_writes", "read_fails", "flips", "delete_fails", "harm")


def told(result: SeedResult) -> str:
    reason = f"seed {result.seed}, {result.workload}, {result.faults.kinds}: {result.reason}"
    return "\n".join([reason, *result.log])


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_of_fault_often(kind: str) -> None:
    """Each kind alone, at a rate that no seed draws; where it takes a death, with deaths."""
    also = {"crash": 1.0, "manager_crash": 0.5} if kind in NEEDS_DEATHS else {}
    faults = Faults(delay=0.02, until=4.0, **{**also, kind: OFTEN[kind]})
    for seed in range(4):
        result = run_seed(seed, wish=Wish(faults=faults))
        assert result.passed, told(result)


def test_a_stream_that_waits_for_windows_over_itself_comes_to_its_end() -> None:
    for seed in range(20):
        result = run_seed(seed, lambda s: make_workload("with_its_own_windows", s))
        assert result.passed, told(result)


@pytest.mark.parametrize("stop_at", [0.05, 0.3, 0.8])
def test_a_job_that_is_stopped_goes_on_where_it_was(stop_at: float) -> None:
    stopped = 0
    for seed in range(4):
        result = run_seed(seed, wish=Wish(faults=Faults(), stop_at=stop_at))
        assert result.passed, told(result)
        stopped += any("the job is resumed" in line for line in result.log)
    assert stopped


@pytest.mark.parametrize("held_until", [0.5, 4.0])
def test_nothing_is_committed_while_sinks_are_held(held_until: float) -> None:
    committed = 0
    for seed in range(8):
        faults = Faults() if seed % 2 else None
        result = run_seed(seed, wish=Wish(faults=faults, held_until=held_until))
        assert result.passed, told(result)
        committed += "commit" in result.steps
    assert committed == 8


def test_a_job_whose_sinks_are_held_can_be_stopped() -> None:
    for seed in range(4):
        wish = Wish(faults=Faults(), held_until=6.0, stop_at=0.3)
        result = run_seed(seed, wish=wish)
        assert result.passed, told(result)
        assert any("the job is resumed" in line for line in result.log)


# --- conformance cases ---------------------------------------------------------------------------


@cache
def case_workloads() -> dict[str, Workload]:
    """Every seventh conformance case that has an answer."""
    found = [c for path in CASES for c in read_cases(path) if c.error is None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        programs = [(case, case_program(case)) for case in found[::7]]
    return {c.id: Workload(c.id, p, case_partitions(c, p)) for c, p in programs}


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_conformance_cases_survive_too(first: int) -> None:
    cases = case_workloads()
    for seed in range(first, first + 20):
        result = run_seed(seed, lambda s: cases[choose(s, cases)])
        assert result.passed, told(result)


# --- what is left and what is kept ---------------------------------------------------------------


def long_workload(rows: int) -> Workload:
    """Many rows, of which few are live at a time."""
    text = """
        STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl';
        Out = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(20);
        OUTPUT Out TO 'out.jsonl';
    """
    program = parse_program(text)
    given = [{"vs": i, "k": i % 3, "v": i} for i in range(rows)]
    part = MemoryPartition("A[0]", given, program.sources[0].declared)
    return Workload("long", program, {"A": [part]})


def largest_store(rows: int) -> int:
    job = draw_job(long_workload(rows), 2, np.random.default_rng(3))
    settings = replace(
        job.host_settings, flush_interval=0.05, segment_size=500, commit_interval=0.1
    )
    steady = replace(
        job,
        host_settings=settings,
        cut=10,
        pace=0.05,
        hosts=2,
        strategies={v: replace(s, every=0.2) for v, s in job.strategies.items()},
    )
    world = World(steady, np.random.default_rng(5), Faults(delete_fails=0.1))
    assert world.run(limit=600.0) == EndJob()
    assert not world.sweep()
    return world.store.largest


def test_the_store_of_a_long_run_stays_as_small_as_that_of_a_short_one() -> None:
    short, long = largest_store(800), largest_store(4000)
    assert long <= 2 * short + 2_000, (short, long)


def test_an_error_in_user_code_ends_the_job_and_keeps_everything(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(
        "import weir\n\n@weir.udf\ndef inverse(v: int) -> float:\n    return 1 / (v - 30)\n"
    )
    text = """
        IMPORT 'rules.py';
        STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl';
        Sums = SELECT k, COUNT(*) AS n, MAX(v) AS v FROM A GROUP BY k WITH TUMBLING(2);
        Out = SELECT k, inverse(v) AS f FROM Sums;
        OUTPUT Out TO 'out.jsonl';
    """
    program = parse_program(text, directory=tmp_path)
    given = [{"vs": i, "k": i % 3, "v": i} for i in range(60)]
    part = MemoryPartition("A[0]", given, program.sources[0].declared)
    job = draw_job(Workload("fails", program, {"A": [part]}), 2, np.random.default_rng(1))
    world = World(job, np.random.default_rng(2), Faults(crash=0.3, until=5.0))
    ended = world.run()
    assert "OperatorFailed" in ended.error and "inverse" in ended.error
    ledger = last_record(world.disk)
    assert ledger is not None and not ledger.finished
    assert all(world.disk.has(key) for key in ledger.names)


# --- failing seeds -------------------------------------------------------------------------------


def test_a_seed_that_fails_is_made_small() -> None:
    """Inputs that change fail without any fault, so none is left."""

    def broken(seed: int) -> Workload:
        good = make_workload("tumbling", seed)
        lying = {n: [_Lying(p) for p in parts] for n, parts in good.partitions.items()}
        return Workload("broken", good.program, lying)

    failed = run_seed(4, broken)
    assert not failed.passed
    wish, small = minimise(failed, broken)
    assert wish.kinds == () and wish.until is not None
    assert not small.passed


class _Lying:
    """A partition that lacks a row when it is read again."""

    def __init__(self, inner: MemoryPartition) -> None:
        self._inner, self.name, self.size = inner, inner.name, inner.size
        self._reads = 0

    def chunks(self, size: int = 0, start: int = 0):  # type: ignore[no-untyped-def]
        self._reads += 1
        chunks = list(self._inner.chunks(1, start))
        return iter(chunks if self._reads == 1 else chunks[1:])


def test_a_seed_is_the_same_every_time() -> None:
    first, second = run_seed(17), run_seed(17)
    assert first.log == second.log and first.steps == second.steps
