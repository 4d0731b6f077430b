"""A library: loans with due dates, reservations in a queue, fines that block a card."""

import random
from datetime import timedelta

import weir

app = weir.App("library_loans")
checkout = app.events("checkout", "copy STRING, title STRING, member STRING, at TIMESTAMP", vs="at")
returned = app.events("returned", "copy STRING, title STRING, at TIMESTAMP", vs="at")
reserve = app.events("reserve", "title STRING, member STRING, at TIMESTAMP", vs="at")

borrower = app.state("borrower", default=None, type="STRING")
due = app.state("due", default=None, type="TIMESTAMP")
on_loan = app.state("on_loan", default=0, key="STRING")
fines = app.state("fines", default=0, key="STRING")
reservations = app.state("reservations", default=[], type="LIST(STRING)")

app.emits("lent", "copy STRING, member STRING, until STRING")
app.emits("refused", "copy STRING, member STRING, why STRING")
app.emits("fined", "member STRING, days BIGINT, cents BIGINT")

LOAN = timedelta(days=21)
SHORT_LOAN = timedelta(days=7)
MAX_LOANS = 4
MAX_FINES = 800
CENTS_PER_DAY = 25
MAX_FINE = 500


def fine_for(days_late: int) -> int:
    return min(days_late * CENTS_PER_DAY, MAX_FINE)


def why_not(e, waiting: list[str]) -> str | None:
    if borrower.get(e.copy) is not None:
        return "already lent"
    if fines.get(e.member) > MAX_FINES:
        return f"owes {fines.get(e.member) / 100:.2f}"
    if on_loan.get(e.member) >= MAX_LOANS:
        return "too many loans"
    if waiting and e.member != waiting[0]:
        return f"reserved by {waiting[0]}"
    return None


@app.on(checkout)
def lend(e):
    waiting = reservations.get(e.title)
    problem = why_not(e, waiting)
    if problem:
        app.emit("refused", copy=e.copy, member=e.member, why=problem)
        return
    if waiting:
        reservations.set(e.title, waiting[1:])
    until = e.at + (SHORT_LOAN if len(waiting) > 1 else LOAN)
    borrower.set(e.copy, e.member)
    due.set(e.copy, until)
    on_loan.add(e.member, 1)
    app.emit("lent", copy=e.copy, member=e.member, until=until.strftime("%Y-%m-%d"))


@app.on(returned)
def take_back(e):
    member = borrower.get(e.copy)
    if member is None:
        return
    late = (e.at - due.get(e.copy)).days
    if late > 0:
        cents = fine_for(late)
        fines.add(member, cents)
        app.emit("fined", member=member, days=late, cents=cents)
    borrower.set(e.copy, None)
    on_loan.add(member, -1)
    waiting = reservations.get(e.title)
    if waiting:
        app.emit("ready", title=e.title, member=waiting[0], behind=len(waiting) - 1)


@app.on(reserve)
def queue_up(e):
    if e.member in reservations.get(e.title):
        return
    reservations.append(e.title, e.member)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

DAY = 86_400_000_000


def logs():
    draw = random.Random(34)
    titles = ["emma", "dune", "ulysses", "momo"]
    copies = [(f"{title}-{n}", title) for title in titles for n in range(3)]
    checkouts, returns, reserves = [], [], []
    for t in range(300):
        copy, title = draw.choice(copies)
        member = f"m{draw.randrange(9)}"
        checkouts.append({"copy": copy, "title": title, "member": member, "at": t * DAY})
        if draw.random() < 0.6:
            copy, title = draw.choice(copies)
            returns.append({"copy": copy, "title": title, "at": t * DAY + 3600_000_000})
        if draw.random() < 0.3:
            reserves.append(
                {"title": draw.choice(titles), "member": f"m{draw.randrange(9)}", "at": t * DAY}
            )
    return {"checkout": checkouts, "returned": returns, "reserve": reserves}


def loop(events):
    emits, borrower, due, on_loan, fines, queues = [], {}, {}, {}, {}, {}
    for name, e in events:
        queue = queues.get(e.title, [])
        if name == "reserve":
            if e.member not in queue:
                queues[e.title] = [*queue, e.member]
        elif name == "checkout":
            m = e.member
            if borrower.get(e.copy):
                why = "already lent"
            elif fines.get(m, 0) > 800:
                why = "owes %.2f" % (fines[m] / 100)
            elif on_loan.get(m, 0) >= 4:
                why = "too many loans"
            elif queue and queue[0] != m:
                why = "reserved by " + queue[0]
            else:
                why = None
            if why:
                emits.append(("refused", e.vs, {"copy": e.copy, "member": m, "why": why}))
                continue
            days = 7 if len(queue) > 1 else 21
            if queue:
                queues[e.title] = queue[1:]
            borrower[e.copy], due[e.copy] = m, e.at + timedelta(days=days)
            on_loan[m] = on_loan.get(m, 0) + 1
            until = due[e.copy].date().isoformat()
            emits.append(("lent", e.vs, {"copy": e.copy, "member": m, "until": until}))
        elif borrower.get(e.copy):
            m = borrower[e.copy]
            late = (e.at - due[e.copy]) // timedelta(days=1)
            if late > 0:
                cents = 500 if late >= 20 else 25 * late
                fines[m] = fines.get(m, 0) + cents
                emits.append(("fined", e.vs, {"member": m, "days": late, "cents": cents}))
            borrower[e.copy] = None
            on_loan[m] -= 1
            if queue:
                fields = {"title": e.title, "member": queue[0], "behind": len(queue) - 1}
                emits.append(("ready", e.vs, fields))
    return emits, {"borrower": borrower, "on_loan": on_loan, "fines": fines, "reservations": queues}
