"""A replay is compared with the serial loop: its first events, those of a later batch, and with
`check` all of them. Wrong answers are planted in the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

import weir
from small_app import rows, spam, write
from weir.errors import OperatorFailed, PlanError, ReplayDiffers
from weir.events.batch import Batch
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.kernels.operators.state_scan import StateScanKernel
from weir.local import file_run as files
from weir.local.runner import LocalRun
from weir.replay import shadow_runs
from weir.replay.app_replay import replay_app

LOGS = {"message": "m.jsonl"}


def wrong_from(monkeypatch: pytest.MonkeyPatch, time: int) -> None:
    """Let all answers of reads be 100 from a time on."""
    right = StateScanKernel.step

    def step(self: Any, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        found, cti = right(self, slices, cti)
        wrong = pc.if_else(pc.greater_equal(found.vs, time), 100, found.columns[-1])
        return Batch(found.vs, found.ve, (*found.columns[:-1], wrong), found.origin), cti

    monkeypatch.setattr(StateScanKernel, "step", step)


def test_first_events_are_compared(app: App) -> None:
    assert replay_app(app, logs=LOGS, out="out").shadow == 60
    assert replay_app(app, logs=LOGS, out="few", shadow=7).shadow == 7
    assert replay_app(app, logs=LOGS, out="cut", batch=25).shadow == 25
    late = sum(row["ts"] >= 30 for row in rows(60))
    assert replay_app(app, logs=LOGS, out="late", start=30).shadow == late
    assert replay_app(app, logs=LOGS, out="what", params={"threshold": [1, 2, 3]}).shadow == 60
    few = replay_app(app, logs=LOGS, out="few-what", params={"threshold": [1, 2]}, shadow=10)
    assert few.shadow == 5  # of each variant
    with pytest.raises(PlanError, match="shadow"):
        replay_app(app, logs=LOGS, out="none", shadow=-1)


def test_a_difference_ends_the_replay_before_anything_is_written(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong_from(monkeypatch, 30)
    with pytest.raises(ReplayDiffers) as caught:
        replay_app(app, logs=LOGS, out="out")
    error = caught.value
    first = next(row["id"] for row in spam(rows(60)) if row["vs"] >= 30)
    assert error.number == first + 1 and error.input == f"m.jsonl, line {first + 1}"
    assert isinstance(error.event, dict) and error.event["id"] == first
    assert not Path("out/spam.parquet").exists()
    assert replay_app(app, logs=LOGS, out="out", shadow=0).shadow == 0  # as it was asked
    assert Path("out/spam.parquet").exists()


def test_the_variant_that_differs_is_named(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_from(monkeypatch, 30)
    with pytest.raises(ReplayDiffers, match="with threshold=1"):
        replay_app(app, logs=LOGS, out="out", params={"threshold": [1, 200]})


def test_a_failing_handler_fails_as_ever(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("failing.py")
    path.write_text(FAILS)
    with pytest.raises(OperatorFailed, match=r"tell \(.*failing\.py:8\) failed on .*'id': 40"):
        replay_app(load_app(path), logs=LOGS, out="out")


FAILS = """
import weir
app = weir.App("spam")
message = app.events("message", "id BIGINT, k BIGINT, ts BIGINT", vs="ts")

@app.on(message)
def tell(e):
    app.emit("out", n=100 // (e.id - 40))
"""


# --- later batches -------------------------------------------------------------------------------


def test_a_later_batch_is_compared_from_its_saved_states(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    right = shadow_runs.Shadowing.compare

    def compare(*given: Any) -> shadow_runs.ComparedEvents:
        counts.append(right(*given).count)
        return shadow_runs.ComparedEvents(counts[-1])

    monkeypatch.setattr(shadow_runs.Shadowing, "compare", compare)
    replay_app(app, logs=LOGS, out="out", batch=20)
    assert counts == [20, 20]  # the first, and one later


def test_states_that_are_restored_wrongly_are_found(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch is right: nothing is restored in it."""
    lost = _loses_restored(monkeypatch)
    with pytest.raises(ReplayDiffers) as caught:
        replay_app(app, logs=LOGS, out="out", batch=20)
    assert caught.value.number <= 20 and lost
    assert rows(60)[20 + caught.value.number - 1]["id"] == caught.value.event["id"]  # type: ignore[index]


def _loses_restored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let state scans lose the cells that they begin with."""
    right, lost = StateScanKernel.step, []

    def step(self: Any, slices: Sequence[Batch], cti: int) -> tuple[Batch, int]:
        node = self._scan
        kept = list(slices)
        for port in node._restored:
            lost.append(len(kept[port]))
            kept[port] = kept[port].slice(0, 0)
        return right(self, kept, cti)

    monkeypatch.setattr(StateScanKernel, "step", step)
    return lost


def test_a_replay_that_goes_on_is_compared_where_it_goes_on(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay_app(app, logs=LOGS, out="out", end=30, state_out="state")
    lost = _loses_restored(monkeypatch)
    with pytest.raises(ReplayDiffers):
        replay_app(app, logs=LOGS, out="more", state_in="state")
    assert lost


# --- all events ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [None, 25])
def test_a_check_runs_the_loop_over_everything(
    app: App, monkeypatch: pytest.MonkeyPatch, batch: int | None
) -> None:
    _in_this_process(monkeypatch)
    report = replay_app(app, logs=LOGS, out="right", batch=batch, check=True, shadow=5)
    assert report.shadow == 60
    wrong_from(monkeypatch, 50)
    unnoticed = replay_app(app, logs=LOGS, out="wrong", batch=batch, shadow=5)
    assert unnoticed.shadow == 5
    with pytest.raises(ReplayDiffers) as caught:
        replay_app(app, logs=LOGS, out="out", batch=batch, check=True, shadow=5)
    # What Weir emits too much is no event's; what it emits for one is.
    assert caught.value.engine != "nothing" and not Path("out/spam.parquet").exists()


def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no second run be: it would be in another process, which is right."""
    monkeypatch.setattr(files, "second_differences", lambda *_, **__: [])


def test_a_check_names_the_event_whose_row_is_missing(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    _in_this_process(monkeypatch)
    loses_rows(monkeypatch, lambda vs: vs == spam(rows(60))[-1]["vs"])
    with pytest.raises(ReplayDiffers) as caught:
        replay_app(app, logs=LOGS, out="out", check=True, shadow=5)
    end = spam(rows(60))[-1]["vs"]
    first = next(row["id"] for row in spam(rows(60)) if row["vs"] == end)
    assert caught.value.number == first + 1 and caught.value.engine == "nothing"
    assert caught.value.handler and caught.value.input == f"m.jsonl, line {first + 1}"


def loses_rows(monkeypatch: pytest.MonkeyPatch, which: Callable[[int], bool]) -> None:
    """Let a run from files to files lose rows; the engine beside the loop is right."""

    class Losing(LocalRun):
        def __init__(self, program: Any, opened: Any, emits: Any, **more: Any) -> None:
            super().__init__(program, opened, [_losing(emit, which) for emit in emits], **more)

    monkeypatch.setattr(files, "LocalRun", Losing)


def _losing(emit: Any, which: Callable[[int], bool]) -> Any:
    def losing(vertex: int, batch: Batch) -> None:
        kept = np.array([not which(int(vs)) for vs in batch.vs], dtype=np.bool_)
        emit(vertex, batch.take(kept))

    return losing


def test_a_short_log_is_compared_as_it_was_written(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    loses_rows(monkeypatch, lambda vs: vs > 40)
    with pytest.raises(ReplayDiffers, match="Weir: nothing"):
        replay_app(app, logs=LOGS, out="out")
    assert not Path("out/spam.parquet").exists()
    assert replay_app(app, logs=LOGS, out="long", shadow=30).shadow == 30  # too few to see it


@pytest.mark.parametrize("batch", [None, 25])
def test_a_check_compares_saved_states(
    app: App, monkeypatch: pytest.MonkeyPatch, batch: int | None
) -> None:
    _in_this_process(monkeypatch)
    replay_app(app, logs=LOGS, out="right", batch=batch, check=True, state_out="state")
    keys = {row["k"] for row in rows(60)}
    loses_rows(monkeypatch, lambda vs: False)
    right = files.LocalRun
    lost: list[object] = []

    class Losing(right):  # type: ignore[misc,valid-type]
        def __init__(self, program: Any, opened: Any, emits: Any, **more: Any) -> None:
            names = [output.name for output in program.outputs]
            wrapped = [
                _without_first(emit, lost) if name.startswith("state") else emit
                for name, emit in zip(names, emits, strict=True)
            ]
            super().__init__(program, opened, wrapped, **more)

    monkeypatch.setattr(files, "LocalRun", Losing)
    with pytest.raises(ReplayDiffers, match="the state `n` of") as caught:
        replay_app(app, logs=LOGS, out="out", batch=batch, check=True, state_out="wrong", shadow=5)
    assert caught.value.engine == "no merge into it" and lost and keys
    assert not Path("wrong").exists()


def _without_first(emit: Any, lost: list[object]) -> Any:
    def losing(vertex: int, batch: Batch) -> None:
        lost.append(len(batch))
        emit(vertex, batch.slice(1, len(batch)))

    return losing


# --- streams -------------------------------------------------------------------------------------


STREAMS = """
import weir
from weir import col, count, tumbling
raw = weir.stream("raw", {"id": "BIGINT", "k": "BIGINT", "ts": "BIGINT"}, "m.jsonl", vs="ts")
per_key = raw.group_by("k").window(tumbling(10)).agg(n=count())
app = weir.App("streams")
counted = app.events("counted", per_key)
total = app.state("total", default=0)

@app.on(counted)
def tell(e):
    total.add(e.k, e.n)
    app.emit("totals", k=e.k, n=total.get(e.k))
"""


def test_events_of_a_stream_are_compared(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    _in_this_process(monkeypatch)
    Path("streams.py").write_text(STREAMS)
    streams = load_app("streams.py")
    report = replay_app(streams, out="out", check=True)
    assert report.shadow > 0
    wrong_from(monkeypatch, 30)
    with pytest.raises(ReplayDiffers) as caught:
        replay_app(streams, out="again")
    assert caught.value.number == 0 and "100" in caught.value.engine


def test_it_is_an_error_of_weir() -> None:
    assert issubclass(weir.ReplayDiffers, weir.RunError)


def test_a_log_without_events(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    _in_this_process(monkeypatch)
    write(Path("none.jsonl"), [])
    report = replay_app(app, logs={"message": "none.jsonl"}, out="out", check=True)
    assert (report.events, report.shadow) == (0, 0)
