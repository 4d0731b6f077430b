"""Fraud with cards: how much a card spends, whose device it is used from, and who is blocked.

    python generate.py data
    weir replay app.py --log chargeback=data/chargeback.jsonl --log support=data/support.jsonl \\
        --log payment=data/payment.jsonl --out out --format jsonl
"""

from __future__ import annotations

import weir

app = weir.App("payments")
chargeback = app.events("chargeback", "card BIGINT, device STRING, at TIMESTAMP", vs="at")
support = app.events("support", "card BIGINT, action STRING, at TIMESTAMP", vs="at")
payment = app.events(
    "payment", "id BIGINT, card BIGINT, device STRING, cents BIGINT, at TIMESTAMP", vs="at"
)

per_hour = app.param("per_hour", 6)

payments = app.state("payments", default=0, last="1h")  # of a card, within an hour
spent = app.state("spent", default=0, last="1d")  # cents of a card, within a day
owner = app.state("owner", default=-1)  # the card that used a device first
borrowed = app.state("borrowed", default=0)  # payments of a card from devices of others
blocked = app.state("blocked", default=False, expires="30d")  # cards
burnt = app.state("burnt", default=0)  # chargebacks of a device


@app.on(chargeback)
def block(e):
    blocked.set(e.card, True)
    burnt.add(e.device, 1)


@app.on(support)
def unblock(e):
    if e.action == "unblock":
        blocked.set(e.card, False)


@app.on(payment)
def count(e):
    payments.add(e.card, 1)
    spent.add(e.card, e.cents)


@app.on(payment)
def claim(e):
    first = owner.get(e.device)
    if first < 0:
        owner.set(e.device, e.card)
    elif first != e.card:
        borrowed.add(e.card, 1)


@app.on(payment)
def decide(e):
    if blocked.get(e.card):
        app.emit("declined", payment=e.id, card=e.card, reason="the card is blocked")
        return
    if burnt.get(e.device) > 1:
        app.emit("declined", payment=e.id, card=e.card, reason=f"device {e.device} is burnt")
        return
    within = payments.get(e.card)
    if within > per_hour:
        app.emit("declined", payment=e.id, card=e.card, reason=f"{within} payments in an hour")
    elif spent.get(e.card) > 200_000 and borrowed.get(e.card) > 2:
        app.emit("review", payment=e.id, card=e.card, spent=spent.get(e.card) / 100)
