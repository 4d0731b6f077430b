"""Writes a day in miniature of an advertising network: impressions, clicks, purchases, logins of
users, blocked addresses and campaigns with their budgets. Some users and addresses cheat."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

SECOND = 1_000_000
Row = dict[str, object]


def generate(folder: Path, seconds: int = 600) -> None:
    rng = random.Random(20)
    impressions: list[Row] = []
    clicks: list[Row] = []
    purchases: list[Row] = []
    for number in range(seconds * 2):
        t = number * SECOND // 2
        bot = rng.random() < 0.15
        user = rng.randrange(3) if bot else rng.randrange(3, 60)
        ip = f"10.0.0.{rng.randrange(4) if bot else user}"
        ad = rng.randrange(24)
        impressions.append({"t": t, "user": user, "ip": ip, "ad": ad, "site": rng.randrange(8)})
        if bot or rng.random() < 0.35:
            for again in range(rng.randint(1, 4) if bot else 1):
                wait = rng.randrange(2 * SECOND) if bot else rng.randrange(40 * SECOND)
                at = t + wait + again * 300_000
                clicks.append({"t": at, "user": user, "ip": ip, "ad": ad})
                if not bot and rng.random() < 0.3:
                    bought = at + rng.randrange(60 * SECOND)
                    price = rng.randint(100, 9000)
                    purchases.append({"t": bought, "user": user, "ad": ad, "cents": price})
    for _ in range(30):  # clicks on what was never shown
        t = rng.randrange(seconds) * SECOND
        clicks.append({"t": t, "user": rng.randrange(60), "ip": "10.0.1.1", "ad": 30})
    logins = [
        {"t": rng.randrange(seconds) * SECOND, "user": user, "device": rng.choice(["tv", "phone"])}
        for user in range(3, 60)
        for _ in range(2)
    ]
    logouts = [{"t": rng.randrange(seconds) * SECOND, "user": user} for user in range(3, 60)]
    blocked = [
        {"from": start * SECOND, "until": (start + 90) * SECOND, "ip": f"10.0.0.{ip}"}
        for ip, start in ((0, 60), (2, 200), (17, 300), (1, 350))
    ]
    campaigns = [
        {"from": 0, "until": None, "ad": ad, "owner": ad % 5, "bid": rng.randint(5, 50)}
        for ad in range(22)
    ]
    rows = {
        "impression": impressions,
        "click": clicks,
        "purchase": purchases,
        "login": logins,
        "logout": logouts,
        "blocked": blocked,
        "campaign": campaigns,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in rows.items():
        write(folder / f"{name}.jsonl", found)


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows in the order of their times."""
    ordered = sorted(rows, key=lambda row: (row.get("t", row.get("from")), json.dumps(row)))  # type: ignore[arg-type, return-value]
    path.write_text("".join(json.dumps(row) + "\n" for row in ordered), encoding="utf-8")
