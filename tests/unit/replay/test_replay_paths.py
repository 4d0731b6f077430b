"""Where a replay writes: nothing that it does not own is written over or deleted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from small_app import APP, rows, write
from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.replay import batch_runs
from weir.replay.app_replay import replay_app

LOGS = {"message": "m.jsonl"}
SAVED = ["manifest.json", "n.parquet", "n.parquet.digest"]


def refused(app: App, message: str, **options: Any) -> None:
    """Nothing is run, and every file stays as it is."""

    def files() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in Path().rglob("*") if p.is_file()}

    before = files()
    with pytest.raises(PlanError) as caught:
        replay_app(app, **{"logs": LOGS, "out": "out", **options})
    assert message in str(caught.value)
    assert files() == before


def names(folder: str) -> list[str]:
    return sorted(p.name for p in Path(folder).iterdir())


@pytest.mark.parametrize("options", [{}, {"batch": 20}, {"end": 30}, {"state_out": "state"}])
def test_no_output_is_written_over_its_log(app: App, options: dict[str, Any]) -> None:
    write(Path("spam.jsonl"), rows(60))
    for path in ("spam.jsonl", "*.jsonl", "here/*.jsonl"):
        Path("here").unlink(missing_ok=True)
        Path("here").symlink_to(".")
        message = "OUTPUT spam would write over 'spam.jsonl', which STREAM message reads"
        refused(app, message, logs={"message": path}, out=".", format="jsonl", **options)


def test_large_logs_are_not_written_over(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.replay.app_replay.BATCH_BYTES", 1)
    write(Path("spam.jsonl"), rows(60))
    message = "which STREAM message reads"
    refused(app, message, logs={"message": "spam.jsonl"}, out=".", format="jsonl")


def test_a_state_replaces_a_state_only(app: App) -> None:
    replay_app(app, logs=LOGS, out="one", end=20, state_out="state")
    before = Path("state/n.parquet").read_bytes()
    replay_app(app, logs=LOGS, out="two", end=40, state_out="state")
    assert Path("state/n.parquet").read_bytes() != before and names("state") == SAVED

    Path("site").mkdir()
    Path("site/index.html").write_text("precious")
    for manifest in ('{"name": "my web app"}', "[]", "{", ""):
        Path("site/manifest.json").write_text(manifest)
        refused(app, "'site' has other files, and no saved state", state_out="site")
    refused(app, "'m.jsonl' is a file; the state goes to a folder", state_out="m.jsonl")
    for more in ("notes.txt", "other.parquet", "log.jsonl"):
        Path("state", more).write_text("precious")
        refused(app, f"'state' has more than a saved state: '{more}'", state_out="state")
        Path("state", more).unlink()
    Path("state/n.parquet").unlink()
    Path("state/n.parquet").mkdir()
    Path("state/n.parquet/mine").touch()
    refused(app, "'state' has more than a saved state: 'n.parquet'", state_out="state")


def test_what_a_kill_left_of_a_state_is_replaced(app: App) -> None:
    """The tables go before the manifest, and a state in the making has any of its files."""
    replay_app(app, logs=LOGS, out="one", end=20, state_out="state")
    Path("state/n.parquet").unlink()
    shutil.copytree("state", ".state.part")
    Path(".state.part/manifest.json").unlink()
    replay_app(app, logs=LOGS, out="two", state_out="state")
    assert names("state") == SAVED and not Path(".state.part").exists()
    Path(".state.part").mkdir()
    Path(".state.part/mine.txt").touch()
    refused(app, "has more than a saved state: 'mine.txt'", state_out="state")


def test_what_comes_while_it_runs_stays(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    real = batch_runs.run_files

    def run(*given: Any, **options: Any) -> object:
        Path("state").mkdir(exist_ok=True)
        Path("state/mine.txt").write_text("precious")
        return real(*given, **options)

    monkeypatch.setattr(batch_runs, "run_files", run)
    with pytest.raises(PlanError, match="'state' has other files, and no saved state"):
        replay_app(app, logs=LOGS, out="out", state_out="state")
    assert Path("state/mine.txt").read_text() == "precious"


def test_places_that_overlap(app: App) -> None:
    replay_app(app, logs=LOGS, out="one", end=20, state_out="state")
    shutil.copytree("state", "other")
    Path("link").symlink_to("state")
    both = {"threshold": [1, 2]}
    whole = "which the replay replaces as a whole; give each a place of its own"
    for options, message in (
        ({"out": "state/results"}, "--out 'state/results' lies in --state-out 'state'"),
        ({"out": "new", "state_out": "new"}, "--out 'new' is --state-out 'new'"),
        ({"out": "new/a/b", "state_out": "new"}, "--out 'new/a/b' lies in --state-out 'new'"),
        ({"state_in": "state"}, "--state-in 'state' is --state-out 'state'"),
        ({"state_in": "link"}, "--state-in 'link' is --state-out 'state'"),
        ({"state_in": "other", "out": "link/results"}, "--out 'link/results' lies in"),
        ({"state_out": "out/.replay"}, "--state-out 'out/.replay' is 'out/.replay'"),
        ({"state_out": "out/.replay/s"}, "--state-out 'out/.replay/s' lies in 'out/.replay'"),
        ({"state_out": "out/spam.parquet"}, "the output 'out/spam.parquet' is --state-out"),
        ({"state_out": "out/spam.parquet/s"}, "lies in the output 'out/spam.parquet'"),
        ({"state_out": "out/what-if.html"}, "'out/what-if.html' is --state-out"),
        ({"state_out": "out", "params": both}, "the output 'out/threshold=1/spam.parquet' lies in"),
    ):
        refused(app, message, **{"state_out": "state", **options})
        refused(app, whole, batch=20, **{"state_out": "state", **options})
    Path("out/.replay").mkdir(parents=True)
    shutil.copy("m.jsonl", "out/.replay/m.jsonl")
    refused(app, "the log 'out/.replay/m.jsonl' lies in", logs={"message": "out/.replay/m.jsonl"})
    shutil.rmtree("out")
    replay_app(app, logs=LOGS, out="out", state_in="state", state_out="out/state")  # own places
    assert names("out/state") == SAVED and json.loads(Path("state/manifest.json").read_bytes())


def test_a_state_cannot_go_to_a_link_or_below_a_file(app: App) -> None:
    Path("real").mkdir()
    Path("link").symlink_to("real")
    Path("nowhere").symlink_to("gone")
    refused(app, "'link' is a link; give the folder itself for the state", state_out="link")
    refused(app, "'nowhere' is a link", state_out="nowhere")
    refused(app, "cannot save a state to 'm.jsonl/x': '", state_out="m.jsonl/x")
    refused(app, "/m.jsonl' is a file", state_out="m.jsonl/x/y")
    refused(app, "'.' has other files, and no saved state", out="/dev/null/x", state_out=".")
    replay_app(app, logs=LOGS, out="out", state_out="link/state")
    assert names("real/state") == SAVED


def test_the_state_of_one_app_replaces_that_of_another(app: App) -> None:
    replay_app(app, logs=LOGS, out="one", state_out="state")
    Path("other.py").write_text(APP.replace('"n",', '"m",'), "utf-8")
    replay_app(load_app("other.py"), logs=LOGS, out="two", state_out="state")
    assert names("state") == ["m.parquet", "m.parquet.digest", "manifest.json"]
