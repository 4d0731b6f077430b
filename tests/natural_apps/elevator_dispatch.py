"""Elevator dispatch: the cheapest car of a building answers a call; long waits are reported."""

import random
from enum import Enum

import weir

app = weir.App("elevator_dispatch")
position = app.events(
    "position",
    "building STRING, car BIGINT, floor BIGINT, load BIGINT, at BIGINT",
    vs="at",
    unit="s",
)
call = app.events(
    "call",
    "id BIGINT, building STRING, floor BIGINT, direction STRING, at BIGINT",
    vs="at",
    unit="s",
)
arrival = app.events(
    "arrival", "call_id BIGINT, building STRING, car BIGINT, at BIGINT", vs="at", unit="s"
)

fleet = app.state(
    "fleet",
    default=[],
    type="LIST(STRUCT(number BIGINT, floor BIGINT, load BIGINT, heading STRING, stops BIGINT))",
    key="STRING",
)
assigned = app.state("assigned", default=None, type="STRUCT(car BIGINT, since BIGINT)")
waits = app.state("waits", default=[], type="LIST(BIGINT)")
worst_wait = app.state("worst_wait", default=0)

app.emits("dispatched", "call BIGINT, car BIGINT, cost BIGINT")
app.emits("slow", "building STRING, waited BIGINT, average DOUBLE")

CAPACITY = 12
PATIENCE = app.param("patience", 60)


class Heading(Enum):
    UP = "up"
    DOWN = "down"
    IDLE = "idle"

    @classmethod
    def between(cls, old: int, new: int) -> "Heading":
        if new == old:
            return cls.IDLE
        return cls.UP if new > old else cls.DOWN


def cost(car, floor: int, wanted: Heading) -> int:
    distance = abs(car.floor - floor)
    heading = Heading(car.heading)
    penalty = 4 * car.stops
    if heading is Heading.IDLE:
        return distance + penalty
    towards = (heading is Heading.UP) == (floor >= car.floor)
    if not towards:
        return 2 * distance + 10 + penalty
    return distance + penalty + (0 if heading is wanted else 5)


@app.on(position)
def track(e):
    cars = fleet.get(e.building)
    for car in cars:
        if car.number == e.car:
            car["heading"] = Heading.between(car.floor, e.floor).value
            car["floor"] = e.floor
            car["load"] = e.load
            break
    else:
        cars.append(
            {"number": e.car, "floor": e.floor, "load": e.load, "heading": "idle", "stops": 0}
        )
    fleet.set(e.building, cars)


@app.on(call)
def dispatch(e):
    cars = fleet.get(e.building)
    usable = [car for car in cars if car.load < CAPACITY]
    if not usable:
        app.emit("stranded", call=e.id, building=e.building)
        return
    wanted = Heading(e.direction)
    best = min(usable, key=lambda car: (cost(car, e.floor, wanted), car.number))
    app.emit("dispatched", call=e.id, car=best.number, cost=cost(best, e.floor, wanted))
    best["stops"] += 1
    fleet.set(e.building, cars)
    assigned.set(e.id, {"car": best.number, "since": e.vs})


@app.on(arrival)
def answer(e):
    trip = assigned.get(e.call_id)
    if trip is None:
        return
    fleet.merge(
        e.building,
        lambda cars: [
            {**car, "stops": max(0, car.stops - 1)} if car.number == trip.car else car
            for car in cars
        ],
    )
    waited = (e.vs - trip.since) // 1_000_000
    waits.append(e.building, waited)
    worst_wait.max(e.building, waited)
    assigned.set(e.call_id, None)
    if waited > PATIENCE:
        all_waits = waits.get(e.building)
        average = round(sum(all_waits) / len(all_waits), 1)
        app.emit("slow", building=e.building, waited=waited, average=average)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(31)
    buildings = ("tower", "annex")
    positions = [
        {
            "building": draw.choice(buildings),
            "car": draw.randrange(3),
            "floor": draw.randrange(20),
            "load": draw.choice((0, 3, 8, 12, 13)),
            "at": t,
        }
        for t in range(5, 3000, 14)
    ]
    calls, arrivals = [], []
    for number, t in enumerate(range(0, 3000, 25)):
        building = draw.choice(buildings)
        direction = draw.choice(("up", "down"))
        calls.append(
            {
                "id": number,
                "building": building,
                "floor": draw.randrange(20),
                "direction": direction,
                "at": t,
            }
        )
        arrivals.append(
            {"call_id": number, "building": building, "car": 0, "at": t + draw.randrange(10, 90)}
        )
    arrivals.sort(key=lambda row: row["at"])
    return {"position": positions, "call": calls, "arrival": arrivals}


def loop(events):
    emits, fleet, assigned, waits, worst = [], {}, {}, {}, {}
    for name, e in events:
        cars = fleet.get(e.building, [])
        if name == "position":
            known = next((car for car in cars if car["number"] == e.car), None)
            if known is None:
                fleet.setdefault(e.building, []).append(
                    {
                        "number": e.car,
                        "floor": e.floor,
                        "load": e.load,
                        "heading": "idle",
                        "stops": 0,
                    }
                )
            else:
                moved = e.floor - known["floor"]
                known["heading"] = "idle" if moved == 0 else "up" if moved > 0 else "down"
                known["floor"], known["load"] = e.floor, e.load
        elif name == "call":
            prices = []
            for car in cars:
                if car["load"] >= 12:
                    continue
                price = abs(car["floor"] - e.floor)
                if car["heading"] != "idle":
                    if (car["heading"] == "up") != (e.floor >= car["floor"]):
                        price = 2 * price + 10
                    elif car["heading"] != e.direction:
                        price += 5
                prices.append((price + 4 * car["stops"], car["number"], car))
            if not prices:
                emits.append(("stranded", e.vs, {"call": e.id, "building": e.building}))
                continue
            price, number, car = min(prices, key=lambda found: found[:2])
            emits.append(("dispatched", e.vs, {"call": e.id, "car": number, "cost": price}))
            car["stops"] += 1
            assigned[e.id] = {"car": number, "since": e.vs}
        else:
            trip = assigned.get(e.call_id)
            if trip is None:
                continue
            for car in cars:
                if car["number"] == trip["car"]:
                    car["stops"] = max(0, car["stops"] - 1)
            waited = (e.vs - trip["since"]) // 1_000_000
            waits.setdefault(e.building, []).append(waited)
            worst[e.building] = max(worst.get(e.building, 0), waited)
            assigned[e.call_id] = None
            if waited > 60:
                average = round(sum(waits[e.building]) / len(waits[e.building]), 1)
                fields = {"building": e.building, "waited": waited, "average": average}
                emits.append(("slow", e.vs, fields))
    return emits, {"fleet": fleet, "assigned": assigned, "waits": waits, "worst_wait": worst}
