"""Names that become those of files: what an app may call things, and that the longest can be
written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from small_app import APP
from weir.errors import WeirError
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.replay.app_programs import app_program
from weir.replay.app_replay import replay_app

LOGS = {"message": "m.jsonl"}


def renamed(**names: str) -> App:
    text = APP.replace('App("spam")', 'App("a")')
    for old, new in names.items():
        text = text.replace(f'"{old}"', repr(new))
    Path("renamed.py").write_text(text, "utf-8")
    return load_app("renamed.py")


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize(
    "name",
    ["../../evil", "/tmp/evil", "", ".", "..", "a b", "é", "a\nb", "*", "s3://x/y", "x" * 300],
)
def test_no_emit_leaves_its_folder(app: App, name: str, serial: bool) -> None:
    del app
    made = renamed(spam=name)
    if serial:
        made.serial()
    with pytest.raises(WeirError, match=r"renamed\.py, line 13.*the name of an emitted stream"):
        replay_app(made, logs=LOGS, out="in/out", batch=20)
    with pytest.raises(WeirError, match="the name of an emitted stream"):
        app_program(made, logs=LOGS, out="in/out")
    assert not Path("in").exists()


def test_names_of_an_app_can_be_too_long(app: App) -> None:
    del app
    for what in ("n", "threshold", "message"):
        with pytest.raises(WeirError, match="has 100 letters at most, not 101: xxx"):
            renamed(**{what: "x" * 101})


def test_the_longest_names(app: App) -> None:
    del app
    longest: dict[str, Any] = {name: name[0] * 100 for name in ("spam", "n", "threshold")}
    made = renamed(**longest)
    value = int("9" * 18)
    replay_app(
        made,
        logs=LOGS,
        out="out",
        format="jsonl",
        batch=20,
        state_out="state",
        params={longest["threshold"]: [1, value]},
    )
    assert Path("out", f"{'t' * 100}=1", f"{'s' * 100}.jsonl").stat().st_size > 0
    assert Path("state", f"{'t' * 100}={value}", f"{'n' * 100}.parquet").exists()
