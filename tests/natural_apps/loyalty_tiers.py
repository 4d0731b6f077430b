"""Loyalty points: purchases earn by tier and category, tiers follow a year's spending."""

import random
from bisect import bisect_right

import weir

app = weir.App("loyalty_tiers")
purchase = app.events(
    "purchase",
    "id BIGINT, member BIGINT, cents BIGINT, category STRING, at TIMESTAMP",
    vs="at",
)
refund = app.events("refund", "member BIGINT, cents BIGINT, at TIMESTAMP", vs="at")
redeem = app.events("redeem", "member BIGINT, reward STRING, at TIMESTAMP", vs="at")

spent = app.state("spent", default=0, last="365d")
points = app.state("points", default=0, expires="540d")
tier = app.state("tier", default="basic")
redeemed = app.state("redeemed", default=0)

app.emits("reward", "member BIGINT, reward STRING, left BIGINT")

TIERS = ["basic", "silver", "gold", "platinum"]
THRESHOLDS = [50_000, 150_000, 400_000]
MULTIPLIER = dict(zip(TIERS, (1.0, 1.25, 1.5, 2.0), strict=True))
BONUS = {"travel": 3, "dining": 2}
REWARDS = {"mug": 400, "voucher": 1_000, "flight": 12_000}


def tier_for(cents):
    return TIERS[bisect_right(THRESHOLDS, cents)]


def earned(cents, category, level) -> int:
    base = cents // 100 * BONUS.get(category, 1)
    return int(base * MULTIPLIER[level])


@app.on(purchase)
def earn(e):
    if e.cents <= 0:
        return
    points.add(e.member, earned(e.cents, e.category, tier.get(e.member)))
    spent.add(e.member, e.cents)


@app.on(refund)
def take_away(e):
    spent.add(e.member, -e.cents)
    points.merge(e.member, lambda p: max(0, p - e.cents // 100))


@app.on(purchase, refund)
def regrade(e):
    old = tier.get(e.member)
    new = tier_for(spent.get(e.member))
    if new == old:
        return
    tier.set(e.member, new)
    up = TIERS.index(new) > TIERS.index(old)
    app.emit("tier_change", member=e.member, old=old, new=new, up=up)


@app.on(redeem)
def give(e):
    price = REWARDS.get(e.reward)
    balance = points.get(e.member)
    if price is None:
        app.emit("denied", member=e.member, why=f"no such reward: {e.reward}")
    elif balance < price:
        app.emit("denied", member=e.member, why=f"{price - balance} points short")
    else:
        points.add(e.member, -price)
        redeemed.add(e.member, 1)
        app.emit("reward", member=e.member, reward=e.reward, left=balance - price)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

DAY = 86_400_000_000


def logs():
    draw = random.Random(38)
    purchases = [
        {
            "id": t,
            "member": draw.randrange(12),
            "cents": draw.choice((-500, 900, 4_550, 30_000)),
            "category": draw.choice(("travel", "dining", "books", None)),
            "at": t * 3 * DAY,
        }
        for t in range(400)
    ]
    refunds = [
        {"member": draw.randrange(12), "cents": draw.choice((900, 4_550, 30_000)), "at": t * DAY}
        for t in range(5, 1200, 31)
    ]
    redeems = [
        {
            "member": draw.randrange(14),
            "reward": draw.choice(("mug", "voucher", "flight", "yacht")),
            "at": t * DAY,
        }
        for t in range(2, 1200, 13)
    ]
    return {"purchase": purchases, "refund": refunds, "redeem": redeems}


def loop(events):
    emits, spent, points, tier, redeemed = [], {}, {}, {}, {}
    names = ("basic", "silver", "gold", "platinum")
    for kind, e in events:
        m = e.member
        at, have = points.get(m, (0, 0))
        if e.vs >= at + 540 * DAY:
            have = 0
        if kind == "redeem":
            price = {"mug": 400, "voucher": 1_000, "flight": 12_000}.get(e.reward)
            if price is None or have < price:
                why = f"{price - have} points short" if price else f"no such reward: {e.reward}"
                emits.append(("denied", e.vs, {"member": m, "why": why}))
            else:
                points[m] = (e.vs, have - price)
                redeemed[m] = redeemed.get(m, 0) + 1
                fields = {"member": m, "reward": e.reward, "left": have - price}
                emits.append(("reward", e.vs, fields))
            continue
        level = names.index(tier.get(m, "basic"))
        if kind == "refund":
            spent.setdefault(m, []).append((e.vs, -e.cents))
            points[m] = (e.vs, max(0, have - e.cents // 100))
        elif e.cents > 0:
            factor = {"travel": 3, "dining": 2}.get(e.category, 1)
            gain = int(e.cents // 100 * factor * (1.0, 1.25, 1.5, 2.0)[level])
            points[m] = (e.vs, have + gain)
            spent.setdefault(m, []).append((e.vs, e.cents))
        year = sum(cents for t, cents in spent.get(m, []) if e.vs < t + 365 * DAY)
        new = (year >= 50_000) + (year >= 150_000) + (year >= 400_000)
        if new != level:
            tier[m] = names[new]
            fields = {"member": m, "old": names[level], "new": names[new], "up": new > level}
            emits.append(("tier_change", e.vs, fields))
    return emits, {"tier": tier, "redeemed": redeemed}
