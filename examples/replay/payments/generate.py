"""Makes some weeks of payments with cards, with a few thieves among them, as JSON lines.

python generate.py DIR [--payments 5000] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 60
MINUTES = DAYS * 24 * 60


def generate(folder: Path, payments: int = 5000, *, seed: int = 1) -> None:
    """Write `payment.jsonl`, `chargeback.jsonl` and `support.jsonl`."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    cards = max(payments // 25, 10)
    card = rng.integers(0, cards, payments)
    device = np.where(rng.random(payments) < 0.9, card, rng.integers(0, cards, payments))
    minute = rng.integers(0, MINUTES, payments)
    cents = rng.lognormal(8, 1, payments).astype(np.int64)
    # A thief takes a card for an hour or two, and pays from a device of its own.
    thieves = rng.choice(payments, payments // 40, replace=False)
    for thief in thieves:
        spree = slice(thief, min(thief + int(rng.integers(3, 12)), payments))
        card[spree] = card[thief]
        device[spree] = cards + thief % 7
        minute[spree] = np.minimum(minute[thief] + rng.integers(0, 90), MINUTES - 1)
        cents[spree] *= 10
    order = np.argsort(minute, kind="stable")
    _write(
        folder / "payment.jsonl",
        (
            {
                "id": n,
                "card": int(card[i]),
                "device": f"d{device[i]}",
                "cents": int(cents[i]),
                "at": _at(minute[i]),
            }
            for n, i in enumerate(order)
        ),
    )
    charged = sorted((int(minute[t]) + 3 * 1440, int(card[t]), int(device[t])) for t in thieves)
    _write(
        folder / "chargeback.jsonl",
        ({"card": c, "device": f"d{d}", "at": _at(m)} for m, c, d in charged),
    )
    _write(
        folder / "support.jsonl",
        (
            {"card": c, "action": "unblock" if n % 2 else "call", "at": _at(m + 2880)}
            for n, (m, c, _) in enumerate(charged)
        ),
    )


def _at(minute: int) -> str:
    return (START + timedelta(minutes=int(minute))).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--payments", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    generate(given.folder, given.payments, seed=given.seed)


if __name__ == "__main__":
    main()
