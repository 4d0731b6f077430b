"""An A/B test: users are assigned by a hash, exposures and purchases are counted by variant."""

import hashlib
import math
import random

import weir

app = weir.App("ab_test")
visit = app.events("visit", "user STRING, country STRING, at BIGINT", vs="at", unit="s")
purchase = app.events("purchase", "user STRING, cents BIGINT, at BIGINT", vs="at", unit="s")

exposed = app.state("exposed", default=False)
exposures = app.state("exposures", default=0)
buyers = app.state("buyers", default=0)
bought = app.state("bought", default=False)
income = app.state("income", default=0)

SALT = "checkout-2026"
VARIANTS = ("control", "green", "large")


def variant_of(user: str) -> str:
    digest = hashlib.sha256(f"{SALT}:{user}".encode()).hexdigest()
    return VARIANTS[int(digest[:8], 16) % len(VARIANTS)]


@app.on(visit)
def expose(e):
    if e.country not in ("DE", "FR"):
        return
    if not exposed.get(e.user):
        exposed.set(e.user, True)
        exposures.add(variant_of(e.user), 1)


@app.on(purchase)
def convert(e):
    if not exposed.get(e.user):
        return
    variant = variant_of(e.user)
    income.add(variant, e.cents)
    if not bought.get(e.user):
        bought.set(e.user, True)
        buyers.add(variant, 1)


def z_score(hits_a: int, all_a: int, hits_b: int, all_b: int) -> float:
    pooled = (hits_a + hits_b) / (all_a + all_b)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / all_a + 1 / all_b))
    return (hits_b / all_b - hits_a / all_a) / spread if spread > 0 else 0.0


@app.on(purchase)
def compare(e):
    variant = variant_of(e.user)
    if variant == "control" or not exposed.get(e.user):
        return
    base, mine = exposures.get("control"), exposures.get(variant)
    if base < 5 or mine < 5:
        return
    z = z_score(buyers.get("control"), base, buyers.get(variant), mine)
    if abs(z) > 1.0:
        app.emit("difference", variant=variant, z=round(z, 3), income=income.get(variant))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(6)
    users = [f"user{n}" for n in range(60)]
    visits = [
        {"user": draw.choice(users), "country": draw.choice(("DE", "FR", "US")), "at": t}
        for t in range(300)
    ]
    purchases = [
        {"user": draw.choice(users), "cents": draw.randint(100, 5000), "at": t}
        for t in range(50, 300, 2)
    ]
    return {"visit": visits, "purchase": purchases}


def loop(events):
    emits, exposed, exposures, buyers, bought, income = [], {}, {}, {}, {}, {}
    for name, e in events:
        digest = hashlib.sha256(f"checkout-2026:{e.user}".encode()).hexdigest()
        variant = ("control", "green", "large")[int(digest[:8], 16) % 3]
        if name == "visit":
            if e.country in ("DE", "FR") and e.user not in exposed:
                exposed[e.user] = True
                exposures[variant] = exposures.get(variant, 0) + 1
            continue
        if e.user not in exposed:
            continue
        income[variant] = income.get(variant, 0) + e.cents
        if e.user not in bought:
            bought[e.user] = True
            buyers[variant] = buyers.get(variant, 0) + 1
        base, mine = exposures.get("control", 0), exposures.get(variant, 0)
        if variant == "control" or base < 5 or mine < 5:
            continue
        a, b = buyers.get("control", 0), buyers.get(variant, 0)
        pooled = (a + b) / (base + mine)
        spread = math.sqrt(pooled * (1 - pooled) * (1 / base + 1 / mine))
        z = (b / mine - a / base) / spread if spread > 0 else 0.0
        if abs(z) > 1.0:
            fields = {"variant": variant, "z": round(z, 3), "income": income[variant]}
            emits.append(("difference", e.vs, fields))
    return emits, {
        "exposed": exposed,
        "exposures": exposures,
        "buyers": buyers,
        "bought": bought,
        "income": income,
    }
