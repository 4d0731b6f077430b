"""Linear Road: cars report where they are; tolls by congestion, alerts near accidents."""

import random
from collections import defaultdict

import weir

app = weir.App("linear_road")
report = app.events(
    "report",
    "car BIGINT, speed BIGINT, xway BIGINT, lane BIGINT, dir BIGINT, seg BIGINT, pos BIGINT, "
    "t BIGINT",
    vs="t",
    unit="s",
)

speed_sum = app.state("speed_sum", default=0, last="5m")
speed_count = app.state("speed_count", default=0, last="5m")
cars_in_segment = app.state("cars_in_segment", default=[], type="LIST(BIGINT)", last="1m")
last_pos = app.state("last_pos", default=-1)
same_pos = app.state("same_pos", default=0)
stopped = app.state("stopped", default=[], type="LIST(BIGINT)", expires="2m")
segment_of = app.state("segment_of", default=-1)
balance = app.state("balance", default=0)

EXIT_LANE = 4


def segment(e):
    return (e.xway, e.dir, e.seg)


@app.on(report)
def statistics(e):
    speed_sum.add(segment(e), e.speed)
    speed_count.add(segment(e), 1)
    cars_in_segment.add_to_set(segment(e), e.car)


@app.on(report)
def watch_stopped(e):
    if e.speed == 0 and last_pos.get(e.car) == e.pos:
        same_pos.add(e.car, 1)
    else:
        same_pos.set(e.car, 1)
    last_pos.set(e.car, e.pos)


@app.on(report)
def find_accident(e):
    if same_pos.get(e.car) >= 4:
        stopped.add_to_set(segment(e), e.car)


def toll_of(cars, speed):
    if speed >= 40 or cars <= 3:
        return 0
    return 2 * (cars - 3) ** 2


@app.on(report)
def charge(e):
    if e.lane == EXIT_LANE or segment_of.get(e.car) == e.seg:
        segment_of.set(e.car, e.seg)
        return
    segment_of.set(e.car, e.seg)
    for ahead in range(5):
        seg = e.seg + ahead if e.dir == 0 else e.seg - ahead
        if len(stopped.get((e.xway, e.dir, seg))) >= 2:
            app.emit("accident_alert", car=e.car, seg=seg)
            return
    count = speed_count.get(segment(e))
    average = speed_sum.get(segment(e)) / count
    toll = toll_of(len(cars_in_segment.get(segment(e))), average)
    if toll > 0:
        balance.add(e.car, toll)
    app.emit("toll_notice", car=e.car, toll=toll, speed=round(average))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(1)
    rows, positions = [], {car: draw.randrange(0, 4000) for car in range(25)}
    for t in range(0, 600, 30):
        for car in positions:
            broken = car in (3, 4) and 90 <= t < 330
            speed = 0 if broken else draw.choice((20, 30, 35, 55, 60))
            if car in (3, 4) and t == 90:
                positions[car] = 2500
            positions[car] += speed * 10
            rows.append(
                {
                    "car": car,
                    "speed": speed,
                    "xway": 0,
                    "lane": draw.choice((1, 2, 2, 3, 4)),
                    "dir": 0,
                    "seg": positions[car] // 1000,
                    "pos": positions[car],
                    "t": t + car % 30,
                }
            )
    return {"report": sorted(rows, key=lambda row: row["t"])}


def loop(events):
    emits = []
    speeds, seen = defaultdict(list), defaultdict(list)
    last_pos, same_pos, stopped, segment_of, balance = {}, {}, {}, {}, {}
    minute = 60_000_000
    for _, e in events:
        here = (e.xway, e.dir, e.seg)
        speeds[here].append((e.vs, e.speed))
        seen[here].append((e.vs, e.car))
        if e.speed == 0 and last_pos.get(e.car, -1) == e.pos:
            same_pos[e.car] = same_pos.get(e.car, 0) + 1
        else:
            same_pos[e.car] = 1
        last_pos[e.car] = e.pos
        if same_pos[e.car] >= 4:
            at, cars = stopped.get(here, (0, []))
            cars = cars if e.vs < at + 2 * minute else []
            stopped[here] = (e.vs, cars if e.car in cars else [*cars, e.car])
        before = segment_of.get(e.car, -1)
        segment_of[e.car] = e.seg
        if e.lane == 4 or before == e.seg:
            continue
        for seg in range(e.seg, e.seg + 5):
            at, cars = stopped.get((0, 0, seg), (0, []))
            if e.vs < at + 2 * minute and len(cars) >= 2:
                emits.append(("accident_alert", e.vs, {"car": e.car, "seg": seg}))
                break
        else:
            recent = [speed for at, speed in speeds[here] if e.vs < at + 5 * minute]
            cars = len({car for at, car in seen[here] if e.vs < at + minute})
            average = sum(recent) / len(recent)
            toll = 0 if average >= 40 or cars <= 3 else 2 * (cars - 3) ** 2
            if toll > 0:
                balance[e.car] = balance.get(e.car, 0) + toll
            fields = {"car": e.car, "toll": toll, "speed": round(average)}
            emits.append(("toll_notice", e.vs, fields))
    return emits, {
        "last_pos": last_pos,
        "same_pos": same_pos,
        "segment_of": segment_of,
        "balance": balance,
    }
