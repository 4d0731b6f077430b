"""Mean and variance of a sensor by Welford, in a STRUCT."""

import weir

app = weir.App("structs")
reading = app.events("reading", "sensor BIGINT, value DOUBLE, error STRING, at BIGINT", vs="at")

stats = app.state("stats", default={"n": 0, "mean": 0.0, "m2": 0.0, "last": ""})
app.emits("anomaly", "sensor BIGINT, value DOUBLE, score DOUBLE")


def updated(old, x, error):
    n = old["n"] + 1
    delta = x - old["mean"]
    mean = old["mean"] + delta / n
    return {"n": n, "mean": mean, "m2": old["m2"] + delta * (x - mean), "last": error}


@app.on(reading)
def check(e):
    known = stats.get(e.sensor)
    if known["n"] >= 10:
        deviation = (known["m2"] / (known["n"] - 1)) ** 0.5
        if deviation > 0 and abs(e.value - known["mean"]) > 3 * deviation:
            score = abs(e.value - known["mean"]) / deviation
            app.emit("anomaly", sensor=e.sensor, value=e.value, score=round(score, 2))
    stats.set(e.sensor, updated(known, e.value, e.error or known["last"]))
