"""Log lines by a regular expression: error budgets of services, and bursts of one message."""

import random
import re
from typing import NamedTuple

import weir

app = weir.App("error_budget")
line = app.events("line", "host STRING, text STRING, at BIGINT", vs="at", unit="s")

requests = app.state("requests", default=0, last="1h", key="STRING")
errors = app.state("errors", default=0, last="1h", key="STRING")
slowest = app.state("slowest", default=0, key="STRING")
messages = app.state("messages", default=0, last="5m", key="STRING, STRING")
unparsed = app.state("unparsed", default=0)
paged = app.state("paged", default=False, expires="30m", key="STRING")

app.emits("burst", "service STRING, message STRING")
app.emits("page", "service STRING, rate DOUBLE, slowest BIGINT")

LINE = re.compile(
    r"^(?P<service>[\w-]+) (?P<method>GET|POST) (?P<path>\S+) (?P<status>\d{3}) (?P<ms>\d+)ms"
    r'(?: "(?P<message>[^"]*)")?$'
)
NUMBERS = re.compile(r"\d+")


class Entry(NamedTuple):
    service: str
    status: int
    ms: int
    message: str


def parse(text: str) -> Entry | None:
    found = LINE.match(text)
    if found is None:
        return None
    return Entry(
        found["service"],
        int(found["status"]),
        int(found["ms"]),
        NUMBERS.sub("N", found["message"] or ""),
    )


@app.on(line)
def count(e):
    entry = parse(e.text)
    if entry is None:
        unparsed.add(e.host, 1)
        return
    requests.add(entry.service, 1)
    slowest.max(entry.service, entry.ms)
    if entry.status >= 500:
        errors.add(entry.service, 1)
        messages.add((entry.service, entry.message), 1)


@app.on(line)
def page(e):
    entry = parse(e.text)
    if entry is None or entry.status < 500:
        return
    service = entry.service
    rate = errors.get(service) / requests.get(service)
    if requests.get(service) >= 20 and rate > 0.1 and not paged.get(service):
        paged.set(service, True)
        app.emit("page", service=service, rate=round(rate, 4), slowest=slowest.get(service))
    if messages.get((service, entry.message)) == 3:
        app.emit("burst", service=service, message=entry.message)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(13)
    rows = []
    for t in range(0, 6000, 12):
        service = draw.choice(("cart", "login-api", "search"))
        text = f"{service} GET /x/{t} 200 {draw.randrange(900)}ms"
        if draw.random() < 0.2:
            text = f'{service} POST /y 503 {draw.randrange(5000)}ms "timeout after {t} ms"'
        if draw.random() < 0.05:
            text = "Traceback (most recent call last):"
        rows.append({"host": f"h{t % 3}", "text": text, "at": t})
    return {"line": rows}


def loop(events):
    emits, times, failures, slowest, bursts, unparsed, paged = [], {}, {}, {}, {}, {}, {}
    second = 1_000_000
    for _, e in events:
        words = e.text.split(" ")
        if not words[-1].endswith("ms") and '"' not in e.text:
            unparsed[e.host] = unparsed.get(e.host, 0) + 1
            continue
        service, status, ms = words[0], int(words[3]), int(words[4].removesuffix("ms"))
        times.setdefault(service, []).append(e.vs)
        slowest[service] = max(slowest.get(service, 0), ms)
        if status < 500:
            continue
        failures.setdefault(service, []).append(e.vs)
        message = "timeout after N ms"
        bursts.setdefault((service, message), []).append(e.vs)
        count = sum(e.vs < at + 3600 * second for at in times[service])
        rate = sum(e.vs < at + 3600 * second for at in failures[service]) / count
        quiet = e.vs >= paged.get(service, -(10**12)) + 1800 * second
        if count >= 20 and rate > 0.1 and quiet:
            paged[service] = e.vs
            fields = {"service": service, "rate": round(rate, 4), "slowest": slowest[service]}
            emits.append(("page", e.vs, fields))
        if sum(e.vs < at + 300 * second for at in bursts[service, message]) == 3:
            emits.append(("burst", e.vs, {"service": service, "message": message}))
    return emits, {"slowest": slowest, "unparsed": unparsed}
