"""Files that were changed behind a replay's back: nothing is believed that was not written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from small_app import rows, write
from unit.replay.killing import killed
from weir.errors import PlanError, RunError
from weir.handlers.api.app import App
from weir.replay.app_replay import replay_app
from weir.replay.reports import ReplayReport

LOGS = {"message": "m.jsonl"}


@pytest.fixture
def other() -> dict[str, str]:
    """Another log, of which other states and rows come."""
    return {"message": write(Path("other.jsonl"), rows(60, seed=2))}


# --- what a replay goes on with ------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["state/*.parquet", "emitted/*.arrow"])
def test_a_finished_batch_that_was_changed(
    app: App, monkeypatch: pytest.MonkeyPatch, other: dict[str, str], pattern: str
) -> None:
    (here,) = killed(app, monkeypatch, "out", LOGS).glob(pattern)
    (there,) = killed(app, monkeypatch, "there", other).glob(pattern)
    kept = here.read_bytes()
    for damage in (there.read_bytes(), kept[:100], None):
        here.unlink() if damage is None else here.write_bytes(damage)
        with pytest.raises(RunError) as caught:
            replay_app(app, logs=LOGS, out="out", batch=20)
        told = str(caught.value)
        assert told.startswith(f"a finished batch was changed: {here}: ")
        assert told.endswith("delete 'out/.replay' with --fresh to run everything again")
    here.write_bytes(kept)
    found = replay_app(app, logs=LOGS, out="out", batch=20).outputs
    whole = replay_app(app, logs=LOGS, out="whole").outputs
    assert [o.digest for o in found] == [o.digest for o in whole]


def test_a_saved_state_that_was_changed(app: App, other: dict[str, str]) -> None:
    replay_app(app, logs=LOGS, out="one", end=30, state_out="state")
    replay_app(app, logs=other, out="two", end=30, state_out="there")
    for name in ("n.parquet", "n.parquet.digest"):  # with its digest it is no better
        shutil.copy(f"there/{name}", f"state/{name}")
        with pytest.raises(PlanError) as caught:
            replay_app(app, logs=LOGS, out="on", state_in="state")
        told = "the saved state in 'state' was changed: .*/state/n.parquet: its rows have the dig"
        assert caught.match(told) and caught.match("bring back the folder as it was, or save")


# --- what has finished ---------------------------------------------------------------------


def swapped(path: str) -> Callable[[], object]:
    return lambda: shutil.copy(f"there/{path}", path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (swapped("out/spam.parquet"), "out/spam.parquet: its rows have the digest "),
        (lambda: Path("out/spam.parquet").write_bytes(b"PAR1"), "out/spam.parquet: not a readable"),
        (lambda: Path("out/spam.parquet").unlink(), "out/spam.parquet: is gone"),
        (swapped("out/spam.parquet.digest"), "out/spam.parquet: it carries the digest "),
        (lambda: Path("out/spam.parquet.digest").unlink(), "out/spam.parquet: its digest is gone"),
        (swapped("state/n.parquet"), "state/n.parquet: its rows have the digest "),
        (lambda: Path("state/n.parquet").unlink(), "state/n.parquet: no such file or folder"),
        (lambda: shutil.rmtree("state"), "there is no saved state in 'state'"),
        (swapped("state/manifest.json"), "'state' holds another state"),
    ],
)
@pytest.mark.parametrize("batch", [None, 25])
def test_what_a_finished_replay_wrote_is_written_again(
    app: App, other: dict[str, str], batch: int | None, change: Callable[[], object], told: str
) -> None:
    def replay() -> ReplayReport:
        return replay_app(app, logs=LOGS, out="out", state_out="state", batch=batch)

    there = {"out": "there/out", "state_out": "there/state", "batch": batch}
    replay_app(app, logs=other, **there)  # type: ignore[arg-type]
    first = replay()
    table = pq.read_table("state/n.parquet")
    assert replay().again
    change()
    again = replay()
    assert again.redone.startswith(told) and not again.again
    assert again.outputs == first.outputs
    assert pq.read_table("state/n.parquet") == table
    assert replay().again
