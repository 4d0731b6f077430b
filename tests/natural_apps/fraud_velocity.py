"""Fraud by velocity: rules as objects, each gives points; the sum decides."""

import random
from dataclasses import dataclass, field

import weir

app = weir.App("fraud_velocity")
login = app.events("login", "account BIGINT, ip STRING, ok BOOLEAN, at BIGINT", vs="at", unit="s")
payment = app.events(
    "payment",
    "id BIGINT, account BIGINT, cents BIGINT, country STRING, merchant STRING, at BIGINT",
    vs="at",
    unit="s",
)

failed_logins = app.state("failed_logins", default=0, last="10m")
payments_lately = app.state("payments_lately", default=0, last="5m")
spent_today = app.state("spent_today", default=0, last="1d")
home = app.state("home", default=None, type="STRING")
merchants = app.state("merchants", default=[], type="LIST(STRING)")
blocked = app.state("blocked", default=False, expires="1d")

app.emits("review", "payment BIGINT, score BIGINT")


@dataclass
class Profile:
    payments: int
    spent: int
    failures: int
    is_abroad: bool
    is_new_merchant: bool


@dataclass(frozen=True)
class Limit:
    name: str
    attribute: str
    above: int
    points: int

    def score(self, profile: Profile) -> int:
        return self.points if getattr(profile, self.attribute) > self.above else 0


LIMITS = [
    Limit("velocity", "payments", 3, 40),
    Limit("amount", "spent", 100_000, 30),
    Limit("logins", "failures", 2, 50),
]


@dataclass
class Decision:
    score: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, name: str, points: int) -> None:
        if points:
            self.score += points
            self.reasons.append(name)

    @property
    def verdict(self) -> str:
        if self.score >= 80:
            return "block"
        return "review" if self.score >= 40 else "pass"


def decide(profile: Profile) -> Decision:
    decision = Decision()
    for limit in LIMITS:
        decision.add(limit.name, limit.score(profile))
    if profile.is_abroad:
        decision.add("abroad", 25)
    if profile.is_new_merchant and decision.score:
        decision.add("new merchant", 10)
    return decision


@app.on(login)
def note_login(e):
    if not e.ok:
        failed_logins.add(e.account, 1)


@app.on(payment)
def count(e):
    payments_lately.add(e.account, 1)
    spent_today.add(e.account, e.cents)
    if home.get(e.account) is None:
        home.set(e.account, e.country)


@app.on(payment)
def judge(e):
    profile = Profile(
        payments=payments_lately.get(e.account),
        spent=spent_today.get(e.account),
        failures=failed_logins.get(e.account),
        is_abroad=home.get(e.account) != e.country,
        is_new_merchant=e.merchant not in merchants.get(e.account),
    )
    merchants.add_to_set(e.account, e.merchant)
    if blocked.get(e.account):
        app.emit("declined", payment=e.id, why="blocked")
        return
    decision = decide(profile)
    if decision.verdict == "block":
        blocked.set(e.account, True)
        app.emit("declined", payment=e.id, why=", ".join(decision.reasons))
    elif decision.verdict == "review":
        app.emit("review", payment=e.id, score=decision.score)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(8)
    logins = [
        {
            "account": draw.randrange(10),
            "ip": f"10.0.0.{draw.randrange(9)}",
            "ok": draw.random() < 0.6,
            "at": t,
        }
        for t in range(0, 9000, 45)
    ]
    payments = [
        {
            "id": t,
            "account": draw.randrange(10),
            "cents": draw.randint(100, 30_000),
            "country": draw.choice(("DE", "DE", "DE", "US")),
            "merchant": f"m{draw.randrange(6)}",
            "at": t,
        }
        for t in range(0, 9000, 30)
    ]
    return {"login": logins, "payment": payments}


def loop(events):
    emits, failures, times, cents, home, known, blocked = [], {}, {}, {}, {}, {}, {}
    second = 1_000_000
    for name, e in events:
        a = e.account
        if name == "login":
            if not e.ok:
                failures.setdefault(a, []).append(e.vs)
            continue
        times.setdefault(a, []).append(e.vs)
        cents.setdefault(a, []).append((e.vs, e.cents))
        home.setdefault(a, e.country)
        is_new = e.merchant not in known.setdefault(a, [])
        if is_new:
            known[a].append(e.merchant)
        if a in blocked and e.vs < blocked[a] + 86_400 * second:
            emits.append(("declined", e.vs, {"payment": e.id, "why": "blocked"}))
            continue
        score, why = 0, []
        if sum(e.vs < at + 300 * second for at in times[a]) > 3:
            score, why = score + 40, [*why, "velocity"]
        if sum(c for at, c in cents[a] if e.vs < at + 86_400 * second) > 100_000:
            score, why = score + 30, [*why, "amount"]
        if sum(e.vs < at + 600 * second for at in failures.get(a, [])) > 2:
            score, why = score + 50, [*why, "logins"]
        if home[a] != e.country:
            score, why = score + 25, [*why, "abroad"]
        if is_new and score:
            score, why = score + 10, [*why, "new merchant"]
        if score >= 80:
            blocked[a] = e.vs
            emits.append(("declined", e.vs, {"payment": e.id, "why": ", ".join(why)}))
        elif score >= 40:
            emits.append(("review", e.vs, {"payment": e.id, "score": score}))
    return emits, {"home": home, "merchants": known}
