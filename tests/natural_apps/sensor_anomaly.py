"""Sensors: a reading far from the running mean is an anomaly; mean and variance by Welford."""

import random

import weir

app = weir.App("sensor_anomaly")
reading = app.events(
    "reading", "sensor STRING, site STRING, value DOUBLE, at BIGINT", vs="at", unit="s"
)

stats = app.state(
    "stats",
    default={"n": 0, "mean": 0.0, "m2": 0.0},
    type="STRUCT(n BIGINT, mean DOUBLE, m2 DOUBLE)",
)
anomalies = app.state("anomalies", default=0, last="10m")
silenced = app.state("silenced", default=False, expires="15m")
sigmas = app.param("sigmas", 3.0)

app.emits("anomaly", "sensor STRING, value DOUBLE, score DOUBLE")


def updated(old, x):
    n = old["n"] + 1
    delta = x - old["mean"]
    mean = old["mean"] + delta / n
    return {"n": n, "mean": mean, "m2": old["m2"] + delta * (x - mean)}


@app.on(reading)
def check(e):
    known = stats.get(e.sensor)
    if known["n"] >= 10:
        deviation = (known["m2"] / (known["n"] - 1)) ** 0.5
        if deviation > 0 and abs(e.value - known["mean"]) > sigmas * deviation:
            anomalies.add(e.site, 1)
            score = abs(e.value - known["mean"]) / deviation
            app.emit("anomaly", sensor=e.sensor, value=e.value, score=round(score, 2))
            return
    stats.set(e.sensor, updated(known, e.value))


@app.on(reading)
def alarm(e):
    if anomalies.get(e.site) >= 3 and not silenced.get(e.site):
        silenced.set(e.site, True)
        app.emit("alarm", site=e.site, count=anomalies.get(e.site))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(7)
    rows = []
    for t in range(0, 4000, 8):
        number = draw.randrange(6)
        value = draw.gauss(20 + number, 1.5) + (30 if draw.random() < 0.04 else 0)
        rows.append(
            {"sensor": f"s{number}", "site": f"site{number % 2}", "value": round(value, 3), "at": t}
        )
    return {"reading": rows}


def loop(events):
    emits, stats, found, silenced = [], {}, {}, {}
    minute = 60_000_000
    for _, e in events:
        n, mean, m2 = stats.get(e.sensor, (0, 0.0, 0.0))
        deviation = (m2 / (n - 1)) ** 0.5 if n >= 10 else 0.0
        if deviation > 0 and abs(e.value - mean) > 3.0 * deviation:
            found.setdefault(e.site, []).append(e.vs)
            score = round(abs(e.value - mean) / deviation, 2)
            emits.append(("anomaly", e.vs, {"sensor": e.sensor, "value": e.value, "score": score}))
        else:
            delta = e.value - mean
            new = mean + delta / (n + 1)
            stats[e.sensor] = (n + 1, new, m2 + delta * (e.value - new))
        count = sum(e.vs < at + 10 * minute for at in found.get(e.site, []))
        if count >= 3 and e.vs >= silenced.get(e.site, -100 * minute) + 15 * minute:
            silenced[e.site] = e.vs
            emits.append(("alarm", e.vs, {"site": e.site, "count": count}))
    return emits, {
        "stats": {s: {"n": n, "mean": mean, "m2": m2} for s, (n, mean, m2) in stats.items()}
    }
