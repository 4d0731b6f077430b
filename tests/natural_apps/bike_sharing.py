"""Bike sharing: stock of stations, fares, lost bikes, and where a truck should bring some from."""

import random

import weir

app = weir.App("bike_sharing")
unlock = app.events(
    "unlock", "bike BIGINT, station STRING, rider STRING, at BIGINT", vs="at", unit="s"
)
dock = app.events("dock", "bike BIGINT, station STRING, at BIGINT", vs="at", unit="s")
truck = app.events("truck", "station STRING, delta BIGINT, at BIGINT", vs="at", unit="s")

stock = app.state("stock", default=10, key="STRING")
outflow = app.state("outflow", default=0, last="1h")
ride = app.state(
    "ride", default=None, type="STRUCT(rider STRING, origin STRING, began BIGINT)", key="BIGINT"
)
trips = app.state("trips", default=0, key="STRING, STRING")
bill = app.state("bill", default=0, key="STRING")

NEIGHBOURS = {
    "harbour": ["museum", "market"],
    "museum": ["harbour", "park"],
    "market": ["harbour", "park", "campus"],
    "park": ["museum", "market"],
    "campus": ["market"],
}
CAPACITY = 18
LOW = 3


def fare(minutes):
    """Half an hour is free, then a quarter of an hour costs a euro, at most 20."""
    if minutes <= 30:
        return 0
    quarters = (minutes - 30 + 14) // 15
    return min(100 * quarters, 2_000)


@app.on(unlock)
def start(e):
    previous = ride.get(e.bike)
    if previous:
        app.emit("lost_dock", bike=e.bike, rider=previous.rider, origin=previous.origin)
    ride.set(e.bike, {"rider": e.rider, "origin": e.station, "began": e.vs})
    stock.add(e.station, -1)
    outflow.add(e.station, 1)


@app.on(dock)
def finish(e):
    stock.add(e.station, 1)
    outflow.add(e.station, -1)
    trip = ride.get(e.bike)
    if not trip:
        return
    ride.set(e.bike, None)
    trips.add((trip.origin, e.station), 1)
    cents = fare((e.vs - trip.began) // 60_000_000)
    if cents:
        bill.add(trip.rider, cents)
        app.emit("fare", rider=trip.rider, cents=cents, total=bill.get(trip.rider))


@app.on(truck)
def rebalance(e):
    stock.merge(e.station, lambda n: max(0, min(CAPACITY, n + e.delta)))


@app.on(unlock)
def ask_for_bikes(e):
    have = stock.get(e.station)
    if have > LOW or outflow.get(e.station) <= 0:
        return
    donors = {n: stock.get(n) for n in NEIGHBOURS.get(e.station, []) if stock.get(n) > 2 * LOW}
    if not donors:
        app.emit("shortage", station=e.station, have=have)
        return
    best = max(donors, key=donors.get)
    app.emit("move", source=best, target=e.station, bikes=(donors[best] - have) // 2)


@app.on(dock)
def ask_for_room(e):
    if stock.get(e.station) >= CAPACITY:
        app.emit("overfull", station=e.station, bikes=stock.get(e.station))


app.emits("fare", "rider STRING, cents BIGINT, total BIGINT")
app.emits("move", "source STRING, target STRING, bikes BIGINT")


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(45)
    stations = ["harbour", "museum", "market", "park", "campus"]
    unlocks, docks = [], []
    for t in range(0, 40_000, 130):
        bike = draw.randrange(40)
        source = draw.choice(("harbour", "harbour", "campus", draw.choice(stations)))
        unlocks.append(
            {"bike": bike, "station": source, "rider": f"r{draw.randrange(15)}", "at": t}
        )
        if draw.random() < 0.95:
            docks.append(
                {
                    "bike": bike,
                    "station": draw.choice(stations),
                    "at": t + draw.randrange(300, 6_000),
                }
            )
    docks.sort(key=lambda row: row["at"])
    trucks = [
        {"station": draw.choice(stations), "delta": draw.choice((-9, -9, 2)), "at": t}
        for t in range(1_000, 40_000, 1_500)
    ]
    return {"unlock": unlocks, "dock": docks, "truck": trucks}


def loop(events):
    near = {
        "harbour": ("museum", "market"),
        "museum": ("harbour", "park"),
        "campus": ("market",),
        "market": ("harbour", "park", "campus"),
        "park": ("museum", "market"),
    }
    emits, stock, flow, ride, trips, bill = [], {}, {}, {}, {}, {}
    for name, e in events:
        s = e.station
        have = stock.get(s, 10)
        if name == "truck":
            stock[s] = min(max(have + e.delta, 0), 18)
        elif name == "unlock":
            if ride.get(e.bike):
                old = ride[e.bike]
                fields = {"bike": e.bike, "rider": old["rider"], "origin": old["origin"]}
                emits.append(("lost_dock", e.vs, fields))
            ride[e.bike] = {"rider": e.rider, "origin": s, "began": e.vs}
            stock[s] = have - 1
            flow.setdefault(s, []).append((e.vs, 1))
            net = sum(n for at, n in flow[s] if e.vs < at + 3_600_000_000)
            if have - 1 <= 3 and net > 0:
                best = None
                for other in near[s]:
                    if stock.get(other, 10) > max(6, stock.get(best, 10) if best else 6):
                        best = other
                if best is None:
                    emits.append(("shortage", e.vs, {"station": s, "have": have - 1}))
                else:
                    bikes = (stock.get(best, 10) - (have - 1)) // 2
                    fields = {"source": best, "target": s, "bikes": bikes}
                    emits.append(("move", e.vs, fields))
        else:
            stock[s] = have + 1
            flow.setdefault(s, []).append((e.vs, -1))
            trip = ride.get(e.bike)
            if trip:
                ride[e.bike] = None
                way = (trip["origin"], s)
                trips[way] = trips.get(way, 0) + 1
                minutes = (e.vs - trip["began"]) // 60_000_000
                if minutes > 30:
                    cents = min(2_000, -(-(minutes - 30) // 15) * 100)
                    rider = trip["rider"]
                    bill[rider] = bill.get(rider, 0) + cents
                    fields = {"rider": rider, "cents": cents, "total": bill[rider]}
                    emits.append(("fare", e.vs, fields))
            if have + 1 >= 18:
                emits.append(("overfull", e.vs, {"station": s, "bikes": have + 1}))
    return emits, {"stock": stock, "ride": ride, "trips": trips, "bill": bill}
