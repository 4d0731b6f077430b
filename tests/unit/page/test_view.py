"""What the page knows of a job, read from a store that a job has filled."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from hostile import contradictory_history, contradictory_plan
from simulated_store import EVIL, PROGRAM, SimulatedStore
from weir.cli import app
from weir.files.object_store import ObjectStore
from weir.job.history import History, read_history
from weir.job.output_reader import manifests
from weir.job.plan_drawing import read_plan
from weir.job.status import STATUS, read_status
from weir.page.document import live_page, report_page
from weir.page.flows import waits_of
from weir.page.view import PageView, ViewReader
from weir.reliable.codec import encode_record
from weir.reliable.object_names import HISTORY, PLAN


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[SimulatedStore, str]:
    """A job that has lost a host and has finished, and the name of the host."""
    job = SimulatedStore(tmp_path_factory.mktemp("job"), seconds=8)
    job.pass_seconds(4)
    killed = job.kill_host()
    job.finish()
    return job, killed


def view_of(store: ObjectStore) -> PageView:
    return ViewReader(store, lambda: 0.0).read()


def test_a_finished_job_is_shown_with_all_its_parts(finished: tuple[SimulatedStore, str]) -> None:
    job, killed = finished
    view = view_of(job.store)
    assert view.problems == ()
    assert view.status is not None and view.status.state == "finished"
    assert [s.source for s in view.stages if s.source] == ["Sale", "Visit"]
    assert {o.title for o in view.outputs} == {"PerShop", "Both", "bad rows of Sale"}
    assert {v.partition.rsplit("/", 1)[-1] for v in view.vertices if v.kind == "source"} == {
        "sales.jsonl",
        "visits.jsonl",
    }
    rows = {m.name: m.rows for m in manifests(job.store) if m.kind == "rows"}
    into = {view.outputs[f.target].title: f.read for f in view.flows if f.to_output}
    assert into == {**rows, "bad rows of Sale": 1}
    assert all(f.read == f.written > 0 for f in view.flows)
    (episode,) = view.story.episodes
    assert episode.title.startswith(f"host {killed} lost")
    assert episode.ended is not None and episode.ended > episode.began
    kinds = {line.kind for line in view.story.lines}
    assert {"host", "placed", "checkpoint", "commit", "end", "manager"} <= kinds
    assert {line.kind for line in episode.lines} >= {"lost", "placed", "recovered"}
    assert sum(s.events * s.seconds for s in view.history.samples) > 0
    assert {k.kind for k in view.kept} >= {"plan", "history", "status", "story", "parts", "commits"}


def test_last_rows_are_those_of_the_file(finished: tuple[SimulatedStore, str]) -> None:
    shown = {(o.manifest.name, o.manifest.kind): o for o in view_of(finished[0].store).committed}
    both = shown["Both", "rows"]
    assert [name for name, _ in both.columns] == ["vs", "ve", "shop", "amount"]
    assert {row[2] for row in both.rows} <= {"ann's", "bob's", EVIL}
    assert EVIL in {row[2] for row in shown["PerShop", "rows"].rows}
    (bad,) = shown["Sale", "bad"].rows
    assert any("<b>no number</b>" in (value or "") for value in bad)


def test_nothing_that_users_wrote_becomes_markup(finished: tuple[SimulatedStore, str]) -> None:
    page = report_page(view_of(finished[0].store))
    assert "<img" not in page and "<b>no" not in page
    assert page.count("</script>") == 2  # the view's and the page's own
    data = page.split('id="view">')[1].split("</script>")[0]
    rows = [row for output in json.loads(data)["committed"] for row in output["rows"]]
    assert any(EVIL in row for row in rows)


def test_the_page_loads_nothing_from_anywhere() -> None:
    page = live_page()
    assert "http-equiv" in page and "default-src 'none'" in page.replace("&#x27;", "'")
    for sign in ('src="', "@import", "url(", "innerHTML", "document.write", "eval("):
        assert sign not in page, sign
    assert page.count("http://") == 1  # the name of SVG


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    job = SimulatedStore(tmp_path, seconds=2)
    job.pass_seconds(3)
    job.store.put(HISTORY, b"torn")
    job.store.delete([PLAN])
    view = view_of(job.store)
    assert [p.split(":")[0] for p in view.problems] == ["history"]
    assert view.stages == () and view.flows == ()
    assert view.status is not None and view.committed


def test_objects_that_contradict_themselves_are_named_as_problems(tmp_path: Path) -> None:
    job = SimulatedStore(tmp_path, seconds=2)
    job.pass_seconds(3)
    plan, history = read_plan(job.store), read_history(job.store)
    assert plan is not None and history is not None
    torn = contradictory_plan(plan)
    job.store.put(PLAN, encode_record(PLAN, torn))
    job.store.put(HISTORY, encode_record(HISTORY, contradictory_history(history)))
    view = view_of(job.store)
    assert [p.split(":")[0] for p in view.problems] == ["plan", "history"]
    assert "there is no writer of" in view.problems[0]
    assert view.flows == () and view.history == History() and view.committed
    to = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", job.store.location, "--to", str(to)])
    assert done.exit_code == 0 and "bug" not in done.output, done.output
    assert done.stderr.count("weir: warning: ") == 2


def test_a_slow_store_is_left_alone_for_a_while(finished: tuple[SimulatedStore, str]) -> None:
    """A part that took long to read is read less often; the status is not held up by it."""
    now, read = [100.0], list[str]()

    class Slow(ObjectStore):
        def get(self, key: str) -> bytes | None:
            read.append(key.split("/")[0])
            now[0] += 0.5 if key == HISTORY else 0.0
            return super().get(key)

    # A clock that is set back does not keep the page from being read.
    store = Slow(finished[0].store.location)
    reader = ViewReader(store, lambda: 9e9 - 3600 * now[0], lambda: now[0])
    first = reader.read()
    read.clear()
    for _ in range(4):
        now[0] += 1.0
        assert reader.read().history == first.history
    assert read.count("status") == 4 and HISTORY not in read and "story" not in read
    now[0] += 2.0
    reader.read()
    assert read.count(HISTORY) == 1


def test_plain_ticks_are_no_seconds(tmp_path: Path) -> None:
    job = SimulatedStore(tmp_path, 4, PROGRAM.replace("vs = t", "vs = t, unit = 'tick'"))
    job.pass_seconds(2)
    view = view_of(job.store)
    assert view.plain_ticks and view.status is not None
    plan = read_plan(job.store)
    assert plan is not None
    far = {v.id: n * 5_000_000 for n, v in enumerate(view.status.vertices)}
    vertices = [msgspec.structs.replace(v, reached=far[v.id]) for v in view.status.vertices]
    status = msgspec.structs.replace(view.status, vertices=tuple(vertices))
    whys = [w.why for w in waits_of(plan, status) if "in event time" in w.why]
    assert whys and all(" ticks behind " in why for why in whys)
    done = CliRunner().invoke(app, ["status", job.store.location], env={"COLUMNS": "300"})
    assert "lag ticks" in done.output and "lag s" not in done.output


def test_each_driver_has_its_own_plan(tmp_path: Path) -> None:
    job = SimulatedStore(tmp_path, seconds=2)
    job.pass_second()
    reader = ViewReader(job.store, lambda: 0.0, lambda: 0.0)
    first = reader.read()
    plan, status = read_plan(job.store), read_status(job.store)
    assert plan is not None and status is not None
    changed = [msgspec.structs.replace(s, strategy="replicate") for s in plan.stages]
    job.store.put(PLAN, encode_record(PLAN, msgspec.structs.replace(plan, stages=tuple(changed))))
    assert reader.read().stages == first.stages
    job.store.put(STATUS, encode_record(STATUS, msgspec.structs.replace(status, epoch=2)))
    assert {s.strategy for s in reader.read().stages} == {"replicate"}


def test_the_command_writes_one_file(finished: tuple[SimulatedStore, str], tmp_path: Path) -> None:
    to = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", finished[0].store.location, "--to", str(to)])
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{finished[0].store.location} (finished) -> {to}\n"
    assert to.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 2 and "there is no live job" in done.output
