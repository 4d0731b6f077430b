"""Parking garages: plates as cameras read them, fees by class and time, garages that are full."""

import random
import re
from typing import NamedTuple

import weir

app = weir.App("parking_garage")
entry = app.events(
    "entry", "garage STRING, plate STRING, kind STRING, at BIGINT", vs="at", unit="s"
)
exit_ = app.events(
    "exit", "garage STRING, plate STRING, paid_cents BIGINT, at BIGINT", vs="at", unit="s"
)

entered = app.state("entered", default=-1, key="STRING, STRING")
vehicle = app.state("vehicle", default="car", key="STRING, STRING")
occupancy = app.state("occupancy", default=0)
revenue = app.state("revenue", default=0)
peak = app.state("peak", default=0)

app.emits("full", "garage STRING, cars BIGINT, over BIGINT")
app.emits("nearly_full", "garage STRING, free BIGINT")
app.emits("settled", "garage STRING, plate STRING, minutes BIGINT, due BIGINT, change BIGINT")

CAPACITY = {"central": 25, "station": 14}
PLATE = re.compile(r"^[A-Z]{1,3}[A-Z]{1,2}\d{1,4}E?$")
DAY_RATE = 2400
LOST_TICKET = 4000


class Tariff(NamedTuple):
    first_hour: int
    per_hour: int


def clean(plate: str) -> str:
    return re.sub(r"[\s\-·]+", "", plate).upper()


def tariff_for(kind: str) -> Tariff:
    match kind:
        case "car":
            return Tariff(250, 200)
        case "motorbike" | "scooter":
            return Tariff(100, 80)
        case "van" | "camper":
            return Tariff(400, 350)
        case _:
            return Tariff(500, 500)


def fee(kind: str, minutes: int) -> int:
    if minutes <= 15:
        return 0
    tariff = tariff_for(kind)
    days, rest = divmod(minutes, 24 * 60)
    hours = -(-rest // 60)
    partial = 0
    if hours:
        partial = min(tariff.first_hour + (hours - 1) * tariff.per_hour, DAY_RATE)
    return days * DAY_RATE + partial


@app.on(entry)
def drive_in(e):
    plate = clean(e.plate)
    if not PLATE.match(plate):
        app.emit("unreadable", garage=e.garage, text=e.plate)
        return
    spot = (e.garage, plate)
    if entered.get(spot) >= 0:
        app.emit("ghost", garage=e.garage, plate=plate)
    else:
        occupancy.add(e.garage, 1)
    entered.set(spot, e.vs)
    vehicle.set(spot, e.kind)


@app.on(exit_)
def drive_out(e):
    plate = clean(e.plate)
    spot = (e.garage, plate)
    since = entered.get(spot)
    if since < 0:
        app.emit("lost", garage=e.garage, plate=plate, due=LOST_TICKET)
        revenue.add(e.garage, LOST_TICKET)
        return
    minutes = (e.vs - since) // 60_000_000
    due = fee(vehicle.get(spot), minutes)
    entered.set(spot, -1)
    occupancy.add(e.garage, -1)
    revenue.add(e.garage, due)
    app.emit(
        "settled",
        garage=e.garage,
        plate=plate,
        minutes=minutes,
        due=due,
        change=(e.paid_cents or 0) - due,
    )


@app.on(entry)
def sign(e):
    cars = occupancy.get(e.garage)
    peak.max(e.garage, cars)
    limit = CAPACITY.get(e.garage, 10)
    if cars >= limit:
        app.emit("full", garage=e.garage, cars=cars, over=cars - limit)
    elif cars >= 0.9 * limit:
        app.emit("nearly_full", garage=e.garage, free=limit - cars)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(35)
    plates = [f"ZH-AB {n}" for n in range(100, 140)] + ["m·xy 77e", "??", "b-c 12345", "GE XX 9"]
    kinds = ["car", "car", "motorbike", "van", "hovercraft", "scooter"]
    entries = [
        {
            "garage": draw.choice(("central", "central", "station")),
            "plate": draw.choice(plates),
            "kind": draw.choice(kinds),
            "at": t,
        }
        for t in sorted(draw.randrange(0, 200_000) for _ in range(250))
    ]
    exits = [
        {
            "garage": draw.choice(("central", "central", "station")),
            "plate": draw.choice(plates).replace(" ", "").lower(),
            "paid_cents": draw.choice((None, 0, 500, 2000)),
            "at": t,
        }
        for t in sorted(draw.randrange(0, 200_000) for _ in range(200))
    ]
    return {"entry": entries, "exit": exits}


def loop(events):
    rates = {"car": (250, 200), "motorbike": (100, 80), "scooter": (100, 80), "van": (400, 350)}
    emits, entered, kinds, cars, revenue, peak = [], {}, {}, {}, {}, {}
    for name, e in events:
        g = e.garage
        plate = "".join(c for c in e.plate if c not in " -·").upper()
        if name == "entry":
            if plate in ("??", "BC12345"):
                emits.append(("unreadable", e.vs, {"garage": g, "text": e.plate}))
            else:
                if entered.get((g, plate), -1) >= 0:
                    emits.append(("ghost", e.vs, {"garage": g, "plate": plate}))
                else:
                    cars[g] = cars.get(g, 0) + 1
                entered[g, plate] = e.vs
                kinds[g, plate] = e.kind
            n, limit = cars.get(g, 0), {"central": 25, "station": 14}[g]
            peak[g] = max(peak.get(g, 0), n)
            if n >= limit:
                emits.append(("full", e.vs, {"garage": g, "cars": n, "over": n - limit}))
            elif n >= 0.9 * limit:
                emits.append(("nearly_full", e.vs, {"garage": g, "free": limit - n}))
            continue
        since = entered.get((g, plate), -1)
        if since < 0:
            emits.append(("lost", e.vs, {"garage": g, "plate": plate, "due": 4000}))
            revenue[g] = revenue.get(g, 0) + 4000
            continue
        minutes = (e.vs - since) // 60_000_000
        first, more = rates.get(kinds[g, plate], (500, 500))
        due = 0
        if minutes > 15:
            hours = (minutes % 1440 + 59) // 60
            due = minutes // 1440 * 2400
            if hours > 0:
                due += min(2400, first + more * (hours - 1))
        entered[g, plate] = -1
        cars[g] -= 1
        revenue[g] = revenue.get(g, 0) + due
        paid = 0 if e.paid_cents is None else e.paid_cents
        fields = {"garage": g, "plate": plate, "minutes": minutes, "due": due, "change": paid - due}
        emits.append(("settled", e.vs, fields))
    return emits, {
        "entered": entered,
        "vehicle": kinds,
        "occupancy": cars,
        "revenue": revenue,
        "peak": peak,
    }
