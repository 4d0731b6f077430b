"""A small app with its log, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_app import APP, rows, write
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """The app; `app.py` and `m.jsonl` lie in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(APP, "utf-8")
    write(Path("m.jsonl"), rows(60))
    return load_app("app.py")
