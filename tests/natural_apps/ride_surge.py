"""Ride sharing: the price of a ride follows requests and free drivers of its zone."""

import math
import random

import weir

app = weir.App("ride_surge")
driver = app.events(
    "driver", "driver BIGINT, lat DOUBLE, lon DOUBLE, free BOOLEAN, at BIGINT", vs="at", unit="s"
)
request = app.events(
    "request",
    "id BIGINT, rider BIGINT, lat DOUBLE, lon DOUBLE, km DOUBLE, at BIGINT",
    vs="at",
    unit="s",
)

zone_of = app.state("zone_of", default="")
free_in = app.state("free_in", default=0)
demand = app.state("demand", default=0, last="5m")
rides = app.state("rides", default=0)
surge_cap = app.param("surge_cap", 3.0)

BASE, PER_KM = 2.5, 1.2


def zone(lat: float, lon: float) -> str:
    return f"{math.floor(lat * 100)}:{math.floor(lon * 100)}"


@app.on(driver)
def move(e):
    before = zone_of.get(e.driver)
    now = zone(e.lat, e.lon) if e.free else ""
    if before == now:
        return
    if before:
        free_in.add(before, -1)
    if now:
        free_in.add(now, 1)
    zone_of.set(e.driver, now)


@app.on(request)
def ask(e):
    demand.add(zone(e.lat, e.lon), 1)
    rides.add(e.rider, 1)


def multiplier(wanted: int, free: int, cap: float) -> float:
    if free <= 0:
        return cap
    ratio = wanted / free
    if ratio <= 1:
        return 1.0
    return min(cap, round(1 + (ratio - 1) * 0.5, 1))


@app.on(request)
def quote(e):
    where = zone(e.lat, e.lon)
    surge = multiplier(demand.get(where), free_in.get(where), surge_cap)
    price = (BASE + PER_KM * e.km) * surge
    if rides.get(e.rider) % 10 == 0:
        price *= 0.5
    app.emit("quote", request=e.id, zone=where, surge=surge, price=round(price, 2))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(4)

    def place():
        return {"lat": 52.5 + draw.randrange(30) / 1000, "lon": 13.4 + draw.randrange(20) / 1000}

    drivers = [
        {"driver": draw.randrange(15), **place(), "free": draw.random() < 0.7, "at": t}
        for t in range(0, 900, 5)
    ]
    requests = [
        {
            "id": t,
            "rider": draw.randrange(8),
            **place(),
            "km": draw.randrange(10, 200) / 10,
            "at": t,
        }
        for t in range(0, 900, 3)
    ]
    return {"driver": drivers, "request": requests}


def loop(events):
    emits, zones, free, asked, rides = [], {}, {}, {}, {}
    for name, e in events:
        where = f"{math.floor(e.lat * 100)}:{math.floor(e.lon * 100)}"
        if name == "driver":
            now = where if e.free else ""
            before = zones.get(e.driver, "")
            if before != now:
                zones[e.driver] = now
                if before:
                    free[before] = free.get(before, 0) - 1
                if now:
                    free[now] = free.get(now, 0) + 1
            continue
        asked.setdefault(where, []).append(e.vs)
        rides[e.rider] = rides.get(e.rider, 0) + 1
        wanted = sum(e.vs < at + 300_000_000 for at in asked[where])
        drivers = free.get(where, 0)
        if drivers <= 0:
            surge = 3.0
        elif wanted / drivers <= 1:
            surge = 1.0
        else:
            surge = min(3.0, round(1 + (wanted / drivers - 1) * 0.5, 1))
        price = (2.5 + 1.2 * e.km) * surge * (0.5 if rides[e.rider] % 10 == 0 else 1)
        fields = {"request": e.id, "zone": where, "surge": surge, "price": round(price, 2)}
        emits.append(("quote", e.vs, fields))
    return emits, {"zone_of": zones, "free_in": free, "rides": rides}
