"""Log lines by a regular expression: the keys are known only when Python has read the line."""

import re
from typing import NamedTuple

import weir

app = weir.App("stages")
line = app.events("line", "host STRING, text STRING, at BIGINT", vs="at")

requests = app.state("requests", default=0, key="STRING")
errors = app.state("errors", default=0, key="STRING")
slowest = app.state("slowest", default=0, key="STRING")
paged = app.state("paged", default=0, key="STRING")
app.emits("page", "service STRING, rate DOUBLE, slowest BIGINT")

LINE = re.compile(r"^(?P<service>[\w-]+) (?P<status>\d{3}) (?P<ms>\d+)ms$")


class Entry(NamedTuple):
    service: str
    status: int
    ms: int


def parse(text: str) -> Entry | None:
    found = LINE.match(text)
    if found is None:
        return None
    return Entry(found["service"], int(found["status"]), int(found["ms"]))


@app.on(line)
def count(e):
    entry = parse(e.text)
    if entry is None:
        return
    requests.add(entry.service, 1)
    slowest.max(entry.service, entry.ms)
    if entry.status >= 500:
        errors.add(entry.service, 1)


@app.on(line)
def page(e):
    entry = parse(e.text)
    if entry is None or entry.status < 500:
        return
    service = entry.service
    failed = errors.get(service)
    rate = failed / requests.get(service)
    if rate > 0.1 and failed >= paged.get(service) + 100:
        paged.set(service, failed)
        app.emit("page", service=service, rate=round(rate, 4), slowest=slowest.get(service))
