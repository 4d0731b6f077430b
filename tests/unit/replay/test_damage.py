"""Damage in `.replay` and in saved states: an error that names the file and the way out, or the
same answer; never other rows."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from small_app import rows
from unit.replay.killing import killed
from weir.errors import InputError, PlanError, RunError, WeirError
from weir.handlers.api.app import App
from weir.replay.app_replay import replay_app
from weir.replay.run_folder import opened_folder

LOGS = {"message": "m.jsonl"}
WAY_OUT = "; delete 'out/.replay' with --fresh to run everything again"


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def no_text(path: Path) -> None:
    path.write_bytes(b'{"sha256": "\xff", "says": {}}')


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def removed(path: Path) -> None:
    path.unlink()


def edited(change: Callable[[Any], object]) -> Callable[[Path], None]:
    """Change what a file says, so that it is still as such files are."""

    def edit(path: Path) -> None:
        read = json.loads(path.read_bytes())
        change(read["says"])
        path.write_text(json.dumps(read, separators=(",", ":")), "utf-8")

    return edit


DAMAGE: list[tuple[str, Callable[[Path], object], str]] = [
    *(
        (name, damage, "cannot be read: ")
        for name in ("run.json", "cuts.json", "00000/batch.json", "00001/batch.json")
        for damage in (torn, empty, no_text, made_a_folder)
    ),
    ("run.json", removed, "which lists what is finished here, is missing"),
    ("00000/batch.json", removed, "which lists what the batch wrote, is missing"),
    ("00001/batch.json", removed, "which lists what the batch wrote, is missing"),
    ("cuts.json", edited(lambda cuts: cuts["batches"].pop()), "was changed"),
    ("cuts.json", edited(lambda cuts: cuts["batches"].clear()), "was changed"),
    ("cuts.json", edited(lambda cuts: cuts["batches"][2]["parts"].clear()), "was changed"),
    ("run.json", edited(lambda run: run["parts"].popitem()), "was changed"),
    ("00001/batch.json", edited(lambda made: made.update(events=1)), "was changed"),
]


@pytest.mark.parametrize(("name", "damage", "message"), DAMAGE)
def test_a_damaged_file_is_named(
    app: App,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    damage: Callable[[Path], object],
    message: str,
) -> None:
    folder = killed(app, monkeypatch, "out", LOGS).parent
    damage(folder / name)
    with pytest.raises(RunError) as caught:
        replay_app(app, logs=LOGS, out="out", batch=20)
    told = str(caught.value)
    assert told.startswith(f"'{folder / name}'") and message in told and told.endswith(WAY_OUT)


def put_a_file(path: Path) -> None:
    path.write_text("x")


def put_a_link(path: Path) -> None:
    Path("mine").mkdir()
    Path("mine/precious").touch()
    path.symlink_to(Path("mine").absolute())


@pytest.mark.parametrize("put", [put_a_file, put_a_link])
def test_what_stands_where_a_batch_is_made(
    app: App, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None]
) -> None:
    put(killed(app, monkeypatch, "out", LOGS).parent / "00002.part")
    found = replay_app(app, logs=LOGS, out="out", batch=20)
    whole = replay_app(app, logs=LOGS, out="whole")
    assert [o.digest for o in found.outputs] == [o.digest for o in whole.outputs]
    assert put is put_a_file or Path("mine/precious").exists()


@pytest.mark.parametrize("put", [put_a_file, put_a_link, Path.mkdir])
def test_what_stands_where_a_batch_goes(
    app: App, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None]
) -> None:
    batch = killed(app, monkeypatch, "out", LOGS).parent / "00002"
    put(batch)
    with pytest.raises(RunError, match=r"/00002/batch\.json', which lists .* is missing; delete"):
        replay_app(app, logs=LOGS, out="out", batch=20)
    found = replay_app(app, logs=LOGS, out="out", batch=20, fresh=True)
    assert found.events == 60 and (put is not put_a_link or Path("mine/precious").exists())


def test_a_missing_list_of_cuts_is_made_again(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    (killed(app, monkeypatch, "out", LOGS).parent / "cuts.json").unlink()
    found = replay_app(app, logs=LOGS, out="out", batch=20)
    whole = replay_app(app, logs=LOGS, out="whole")
    assert [o.digest for o in found.outputs] == [o.digest for o in whole.outputs]


@pytest.mark.parametrize("damage", [torn, empty, no_text, made_a_folder])
def test_a_damaged_report_is_named(app: App, damage: Callable[[Path], None]) -> None:
    first = replay_app(app, logs=LOGS, out="out", batch=20)
    damage(Path("out/.replay/report.json"))
    with pytest.raises(RunError, match=r"^'out/.replay/report\.json' cannot be read: .*--fresh"):
        replay_app(app, logs=LOGS, out="out", batch=20)
    again = replay_app(app, logs=LOGS, out="out", batch=20, fresh=True)
    assert again.outputs == first.outputs


def test_a_lock_that_is_a_folder(tmp_path: Path) -> None:
    Path(tmp_path, ".replay", "lock").mkdir(parents=True)
    with pytest.raises(RunError, match=r"lock' is a folder; delete '"), opened_folder(tmp_path):
        pass


@pytest.mark.parametrize("left", ["00000/emitted/0.arrow", "00001/batch.json"])
def test_batches_that_a_kill_left_behind_the_end(app: App, left: str) -> None:
    """The report was written, and the batches were being removed."""
    first = replay_app(app, logs=LOGS, out="out", batch=20)
    file = Path("out/.replay", left)
    file.parent.mkdir(parents=True)
    file.touch()
    assert replay_app(app, logs=LOGS, out="out", batch=20).again
    Path("out/spam.parquet").unlink()
    again = replay_app(app, logs=LOGS, out="out", batch=20)
    assert again.redone and again.outputs == first.outputs
    kept = sorted(os.listdir("out/.replay"))
    assert kept == ["cuts.json", "lock", "report.json", "run.json"]


# --- states --------------------------------------------------------------------------------


def changed(**fields: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "manifest.json"
        file.write_text(json.dumps(json.loads(file.read_bytes()) | fields), "utf-8")

    return change


def table_a_folder(folder: Path) -> None:
    made_a_folder(folder / "n.parquet")


NO_MANIFEST = r"^state/manifest\.json: no manifest of a saved state: .*; bring back the folder as"
STATES: list[tuple[Callable[[Path], object], type[WeirError], str]] = [
    (lambda folder: torn(folder / "manifest.json"), InputError, NO_MANIFEST),
    (lambda folder: no_text(folder / "manifest.json"), InputError, NO_MANIFEST),
    (lambda folder: made_a_folder(folder / "manifest.json"), InputError, NO_MANIFEST),
    (changed(upto=2**63), InputError, NO_MANIFEST),
    (changed(upto=-(2**62) - 1), InputError, NO_MANIFEST),
    (changed(digests={}), InputError, r"^state/manifest\.json: it has no digest of `n`; bring"),
    (changed(states={}), PlanError, "the saved state in 'state' has no state `n`"),
    (changed(format=1), PlanError, "is of another version of Weir"),
    (lambda folder: removed(folder / "n.parquet"), InputError, r"n\.parquet: the table .* missing"),
    (lambda folder: torn(folder / "n.parquet"), PlanError, r"'state' was changed: .*n\.parquet"),
    (lambda folder: empty(folder / "n.parquet"), PlanError, r"'state' was changed: .*n\.parquet"),
    (table_a_folder, PlanError, r"'state' was changed: .*n\.parquet"),
    (
        lambda folder: (shutil.rmtree(folder), folder.touch()),
        PlanError,
        "there is no saved state in 'state'",
    ),
    (shutil.rmtree, PlanError, "there is no saved state in 'state'"),
]


@pytest.mark.parametrize(("damage", "kind", "message"), STATES)
def test_a_damaged_state_is_named(
    app: App, damage: Callable[[Path], object], kind: type[WeirError], message: str
) -> None:
    replay_app(app, logs=LOGS, out="one", end=rows(60)[30]["ts"], state_out="state")
    damage(Path("state"))
    with pytest.raises(kind, match=message):
        replay_app(app, logs=LOGS, out="two", state_in="state")
