"""The last ten readings of a sensor, and which of its errors were seen, as LISTs."""

import weir

app = weir.App("lists")
reading = app.events("reading", "sensor BIGINT, value DOUBLE, error STRING, at BIGINT", vs="at")

recent = app.state("recent", default=[], type="LIST(DOUBLE)")
errors = app.state("errors", default=[], type="LIST(STRING)")
app.emits("jump", "sensor BIGINT, value DOUBLE, median DOUBLE")


@app.on(reading)
def watch(e):
    values = recent.get(e.sensor)
    if len(values) == 10:
        median = sorted(values)[5]
        if abs(e.value - median) > 40:
            app.emit("jump", sensor=e.sensor, value=e.value, median=median)
        values.pop(0)
    values.append(e.value)
    recent.set(e.sensor, values)
    if e.error and e.error not in errors.get(e.sensor):
        errors.append(e.sensor, e.error)
