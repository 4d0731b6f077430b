"""Writes the events of Nexmark from its public definition: of every 50, one is a person, three are
auctions and 46 are bids; some auctions, bidders and sellers are hot. Always the same for a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

BEGIN = datetime(2015, 7, 14, 23, 58)
"""Two minutes before midnight, so that a small log has two days."""
STATES = {"OR": "Portland", "ID": "Boise", "CA": "Palo Alto", "WA": "Seattle", "AZ": "Phoenix"}
NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter"]
SURNAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones"]
CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
FIRST = 1000
"""The first number of persons and of auctions."""
Row = dict[str, object]


def generate(folder: Path, events: int = 2500, seed: int = 1, per_second: int = 10) -> None:
    rng = random.Random(seed)
    rows: dict[str, list[Row]] = {"person": [], "auction": [], "bid": []}
    for number in range(events):
        at = BEGIN + timedelta(seconds=number / per_second, microseconds=rng.randrange(50_000))
        persons, auctions = len(rows["person"]), len(rows["auction"])
        place = number % 50
        if place == 0:
            rows["person"].append(person(rng, at, FIRST + persons))
        elif place <= 3:
            rows["auction"].append(auction(rng, at, FIRST + auctions, persons))
        else:
            rows["bid"].append(bid(rng, at, auctions, persons))
    rows["side"] = [
        {"since": BEGIN.isoformat(), "until": None, "key": k, "value": f"v{k}"} for k in range(100)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for name, found in rows.items():
        write(folder / f"{name}.jsonl", found)


def extra(rng: random.Random) -> str:
    return "".join(rng.choices("abcdefghij", k=rng.randint(4, 16)))


def price(rng: random.Random) -> int:
    """In cents: from 1 to 1 000 000 dollars, evenly by its logarithm."""
    return round(10 ** (rng.random() * 6) * 100)


def person(rng: random.Random, at: datetime, number: int) -> Row:
    name = f"{rng.choice(NAMES)} {rng.choice(SURNAMES)}"
    state = rng.choice(list(STATES))
    return {
        "id": number,
        "name": name,
        "emailAddress": f"{extra(rng)}@{extra(rng)}.com",
        "creditCard": " ".join(f"{rng.randrange(10_000):04}" for _ in range(4)),
        "city": STATES[state],
        "state": state,
        "dateTime": at.isoformat(),
        "extra": extra(rng),
    }


def auction(rng: random.Random, at: datetime, number: int, persons: int) -> Row:
    """Three of four auctions are of a hot seller: the newest person whose number ends in 0."""
    hot = (persons - 1) // 10 * 10
    seller = hot if rng.random() < 0.75 else rng.randrange(persons)
    first = price(rng)
    return {
        "id": number,
        "itemName": extra(rng),
        "description": extra(rng),
        "initialBid": first,
        "reserve": first + price(rng),
        "dateTime": at.isoformat(),
        "expires": (at + timedelta(seconds=rng.randint(5, 40))).isoformat(),
        "seller": FIRST + seller,
        "category": rng.randint(10, 14),
        "extra": extra(rng),
    }


def bid(rng: random.Random, at: datetime, auctions: int, persons: int) -> Row:
    """Half of the bids are for a hot auction, three of four of a hot bidder."""
    hot = (auctions - 1) // 5 * 5
    for_auction = hot if rng.random() < 0.5 else rng.randrange(max(0, auctions - 12), auctions)
    bidder = (persons - 1) // 10 * 10 if rng.random() < 0.75 else rng.randrange(persons)
    if rng.random() < 0.5:
        channel = rng.choice(CHANNELS)
        url = f"https://www.nexmark.com/{extra(rng)}/{extra(rng)}/{extra(rng)}/item.htm?query=1"
    else:
        number = rng.randrange(10_000)
        channel = f"channel-{number}"
        path = f"{extra(rng)}/{extra(rng)}/{extra(rng)}"
        url = f"https://www.nexmark.com/{path}/item.htm?query=1&channel_id={number}"
    return {
        "auction": FIRST + for_auction,
        "bidder": FIRST + bidder,
        "price": price(rng),
        "channel": channel,
        "url": url,
        "dateTime": at.isoformat(),
        "extra": extra(rng),
    }


def write(path: Path, rows: Iterable[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
