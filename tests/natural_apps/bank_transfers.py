"""A bank: transfers between two accounts, with overdraft limits, fees and reports of large sums."""

import random

import weir

app = weir.App("bank_transfers")
opening = app.events(
    "opening", "account BIGINT, overdraft BIGINT, cents BIGINT, at TIMESTAMP", vs="at"
)
transfer = app.events(
    "transfer", "id BIGINT, source BIGINT, target BIGINT, cents BIGINT, at TIMESTAMP", vs="at"
)

balance = app.state("balance", default=0)
overdraft = app.state("overdraft", default=None, type="BIGINT")
moved_today = app.state("moved_today", default=0, last="1d")
fees = app.state("fees", default=0)

FEE = 25


@app.on(opening)
def open_account(e):
    balance.set(e.account, e.cents)
    overdraft.set(e.account, e.overdraft)


@app.on(transfer)
def move(e):
    limit = overdraft.get(e.source)
    if limit is None or overdraft.get(e.target) is None:
        app.emit("refused", transfer=e.id, why="no such account")
        return
    if e.source == e.target:
        app.emit("refused", transfer=e.id, why="the same account")
        return
    fee = FEE if e.cents > 50_000 else 0
    if balance.get(e.source) - e.cents - fee < -limit:
        app.emit("refused", transfer=e.id, why="not covered")
        return
    balance.add(e.source, -e.cents - fee)
    balance.add(e.target, e.cents)
    fees.add("bank", fee)
    moved_today.add(e.source, e.cents)


@app.on(transfer)
def report(e):
    if moved_today.get(e.source) > 100_000:
        app.emit("large", account=e.source, cents=moved_today.get(e.source))


app.serial(move)  # money goes from any account to any other


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(16)
    hour = 3_600_000_000
    openings = [
        {"account": n, "overdraft": 10_000 * (n % 3), "cents": 60_000, "at": n * hour}
        for n in range(12)
    ]
    transfers = [
        {
            "id": t,
            "source": draw.randrange(13),
            "target": draw.randrange(13),
            "cents": draw.randint(100, 70_000),
            "at": t * hour // 4,
        }
        for t in range(20, 400)
    ]
    return {"opening": openings, "transfer": transfers}


def loop(events):
    emits, balance, overdraft, moved, fees = [], {}, {}, {}, {}
    for name, e in events:
        if name == "opening":
            balance[e.account], overdraft[e.account] = e.cents, e.overdraft
            continue
        fee = 25 if e.cents > 50_000 else 0
        if e.source not in overdraft or e.target not in overdraft:
            emits.append(("refused", e.vs, {"transfer": e.id, "why": "no such account"}))
        elif e.source == e.target:
            emits.append(("refused", e.vs, {"transfer": e.id, "why": "the same account"}))
        elif balance[e.source] - e.cents - fee < -overdraft[e.source]:
            emits.append(("refused", e.vs, {"transfer": e.id, "why": "not covered"}))
        else:
            balance[e.source] -= e.cents + fee
            balance[e.target] += e.cents
            fees["bank"] = fees.get("bank", 0) + fee
            moved.setdefault(e.source, []).append((e.vs, e.cents))
        day = sum(c for at, c in moved.get(e.source, []) if e.vs < at + 24 * 3_600_000_000)
        if day > 100_000:
            emits.append(("large", e.vs, {"account": e.source, "cents": day}))
    return emits, {"balance": balance, "overdraft": overdraft, "fees": fees}
