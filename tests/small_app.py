"""A small app, logs for it, and what a plain loop makes of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

APP = """
import weir

app = weir.App("spam")
message = app.events("message", "id BIGINT, k BIGINT, ts BIGINT", vs="ts")
threshold = app.param("threshold", 3)
n = app.state("n", default=0)

@app.on(message)
def judge(e):
    n.add(e.k, 1)
    if n.get(e.k) > threshold:
        app.emit("spam", id=e.id, k=e.k, n=n.get(e.k))
"""


def rows(count: int, seed: int = 1) -> list[dict[str, int]]:
    """Messages with equal times and few keys."""
    chance, time, found = random.Random(seed), 0, []
    for number in range(count):
        time += chance.choice((0, 0, 1, 3))
        found.append({"id": number, "k": chance.randrange(9), "ts": time})
    return found


def spam(messages: list[dict[str, int]], threshold: int = 3) -> list[dict[str, int]]:
    """What a plain loop emits."""
    counts: dict[int, int] = {}
    found = []
    for m in messages:
        counts[m["k"]] = n = counts.get(m["k"], 0) + 1
        if n > threshold:
            found.append({"vs": m["ts"], "ve": m["ts"] + 1, "id": m["id"], "k": m["k"], "n": n})
    return found


def write(path: Path, messages: list[dict[str, int]]) -> Path:
    path.write_text("".join(json.dumps(m) + "\n" for m in messages), "utf-8")
    return path
