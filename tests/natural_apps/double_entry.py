"""A ledger with double entry: postings that balance move money, and months are closed."""

import random
from dataclasses import dataclass
from datetime import date

import weir

app = weir.App("double_entry")
posting = app.events(
    "posting",
    "id BIGINT, book STRING, lines LIST(STRUCT(account STRING, cents BIGINT)), at TIMESTAMP",
    vs="at",
)
closing = app.events("closing", "book STRING, at TIMESTAMP", vs="at")

balance = app.state("balance", default=0)
turnover = app.state("turnover", default=0)
accounts = app.state("accounts", default=[], type="LIST(STRING)")
rejected = app.state("rejected", default=0)
closed_until = app.state("closed_until", default=date(1970, 1, 1))

app.emits("refused", "posting BIGINT, why STRING")


@dataclass
class Check:
    total: int = 0
    debit: int = 0
    problem: str = ""

    def take(self, account: str, cents: int) -> None:
        if ":" not in account:
            self.problem = self.problem or f"{account} has no class"
        self.total += cents
        if cents > 0:
            self.debit += cents


def checked(lines) -> Check:
    check = Check()
    for line in lines:
        check.take(line.account, line.cents)
    if len(lines) < 2:
        check.problem = "one line only"
    elif check.total != 0 and not check.problem:
        check.problem = f"off by {check.total}"
    return check


@app.on(posting)
def post(e):
    check = checked(e.lines)
    if e.at.date() <= closed_until.get(e.book):
        check.problem = "the month is closed"
    if check.problem:
        rejected.add(e.book, 1)
        app.emit("refused", posting=e.id, why=check.problem)
        return
    for line in e.lines:
        balance.add((e.book, line.account), line.cents)
        accounts.add_to_set(e.book, line.account)
    turnover.add(e.book, check.debit)


@app.on(closing)
def close(e):
    closed_until.set(e.book, e.at.date())
    app.emit(
        "closed",
        book=e.book,
        accounts=len(accounts.get(e.book)),
        turnover=turnover.get(e.book),
        rejected=rejected.get(e.book),
    )


@app.on(posting)
def low_cash(e):
    cash = balance.get((e.book, "asset:cash"))
    if cash < 0 and any(line.account == "asset:cash" for line in e.lines):
        app.emit("overdrawn", book=e.book, posting=e.id, cents=-cash)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

DAY = 86_400_000_000


def logs():
    draw = random.Random(21)
    names = ["asset:cash", "asset:stock", "income:sales", "expense:rent", "liability:loan"]
    postings = []
    for t in range(300):
        size = draw.choice((1, 2, 2, 2, 3))
        used = draw.sample(names, size)
        cents = [draw.randint(-5000, 5000) for _ in used]
        if draw.random() < 0.85:
            cents[-1] -= sum(cents)
        if draw.random() < 0.05:
            used[0] = "petty"
        lines = [{"account": a, "cents": c} for a, c in zip(used, cents, strict=True)]
        day = t // 4 - (3 if draw.random() < 0.1 else 0)
        postings.append(
            {
                "id": t,
                "book": draw.choice(("shop", "cafe")),
                "lines": lines,
                "at": max(day, 0) * DAY + 1000 * DAY + t,
            }
        )
    closings = [
        {"book": book, "at": (1000 + day) * DAY} for day in (29, 59) for book in ("shop", "cafe")
    ]
    return {
        "posting": sorted(postings, key=lambda row: row["at"]),
        "closing": closings,
    }


def loop(events):
    emits, balance, turnover, accounts, rejected, closed = [], {}, {}, {}, {}, {}
    for name, e in events:
        b, day = e.book, e.vs // DAY
        if name == "closing":
            closed[b] = day
            fields = {
                "book": b,
                "accounts": len(accounts.get(b, [])),
                "turnover": turnover.get(b, 0),
                "rejected": rejected.get(b, 0),
            }
            emits.append(("closed", e.vs, fields))
            continue
        lines = [(line["account"], line["cents"]) for line in e.lines]
        total = sum(cents for _, cents in lines)
        why = f"off by {total}" if total else ""
        if any(account == "petty" for account, _ in lines):
            why = "petty has no class"
        if len(lines) < 2:
            why = "one line only"
        if day <= closed.get(b, 0):
            why = "the month is closed"
        if why:
            rejected[b] = rejected.get(b, 0) + 1
            emits.append(("refused", e.vs, {"posting": e.id, "why": why}))
        else:
            for account, cents in lines:
                balance[b, account] = balance.get((b, account), 0) + cents
                if account not in accounts.setdefault(b, []):
                    accounts[b].append(account)
            turnover[b] = turnover.get(b, 0) + sum(c for _, c in lines if c > 0)
        cash = balance.get((b, "asset:cash"), 0)
        if cash < 0 and "asset:cash" in [account for account, _ in lines]:
            emits.append(("overdrawn", e.vs, {"book": b, "posting": e.id, "cents": -cash}))
    days = {b: date.fromordinal(date(1970, 1, 1).toordinal() + d) for b, d in closed.items()}
    return emits, {
        "balance": balance,
        "turnover": turnover,
        "accounts": accounts,
        "rejected": rejected,
        "closed_until": days,
    }
