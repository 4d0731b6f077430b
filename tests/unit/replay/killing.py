"""A replay that is killed between two batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weir.handlers.api.app import App
from weir.replay.app_replay import replay_app
from weir.replay.run_folder import RunFolder


class Killed(BaseException):
    """Stands for kill -9."""


def killed(app: App, monkeypatch: pytest.MonkeyPatch, out: str, logs: dict[str, str]) -> Path:
    """Replay until two of three batches are finished; return the second one's folder."""
    real = RunFolder.finish_batch

    def finish(folder: RunFolder, number: int, made: Any) -> None:
        real(folder, number, made)
        if number == 1:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish_batch", finish)
        with pytest.raises(Killed):
            replay_app(app, logs=logs, out=out, batch=20)
    return Path(out, ".replay", "00001")
