"""Committed rows of a live job: what readers see of its store while it runs."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import weir
from committed_job import PROGRAM, Job, rows
from weir.cli import app, live
from weir.errors import RunError, SnapshotCorrupt
from weir.files.object_store import ObjectStore
from weir.job.ledger import Ledger
from weir.job.output_reader import OutputReader, manifests
from weir.job.record_reader import sweep
from weir.job.status import STATUS, JobStatus
from weir.job.store_listing import kept_objects
from weir.local.file_run import run_files
from weir.reliable.codec import encode_record
from weir.reliable.digest import digest
from weir.reliable.object_names import commit_key, ingress_key, part_key, record_key
from weir.script.program import parse_program


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_who_follows_an_output_lists_its_commits_once(job: Job) -> None:
    listed: list[str] = []

    class Watched(ObjectStore):
        def list(self, prefix: str = "") -> builtins.list[str]:
            listed.append(prefix)
            return super().list(prefix)

    job.commit(rows(1))
    reader = OutputReader(Watched(job.store.location), "B")
    assert reader.look().end == 1
    assert any(prefix.startswith("commits/") for prefix in listed)
    listed.clear()
    job.commit(rows(2))
    look = reader.look(1)
    assert (look.end, [v for c in look.commits for b in reader.rows(c) for v in b.vs]) == (2, [2])
    assert not any(prefix.startswith("commits/") for prefix in listed)
    job.finish(names_last=True)
    job.store.delete([commit_key("sink.0", 1)])
    with pytest.raises(SnapshotCorrupt, match=commit_key("sink.0", 1)):
        reader.look(2)


def test_only_committed_rows_are_seen(job: Job) -> None:
    found = weir.read_committed(job.store.location, "B")
    assert (found.table.num_rows, found.commits, found.finished) == (0, 0, False)
    assert found.table.schema.names == ["vs", "ve", "v"]
    job.write_part(rows(7, 3))
    assert weir.read_committed(job.store.location, "B").table.num_rows == 0
    job.commit(rows(7, 3))
    job.commit(rows(5))
    job.write_part(rows(9))
    found = weir.read_committed(job.store.location, "B")
    assert found.table.column("v").to_pylist() == [3, 5, 7]
    assert (found.commits, found.rows, found.digest) == (2, 3, str(digest(rows(3, 5, 7))))
    job.finish()
    assert weir.read_committed(job.store.location, "B").finished


def test_a_reader_goes_on_where_it_was(job: Job) -> None:
    job.commit(rows(1))
    first = weir.read_committed(job.store.location, "B")
    again = weir.read_committed(job.store.location, "B", since=first.commits)
    assert (again.table.num_rows, again.commits, again.digest) == (0, 1, first.digest)
    job.commit(rows(2))
    more = weir.read_committed(job.store.location, "B", since=first.commits)
    assert more.table.column("v").to_pylist() == [2]
    assert (more.commits, more.rows) == (2, 2)
    with pytest.raises(RunError, match="no commit 6 yet"):
        weir.read_committed(job.store.location, "B", since=7)
    with pytest.raises(weir.PlanError, match="`since` counts commits, so it is 0 or more, not -1"):
        weir.read_committed(job.store.location, "B", since=-1)


def test_a_part_that_is_gone_or_torn_is_an_error_and_not_a_gap(job: Job) -> None:
    job.commit(rows(1))
    part = part_key("sink.0", 1, 0)
    job.store.put(part, (job.store.get(part) or b"")[:-1])
    with pytest.raises(SnapshotCorrupt):
        weir.read_committed(job.store.location, "B")
    job.store.delete([part])
    with pytest.raises(SnapshotCorrupt, match="is not in the store"):
        weir.read_committed(job.store.location, "B")


def test_outputs_that_are_not_there(job: Job, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no output 'C'; those that are kept: B, bad rows of A"):
        weir.read_committed(job.store.location, "C")
    with pytest.raises(RunError, match="go to 'console:'"):
        weir.read_committed(job.store.location, "A")
    assert weir.read_committed(job.store.location, "A", kind="bad").rows == 0
    with pytest.raises(RunError, match="there is no store"):
        weir.read_committed(str(tmp_path / "nowhere"), "B")
    assert not (tmp_path / "nowhere").exists()


def test_what_is_kept_of_a_log_and_why(job: Job) -> None:
    job.store.put(record_key(0), Ledger(number=0, collected={"ingress/0.0": 2}).encode(), new=True)
    for number in range(5):
        job.store.put(ingress_key("0.0", number), b"rows")
    found = {k.why: (k.of, k.objects) for k in kept_objects(job.store) if k.kind == "ingress"}
    assert found == {
        "no restart needs it; the next sweep deletes it": ("0.0", 2),
        "what cannot be read again; vertex 0.0 would restart from record 2": ("0.0", 3),
    }
    swept = sweep(job.store, Ledger(collected={"ingress/0.0": 2}))
    assert swept == (ingress_key("0.0", 0), ingress_key("0.0", 1))
    assert set(job.store.list("ingress/")) <= set(sweep(job.store, Ledger(finished=True)))


def read(job: Job, *args: str) -> str:
    done = CliRunner().invoke(app, ["read", job.store.location, *args])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command(job: Job, tmp_path: Path) -> None:
    job.commit(rows(7, 3))
    job.commit(rows(5))
    listed = json.loads(read(job, "--json"))
    assert [(m["name"], m["kind"], m["commits"], m["rows"]) for m in listed] == [
        ("B", "rows", 2, 3),
        ("A", "bad", 0, 0),
    ]
    values = [json.loads(line)["v"] for line in read(job, "B").splitlines()]
    assert values == [3, 7, 5]
    assert json.loads(read(job, "B", "--since", "1"))["v"] == 5
    job.finish()
    assert len(read(job, "B", "--follow").splitlines()) == 3


def status(job: Job, state: str, *, time: float = 0.0, error: str = "") -> None:
    told = JobStatus(state, time, 1, 0, 0, None, (), (), error=error)
    job.store.put(STATUS, encode_record(STATUS, told))


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [("stopped", "", "the job was stopped, and"), ("failed", "full", "the job failed, and")],
)
def test_who_follows_a_job_is_told_that_it_is_over(
    job: Job, state: str, error: str, said: str
) -> None:
    job.commit(rows(7, 3))
    status(job, state, error=error)
    done = CliRunner().invoke(app, ["read", job.store.location, "B", "--follow"])
    assert (done.exit_code, len(done.stdout.splitlines())) == (1, 2)
    commits, told = done.stderr.splitlines()
    assert commits == "weir: 1 commit"
    assert said in told and told.endswith(error)


def test_who_follows_a_job_needs_no_status(job: Job) -> None:
    job.commit(rows(7, 3))
    job.store.put(STATUS, b"torn")
    job.finish()
    assert len(read(job, "B", "--follow").splitlines()) == 2


def test_who_follows_a_job_that_nobody_runs_is_told_once(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time passes only while the reader sleeps."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if round(now[0], 1) == 5.0:
            status(job, "running", time=5.0)
        if now[0] > 40.0 and not job.store.list("records/"):
            job.finish()

    # Not the module `time` itself, which threads of other tests may use.
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(live, "time", clock)
    status(job, "running")
    done = CliRunner().invoke(app, ["read", job.store.location, "B", "--follow"])
    assert done.exit_code == 0 and now[0] > 40.0
    told, _ = done.stderr.splitlines()
    assert "nobody seems to run the job: its last report is of 1970-01-01 00:00:05" in told


def test_a_place_without_a_job_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "p.weir").write_text(PROGRAM, "utf-8")
    place = str(tmp_path)
    resumed = ("run", f"{place}/p.weir", "--runner", "live", "--resume", "--store", place)
    for command in (
        ("status", place),
        ("story", place),
        ("store", place),
        ("read", place),
        ("store", place, "--verify"),
        ("read", place, "B"),
        resumed,
    ):
        done = CliRunner().invoke(app, command)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == f"weir: error: there is no live job in '{place}'\n"


def test_an_output_that_is_not_there_is_2(job: Job) -> None:
    done = CliRunner().invoke(app, ["read", job.store.location, "C"])
    assert done.exit_code == 2 and "the job has no output 'C'" in done.stderr


def test_what_is_committed_as_a_file_is_what_a_run_over_it_writes(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text("".join(f'{{"t": {t}, "v": {t}}}\n' for t in (3, 5, 7)), "utf-8")
    run_files(parse_program(PROGRAM.replace("OUTPUT A TO 'console:';", "")))
    job.commit(rows(7, 3))
    job.commit(rows(5))
    read(job, "B", "--to", "now.csv")
    assert Path("now.csv").read_bytes() == Path("b.csv").read_bytes()
    assert Path("now.csv.digest").read_bytes() == Path("b.csv.digest").read_bytes()


def test_a_lost_commit_is_not_listed_away(job: Job, tmp_path: Path) -> None:
    """`weir read STORE` looks at all of the commits' names, and at the last one."""
    for value in range(3):
        job.commit(rows(value))
    job.finish(names_last=True)
    assert [m.commits for m in manifests(job.store) if m.name == "B" and m.kind == "rows"] == [3]
    job.store.delete([commit_key("sink.0", 1)])
    with pytest.raises(RunError, match=commit_key("sink.0", 1)):
        manifests(job.store)
