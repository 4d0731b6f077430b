"""A feature store: what was known of a customer and a merchant when a loan was asked for."""

import math
import random
from dataclasses import dataclass

import weir

app = weir.App("feature_store")
payment = app.events(
    "payment", "customer BIGINT, merchant STRING, cents BIGINT, at TIMESTAMP", vs="at"
)
salary = app.events("salary", "customer BIGINT, cents BIGINT, at TIMESTAMP", vs="at")
request = app.events(
    "request", "id BIGINT, customer BIGINT, merchant STRING, cents BIGINT, at TIMESTAMP", vs="at"
)

spent = app.state("spent", default=0, last="30d")
payments = app.state("payments", default=0, last="30d")
largest = app.state("largest", default=0, last="90d")
income = app.state("income", default=[], type="LIST(BIGINT)")
merchant_volume = app.state("merchant_volume", default=0)
asked = app.state("asked", default=0, last="90d")
app.emits(
    "features",
    "request BIGINT, ratio DOUBLE, spread DOUBLE, activity DOUBLE, merchant DOUBLE, "
    "known BOOLEAN, weekend BOOLEAN, asked BIGINT, largest BIGINT, spent BIGINT",
)
seen_at = app.state("seen_at", default=[], type="LIST(STRING)")


@dataclass
class Features:
    ratio: float
    spread: float
    activity: float
    merchant: float
    known: bool
    weekend: bool

    def clipped(self) -> "Features":
        self.ratio = min(self.ratio, 10.0)
        self.spread = max(-1.0, min(1.0, self.spread))
        return self


def trend(values: list[int]) -> float:
    if len(values) < 2:
        return 0.0
    recent = values[-3:]
    mean = sum(values) / len(values)
    return (sum(recent) / len(recent) - mean) / mean if mean else 0.0


@app.on(payment)
def on_payment(e):
    spent.add(e.customer, e.cents)
    payments.add(e.customer, 1)
    largest.max(e.customer, e.cents)
    merchant_volume.add(e.merchant, e.cents)
    seen_at.add_to_set(e.customer, e.merchant)


@app.on(salary)
def on_salary(e):
    income.append(e.customer, e.cents)


@app.on(request)
def features(e):
    salaries = income.get(e.customer)
    monthly = sum(salaries[-3:]) / 3 if salaries else 0
    known = Features(
        ratio=e.cents / monthly if monthly else 10.0,
        spread=trend(salaries),
        activity=math.log1p(payments.get(e.customer)),
        merchant=math.log10(merchant_volume.get(e.merchant) + 1),
        known=e.merchant in seen_at.get(e.customer),
        weekend=e.at.isoweekday() > 5,
    ).clipped()
    app.emit(
        "features",
        request=e.id,
        ratio=known.ratio,
        spread=known.spread,
        activity=known.activity,
        merchant=known.merchant,
        known=known.known,
        weekend=known.weekend,
        asked=asked.get(e.customer),
        largest=largest.get(e.customer),
        spent=spent.get(e.customer),
    )
    asked.add(e.customer, 1)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

DAY = 86_400_000_000


def logs():
    draw = random.Random(27)

    def at(t):
        return 20_000 * DAY + t * DAY // 3

    payments = [
        {
            "customer": draw.randrange(12),
            "merchant": f"m{draw.randrange(6)}",
            "cents": draw.randint(100, 40_000),
            "at": at(t),
        }
        for t in range(300)
    ]
    salaries = [
        {"customer": n, "cents": 200_000 + 10_000 * draw.randrange(9), "at": at(t) + 1}
        for t in range(0, 300, 60)
        for n in range(10)
    ]
    requests = [
        {
            "id": t,
            "customer": draw.randrange(12),
            "merchant": f"m{draw.randrange(7)}",
            "cents": draw.randint(1000, 900_000),
            "at": at(t) + 2,
        }
        for t in range(5, 300, 4)
    ]
    return {"payment": payments, "salary": salaries, "request": requests}


def loop(events):
    emits, paid, income, volume, asked, seen = [], {}, {}, {}, {}, {}
    for name, e in events:
        c = e.customer
        if name == "payment":
            paid.setdefault(c, []).append((e.vs, e.cents))
            volume[e.merchant] = volume.get(e.merchant, 0) + e.cents
            if e.merchant not in seen.setdefault(c, []):
                seen[c].append(e.merchant)
            continue
        if name == "salary":
            income.setdefault(c, []).append(e.cents)
            continue
        known = income.get(c, [])
        monthly = sum(known[-3:]) / 3
        month = [cents for at, cents in paid.get(c, []) if e.vs < at + 30 * DAY]
        quarter = [cents for at, cents in paid.get(c, []) if e.vs < at + 90 * DAY]
        spread = 0.0
        if len(known) > 1:
            mean = sum(known) / len(known)
            spread = max(-1.0, min(1.0, (sum(known[-3:]) / len(known[-3:]) - mean) / mean))
        fields = {
            "request": e.id,
            "ratio": min(10.0, e.cents / monthly) if monthly else 10.0,
            "spread": spread,
            "activity": math.log1p(len(month)),
            "merchant": math.log10(volume.get(e.merchant, 0) + 1),
            "known": e.merchant in seen.get(c, []),
            "weekend": e.at.weekday() >= 5,
            "asked": sum(e.vs < at + 90 * DAY for at in asked.get(c, [])),
            "largest": max(quarter, default=0),
            "spent": sum(month),
        }
        emits.append(("features", e.vs, fields))
        asked.setdefault(c, []).append(e.vs)
    return emits, {"income": income, "merchant_volume": volume, "seen_at": seen}
