"""Log lines without their numbers: new kinds of lines, and kinds that come far more often."""

import random
import re
from functools import reduce

import weir

app = weir.App("log_templates")
line = app.events("line", "service STRING, level STRING, text STRING, at TIMESTAMP", vs="at")
deploy = app.events("deploy", "service STRING, version STRING, at TIMESTAMP", vs="at")

seen = app.state("seen", default=0, key="STRING, STRING")
rate = app.state("rate", default={"minute": 0, "count": 0, "mean": 0.0}, key="STRING, STRING")
version = app.state("version", default="?")
new_since = app.state("new_since", default=0)
silenced = app.state("silenced", default=False, expires="20m", key="STRING, STRING")

MASKS = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}\b"), "<id>"),
    (re.compile(r"\b\d+(\.\d+){3}\b"), "<ip>"),
    (re.compile(r"'[^']*'"), "<text>"),
    (re.compile(r"\b\d+\b"), "<n>"),
]


def template(text: str) -> str:
    return reduce(lambda so_far, mask: mask[0].sub(mask[1], so_far), MASKS, text)


@app.on(deploy)
def deployed(e):
    app.emit(
        "before_deploy",
        service=e.service,
        version=version.get(e.service),
        kinds=new_since.get(e.service),
    )
    version.set(e.service, e.version)
    new_since.set(e.service, 0)


@app.on(line)
def learn(e):
    if e.level == "DEBUG":
        return
    kind = template(e.text)
    seen.add((e.service, kind), 1)
    if seen.get((e.service, kind)) == 1:
        new_since.add(e.service, 1)
        app.emit("new_kind", service=e.service, kind=kind, version=version.get(e.service))


def advanced(known, minute: int):
    """Close the minutes that are over, with an average that forgets."""
    while known["minute"] < minute and (known["count"] or known["mean"] > 0.01):
        known["mean"] = 0.7 * known["mean"] + 0.3 * known["count"]
        known["count"] = 0
        known["minute"] += 1
    known["minute"] = minute
    return known


@app.on(line)
def bursts(e):
    if e.level not in {"WARN", "ERROR"}:
        return
    key = (e.service, template(e.text))
    known = advanced(rate.get(key), e.vs // 60_000_000)
    known["count"] += 1
    rate.set(key, known)
    usual = known["mean"]
    if known["count"] > 3 and known["count"] > 1.5 * usual and not silenced.get(key):
        silenced.set(key, True)
        app.emit("burst", service=e.service, kind=key[1], count=known["count"], usual=usual)


app.emits("new_kind", "service STRING, kind STRING, version STRING")
app.emits("burst", "service STRING, kind STRING, count BIGINT, usual DOUBLE")


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

MINUTE = 60_000_000


def logs():
    draw = random.Random(28)
    shapes = [
        ("INFO", lambda: f"user {draw.randrange(99)} logged in from 10.0.0.{draw.randrange(9)}"),
        ("WARN", lambda: f"retry {draw.randrange(5)} of job deadbeef-{draw.randrange(10)}a0b"),
        ("ERROR", lambda: f"cannot open '{draw.choice('abc')}.txt'"),
        ("DEBUG", lambda: "tick"),
        ("INFO", lambda: f"served in {draw.randrange(400)} ms"),
    ]
    lines = []
    for t in range(450):
        level, text = draw.choice(shapes[:2] if t < 100 else shapes)
        if 250 < t < 320:
            level, text = shapes[2]
        service = draw.choice(("api", "web"))
        lines.append({"service": service, "level": level, "text": text(), "at": t * MINUTE // 4})
    deploys = [
        {"service": s, "version": f"v{n}", "at": (20 + 45 * n) * MINUTE + 1}
        for n in range(2)
        for s in ("api", "web")
    ]
    return {"line": lines, "deploy": deploys}


def loop(events):
    emits, seen, rate, version, new, quiet = [], {}, {}, {}, {}, {}
    for name, e in events:
        s = e.service
        if name == "deploy":
            fields = {"service": s, "version": version.get(s, "?"), "kinds": new.get(s, 0)}
            emits.append(("before_deploy", e.vs, fields))
            version[s], new[s] = e.version, 0
            continue
        if e.level == "DEBUG":
            continue
        kind = e.text
        for pattern, mark in (
            ("deadbeef-[0-9a-f]*", "<id>"),
            (r"10\.0\.0\.\d", "<ip>"),
            ("'.*'", "<text>"),
            (r"(?<=[ ])\d+(?= )", "<n>"),
        ):
            kind = re.sub(pattern, mark, kind)
        seen[s, kind] = seen.get((s, kind), 0) + 1
        if seen[s, kind] == 1:
            new[s] = new.get(s, 0) + 1
            fields = {"service": s, "kind": kind, "version": version.get(s, "?")}
            emits.append(("new_kind", e.vs, fields))
        if e.level == "INFO":
            continue
        minute, count, mean = rate.get((s, kind), (0, 0, 0.0))
        now = e.vs // MINUTE
        while minute < now and (count or mean > 0.01):
            minute, count, mean = minute + 1, 0, 0.7 * mean + 0.3 * count
        count += 1
        rate[s, kind] = (now, count, mean)
        until = quiet.get((s, kind), -1)
        if count > 3 and count > 1.5 * mean and e.vs >= until:
            quiet[s, kind] = e.vs + 20 * MINUTE
            fields = {"service": s, "kind": kind, "count": count, "usual": mean}
            emits.append(("burst", e.vs, fields))
    rates = {k: {"minute": m, "count": c, "mean": x} for k, (m, c, x) in rate.items()}
    return emits, {"seen": seen, "rate": rates, "version": version, "new_since": new}
