"""A live job goes on with what was decided when it began, or says what is another program."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from weir.errors import InputError, PlanError, RunError, SnapshotCorrupt
from weir.files.object_store import ObjectStore
from weir.job.job_identity import FORMAT, JobRecord, encode_job, read_job
from weir.job.messages import Figures, VertexReport
from weir.job.placement import Placement
from weir.job.status import STATUS
from weir.plan import plan_fingerprint
from weir.plan.explain import explanation
from weir.plan.operators import PartialAggregate
from weir.plan.plan_fingerprint import PlanFingerprint
from weir.reliable.object_names import JOB, record_key
from weir.reliable.strategies import CheckpointStrategy, ReplayStrategy
from weir.runtime.reports import SourceTotal
from weir.script import parse_program
from weir.spark import row_sample as sampling
from weir.spark.live.job_setup import prepare_live
from weir.spark.live.live_run import LiveRun, source_totals

TEXT = """STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM '*.jsonl';
    Big = SELECT k, v FROM A WHERE v > 0;
    Sums = SELECT k, SUM(v) AS s FROM Big GROUP BY k WITH TUMBLING(100);
    OUTPUT Sums TO 'sums.csv';"""


def rows(keys: int, count: int = 200) -> str:
    return "".join(f'{{"vs": {t}, "k": {t % keys}, "v": 1}}\n' for t in range(count))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text(rows(2), encoding="utf-8")
    return tmp_path


def prepared(folder: Path, text: str = TEXT, **how: object) -> LiveRun:
    program = parse_program(text, directory=folder)
    return prepare_live(program, str(folder / "store"), directory=folder, **how)  # type: ignore[arg-type]


def begun(folder: Path, **how: object) -> LiveRun:
    """A job whose manager has made its first record."""
    live = prepared(folder, **how)
    live.ledger.number = 0
    live.objects.put(record_key(0), live.ledger.encode(), new=True)
    return live


def job_of(folder: Path) -> JobRecord:
    job = read_job(ObjectStore(str(folder / "store")))
    assert job is not None
    return job


def is_cut(live: LiveRun) -> bool:
    return any(isinstance(o, PartialAggregate) for s in live.plan.stages for o in s.operators)


def test_what_the_sample_said_is_recorded_and_not_asked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(folder, parallelism=2)
    assert is_cut(first) and job_of(folder).decisions.two_phase == (True,)
    # Now hardly two rows share a key, and there is more of everything.
    (folder / "a.jsonl").write_text(rows(1000, 3000), encoding="utf-8")
    (folder / "b.jsonl").write_text(rows(5), encoding="utf-8")
    monkeypatch.setattr(sampling, "_first_rows", lambda *_: pytest.fail("it sampled again"))
    monkeypatch.setattr(explanation, "operator_text", lambda _: "in other words")
    monkeypatch.setattr(plan_fingerprint, "operator_text", lambda _: "in other words")
    again = prepared(folder, resume=True)
    assert again.plan == first.plan and again.topology == first.topology
    assert [p.name for p in again.partitions["A"]] == [p.name for p in first.partitions["A"]]
    assert again.notes == ()


def test_the_other_way_round(folder: Path) -> None:
    (folder / "a.jsonl").write_text(rows(1000), encoding="utf-8")
    first = begun(folder)
    assert not is_cut(first) and job_of(folder).decisions.two_phase == (False,)
    (folder / "a.jsonl").write_text(rows(2, 3000), encoding="utf-8")
    assert prepared(folder, resume=True).plan == first.plan


@pytest.mark.parametrize(
    ("path", "waits"),
    [
        ("typo.jsonl", "typo.jsonl, which is"),
        ("no/a.jsonl", "no/a.jsonl and its folder, which are"),
    ],
)
def test_a_file_to_follow_that_is_not_there_is_told(folder: Path, path: str, waits: str) -> None:
    text = f"STREAM A (vs BIGINT, v BIGINT) FROM 'tail://{path}'; OUTPUT A TO 'a.csv';"
    with pytest.warns(RuntimeWarning, match=f"STREAM A waits for .*{waits} not there yet"):
        prepared(folder, text)


def test_a_file_to_follow_that_is_there_is_not_told(folder: Path) -> None:
    text = "STREAM A (vs BIGINT, v BIGINT) FROM 'tail://a.jsonl'; OUTPUT A TO 'a.csv';"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared(folder, text)


def test_a_store_that_holds_a_job_is_refused(folder: Path) -> None:
    begun(folder)
    with pytest.raises(PlanError, match="holds a job already; go on with it by --resume"):
        prepared(folder)


def test_auto_begins_a_job_or_resumes_it(folder: Path) -> None:
    first = begun(folder, resume="auto", parallelism=3)
    again = prepared(folder, resume="auto")
    assert again.plan == first.plan and again.log_token == first.log_token
    with pytest.raises(PlanError, match="holds the job of another program"):
        prepared(folder, TEXT.replace("v > 0", "v > 1"), resume="auto")
    with pytest.raises(PlanError, match=r"`resume` is True, False or 'auto', not 'maybe'"):
        prepared(folder, resume="maybe")


def test_auto_begins_in_a_folder_that_is_there_and_empty(folder: Path) -> None:
    (folder / "store").mkdir()
    token = begun(folder, resume="auto").log_token
    assert prepared(folder, resume="auto").log_token == token


def test_auto_begins_nothing_over_a_damaged_job(folder: Path) -> None:
    begun(folder)
    (folder / "store" / JOB).unlink()
    with pytest.raises(SnapshotCorrupt, match="is not in the store, but records of a job are"):
        prepared(folder, resume="auto")


def test_the_parallelism_is_the_jobs(folder: Path) -> None:
    begun(folder, parallelism=3)
    assert job_of(folder).decisions.parallelism == 3
    assert "1.2" in prepared(folder, resume=True).topology.vertices
    assert "1.2" in prepared(folder, resume=True, parallelism=3).topology.vertices
    with pytest.raises(PlanError, match="begun with --parallelism 3, not 2; go on with that one"):
        prepared(folder, resume=True, parallelism=2)


def test_another_program_is_refused_with_what_differs(folder: Path) -> None:
    begun(folder)
    prepared(folder, TEXT.replace("Big", "Large"), resume=True)
    differs = r"of another program: stage 0, operator 1 was Filter v > 0 and is Filter v > 1; put"
    with pytest.raises(PlanError, match=differs):
        prepared(folder, TEXT.replace("v > 0", "v > 1"), resume=True)
    with pytest.raises(PlanError, match=r"output 0 was Sums to 'sums.csv' and is Sums to 's.csv'"):
        prepared(folder, TEXT.replace("'sums.csv'", "'s.csv'"), resume=True)


def test_another_strategy_is_noted(folder: Path) -> None:
    live = begun(folder)
    assert live.strategies["1.0"] == CheckpointStrategy()  # plain ticks have no length
    replay = "SET strategy = 'replay';" + TEXT
    again = prepared(folder, replay, resume=True)
    assert again.strategies["1.0"] == ReplayStrategy()
    assert again.notes == (
        "goes on with another strategy: stage 1 recovers by replay, before by checkpoint(10s)",
    )
    again.ledger.number = 1  # as its manager does
    again.objects.put(record_key(1), again.ledger.encode(), new=True)
    assert prepared(folder, replay, resume=True).notes == ()
    assert prepared(folder, resume=True).notes != ()


def test_a_strategy_that_does_not_suit_is_refused_before_the_store_is_taken(folder: Path) -> None:
    text = "SET strategy = 'replay';" + TEXT.replace("TUMBLING(100)", "SESSION(5)")
    with pytest.raises(PlanError, match="cannot be recovered by replay"):
        prepared(folder, text)
    assert read_job(ObjectStore(str(folder / "store"))) is None


@pytest.mark.parametrize("path", ["*.jsonl", "tail://a.jsonl", "rate://5"])
def test_a_job_that_has_finished_needs_its_inputs_no_more(folder: Path, path: str) -> None:
    text = f"STREAM A (vs BIGINT, k BIGINT) FROM '{path}'; OUTPUT A TO 'a.csv';"
    live = prepared(folder, text)
    for number, finished in enumerate((False, True)):
        live.ledger.number, live.ledger.finished = number, finished
        live.objects.put(record_key(number), live.ledger.encode(), new=True)
        (folder / "a.jsonl").unlink(missing_ok=True)
        if finished or path != "*.jsonl":
            again = prepared(folder, text, resume=True)
            assert again.ledger.finished == finished
            names = [p.name for p in live.partitions["A"]]
            assert [p.name for p in again.partitions["A"]] == names
        else:
            with pytest.raises(InputError, match="no file matches"):
                prepared(folder, text, resume=True)
    with pytest.raises(PlanError, match="of another program"):
        prepared(folder, text.replace(" A ", " B "), resume=True)


def test_limits_of_hosts_come_from_the_program(folder: Path) -> None:
    live = prepared(folder, "SET flush_interval = '100ms';" + TEXT)
    assert live.settings.host.flush_interval == 0.1
    assert prepared(folder, resume=True).settings.host.flush_interval == 0.5


def test_rows_are_counted_though_offsets_have_gaps(folder: Path) -> None:
    live = prepared(folder)
    said = VertexReport("0.0", 1, "done")
    figures = Figures(inputs=(900,), events=7, late=2, bad=1)
    placements = [Placement("0.0", 0, report=said, figures=figures), Placement("1.0", 0)]
    found = list(source_totals(live.plan, live.topology, placements))
    assert found == [SourceTotal("0.0", "A", 7, 2, 1)]


def test_plans_and_stores_of_other_formats_are_refused_by_name(folder: Path) -> None:
    live = begun(folder)
    job = job_of(folder)
    other = JobRecord(PlanFingerprint((), 99), job.decisions, job.outputs, job.token, job.code)
    live.objects.put(JOB, encode_job(other))
    with pytest.raises(PlanError, match="its plan is in format 99, and this version of Weir"):
        prepared(folder, resume=True)
    live.objects.put(JOB, encode_job(job).replace(f"format {FORMAT}".encode(), b"format 2", 1))
    with pytest.raises(RunError, match="the store is in format 2; this version"):
        prepared(folder, resume=True)


def test_a_job_that_has_finished_needs_no_status(folder: Path) -> None:
    live = begun(folder)
    live.ledger.finished = True
    live.objects.put(STATUS, b"torn")
    live.finish(lambda _: None)
    assert (folder / "sums.csv").exists()
