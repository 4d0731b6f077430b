"""`weir status`: how a job is, and how one ended."""

from __future__ import annotations

import io
import json
import time
from contextlib import redirect_stdout
from pathlib import Path

import msgspec
import pytest

from hostile import invoke
from weir.cli import tables
from weir.files.object_store import ObjectStore
from weir.job.ledger import Ledger
from weir.job.status import (
    STATUS,
    HostStatus,
    JobStatus,
    VertexStatus,
)
from weir.job.story import StoryLine, story_key
from weir.page.view import ViewReader
from weir.reliable.codec import encode_record
from weir.reliable.object_names import UNCHECKED, record_key

VERTEX = VertexStatus(
    "1.0",
    "inner",
    "h1",
    "running",
    1,
    5,
    123456.0,
    7,
    2_000_000,
    (5,),
    (4,),
    3,
    999,
    2,
    step_seconds=30.0,
    step_rows="at rows 5 to 6",
    waits="nobody listens",
    waits_seconds=77.0,
)
RUNNING = JobStatus(
    "running",
    100.0,
    1,
    0,
    5,
    7,
    (VERTEX, msgspec.structs.replace(VERTEX, id="0.0", status="done")),
    (HostStatus("h1", 4711, "here", "", ("1.0",)),),
    "the store is full",
    2,
)
ALIVE = (
    "4711",
    "123,456",
    "2.000",
    "999",
    "1.0 keeps host h1 busy with one step since 1970-01-01 00:01:10.000+00:00, 30 s, at rows 5",
    "waited for 77 s: nobody",
    "trouble",
    "of 2 hosts",
    "running",
)


def store_with(folder: Path, body: bytes, *, finished: bool = False) -> str:
    store = ObjectStore(str(folder / "store"))
    store.put(STATUS, body)
    store.put(record_key(0), Ledger(number=0, finished=finished).encode())
    return store.location


def told(status: JobStatus) -> bytes:
    return encode_record(STATUS, status)


def shown(place: str) -> str:
    ended, out, err = invoke(["status", place])
    assert (ended, err) == (0, "")
    return out


@pytest.mark.parametrize("state", ["running", "starting", "finished", "failed"])
@pytest.mark.parametrize("age", [2.0, 40.0])
def test_a_job_that_nobody_hears_of_says_so(tmp_path: Path, state: str, age: float) -> None:
    """A driver that was killed writes nothing: its last status stays."""
    status = msgspec.structs.replace(RUNNING, state=state, time=time.time() - age)
    place = store_with(tmp_path, told(status))
    is_quiet = age > 20 and state in ("running", "starting")
    assert ("no news for 4" in shown(place)) == is_quiet
    assert ("--resume goes on" in shown(place)) == is_quiet
    view = ViewReader(ObjectStore(place), time.time).read()
    assert (view.quiet >= 40) == is_quiet
    to = tmp_path / "report.html"
    ended, out, _ = invoke(["report", place, "--to", str(to)])
    assert ended == 0 and ("no news for 4" in out) == is_quiet


def test_a_job_that_runs_shows_its_hosts_rates_and_steps(tmp_path: Path) -> None:
    out = shown(store_with(tmp_path, told(RUNNING)))
    assert all(sign in out for sign in ALIVE)


@pytest.mark.parametrize("state", ["finished", "stopped", "failed", "ended"])
def test_a_job_that_is_over_does_not_look_alive(tmp_path: Path, state: str) -> None:
    error = "vertex 1.0: division by zero" if state == "failed" else ""
    over = msgspec.structs.replace(RUNNING, state=state, error=error)
    place = store_with(tmp_path, told(over))
    out = shown(place)
    assert out.startswith(f"{state} at 1970-01-01")
    assert not [sign for sign in ALIVE if sign in out]
    assert ("error: vertex 1.0: division by zero" in out) == (state == "failed")
    found = json.loads(invoke(["status", place, "--json"])[1])
    assert found["hosts"] == [] and found["error"] == error
    assert [v["status"] for v in found["vertices"]] == [
        "done" if state == "finished" else "stopped",
        "done",
    ]
    assert {v["events_per_second"] for v in found["vertices"]} == {0.0}


def test_a_job_is_over_when_its_record_says_so(tmp_path: Path) -> None:
    out = shown(store_with(tmp_path, told(RUNNING), finished=True))
    assert out.startswith("finished at") and not [sign for sign in ALIVE if sign in out]


@pytest.mark.parametrize(
    ("last", "state"), [("running", "checking"), ("finished", "checking"), ("failed", "failed")]
)
def test_a_job_that_is_to_be_checked_has_not_finished_before(
    tmp_path: Path, last: str, state: str
) -> None:
    told_last = msgspec.structs.replace(RUNNING, state=last)
    place = store_with(tmp_path, told(told_last), finished=True)
    ObjectStore(place).put(UNCHECKED, b"")
    out = shown(place)
    assert out.startswith(f"{state} at") and not [sign for sign in ALIVE if sign in out]


def test_what_earlier_versions_told_can_be_read(tmp_path: Path) -> None:
    before = msgspec.to_builtins(RUNNING)
    del before["error"]
    out = shown(store_with(tmp_path, encode_record(STATUS, before)))
    assert out.startswith("running at") and "error" not in out


LONG = msgspec.structs.replace(
    RUNNING,
    vertices=tuple(
        msgspec.structs.replace(
            VERTEX, id=f"{n}.0", inputs=(10**9,) * 4, outputs=(10**9,) * 4, snapshots=10**6
        )
        for n in range(12)
    ),
)


@pytest.mark.parametrize("wide", [60, 80, 100, 200])
def test_no_row_of_the_table_is_wider_than_the_terminal(
    tmp_path: Path, wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_width", lambda: wide)
    lines = shown(store_with(tmp_path, told(LONG))).splitlines()
    first = next(n for n, line in enumerate(lines) if line.split()[:1] == ["vertex"])
    rows = lines[first + 1 : first + 13]
    assert [row.split()[0] for row in rows] == [f"{n}.0" for n in range(12)]
    assert max(map(len, rows)) <= wide
    assert lines[-1].startswith("a wider terminal also shows in, out") == (wide < 200)


def test_where_no_terminal_reads_it_the_table_has_all_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with redirect_stdout(io.StringIO()):
        assert tables._width() == tables.WIDE
    monkeypatch.setattr(tables, "_width", lambda: tables.WIDE)
    out = shown(store_with(tmp_path, told(LONG)))
    row = next(line for line in out.splitlines() if line.split()[:2] == ["0.0", "h1"])
    assert row.count("1000000000") == 8 and row.endswith(" 0") and "wider" not in out


def test_a_story_is_told_without_a_status(tmp_path: Path) -> None:
    place, key = store_with(tmp_path, b"torn"), story_key(1, 0)
    assert invoke(["status", place])[0] == 1
    assert "has not reported anything yet" in invoke(["story", place])[2]
    lines = [
        StoryLine(1.0, "", "begun"),
        StoryLine(2.0, "0.0", "placed"),
        StoryLine(3.0, "1.0", "lost"),
    ]
    ObjectStore(place).put(key, encode_record(key, lines))
    ended, out, err = invoke(["story", place, "1.0"])
    assert (ended, err) == (0, "")
    assert [line.split("  ", 1)[1] for line in out.splitlines()] == ["begun", "1.0: lost"]
    ended, _, err = invoke(["story", place, "2.0"])
    assert ended == 2 and "there is no vertex '2.0'; there are 0.0, 1.0" in err


def test_a_damaged_or_lost_part_of_a_story_hides_no_other(tmp_path: Path) -> None:
    place = store_with(tmp_path, told(RUNNING))
    store = ObjectStore(place)
    for number in range(4):
        key = story_key(1, number)
        lines = encode_record(key, [StoryLine(1.0, "", f"line {number}")])
        store.put(key, lines if number != 1 else b"torn")
    store.delete([story_key(1, 2)])
    ended, out, err = invoke(["story", place])
    assert ended == 0
    assert [line.split("  ", 1)[1] for line in out.splitlines()] == ["line 0", "line 3"]
    torn, lost = err.splitlines()
    assert story_key(1, 1) in torn and f"{story_key(1, 2)} is not in the store" in lost
    view = ViewReader(store, lambda: 0.0).read()
    assert [line.what for line in view.story.lines] == ["line 0", "line 3"]
    assert any(p.startswith("story: ") and story_key(1, 1) in p for p in view.problems)
