"""Reads the tables of design note 0013: the packages in order, the files on an event's way."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

NOTE = Path(__file__).parents[1] / "docs" / "design" / "0013-floor-plan.md"
PROGRAM = """
STREAM Click (At TIMESTAMP, User STRING, Page STRING)
  FROM 'clicks.jsonl' WITH (vs = At, delay = 2s);
PerUser =
  SELECT User, COUNT(*) AS Clicks FROM Click WHERE Page <> '/' GROUP BY User WITH TUMBLING(10s);
OUTPUT PerUser TO 'per_user.csv';
"""
CLICKS = """
{"At": "2026-03-01T09:00:01Z", "User": "ann", "Page": "/a"}
{"At": "2026-03-01T09:00:07Z", "User": "bob", "Page": "/"}
{"At": "2026-03-01T09:00:06Z", "User": "ann", "Page": "/b"}
"""


def write_program(folder: Path) -> str:
    """Write a small program and its input; return the program's name."""
    (folder / "clicks.jsonl").write_text(CLICKS.lstrip(), encoding="utf-8")
    (folder / "clicks.weir").write_text(PROGRAM.lstrip(), encoding="utf-8")
    return "clicks.weir"


def section(title: str) -> str:
    """Return the text under a heading, up to the next one."""
    text = NOTE.read_text(encoding="utf-8")
    heading = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#)", text, re.M | re.S)
    assert heading, f"note 0013 has no heading {title!r}"
    return heading[1]


def packages() -> list[str]:
    """Return the packages in the order of the note's table."""
    rows = re.findall(r"^\| (`.*?) \|", section("The packages"), re.M)
    return [name for row in rows for name in re.findall(r"`(\w+)/`", row)]


def way(title: str) -> list[str]:
    """Return the files that every run passes, in order: the second column of a section's table, or
    its numbered steps. A `*` stands for any text."""
    rows = [line.split("|")[2] for line in section(title).splitlines() if line.startswith("| ")]
    steps = re.findall(r"^\d\. .*$", section(title), re.M)
    return [name for text in (*rows, *steps) for name in re.findall(r"`([\w/*]+\.py)`", text)]


def not_called(names: list[str], called: list[str]) -> list[str]:
    """Return the files of a way that a run did not call."""
    return [name for name in names if not any(fnmatch(path, name) for path in called)]
