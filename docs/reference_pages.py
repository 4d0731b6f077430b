"""Writes docs/reference/python.md and errors.md from the docstrings, which the tests run.

python docs/reference_pages.py          write the pages
python docs/reference_pages.py --check  fail if they are not what this would write
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import weir
import weir.errors
from weir.handlers.api.declarations import State
from weir.plan.fluent.stream import Selection
from weir.plan.fluent.terms import Term

HERE = Path(__file__).parent / "reference"
GROUPS = {
    "Inputs": ["stream", "from_rows", "from_spark"],
    "Streams": ["Stream"],
    "Selections": [Selection],
    "Windows": ["tumbling", "hopping", "session", "count_window", "snapshot"],
    "Terms": ["col", "lit", "expr", "call", "case", "count", "explode", Term],
    "Your own code": ["udf", "aggregate", "operator"],
    "Running": ["run", "collect", "run_offline", "run_live", "spark_transform", "parse_program"],
    "What a run says": [
        "PlanWarning",
        "RunReport",
        "Progress",
        "LiveProgress",
        "read_committed",
        "Committed",
    ],
    "Apps": ["App", State],
}
ERRORS = """ScriptError PlanError InputError RunError OperatorFailed DeterminismViolation
ReplayDiffers SnapshotCorrupt"""
_NOTE = (
    "Made from the docstrings by `python docs/reference_pages.py`; the examples run in the tests."
)


def main(check: bool) -> int:
    wanted = {HERE / "python.md": python_page(), HERE / "errors.md": errors_page()}
    stale = [p for p, text in wanted.items() if not p.exists() or p.read_text("utf-8") != text]
    if check:
        for path in stale:
            sys.stderr.write(f"{path.name} is not what docs/reference_pages.py writes\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


def python_page() -> str:
    named = {name for group in GROUPS.values() for name in group if isinstance(name, str)}
    left = {*weir.__all__} - named - {"__version__", "WeirError", *ERRORS.split()}
    if left:
        raise SystemExit(f"no group has {', '.join(sorted(left))}")
    lines = ["# Python", "", _NOTE, "Everything is in `weir`: `import weir`."]
    for title, things in GROUPS.items():
        lines += ["", f"## {title}"]
        for thing in things:
            found = getattr(weir, thing) if isinstance(thing, str) else thing
            prefix = "weir." if isinstance(thing, str) else ""
            lines += _entry(found, f"{prefix}{found.__name__}", 3)
    return "\n".join(lines).rstrip() + "\n"


def errors_page() -> str:
    lines = [
        "# Errors", "", _NOTE,
        "Whatever Weir raises on purpose is a `weir.WeirError`. The command line prints it as "
        "`weir: error: …` and ends with an [exit code](cli.md); `--debug` shows the traceback.",
    ]  # fmt: skip
    for name in ["WeirError", *ERRORS.split()]:
        cls = getattr(weir, name)
        parents = [c.__name__ for c in cls.__mro__[1:] if c.__name__ in weir.__all__]
        below = f"It is a `{parents[0]}`." if parents else ""
        lines += ["", f"## {name}", "", *_doc(cls), below]
    return "\n".join(lines).rstrip() + "\n"


def _entry(thing: object, name: str, level: int) -> Iterator[str]:
    yield ""
    yield f"{'#' * level} `{name}`"
    yield ""
    signature = "" if isinstance(thing, property) else _signature(thing)
    if signature:
        yield from ("```text", f"{name}{signature}", "```", "")
    yield from _doc(thing)
    if inspect.isclass(thing) and level == 3:
        for method, found in _members(thing).items():
            shown = found.fget if isinstance(found, property) else found
            if not method.startswith("_") and callable(shown) and shown.__doc__:
                what = found if isinstance(found, property) else shown
                yield from _entry(what, f"{name.rpartition('.')[2]}.{method}", 4)


def _members(thing: type) -> dict[str, object]:
    """Return what a class has of its own, then what our classes below it bring."""
    ours = [c for c in thing.__mro__ if c.__module__.startswith("weir.") and c is not thing]
    return {**vars(thing), **{n: m for c in ours for n, m in vars(c).items()}}


def _signature(thing: object) -> str:
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, enum.Enum)):
        return ""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    parts, marked = [], False
    for name, p in found.parameters.items():
        if p.kind is p.KEYWORD_ONLY and not marked:
            parts.append("*")
        marked |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        said = "" if p.annotation is p.empty else f": {_annotation(p.annotation)}"
        default = "" if p.default is p.empty else f" = {p.default!r}"
        if name != "self":
            parts.append(f"{star}{name}{said}{default}")
    text = f"({', '.join(parts)})"
    return text if len(text) <= 70 else "(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def _annotation(found: object) -> str:
    text = found if isinstance(found, str) else inspect.formatannotation(found)
    return text.strip('"')


def _doc(thing: object) -> Iterator[str]:
    """Yield a docstring as Markdown: paragraphs, and its examples as code."""
    doc = inspect.getdoc(thing) or ""
    for part in re.split(r"\n\s*\n", doc):
        lines = part.split("\n")
        if lines[0].lstrip().startswith(">>>"):
            yield from ("```pycon", *textwrap.dedent(part).split("\n"), "```", "")
        elif lines[0].startswith("    "):
            yield from ("```text", *textwrap.dedent(part).split("\n"), "```", "")
        else:
            yield from (" ".join(line.strip() for line in lines), "")


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
