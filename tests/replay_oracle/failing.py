"""Random apps that fail: one handler raises on one event, before all else that it does."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from replay_oracle.expressions import ALWAYS
from replay_oracle.programs import Case, draw_case

_HANDLER = re.compile(r"@app\.on\(([^)]*)\)\ndef (\w+)\(e\):\n")


def draw_failing(seed: int) -> Case | None:
    """Draw an app and let it fail; None if no event is alone of its kind."""
    rng, case = random.Random(f"failing {seed}"), draw_case(seed)
    found = []
    for handler in _HANDLER.finditer(case.source):
        events = handler[1].split(", ")
        rows = [row for name in events for partition in case.logs[name] for row in partition]
        told = [_told(row) for row in rows]
        found += [(handler.end(), text) for text in told if told.count(text) == 1]
    if not found:
        return None
    at, condition = rng.choice(found)
    raised = f"    if {condition}:\n        raise ValueError('on purpose')\n"
    return replace(case, source=case.source[:at] + raised + case.source[at:])


def _told(row: dict[str, object]) -> str:
    """Return a condition that is true of events that are like the row in what all of them have."""
    known = {"vs": row["ts"], **{name: row[name] for name in ALWAYS}}
    return " and ".join(
        f"e.{name} is None" if value is None else f"e.{name} == {value!r}"
        for name, value in known.items()
        if value == value
    )
