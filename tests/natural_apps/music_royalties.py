"""Music royalties: plays of half a minute count, unless by a bot, and are shared by contract."""

import random
from decimal import ROUND_HALF_EVEN, Decimal

import weir

app = weir.App("music_royalties")
contract = app.events(
    "contract",
    "track STRING, shares LIST(STRUCT(payee STRING, percent BIGINT)), at TIMESTAMP",
    vs="at",
)
stream = app.events(
    "stream",
    "track STRING, listener BIGINT, seconds BIGINT, plan STRING, country STRING, at TIMESTAMP",
    vs="at",
)
payout = app.events("payout", "payee STRING, at TIMESTAMP", vs="at")

shares_of = app.state(
    "shares_of", default=[], type="LIST(STRUCT(payee STRING, percent BIGINT))", key="STRING"
)
plays = app.state("plays", default=0)
repeats = app.state("repeats", default=0, last="1h")
owed = app.state("owed", default=Decimal("0.000000"), type="DECIMAL(18, 6)", key="STRING")
unclaimed = app.state("unclaimed", default=Decimal("0.000000"), type="DECIMAL(18, 6)", key="STRING")

app.emits("paid", "payee STRING, euros DECIMAL(18, 2)")
app.emits("milestone", "track STRING, plays BIGINT")

RATES = {"premium": Decimal("0.0042"), "family": Decimal("0.0031"), "free": Decimal("0.0009")}
COUNTRY_FACTOR = {"CH": Decimal("1.3"), "IN": Decimal("0.4")}
MICRO = Decimal("0.000001")
CENT = Decimal("0.01")
MINIMUM = Decimal("0.05")


def worth(plan: str, country: str) -> Decimal:
    rate = RATES.get(plan, RATES["free"])
    return rate * COUNTRY_FACTOR.get(country, Decimal(1))


@app.on(contract)
def sign(e):
    total = sum(share.percent for share in e.shares)
    if total > 100:
        app.emit("bad_contract", track=e.track, percent=total)
        return
    shares_of.set(e.track, e.shares)


@app.on(stream)
def pay_for(e):
    if e.seconds < 30:
        return
    repeats.add((e.listener, e.track), 1)
    if repeats.get((e.listener, e.track)) > 3:
        app.emit("ignored", track=e.track, listener=e.listener)
        return
    plays.add(e.track, 1)
    amount = worth(e.plan, e.country)
    left = amount
    for share in shares_of.get(e.track):
        part = (amount * share.percent / 100).quantize(MICRO, rounding=ROUND_HALF_EVEN)
        owed.add(share.payee, part)
        left -= part
    if left > 0:
        unclaimed.add(e.track, left.quantize(MICRO))


@app.on(stream)
def celebrate(e):
    count = plays.get(e.track)
    if e.seconds >= 30 and count and count % 25 == 0:
        app.emit("milestone", track=e.track, plays=count)


@app.on(payout)
def settle(e):
    balance = owed.get(e.payee)
    if balance < MINIMUM:
        return
    euros = balance.quantize(CENT, rounding=ROUND_HALF_EVEN)
    owed.add(e.payee, -euros)
    app.emit("paid", payee=e.payee, euros=euros)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

MINUTE = 60_000_000


def logs():
    draw = random.Random(44)
    tracks = [f"track-{n}" for n in range(6)]
    payees = ["ann", "bob", "cleo", "label"]
    contracts = [
        {
            "track": draw.choice(tracks),
            "shares": [
                {"payee": p, "percent": draw.choice((10, 25, 33, 50))}
                for p in draw.sample(payees, draw.randint(1, 3))
            ],
            "at": t * MINUTE,
        }
        for t in range(0, 1200, 30)
    ]
    streams = [
        {
            "track": draw.choice(tracks),
            "listener": draw.choice((1, 2, 3, 66, 66, 66, 66, 66)),
            "seconds": draw.choice((12, 29, 30, 180, 240)),
            "plan": draw.choice(("premium", "family", "free", "trial")),
            "country": draw.choice(("CH", "IN", "DE", None)),
            "at": t * MINUTE,
        }
        for t in range(0, 1200, 2)
    ]
    payouts = [{"payee": draw.choice(payees), "at": t * MINUTE} for t in range(100, 1200, 45)]
    return {"contract": contracts, "stream": streams, "payout": payouts}


def loop(events):
    emits, shares, plays, times, owed, unclaimed = [], {}, {}, {}, {}, {}
    for name, e in events:
        if name == "contract":
            total = 0
            for share in e.shares:
                total += share["percent"]
            if total <= 100:
                shares[e.track] = e.shares
            else:
                emits.append(("bad_contract", e.vs, {"track": e.track, "percent": total}))
        elif name == "payout":
            have = owed.get(e.payee, Decimal(0))
            if have >= Decimal("0.05"):
                euros = Decimal(round(have * 100)) / 100
                owed[e.payee] = have - euros
                emits.append(("paid", e.vs, {"payee": e.payee, "euros": euros}))
        elif e.seconds >= 30:
            heard = times.setdefault((e.listener, e.track), [])
            heard.append(e.vs)
            if sum(e.vs < t + 60 * MINUTE for t in heard) > 3:
                emits.append(("ignored", e.vs, {"track": e.track, "listener": e.listener}))
            else:
                plays[e.track] = plays.get(e.track, 0) + 1
                cents = {"premium": 42, "family": 31}.get(e.plan, 9)
                micros = cents * {"CH": 130, "IN": 40}.get(e.country, 100)
                left = micros
                for share in shares.get(e.track, []):
                    part = round(Decimal(micros * share["percent"]) / 100)
                    owed[share["payee"]] = owed.get(share["payee"], 0) + Decimal(part) / 1_000_000
                    left -= part
                if left > 0:
                    unclaimed[e.track] = unclaimed.get(e.track, 0) + Decimal(left) / 1_000_000
            count = plays.get(e.track, 0)
            if count and count % 25 == 0:
                emits.append(("milestone", e.vs, {"track": e.track, "plays": count}))
    return emits, {"shares_of": shares, "plays": plays, "owed": owed, "unclaimed": unclaimed}
