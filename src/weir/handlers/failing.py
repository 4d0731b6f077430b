"""What fails a run on purpose: `raise` and `assert` of handlers."""

from __future__ import annotations


def raised(kind: type[BaseException], text: object) -> object:
    """Raise what a handler raises."""
    raise kind(text) if text != "" else kind()
