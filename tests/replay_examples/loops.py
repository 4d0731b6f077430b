"""The examples of `examples/replay` as plain loops: dicts, one event after the other.

They know nothing of Weir. Each takes the events of all logs in log order, as (vs, type, row), and
returns what is emitted under each name, as (vs, row).
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Row = Mapping[str, Any]
Emitted = dict[str, list[tuple[int, dict[str, Any]]]]

HOUR = 3_600_000_000
DAY = 24 * HOUR
MINUTE = HOUR // 60


def in_log_order(logs: Mapping[str, Sequence[tuple[int, Row]]]) -> list[tuple[int, str, Row]]:
    """The events of several logs, which are named in order of their declaration."""
    events = [
        (vs, number, offset, name, row)
        for number, (name, rows) in enumerate(logs.items())
        for offset, (vs, row) in enumerate(rows)
    ]
    return [(vs, name, row) for vs, _, _, name, row in sorted(events, key=lambda e: e[:3])]


class Window:
    """What was put in lately: a read at r sees what came at t with t ≤ r < t + span."""

    def __init__(self, span: int) -> None:
        self._span = span
        self._times: list[int] = []
        self._values: list[Any] = []

    def put(self, at: int, value: Any) -> None:
        self._times.append(at)
        self._values.append(value)

    def values(self, at: int) -> list[Any]:
        return self._values[bisect.bisect_right(self._times, at - self._span) :]


def spam(events: Iterable[tuple[int, str, Row]], threshold: float = 0.2) -> Emitted:
    email = re.compile(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9-]+\.[a-zA-Z]+")
    found: Emitted = {"spam": []}
    friends = set()
    to_friends: defaultdict[int, int] = defaultdict(int)
    to_others: defaultdict[int, int] = defaultdict(int)
    sent: defaultdict[str, int] = defaultdict(int)
    emails: defaultdict[str, int] = defaultdict(int)
    for vs, kind, e in events:
        if kind == "friendship":
            friends.add((e["a"], e["b"]))
            continue
        sender, ip = e["sender"], e["ip"]
        counts = to_friends if (sender, e["recipient"]) in friends else to_others
        counts[sender] += 1
        sent[ip] += 1
        emails[ip] += email.search(e["content"]) is not None
        if to_others[sender] > 2 * to_friends[sender] and emails[ip] > threshold * sent[ip]:
            found["spam"].append((vs, {"message": e["id"], "sender": sender}))
    return found


def payments(events: Iterable[tuple[int, str, Row]], per_hour: int = 6) -> Emitted:
    found: Emitted = {"declined": [], "review": []}
    paid: defaultdict[int, Window] = defaultdict(lambda: Window(HOUR))
    spent: defaultdict[int, Window] = defaultdict(lambda: Window(DAY))
    owner: dict[str, int] = {}
    borrowed: defaultdict[int, int] = defaultdict(int)
    blocked: dict[int, tuple[int, bool]] = {}
    burnt: defaultdict[str, int] = defaultdict(int)
    for vs, kind, e in events:
        card = e["card"]
        if kind == "chargeback":
            blocked[card] = (vs, True)
            burnt[e["device"]] += 1
            continue
        if kind == "support":
            if e["action"] == "unblock":
                blocked[card] = (vs, False)
            continue
        paid[card].put(vs, 1)
        spent[card].put(vs, e["cents"])
        borrowed[card] += owner.setdefault(e["device"], card) != card
        since, is_blocked = blocked.get(card, (vs, False))
        row = {"payment": e["id"], "card": card}
        within, total = len(paid[card].values(vs)), sum(spent[card].values(vs))
        if is_blocked and vs < since + 30 * DAY:
            found["declined"].append((vs, row | {"reason": "the card is blocked"}))
        elif burnt[e["device"]] > 1:
            reason = f"device {e['device']} is burnt"
            found["declined"].append((vs, row | {"reason": reason}))
        elif within > per_hour:
            found["declined"].append((vs, row | {"reason": f"{within} payments in an hour"}))
        elif total > 200_000 and borrowed[card] > 2:
            found["review"].append((vs, row | {"spent": total / 100}))
    return found


def trading(events: Iterable[tuple[int, str, Row]], margin: float = 0.002) -> Emitted:
    found: Emitted = {"orders": [], "blocks": []}
    prices: defaultdict[str, Window] = defaultdict(lambda: Window(30 * MINUTE))
    traded: defaultdict[str, Window] = defaultdict(lambda: Window(10 * MINUTE))
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    bought: defaultdict[str, float] = defaultdict(float)
    profit: defaultdict[str, Fraction] = defaultdict(Fraction)
    for vs, _, e in events:
        symbol, price, size = e["symbol"], e["price"], e["size"]
        prices[symbol].put(vs, price)
        traded[symbol].put(vs, (size, price * size))
        sizes[symbol].append(size)
        high = sorted(prices[symbol].values(vs), reverse=True)[:3]
        lately = traded[symbol].values(vs)
        mean = float(sum(Fraction(t) for _, t in lately)) / sum(s for s, _ in lately)
        at = bought[symbol]
        if at == 0.0:
            if len(high) == 3 and price >= high[0] and price > high[2] * (1 + margin):
                bought[symbol] = price
                row = {"symbol": symbol, "side": "buy", "price": price}
                found["orders"].append((vs, row))
        elif price < mean:
            bought[symbol] = 0.0
            profit[symbol] += Fraction(price - at)
            found["orders"].append((vs, {"symbol": symbol, "side": "sell", "price": price}))
        top = sorted(sizes[symbol], reverse=True)[:5]
        if len(top) == 5 and size > top[4] * 3:
            row = {"symbol": symbol, "size": size, "profit": float(profit[symbol])}
            found["blocks"].append((vs, row))
    return found


def features(events: Iterable[tuple[int, str, Row]]) -> Emitted:
    found: Emitted = {"features": []}
    user_seen: defaultdict[int, int] = defaultdict(int)
    user_clicks: defaultdict[int, int] = defaultdict(int)
    ad_seen: defaultdict[int, int] = defaultdict(int)
    ad_clicks: defaultdict[int, int] = defaultdict(int)
    lately: defaultdict[int, Window] = defaultdict(lambda: Window(6 * HOUR))
    last: dict[int, int] = {}
    for vs, kind, e in events:
        user, ad = e["user"], e["ad"]
        if kind == "click":
            user_clicks[user] += 1
            ad_clicks[ad] += 1
            lately[ad].put(vs, 1)
            last[user] = vs
            continue
        row = {
            "impression": e["id"],
            "user_rate": (user_clicks[user] + 1) / (user_seen[user] + 3),
            "ad_rate": (ad_clicks[ad] + 1) / (ad_seen[ad] + 3),
            "ad_lately": len(lately[ad].values(vs)),
            "hours": (vs - last[user]) // HOUR if user in last else -1,
        }
        found["features"].append((vs, row))
        user_seen[user] += 1
        ad_seen[ad] += 1
    return found
