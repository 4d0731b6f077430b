"""Insurance claims: a state machine for each claim, paid up to what the policy has left."""

import random
import re
from dataclasses import dataclass

import weir

app = weir.App("insurance_claims")
policy = app.events(
    "policy",
    "number STRING, holder STRING, limit_cents BIGINT, deductible BIGINT, at BIGINT",
    vs="at",
    unit="s",
)
step = app.events(
    "step",
    "claim STRING, policy STRING, action STRING, cents BIGINT, note STRING, at BIGINT",
    vs="at",
    unit="s",
)

remaining = app.state("remaining", default=0, key="STRING")
deductible = app.state("deductible", default=0, key="STRING")
status = app.state("status", default="none", key="STRING")
assessed = app.state("assessed", default=0, key="STRING")
filed_lately = app.state("filed_lately", default=0, last="30d", key="STRING")

app.emits("invalid", "claim STRING, why STRING")
app.emits("paid", "claim STRING, policy STRING, cents BIGINT, is_capped BOOLEAN")
app.emits("referred", "claim STRING, points BIGINT")

TRANSITIONS = {
    ("none", "file"): "filed",
    ("filed", "assess"): "assessed",
    ("assessed", "assess"): "assessed",
    ("assessed", "approve"): "approved",
    ("approved", "pay"): "paid",
    ("filed", "deny"): "denied",
    ("assessed", "deny"): "denied",
    ("denied", "appeal"): "filed",
    ("filed", "withdraw"): "withdrawn",
    ("assessed", "withdraw"): "withdrawn",
}
NUMBER = re.compile(r"(?P<line>[A-Z]{2})-(?P<year>\d{4})-(?P<serial>\d+)")


class BadNumber(ValueError):
    pass


@dataclass(frozen=True)
class PolicyNumber:
    line: str
    year: int
    serial: int

    @classmethod
    def parse(cls, text: str | None) -> "PolicyNumber":
        found = NUMBER.fullmatch((text or "").strip())
        if not found:
            raise BadNumber(f"{text!r} is no policy number")
        return cls(found["line"], int(found["year"]), int(found["serial"]))

    def __str__(self) -> str:
        return f"{self.line}-{self.year}-{self.serial}"


def suspicion(note: str, recent: int, line: str) -> int:
    points = 0
    words = set(note.lower().split())
    if words & {"cash", "friend", "urgent"}:
        points += 2
    if recent > 2:
        points += recent
    if line == "MV" and "total" in words:
        points += 1
    return points


@app.on(policy)
def write(e):
    number = str(PolicyNumber.parse(e.number))
    remaining.add(number, e.limit_cents)
    deductible.set(number, e.deductible)


@app.on(step)
def advance(e):
    try:
        parsed = PolicyNumber.parse(e.policy)
    except BadNumber as error:
        app.emit("invalid", claim=e.claim, why=str(error))
        return
    number = str(parsed)
    now = status.get(e.claim)
    new = TRANSITIONS.get((now, e.action))
    if new is None:
        app.emit("invalid", claim=e.claim, why=f"cannot {e.action} what is {now}")
        return

    if e.action == "file":
        filed_lately.add(number, 1)
        points = suspicion(e.note or "", filed_lately.get(number), parsed.line)
        if points >= 3:
            app.emit("referred", claim=e.claim, points=points)
    elif e.action == "assess":
        assessed.set(e.claim, max(0, e.cents or 0))
    elif e.action == "pay":
        wanted = assessed.get(e.claim) - deductible.get(number)
        cents = min(max(wanted, 0), remaining.get(number))
        remaining.add(number, -cents)
        app.emit("paid", claim=e.claim, policy=number, cents=cents, is_capped=cents < wanted)
    status.set(e.claim, new)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(37)
    numbers = [f"{line}-{year}-{n}" for n, line in enumerate(("MV", "HO")) for year in (2022, 2023)]
    policies = [
        {
            "number": number if n % 2 else f" {number} ",
            "holder": f"h{n}",
            "limit_cents": draw.randrange(500_000, 900_000),
            "deductible": draw.choice((0, 20_000)),
            "at": n,
        }
        for n, number in enumerate(numbers * 2)
    ]
    notes = [None, "hail damage", "URGENT please pay cash", "total loss after crash", "flooding"]
    path, done = ("file", "assess", "approve", "pay"), {}
    steps = []
    for t in range(10, 430):
        claim = draw.randrange(t // 6, t // 6 + 8)
        number = numbers[claim % 4] if draw.random() < 0.97 else draw.choice(("X-1", None))
        action = draw.choice(
            ("file", "assess", "approve", "pay", "pay", "deny", "appeal", "withdraw")
        )
        if draw.random() < 0.7:
            action = path[min(done.get(claim, 0), 3)]
            done[claim] = done.get(claim, 0) + 1
        steps.append(
            {
                "claim": f"c{claim}",
                "policy": number,
                "action": action,
                "cents": draw.choice((None, 5_000, 90_000, 250_000)),
                "note": draw.choice(notes),
                "at": t * 14_400,
            }
        )
    return {"policy": policies, "step": steps}


def loop(events):
    graph = {
        "none": {"file": "filed"},
        "filed": {"assess": "assessed", "deny": "denied", "withdraw": "withdrawn"},
        "assessed": {
            "assess": "assessed",
            "approve": "approved",
            "deny": "denied",
            "withdraw": "withdrawn",
        },
        "approved": {"pay": "paid"},
        "denied": {"appeal": "filed"},
    }
    emits, left, own_share, status, worth, filed = [], {}, {}, {}, {}, {}
    for name, e in events:
        if name == "policy":
            number = e.number.strip()
            left[number] = left.get(number, 0) + e.limit_cents
            own_share[number] = e.deductible
            continue
        if e.policy in ("X-1", None):
            why = f"{e.policy!r} is no policy number"
            emits.append(("invalid", e.vs, {"claim": e.claim, "why": why}))
            continue
        now = status.get(e.claim, "none")
        if e.action not in graph.get(now, {}):
            why = f"cannot {e.action} what is {now}"
            emits.append(("invalid", e.vs, {"claim": e.claim, "why": why}))
            continue
        status[e.claim] = graph[now][e.action]
        if e.action == "file":
            times = filed.setdefault(e.policy, [])
            times.append(e.vs)
            recent = len([t for t in times if e.vs < t + 30 * 86_400_000_000])
            note = (e.note or "").lower()
            points = 2 if "urgent" in note else 0
            points += recent if recent > 2 else 0
            points += e.policy.startswith("MV") and "total" in note
            if points >= 3:
                emits.append(("referred", e.vs, {"claim": e.claim, "points": points}))
        elif e.action == "assess":
            worth[e.claim] = e.cents or 0
        elif e.action == "pay":
            wanted = worth.get(e.claim, 0) - own_share[e.policy]
            cents = min(wanted, left[e.policy]) if wanted > 0 else 0
            left[e.policy] -= cents
            fields = {"claim": e.claim, "policy": e.policy, "cents": cents}
            emits.append(("paid", e.vs, fields | {"is_capped": cents < wanted}))
    return emits, {
        "remaining": left,
        "deductible": own_share,
        "status": status,
        "assessed": worth,
    }
