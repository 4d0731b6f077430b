"""Support tickets: answers are due in business hours, by priority; breaches and agents' medians."""

import random
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import weir

app = weir.App("support_sla")
opened = app.events(
    "opened",
    "ticket BIGINT, customer STRING, priority STRING, subject STRING, at TIMESTAMP",
    vs="at",
)
reply = app.events("reply", "ticket BIGINT, author STRING, is_agent BOOLEAN, at TIMESTAMP", vs="at")
resolved = app.events("resolved", "ticket BIGINT, agent STRING, at TIMESTAMP", vs="at")

ticket = app.state(
    "ticket",
    default=None,
    type="STRUCT(customer STRING, priority STRING, opened BIGINT, answered BOOLEAN, "
    "touches BIGINT)",
)
open_tickets = app.state("open_tickets", default=0)
first_responses = app.state("first_responses", default=[], type="LIST(BIGINT)", key="STRING")
breaches = app.state("breaches", default=0, last="7d", key="STRING")

app.emits("breach", "ticket BIGINT, customer STRING, late_minutes BIGINT, lately BIGINT")
app.emits("closed", "ticket BIGINT, agent STRING, touches BIGINT, median DOUBLE")


class Priority(StrEnum):
    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"


@dataclass(frozen=True)
class Policy:
    minutes: int
    around_the_clock: bool = False


POLICIES = {
    Priority.URGENT: Policy(60, around_the_clock=True),
    Priority.HIGH: Policy(4 * 60),
    Priority.NORMAL: Policy(16 * 60),
}
OPENS, CLOSES = 8, 17
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def business_minutes(start: datetime, end: datetime) -> int:
    """Count the minutes between 8 and 17 from Monday to Friday."""
    minutes = 0
    day = start.replace(hour=0, minute=0, second=0, microsecond=0)
    while day < end:
        if day.weekday() < 5:
            begin = max(start, day + timedelta(hours=OPENS))
            until = min(end, day + timedelta(hours=CLOSES))
            if until > begin:
                minutes += int((until - begin).total_seconds() // 60)
        day += timedelta(days=1)
    return minutes


def elapsed(policy: Policy, start: datetime, end: datetime) -> int:
    if policy.around_the_clock:
        return int((end - start).total_seconds() // 60)
    return business_minutes(start, end)


def priority_of(given: str | None, subject: str) -> Priority:
    if any(word in subject.lower() for word in ("outage", "down", "data loss")):
        return Priority.URGENT
    try:
        return Priority((given or "").lower())
    except ValueError:
        return Priority.NORMAL


@app.on(opened)
def open_ticket(e):
    priority = priority_of(e.priority, e.subject)
    ticket.set(
        e.ticket,
        {
            "customer": e.customer,
            "priority": str(priority),
            "opened": e.vs,
            "answered": False,
            "touches": 0,
        },
    )
    open_tickets.add(e.customer, 1)
    if open_tickets.get(e.customer) >= 5:
        app.emit("unhappy", customer=e.customer, tickets=open_tickets.get(e.customer))


@app.on(reply)
def answer(e):
    t = ticket.get(e.ticket)
    if t is None:
        return
    t["touches"] += 1
    if e.is_agent and not t.answered:
        t["answered"] = True
        policy = POLICIES[Priority(t.priority)]
        minutes = elapsed(policy, EPOCH + timedelta(microseconds=t.opened), e.at)
        first_responses.append(e.author, minutes)
        late = minutes - policy.minutes
        if late > 0:
            breaches.add(t.customer, 1)
            app.emit(
                "breach",
                ticket=e.ticket,
                customer=t.customer,
                late_minutes=late,
                lately=breaches.get(t.customer),
            )
    ticket.set(e.ticket, t)


@app.on(resolved)
def close(e):
    t = ticket.get(e.ticket)
    if t is None:
        return
    open_tickets.add(t.customer, -1)
    times = first_responses.get(e.agent)
    median = statistics.median(times) if times else None
    app.emit("closed", ticket=e.ticket, agent=e.agent, touches=t.touches, median=median)
    ticket.set(e.ticket, None)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

MINUTE = 60_000_000


def logs():
    draw = random.Random(46)
    start = 19_724 * 86_400_000_000  # a Tuesday
    agents = ["amy", "ben", "cy"]
    opens, replies, closes = [], [], []
    for number in range(160):
        at = start + number * 170 * MINUTE + draw.randrange(60) * 1_000_000
        opens.append(
            {
                "ticket": number,
                "customer": f"c{draw.randrange(7)}",
                "priority": draw.choice(("high", "Normal", "urgent", None, "whatever")),
                "subject": draw.choice(
                    ("Printer jams", "Site is DOWN", "invoice", "how to log in?")
                ),
                "at": at,
            }
        )
        for _ in range(draw.randrange(3)):
            at += draw.choice((20, 300, 900, 3_000)) * MINUTE
            is_agent = draw.random() < 0.7
            author = draw.choice(agents) if is_agent else "customer"
            replies.append({"ticket": number, "author": author, "is_agent": is_agent, "at": at})
        if draw.random() < 0.7:
            closes.append({"ticket": number, "agent": draw.choice(agents), "at": at + 30 * MINUTE})
    replies.sort(key=lambda row: row["at"])
    closes.sort(key=lambda row: row["at"])
    return {"opened": opens, "reply": replies, "resolved": closes}


def loop(events):
    emits, tickets, count, responses, breaches = [], {}, {}, {}, {}
    limits = {"urgent": 60, "high": 240, "normal": 960}
    for name, e in events:
        if name == "opened":
            priority = (e.priority or "").lower()
            if "down" in e.subject.lower():
                priority = "urgent"
            elif priority not in limits:
                priority = "normal"
            c = e.customer
            tickets[e.ticket] = {
                "customer": c,
                "priority": priority,
                "opened": e.vs,
                "answered": False,
                "touches": 0,
            }
            count[c] = count.get(c, 0) + 1
            if count[c] >= 5:
                emits.append(("unhappy", e.vs, {"customer": c, "tickets": count[c]}))
            continue
        t = tickets.get(e.ticket)
        if t is None:
            continue
        c = t["customer"]
        if name == "resolved":
            count[c] -= 1
            times = sorted(responses.get(e.agent, []))
            middle = len(times) // 2
            median = None
            if times:
                median = (times[middle] + times[~middle]) / 2
            fields = {"ticket": e.ticket, "agent": e.agent, "touches": t["touches"]}
            emits.append(("closed", e.vs, fields | {"median": median}))
            tickets[e.ticket] = None
            continue
        t["touches"] += 1
        if t["answered"] or not e.is_agent:
            continue
        t["answered"] = True
        if t["priority"] == "urgent":
            minutes = (e.vs - t["opened"]) // MINUTE
        else:
            minutes = 0
            for day in range(t["opened"] // (1440 * MINUTE), e.vs // (1440 * MINUTE) + 1):
                if (day + 3) % 7 < 5:  # 1970 began on a Thursday
                    begin = max(t["opened"], (day * 1440 + 480) * MINUTE)
                    minutes += max(0, min(e.vs, (day * 1440 + 1020) * MINUTE) - begin) // MINUTE
        responses.setdefault(e.author, []).append(minutes)
        late = minutes - limits[t["priority"]]
        if late > 0:
            breaches.setdefault(c, []).append(e.vs)
            lately = sum(e.vs < at + 7 * 86_400_000_000 for at in breaches[c])
            fields = {"ticket": e.ticket, "customer": c, "late_minutes": late, "lately": lately}
            emits.append(("breach", e.vs, fields))
    return emits, {"ticket": tickets, "open_tickets": count, "first_responses": responses}
