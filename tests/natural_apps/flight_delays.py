"""Flights: an aircraft that is late makes its next flight late, and airports fill up."""

import random
from datetime import datetime, timedelta

import weir

app = weir.App("flight_delays")
scheduled = app.events(
    "scheduled",
    "flight STRING, tail STRING, origin STRING, target STRING, departs TIMESTAMP, "
    "arrives TIMESTAMP, known TIMESTAMP",
    vs="known",
)
landed = app.events("landed", "flight STRING, tail STRING, airport STRING, at TIMESTAMP", vs="at")

due = app.state("due", default=None, type="TIMESTAMP", key="STRING")
delay = app.state("delay", default=0)
late_at = app.state("late_at", default=0, last="3h")
landings = app.state("landings", default=0, last="3h")
legs = app.state("legs", default=[], type="LIST(STRING)")

app.emits("arrival", "flight STRING, late BIGINT, category STRING")

TURNAROUND = timedelta(minutes=45)


def minutes(span: timedelta) -> int:
    return int(span.total_seconds() // 60)


def expected_departure(departs: datetime, now: datetime, late: int) -> datetime:
    """An aircraft makes up ten minutes on the ground, and needs its turnaround."""
    ready = max(departs + timedelta(minutes=max(0, late - 10)), now)
    return max(departs, ready)


@app.on(scheduled)
def plan(e):
    due.set(e.flight, e.arrives)
    legs.append(e.tail, e.flight)


@app.on(scheduled)
def predict(e):
    departure = expected_departure(e.departs, e.known, delay.get(e.tail))
    busy = landings.get(e.target)
    share = late_at.get(e.target) / busy if busy else 0.0
    late = minutes(departure - e.departs) + (15 if share > 0.5 and busy >= 3 else 0)
    if late > 0:
        app.emit("prediction", flight=e.flight, minutes=late, legs=len(legs.get(e.tail)))


@app.on(landed)
def arrive(e):
    planned = due.get(e.flight)
    if planned is None:
        app.emit("unknown", flight=e.flight)
        return
    late = minutes(e.at - planned)
    delay.set(e.tail, max(0, late))
    landings.add(e.airport, 1)
    if late >= 15:
        late_at.add(e.airport, 1)
    category = next((name for limit, name in CATEGORIES if late >= limit), "on time")
    app.emit("arrival", flight=e.flight, late=late, category=category)


CATEGORIES = [(180, "severe"), (60, "long"), (15, "late")]


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

MINUTE = 60_000_000


def logs():
    draw = random.Random(24)
    plans, landings = [], []
    for number in range(160):
        tail, t = f"D-{draw.randrange(9)}", 100_000 + number * 9
        flight = f"WR{number}"
        origin, target = draw.sample(["FRA", "CDG", "LHR", "AMS"], 2)
        plans.append(
            {
                "flight": flight,
                "tail": tail,
                "origin": origin,
                "target": target,
                "departs": (t + 60) * MINUTE,
                "arrives": (t + 150) * MINUTE,
                "known": t * MINUTE,
            }
        )
        late = draw.choice((-10, 0, 5, 20, 40, 90, 200))
        if draw.random() < 0.05:
            flight = "ZZ1"
        landings.append(
            {"flight": flight, "tail": tail, "airport": target, "at": (t + 150 + late) * MINUTE}
        )
    return {"scheduled": plans, "landed": sorted(landings, key=lambda row: row["at"])}


def loop(events):
    emits, due, delay, lates, all_landings, legs = [], {}, {}, {}, {}, {}
    window = 180 * MINUTE
    for name, e in events:
        if name == "scheduled":
            due[e.flight] = e.arrives
            legs.setdefault(e.tail, []).append(e.flight)
            late = max(0, delay.get(e.tail, 0) - 10)
            busy = sum(e.vs < at + window for at in all_landings.get(e.target, []))
            slow = sum(e.vs < at + window for at in lates.get(e.target, []))
            if busy >= 3 and slow / busy > 0.5:
                late += 15
            if late > 0:
                fields = {"flight": e.flight, "minutes": late, "legs": len(legs[e.tail])}
                emits.append(("prediction", e.vs, fields))
            continue
        if e.flight not in due:
            emits.append(("unknown", e.vs, {"flight": e.flight}))
            continue
        late = round((e.at - due[e.flight]).total_seconds()) // 60
        delay[e.tail] = max(0, late)
        all_landings.setdefault(e.airport, []).append(e.vs)
        category = "on time"
        if late >= 15:
            lates.setdefault(e.airport, []).append(e.vs)
            category = "severe" if late >= 180 else "long" if late >= 60 else "late"
        fields = {"flight": e.flight, "late": late, "category": category}
        emits.append(("arrival", e.vs, fields))
    return emits, {"due": due, "delay": delay, "legs": legs}
