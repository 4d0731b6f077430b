"""Energy metering: register readings become consumption, priced by hour, billed by month."""

import random
from datetime import datetime

import weir

app = weir.App("energy_tariffs")
price = app.events("price", "zone STRING, band STRING, cents_per_kwh DOUBLE, at TIMESTAMP", vs="at")
reading = app.events("reading", "meter STRING, zone STRING, register DOUBLE, at TIMESTAMP", vs="at")

tariff = app.state("tariff", default=30.0)
last_register = app.state("last_register", default=None, type="DOUBLE")
last_read = app.state("last_read", default=None, type="TIMESTAMP")
kwh = app.state("kwh", default=0.0, key="STRING, STRING")
cost = app.state("cost", default=0.0, key="STRING, STRING")
usual = app.state("usual", default=None, type="DOUBLE")

app.emits("bill", "meter STRING, month STRING, kwh DOUBLE, cents BIGINT")
app.emits("spike", "meter STRING, kilowatts DOUBLE, usual DOUBLE")
app.emits("suspicious", "meter STRING, why STRING")

ROLLOVER = 100_000.0
ALPHA = 0.2


def band_of(at: datetime) -> str:
    if at.weekday() >= 5 or at.hour < 6 or at.hour >= 22:
        return "off-peak"
    if 17 <= at.hour < 20:
        return "peak"
    return "shoulder"


def month_of(at: datetime) -> str:
    return f"{at.year}-{at.month:02d}"


def consumed(before: float, now: float) -> float:
    """The register has five digits and begins anew."""
    if now >= before:
        return now - before
    return now + ROLLOVER - before


@app.on(price)
def change_price(e):
    if e.cents_per_kwh > 0:
        tariff.set((e.zone, e.band), e.cents_per_kwh)


@app.on(reading)
def meter_read(e):
    before, read_at = last_register.get(e.meter), last_read.get(e.meter)
    last_register.set(e.meter, e.register)
    last_read.set(e.meter, e.at)
    if before is None:
        return
    hours = (e.at - read_at).total_seconds() / 3600
    if hours <= 0:
        app.emit("suspicious", meter=e.meter, why="two readings at once")
        return
    used = consumed(before, e.register)
    kilowatts = used / hours
    if kilowatts > 50:
        app.emit("suspicious", meter=e.meter, why=f"{used:.1f} kWh in {hours:.1f} h")
        return

    month = month_of(read_at)
    kwh.add((e.meter, month), used)
    cost.add((e.meter, month), used * tariff.get((e.zone, band_of(read_at))))

    normal = usual.get(e.meter)
    if normal is None:
        usual.set(e.meter, kilowatts)
    else:
        if kilowatts > 3 * normal and kilowatts > 1:
            app.emit("spike", meter=e.meter, kilowatts=round(kilowatts, 2), usual=round(normal, 2))
        usual.set(e.meter, (1 - ALPHA) * normal + ALPHA * kilowatts)

    if month_of(e.at) != month:
        app.emit(
            "bill",
            meter=e.meter,
            month=month,
            kwh=round(kwh.get((e.meter, month)), 3),
            cents=round(cost.get((e.meter, month))),
        )


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

HOUR = 3_600_000_000


def logs():
    draw = random.Random(36)
    start = 19_700 * 24 * HOUR
    prices = [
        {
            "zone": draw.choice(("north", "south")),
            "band": draw.choice(("peak", "off-peak", "shoulder")),
            "cents_per_kwh": draw.choice((0.0, 21.5, 28.4, 35.1, 41.0)),
            "at": start + t * HOUR,
        }
        for t in range(0, 1900, 41)
    ]
    registers = {f"meter-{n}": 99_000.0 + 150 * n for n in range(8)}
    readings = []
    at = 0
    while len(readings) < 400:
        meter = f"meter-{draw.randrange(8)}"
        registers[meter] += draw.choice((0.0, 3.25, 12.5, 40.0, 40.0, 180.0, 6000.0))
        registers[meter] = round(registers[meter] % 100_000, 3)
        readings.append(
            {
                "meter": meter,
                "zone": "north" if meter < "meter-4" else "south",
                "register": registers[meter],
                "at": start + at * HOUR,
            }
        )
        at += draw.choice((0, 1, 5, 5, 7))
    return {"price": prices, "reading": readings}


def loop(events):
    from math import fsum

    emits, tariff, register, when, used, cents, usual = [], {}, {}, {}, {}, {}, {}
    for name, e in events:
        if name == "price":
            if e.cents_per_kwh > 0:
                tariff[e.zone, e.band] = e.cents_per_kwh
            continue
        m, before, then = e.meter, register.get(e.meter), when.get(e.meter)
        register[m], when[m] = e.register, e.at
        if before is None:
            continue
        hours = (e.at - then).total_seconds() / 3600
        if hours <= 0:
            emits.append(("suspicious", e.vs, {"meter": m, "why": "two readings at once"}))
            continue
        kwh = e.register - before if e.register >= before else e.register + 100_000.0 - before
        if kwh / hours > 50:
            why = f"{kwh:.1f} kWh in {hours:.1f} h"
            emits.append(("suspicious", e.vs, {"meter": m, "why": why}))
            continue
        if then.weekday() in (5, 6) or then.hour in (0, 1, 2, 3, 4, 5, 22, 23):
            band = "off-peak"
        else:
            band = "peak" if then.hour in (17, 18, 19) else "shoulder"
        key = (m, then.strftime("%Y-%m"))
        used.setdefault(key, []).append(kwh)
        cents.setdefault(key, []).append(kwh * tariff.get((e.zone, band), 30.0))
        if m not in usual:
            usual[m] = kwh / hours
        else:
            if kwh / hours > max(3 * usual[m], 1):
                fields = {"meter": m, "kilowatts": round(kwh / hours, 2)}
                emits.append(("spike", e.vs, fields | {"usual": round(usual[m], 2)}))
            usual[m] = (1 - 0.2) * usual[m] + 0.2 * (kwh / hours)
        if e.at.strftime("%Y-%m") != key[1]:
            fields = {"meter": m, "month": key[1], "kwh": round(fsum(used[key]), 3)}
            emits.append(("bill", e.vs, fields | {"cents": round(fsum(cents[key]))}))
    return emits, {
        "tariff": tariff,
        "last_register": register,
        "usual": usual,
        "kwh": {key: fsum(parts) for key, parts in used.items()},
        "cost": {key: fsum(parts) for key, parts in cents.items()},
    }
