"""Telephone calls: rated by the longest prefix of the tariff, with free minutes and an alarm."""

import random

import weir

app = weir.App("call_billing")
month = app.events("month", "subscriber STRING, at TIMESTAMP", vs="at")
call = app.events(
    "call",
    "id BIGINT, subscriber STRING, called STRING, seconds BIGINT, at TIMESTAMP",
    vs="at",
)

used_free = app.state("used_free", default=0)
bill = app.state("bill", default=0)
calls = app.state("calls", default=0)
warned = app.state("warned", default=False)

app.emits("rated", "call BIGINT, minutes BIGINT, free BIGINT, cents BIGINT")

TARIFF = {  # cents a minute
    "49": 5,
    "4915": 9,
    "44": 12,
    "1": 15,
    "1900": 199,
    "882": 450,
}
DEFAULT_RATE = 60
FREE_MINUTES = 30


def rate_of(number: str) -> int:
    for length in range(len(number), 0, -1):
        prefix = number[:length]
        if prefix in TARIFF:
            return TARIFF[prefix]
    return DEFAULT_RATE


def is_peak(at) -> bool:
    return at.weekday() < 5 and 8 <= at.hour < 18


@app.on(call)
def rate(e):
    minutes = -(-e.seconds // 60)
    cents = rate_of(e.called.lstrip("+"))
    if not is_peak(e.at):
        cents = max(1, cents // 2)
    free = 0
    if e.called.startswith("+49"):
        free = min(minutes, FREE_MINUTES - used_free.get(e.subscriber))
        used_free.add(e.subscriber, free)
    charge = (minutes - free) * cents
    calls.add(e.subscriber, 1)
    bill.add(e.subscriber, charge)
    app.emit("rated", call=e.id, minutes=minutes, free=free, cents=charge)
    if bill.get(e.subscriber) > 2000 and not warned.get(e.subscriber):
        warned.set(e.subscriber, True)
        app.emit("cost_alarm", subscriber=e.subscriber, cents=bill.get(e.subscriber))


@app.on(month)
def invoice(e):
    app.emit(
        "invoice",
        subscriber=e.subscriber,
        calls=calls.get(e.subscriber),
        euros=bill.get(e.subscriber) / 100,
    )
    bill.set(e.subscriber, 0)
    calls.set(e.subscriber, 0)
    used_free.set(e.subscriber, 0)
    warned.set(e.subscriber, False)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(14)
    hour = 3_600_000_000
    numbers = ["+4930123", "+491577", "+44207", "+1212", "+1900555", "+88216", "+8190"]
    calls = [
        {
            "id": t,
            "subscriber": f"s{draw.randrange(7)}",
            "called": draw.choice(numbers),
            "seconds": draw.randrange(10, 1200),
            "at": 1_700_000_000_000_000 + t * hour // 2,
        }
        for t in range(360)
    ]
    months = [
        {"subscriber": f"s{n}", "at": 1_700_000_000_000_000 + t * hour}
        for t in (60, 120)
        for n in range(7)
    ]
    return {"month": months, "call": calls}


def loop(events):
    from datetime import UTC, datetime

    emits, used, bill, calls, warned = [], {}, {}, {}, {}
    rates = (("4915", 9), ("1900", 199), ("882", 450), ("49", 5), ("44", 12), ("1", 15), ("", 60))
    for name, e in events:
        s = e.subscriber
        if name == "month":
            euros = bill.get(s, 0) / 100
            fields = {"subscriber": s, "calls": calls.get(s, 0), "euros": euros}
            emits.append(("invoice", e.vs, fields))
            used[s] = bill[s] = calls[s] = 0
            warned[s] = False
            continue
        at = datetime.fromtimestamp(e.vs / 1_000_000, UTC)
        minutes = (e.seconds + 59) // 60
        cents = next(c for prefix, c in rates if e.called[1:].startswith(prefix))
        if at.weekday() >= 5 or not 8 <= at.hour < 18:
            cents = max(1, cents // 2)
        free = 0
        if e.called[1:3] == "49":
            free = min(minutes, 30 - used.get(s, 0))
            used[s] = used.get(s, 0) + free
        charge = (minutes - free) * cents
        calls[s] = calls.get(s, 0) + 1
        bill[s] = bill.get(s, 0) + charge
        fields = {"call": e.id, "minutes": minutes, "free": free, "cents": charge}
        emits.append(("rated", e.vs, fields))
        if bill[s] > 2000 and not warned.get(s, False):
            warned[s] = True
            emits.append(("cost_alarm", e.vs, {"subscriber": s, "cents": bill[s]}))
    return emits, {"used_free": used, "bill": bill, "calls": calls, "warned": warned}
