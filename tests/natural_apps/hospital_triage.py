"""Hospital triage: signs and complaint give an acuity; a free room takes who needs it most."""

import random
import re
from enum import IntEnum

import weir

app = weir.App("hospital_triage")
arrival = app.events(
    "arrival",
    "patient STRING, hospital STRING, complaint STRING, age BIGINT, pulse BIGINT, spo2 DOUBLE, "
    "celsius DOUBLE, at BIGINT",
    vs="at",
    unit="s",
)
room_free = app.events("room_free", "hospital STRING, room STRING, at BIGINT", vs="at", unit="s")
walk_out = app.events("walk_out", "hospital STRING, patient STRING, at BIGINT", vs="at", unit="s")

queue = app.state(
    "queue", default=[], type="LIST(STRUCT(patient STRING, acuity BIGINT, since BIGINT))"
)
visits = app.state("visits", default=0)
seen_by_acuity = app.state("seen_by_acuity", default=0, key="STRING, STRING")
total_wait = app.state("total_wait", default=0, key="STRING, STRING")
crowded = app.state("crowded", default=False)

app.emits("triaged", "patient STRING, acuity STRING, ahead BIGINT")
app.emits("called", "patient STRING, room STRING, waited_minutes BIGINT, acuity STRING")
app.emits("crowding", "hospital STRING, waiting BIGINT, over BOOLEAN")

HOUR = 3_600_000_000
RED_FLAGS = re.compile(r"\b(chest pain|stroke|unconscious|not breathing)\b", re.IGNORECASE)
YELLOW_FLAGS = re.compile(r"\b(fracture|bleeding|burn(s|ed)?)\b", re.IGNORECASE)


class Acuity(IntEnum):
    RESUSCITATION = 1
    EMERGENT = 2
    URGENT = 3
    LESS_URGENT = 4
    NON_URGENT = 5


def vital_points(age, pulse, spo2, celsius):
    points = 0
    if pulse is not None:
        if pulse > 130 or pulse < 40:
            points += 3
        elif pulse > 110:
            points += 1
    if spo2 is not None and spo2 < 92.0:
        points += 3 if spo2 < 85.0 else 2
    if celsius is not None and not 35.0 <= celsius <= 39.0:
        points += 1
    if age >= 75 or age < 2:
        points += 1
    return points


def triage(complaint, points) -> Acuity:
    if RED_FLAGS.search(complaint):
        return Acuity.RESUSCITATION if points >= 3 else Acuity.EMERGENT
    if points >= 5:
        return Acuity.RESUSCITATION
    if points >= 3:
        return Acuity.EMERGENT
    if YELLOW_FLAGS.search(complaint) or points:
        return Acuity.URGENT
    return Acuity.LESS_URGENT if len(complaint.split()) > 2 else Acuity.NON_URGENT


def urgency(waiting, now):
    """Who has waited for hours moves up, but never into resuscitation."""
    hours = (now - waiting.since) // HOUR
    return (max(waiting.acuity - hours, min(waiting.acuity, 2)), waiting.since)


@app.on(arrival)
def admit(e):
    acuity = triage(e.complaint, vital_points(e.age, e.pulse, e.spo2, e.celsius))
    waiting = queue.get(e.hospital)
    ahead = sum(1 for w in waiting if w.acuity <= acuity)
    visits.add(e.patient, 1)
    app.emit("triaged", patient=e.patient, acuity=acuity.name.lower(), ahead=ahead)
    queue.append(e.hospital, {"patient": e.patient, "acuity": int(acuity), "since": e.vs})


@app.on(room_free)
def call_next(e):
    waiting = queue.get(e.hospital)
    if not waiting:
        return
    waiting.sort(key=lambda w: urgency(w, e.vs))
    chosen, *rest = waiting
    queue.set(e.hospital, rest)
    name = Acuity(chosen.acuity).name.lower()
    minutes = (e.vs - chosen.since) // 60_000_000
    seen_by_acuity.add((e.hospital, name), 1)
    total_wait.add((e.hospital, name), minutes)
    app.emit("called", patient=chosen.patient, room=e.room, waited_minutes=minutes, acuity=name)


@app.on(walk_out)
def leave(e):
    waiting = queue.get(e.hospital)
    remaining = [w for w in waiting if w.patient != e.patient]
    if len(remaining) == len(waiting):
        return
    queue.set(e.hospital, remaining)
    app.emit("left", hospital=e.hospital, patient=e.patient, visits=visits.get(e.patient))


@app.on(arrival, room_free, walk_out)
def watch_crowding(e):
    waiting = len(queue.get(e.hospital))
    was = crowded.get(e.hospital)
    is_now = waiting > 12 or (was and waiting > 8)
    if is_now != was:
        crowded.set(e.hospital, is_now)
        app.emit("crowding", hospital=e.hospital, waiting=waiting, over=not is_now)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(32)
    complaints = [
        "Chest pain since morning",
        "cough",
        "broken nail",
        "suspected fracture of the wrist",
        "burns on hand",
        "STROKE symptoms",
        "headache and dizzy spells",
        "sunburnt",
    ]
    arrivals, walks = [], []
    for number, t in enumerate(range(0, 90_000, 450)):
        patient, hospital = f"p{draw.randrange(90)}", draw.choice(("north", "south"))
        arrivals.append(
            {
                "patient": patient,
                "hospital": hospital,
                "complaint": draw.choice(complaints),
                "age": draw.randrange(0, 95),
                "pulse": draw.choice((None, 35, 72, 88, 115, 140)),
                "spo2": draw.choice((None, 99.0, 97.5, 91.0, 84.0)),
                "celsius": draw.choice((None, 36.6, 37.2, 39.5)),
                "at": t,
            }
        )
        if number % 9 == 0:
            walks.append({"hospital": hospital, "patient": patient, "at": t + 2000})
    rooms = [
        {"hospital": draw.choice(("north", "south")), "room": f"r{draw.randrange(5)}", "at": t}
        for t in range(4000, 90_000, 490)
    ]
    return {"arrival": arrivals, "room_free": rooms, "walk_out": walks}


def loop(events):
    names = ["", "resuscitation", "emergent", "urgent", "less_urgent", "non_urgent"]
    emits, queue, visits, seen, wait, crowded = [], {}, {}, {}, {}, {}
    for kind, e in events:
        h = e.hospital
        waiting = queue.get(h, [])
        if kind == "arrival":
            points = 0
            if e.pulse in (35, 140):
                points += 3
            elif e.pulse == 115:
                points += 1
            points += {84.0: 3, 91.0: 2}.get(e.spo2, 0)
            points += e.celsius == 39.5
            points += e.age >= 75 or e.age < 2
            text = e.complaint.lower()
            if "chest pain" in text or "stroke" in text:
                acuity = 1 if points >= 3 else 2
            elif points >= 3:
                acuity = 1 if points >= 5 else 2
            elif points or "fracture" in text or "burns" in text:
                acuity = 3
            else:
                acuity = 4 if text.count(" ") >= 2 else 5
            ahead = len([w for w in waiting if w["acuity"] <= acuity])
            visits[e.patient] = visits.get(e.patient, 0) + 1
            fields = {"patient": e.patient, "acuity": names[acuity], "ahead": ahead}
            emits.append(("triaged", e.vs, fields))
            queue[h] = [*waiting, {"patient": e.patient, "acuity": acuity, "since": e.vs}]
        elif kind == "room_free" and waiting:
            best = None
            for w in waiting:
                hours = (e.vs - w["since"]) // 3_600_000_000
                floor = 1 if w["acuity"] == 1 else 2
                rank = (max(floor, w["acuity"] - hours), w["since"])
                if best is None or rank < best[0]:
                    best = (rank, w)
            ranked = []
            for place, w in enumerate(waiting):
                hours = (e.vs - w["since"]) // 3_600_000_000
                floor = 1 if w["acuity"] == 1 else 2
                ranked.append((max(floor, w["acuity"] - hours), w["since"], place))
            queue[h] = [waiting[place] for _, _, place in sorted(ranked)[1:]]
            chosen = best[1]
            name, minutes = names[chosen["acuity"]], (e.vs - chosen["since"]) // 60_000_000
            seen[h, name] = seen.get((h, name), 0) + 1
            wait[h, name] = wait.get((h, name), 0) + minutes
            fields = {
                "patient": chosen["patient"],
                "room": e.room,
                "waited_minutes": minutes,
                "acuity": name,
            }
            emits.append(("called", e.vs, fields))
        elif kind == "walk_out":
            stay = [w for w in waiting if w["patient"] != e.patient]
            if len(stay) < len(waiting):
                queue[h] = stay
                fields = {"hospital": h, "patient": e.patient, "visits": visits[e.patient]}
                emits.append(("left", e.vs, fields))
        count = len(queue.get(h, []))
        now = count > 8 if crowded.get(h, False) else count > 12
        if now != crowded.get(h, False):
            crowded[h] = now
            fields = {"hospital": h, "waiting": count, "over": not now}
            emits.append(("crowding", e.vs, fields))
    return emits, {
        "queue": queue,
        "visits": visits,
        "seen_by_acuity": seen,
        "total_wait": wait,
        "crowded": crowded,
    }
