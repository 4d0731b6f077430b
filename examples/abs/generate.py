"""Writes words and records: always the same ones."""

from __future__ import annotations

import json
import random
from pathlib import Path


def generate(folder: Path, records: int = 500) -> None:
    rng = random.Random(2015)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "word.jsonl", "w", encoding="utf-8") as words:
        for t in range(records):
            word = rng.choice(["to", "be", "or", "not", "that", "is", "the", "question"])
            words.write(json.dumps({"t": t * 1_000_000, "word": word}) + "\n")
    for part in range(2):
        with open(folder / f"record-{part}.jsonl", "w", encoding="utf-8") as file:
            for t in range(part, records, 2):
                row = {"t": t * 1_000_000, "a": rng.randrange(40), "b": rng.randrange(1000)}
                file.write(json.dumps(row) + "\n")
