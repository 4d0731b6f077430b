"""Writes latencies between machines, reports of media players, URLs and tweets: always the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

SECOND = 1_000_000
GOOD = ["love", "great", "fast"]
BAD = ["hate", "slow", "broken"]
OTHER = ["phone", "update", "battery", "screen", "today"]


def generate(folder: Path) -> None:
    rng = random.Random(2013)
    folder.mkdir(parents=True, exist_ok=True)
    write(
        folder / "latency.jsonl",
        (
            {
                "t": n * SECOND // 10,
                "cluster": n % 3,
                "source": f"m{n % 3}{rng.randrange(3)}",
                "target": f"m{rng.randrange(9)}",
                "ms": rng.randint(1, 400) / 4,
            }
            for n in range(600)
        ),
    )
    write(
        folder / "player.jsonl",
        (
            {
                "t": n * SECOND // 10,
                "video": rng.choice(["final", "news", "film"]),
                "region": rng.choice(["eu", "us"]),
                "kbps": rng.choice([300, 800, 2500, 6000]),
                "stalled_ms": rng.choice([0, 0, 0, 120, 900]),
            }
            for n in range(600)
        ),
    )
    write(
        folder / "url.jsonl",
        (
            {
                "t": n * SECOND // 10,
                "url": f"http://{rng.choice(['a.org', 'b.com', 'bot.net'])}/"
                f"{min(rng.randrange(20), rng.randrange(20))}",
            }
            for n in range(600)
        ),
    )
    write(folder / "topic.jsonl", ({"t": 0, "until": None, "topic": t} for t in ("fizz", "buzz")))
    write(folder / "tweet.jsonl", (tweet(rng, n) for n in range(600)))


def tweet(rng: random.Random, number: int) -> dict[str, object]:
    """A tweet about one of three topics; opinion on each swings every 40 seconds."""
    topic = rng.choice(["fizz", "buzz", "other"])
    happy = (number // 200 + len(topic)) % 2 == 0
    mood = GOOD if happy == (rng.random() < 0.8) else BAD
    words = [topic, rng.choice(mood), rng.choice(OTHER), rng.choice(mood)]
    return {"t": number * SECOND // 5, "text": " ".join(words)}


def write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
