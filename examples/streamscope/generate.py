"""Writes lines of text, and requests with their answers: always the same ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

WORDS = [
    "weir",
    "river",
    "water",
    "stone",
    "mill",
    "wheel",
    "gate",
    "error",
    "flood",
    "bridge",
    "boat",
    "fish",
]


def generate(folder: Path, events: int = 600) -> None:
    rng = random.Random(16)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "line.jsonl", "w", encoding="utf-8") as lines:
        for number in range(events):
            text = " ".join(rng.choices(WORDS, k=rng.randint(3, 9)))
            lines.write(json.dumps({"t": number * 500_000, "text": text}) + "\n")
    with (
        open(folder / "left.jsonl", "w", encoding="utf-8") as left,
        open(folder / "right.jsonl", "w", encoding="utf-8") as right,
    ):
        for number in range(events):
            t = number * 500_000
            left.write(json.dumps({"t": t, "k": number, "a": rng.randrange(100)}) + "\n")
            after = {"t": t + 30_000_000, "k": number, "b": rng.randrange(100)}
            right.write(json.dumps(after) + "\n")
