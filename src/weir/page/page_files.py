"""The files that pages are made of; all of Weir's pages share the style `look.css`."""

from __future__ import annotations

from importlib.resources import files


def asset(name: str) -> str:
    """Return the content of one of the files."""
    return (files("weir.page") / "assets" / name).read_text(encoding="utf-8")
