"""Parcels: scans move each through its states; what does not fit, lateness and losses are told."""

import random
from enum import Enum

import weir

app = weir.App("parcel_tracking")
scan = app.events("scan", "parcel STRING, kind STRING, depot STRING, at BIGINT", vs="at", unit="s")


class Status(Enum):
    NEW = "new"
    ACCEPTED = "accepted"
    MOVING = "moving"
    OUT = "out for delivery"
    DELIVERED = "delivered"
    RETURNED = "returned"


status = app.state("status", default="new")
accepted_at = app.state("accepted_at", default=0)
attempts = app.state("attempts", default=0)
last_depot = app.state("last_depot", default="")
in_depot = app.state("in_depot", default=0)

app.emits("unexpected", "parcel STRING, status STRING, kind STRING")


def next_status(now: Status, kind: str, tries: int) -> Status | None:
    match (now, kind):
        case (Status.NEW, "accept"):
            return Status.ACCEPTED
        case (Status.ACCEPTED | Status.MOVING, "arrive" | "depart"):
            return Status.MOVING
        case (Status.MOVING, "load"):
            return Status.OUT
        case (Status.OUT, "deliver"):
            return Status.DELIVERED
        case (Status.OUT, "fail") if tries >= 2:
            return Status.RETURNED
        case (Status.OUT, "fail"):
            return Status.MOVING
        case _:
            return None


@app.on(scan)
def track(e):
    now = Status(status.get(e.parcel))
    then = next_status(now, e.kind, attempts.get(e.parcel))
    if then is None:
        app.emit("unexpected", parcel=e.parcel, status=now.value, kind=e.kind)
        return
    if then is Status.ACCEPTED:
        accepted_at.set(e.parcel, e.vs)
    if e.kind == "fail":
        attempts.add(e.parcel, 1)
    if then is Status.DELIVERED:
        hours = (e.vs - accepted_at.get(e.parcel)) // 3_600_000_000
        app.emit("delivered", parcel=e.parcel, hours=hours, late=hours > 48)
    elif then is Status.RETURNED:
        app.emit("returned", parcel=e.parcel, attempts=attempts.get(e.parcel))
    status.set(e.parcel, then.value)


@app.on(scan)
def depots(e):
    before = last_depot.get(e.parcel)
    if e.kind == "arrive":
        if before:
            in_depot.add(before, -1)
        in_depot.add(e.depot, 1)
        last_depot.set(e.parcel, e.depot)
    elif e.kind in ("depart", "load") and before:
        in_depot.add(before, -1)
        last_depot.set(e.parcel, "")


@app.on(scan)
def full(e):
    if e.kind == "arrive" and in_depot.get(e.depot) > 12:
        app.emit("full", depot=e.depot, parcels=in_depot.get(e.depot))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(15)
    kinds = ["accept", "arrive", "depart", "load", "fail", "deliver"]
    usual = ["accept", "arrive", "depart", "arrive", "load", "fail", "arrive", "load", "deliver"]
    rows = []
    for parcel in range(50):
        t = draw.randrange(50_000)
        for kind in usual:
            t += draw.randrange(600, 40_000)
            kind = draw.choice(kinds) if draw.random() < 0.15 else kind
            depot = draw.choice(("north", "south"))
            rows.append({"parcel": f"P{parcel}", "kind": kind, "depot": depot, "at": t})
    return {"scan": sorted(rows, key=lambda row: row["at"])}


def loop(events):
    emits, status, accepted, attempts, depot, held = [], {}, {}, {}, {}, {}
    moves = {
        ("new", "accept"): "accepted",
        ("accepted", "arrive"): "moving",
        ("accepted", "depart"): "moving",
        ("moving", "arrive"): "moving",
        ("moving", "depart"): "moving",
        ("moving", "load"): "out for delivery",
        ("out for delivery", "deliver"): "delivered",
        ("out for delivery", "fail"): "moving",
    }
    for _, e in events:
        p, now = e.parcel, status.get(e.parcel, "new")
        then = moves.get((now, e.kind))
        if then is None:
            emits.append(("unexpected", e.vs, {"parcel": p, "status": now, "kind": e.kind}))
        else:
            if e.kind == "fail":
                if attempts.get(p, 0) >= 2:
                    then = "returned"
                attempts[p] = attempts.get(p, 0) + 1
            if then == "accepted":
                accepted[p] = e.vs
            if then == "delivered":
                hours = (e.vs - accepted[p]) // 3_600_000_000
                fields = {"parcel": p, "hours": hours, "late": hours > 48}
                emits.append(("delivered", e.vs, fields))
            if then == "returned":
                emits.append(("returned", e.vs, {"parcel": p, "attempts": attempts[p]}))
            status[p] = then
        before = depot.get(p, "")
        if e.kind == "arrive":
            if before:
                held[before] -= 1
            held[e.depot] = held.get(e.depot, 0) + 1
            depot[p] = e.depot
            if held[e.depot] > 12:
                emits.append(("full", e.vs, {"depot": e.depot, "parcels": held[e.depot]}))
        elif e.kind in ("depart", "load") and before:
            held[before] -= 1
            depot[p] = ""
    return emits, {
        "status": status,
        "accepted_at": accepted,
        "attempts": attempts,
        "last_depot": depot,
        "in_depot": held,
    }
