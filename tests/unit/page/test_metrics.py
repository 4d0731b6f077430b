"""Metrics are read by Prometheus's own parser, and are the figures of the status."""

from __future__ import annotations

import itertools
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from simulated_store import SimulatedStore
from weir.errors import PlanError, RunError
from weir.job.history import unread_rows
from weir.job.plan_drawing import DrawnPlan, read_plan
from weir.job.status import JobStatus, read_status, status_of
from weir.page.metrics import metrics_address, metrics_text, serving_metrics
from weir.page.quiet_server import MOST_CONNECTIONS


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[JobStatus, DrawnPlan]:
    job = SimulatedStore(tmp_path_factory.mktemp("job"), seconds=8)
    job.pass_seconds(4)
    job.kill_host()
    job.pass_seconds(3)
    status, plan = read_status(job.store), read_plan(job.store)
    assert status is not None and plan is not None
    return status, plan


def parsed(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_all_figures_are_there_and_right(told: tuple[JobStatus, DrawnPlan]) -> None:
    status, plan = told
    found = parsed(metrics_text(status, plan))

    def values(name: str) -> dict[str, float]:
        return {s.labels["vertex"]: s.value for s in found[name].samples}

    (events,) = found["weir_events"].samples
    assert (events.value, found["weir_events"].type) == (status.events, "counter")
    assert found["weir_recoveries"].samples[0].value == status.recoveries > 0
    states = {s.labels["state"]: s.value for s in found["weir_job_state"].samples}
    assert states["running"] == 1 and sum(states.values()) == 1
    assert values("weir_vertex_events") == {v.id: v.events for v in status.vertices}
    assert values("weir_vertex_state_rows") == {v.id: v.state_rows for v in status.vertices}
    assert values("weir_vertex_unread_rows") == unread_rows(plan, status.vertices)
    lags = {v.id: v.lag / 1e6 for v in status.vertices if v.lag is not None}
    assert values("weir_vertex_lag_seconds") == pytest.approx(lags)
    assert sum(values("weir_source_bad_rows").values()) == 1
    assert all(f.documentation for f in found.values())


def test_lags_of_plain_ticks_are_no_seconds(told: tuple[JobStatus, DrawnPlan]) -> None:
    status, plan = told
    found = parsed(metrics_text(status, msgspec.structs.replace(plan, plain_ticks=True)))
    assert "weir_vertex_lag_seconds" not in found
    lags = {v.id: v.lag for v in status.vertices if v.lag is not None}
    assert {s.labels["vertex"]: s.value for s in found["weir_vertex_lag_ticks"].samples} == lags


def test_the_page_of_the_command_line_names_them_all(told: tuple[JobStatus, DrawnPlan]) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
    rows = re.findall(r"^\| (`weir_.+?) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    status, plan = told
    plans = [msgspec.structs.replace(plan, plain_ticks=plain) for plain in (False, True)]
    text = "".join(metrics_text(status, each) for each in plans)
    made = {*re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)}
    assert {*re.findall(r"`(weir_\w+)`", " ".join(rows))} == made


def test_delays_are_a_histogram(told: tuple[JobStatus, DrawnPlan]) -> None:
    status, plan = told
    family = parsed(metrics_text(status, plan))["weir_output_delay_seconds"]
    assert family.type == "histogram"
    sink = next(v for v in status.vertices if v.id == "sink.0")
    mine = [s for s in family.samples if s.labels["vertex"] == "sink.0"]
    buckets = [s.value for s in mine if s.name.endswith("_bucket")]
    assert buckets == sorted(buckets) and buckets[-1] == sum(sink.delays.values()) > 0
    assert {s.labels["output"] for s in mine} == {"PerShop"}
    (count,) = (s.value for s in mine if s.name.endswith("_count"))
    assert count == buckets[-1]


def test_labels_are_escaped(told: tuple[JobStatus, DrawnPlan]) -> None:
    evil = 'a"b\\c\nd{e="f"} 1'
    vertex = msgspec.structs.replace(told[0].vertices[0], id=evil)
    text = metrics_text(msgspec.structs.replace(told[0], vertices=(vertex,)), told[1])
    (sample,) = parsed(text)["weir_vertex_events"].samples
    assert sample.labels["vertex"] == evil


def test_they_are_served_while_a_job_runs(told: tuple[JobStatus, DrawnPlan]) -> None:
    with serving_metrics(("127.0.0.1", 0), told[1]) as (take, address):
        with urllib.request.urlopen(address) as answer:
            assert answer.read() == b""  # nothing was told yet
        take(told[0])
        with urllib.request.urlopen(address) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert answer.read().decode() == metrics_text(*told)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address.replace("/metrics", "/"))
        port = int(address.split(":")[2].split("/")[0])
        taken = pytest.raises(RunError, match=f"cannot serve metrics on 127.0.0.1:{port}")
        with taken, serving_metrics(("127.0.0.1", port), told[1]):
            pass


def test_connections_of_others_do_not_exhaust_the_driver(
    told: tuple[JobStatus, DrawnPlan],
) -> None:
    with serving_metrics(("127.0.0.1", 0), told[1]) as (_, address):
        port = int(address.removesuffix("/metrics").rpartition(":")[2])
        threads = threading.active_count()
        others = [
            socket.create_connection(("127.0.0.1", port)) for _ in range(3 * MOST_CONNECTIONS)
        ]
        with pytest.raises(urllib.error.HTTPError, match="503"):  # they were accepted before it
            urllib.request.urlopen(address, timeout=10)
        assert threading.active_count() <= threads + MOST_CONNECTIONS
        for other in others:
            other.close()


def test_counters_of_sources_never_fall(tmp_path: Path) -> None:
    """Prometheus takes any fall for a restart at 0, and would count all rows again."""
    job = SimulatedStore(tmp_path, seconds=8)
    job.pass_seconds(4)
    told = _statuses(job, 0.5)
    job.kill_host()
    told += _statuses(job, 3.0)
    assert any(b.events < a.events for a, b in itertools.pairwise(told))  # a source was lost
    plan = read_plan(job.store)
    assert plan is not None
    before = dict[str, float]()
    for now in _served(told, plan):
        assert all(now[name] >= value for name, value in before.items())
        before = now
    assert before["weir_events_total"] == told[-1].events
    # A driver that goes on begins at 0, whatever the checkpoints have counted.
    (later, *_, last) = _served([msgspec.structs.replace(s, epoch=2) for s in told], plan)
    assert later["weir_events_total"] == 0
    assert last["weir_events_total"] == max(s.events for s in told) - told[0].events


def _statuses(job: SimulatedStore, seconds: float) -> list[JobStatus]:
    """What the job's manager says every 50 simulated milliseconds."""
    found, time = list[JobStatus](), job.world.time
    end = time.now + seconds
    while time.now < end:
        until = time.now + 0.05
        time.pass_time(until + 1.0, lambda until=until: time.now >= until)  # type: ignore[misc]
        found.append(status_of(job.world.managers.alive[-1].machine, time.now, 0.0))
    return found


def _served(told: list[JobStatus], plan: DrawnPlan) -> Iterator[dict[str, float]]:
    """What is served of counters of sources after each status."""
    with serving_metrics(("127.0.0.1", 0), plan) as (take, address):
        for status in told:
            take(status)
            with urllib.request.urlopen(address) as answer:
                found = parsed(answer.read().decode())
            yield {
                s.name + s.labels.get("vertex", ""): s.value
                for name in ("weir_events", "weir_vertex_events", "weir_source_bad_rows")
                for s in found[name].samples
                if s.labels.get("kind", "source") == "source"
            }


@pytest.mark.parametrize("text", ["", "x", "1:2:x", "65536", "-1", "8080 ", "host:", "٣"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="--metrics takes PORT or HOST:PORT"):
        metrics_address(text)
