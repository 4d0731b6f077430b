"""Rate limiting: a token bucket for each client; who is refused too often is banned."""

import random

import weir

app = weir.App("rate_limit")
plan_change = app.events("plan_change", "client STRING, plan STRING, at BIGINT", vs="at", unit="ms")
request = app.events(
    "request", "id BIGINT, client STRING, path STRING, at BIGINT", vs="at", unit="ms"
)

plan = app.state("plan", default="free")
tokens = app.state("tokens", default=-1.0)
refilled = app.state("refilled", default=0)
refusals = app.state("refusals", default=0, last="10s")
banned = app.state("banned", default=False, expires="30s")

RATE = {"free": 1.0, "pro": 5.0, "team": 20.0}  # tokens a second
BURST = {"free": 5.0, "pro": 20.0, "team": 50.0}
COST = {"/search": 2.0, "/export": 5.0}


@app.on(plan_change)
def change(e):
    plan.set(e.client, e.plan)


@app.on(request)
def limit(e):
    if banned.get(e.client):
        app.emit("refused", request=e.id, status=403)
        return
    kind = plan.get(e.client)
    level = tokens.get(e.client)
    if level < 0:
        level = BURST[kind]
    else:
        seconds = (e.vs - refilled.get(e.client)) / 1_000_000
        level = min(BURST[kind], level + seconds * RATE[kind])
    cost = COST.get(e.path, 1.0)
    refilled.set(e.client, e.vs)
    if level >= cost:
        tokens.set(e.client, level - cost)
    else:
        tokens.set(e.client, level)
        refusals.add(e.client, 1)
        app.emit("refused", request=e.id, status=429)
        if refusals.get(e.client) > 5:
            banned.set(e.client, True)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(10)
    clients = [f"c{n}" for n in range(6)]
    changes = [
        {"client": draw.choice(clients), "plan": draw.choice(("free", "pro", "team")), "at": t}
        for t in range(0, 60_000, 9000)
    ]
    requests = [
        {
            "id": t,
            "client": draw.choice(clients),
            "at": t,
            "path": draw.choice(("/", "/search", "/export", "/item")),
        }
        for t in range(0, 60_000, 130)
    ]
    return {"plan_change": changes, "request": requests}


def loop(events):
    emits, plan, tokens, refilled, refused, banned = [], {}, {}, {}, {}, {}
    rate = {"free": 1.0, "pro": 5.0, "team": 20.0}
    burst = {"free": 5.0, "pro": 20.0, "team": 50.0}
    for name, e in events:
        c = e.client
        if name == "plan_change":
            plan[c] = e.plan
            continue
        if c in banned and e.vs < banned[c] + 30_000_000:
            emits.append(("refused", e.vs, {"request": e.id, "status": 403}))
            continue
        kind = plan.get(c, "free")
        level = burst[kind]
        if tokens.get(c, -1.0) >= 0:
            level = min(level, tokens[c] + (e.vs - refilled[c]) / 1_000_000 * rate[kind])
        cost = {"/search": 2.0, "/export": 5.0}.get(e.path, 1.0)
        refilled[c], tokens[c] = e.vs, level
        if level >= cost:
            tokens[c] = level - cost
            continue
        refused.setdefault(c, []).append(e.vs)
        emits.append(("refused", e.vs, {"request": e.id, "status": 429}))
        if sum(e.vs < at + 10_000_000 for at in refused[c]) > 5:
            banned[c] = e.vs
    return emits, {"plan": plan, "tokens": tokens, "refilled": refilled}
