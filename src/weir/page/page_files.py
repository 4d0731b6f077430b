"""The files of which pages are made; the look that all of Weir's pages share is `look.css`."""

from __future__ import annotations

from importlib.resources import files


def asset(name: str) -> str:
    """Read one of the files."""
    return (files("weir.page") / "assets" / name).read_text(encoding="utf-8")
