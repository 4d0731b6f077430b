"""DNS anomalies: tunnels by long random names, generated domains by failures, beacons by rhythm."""

import math
import random
import statistics
from collections import Counter
from itertools import pairwise

import weir

app = weir.App("dns_anomaly")
query = app.events(
    "query",
    "client STRING, name STRING, qtype STRING, rcode STRING, bytes BIGINT, at BIGINT",
    vs="at",
    unit="ms",
)

names_lately = app.state("names_lately", default=[], type="LIST(STRING)", last="10m")
failures = app.state("failures", default=0, last="5m")
total = app.state("total", default=0, last="5m")
bytes_out = app.state("bytes_out", default=0)
arrivals = app.state("arrivals", default=[], type="LIST(BIGINT)")
score_of = app.state("score_of", default=0.0)

app.emits("alert", "client STRING, domain STRING, kind STRING, detail STRING")

ALLOWED = ("example.com", "cdn.test")
TWO_LEVEL = {"co.uk", "com.au"}
KEEP = 6


def registered(name: str) -> str:
    labels = name.rstrip(".").lower().split(".")
    suffix = ".".join(labels[-2:])
    depth = 3 if suffix in TWO_LEVEL else 2
    return ".".join(labels[-depth:])


def entropy(text: str) -> float:
    if not text:
        return 0.0
    counts = Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def is_regular(times: list[int]) -> bool:
    if len(times) < KEEP:
        return False
    gaps = [b - a for a, b in pairwise(times)]
    mean = statistics.fmean(gaps)
    return mean > 1_000_000 and statistics.pstdev(gaps) < 0.05 * mean


@app.on(query)
def observe(e):
    domain = registered(e.name)
    if domain.endswith(ALLOWED):
        return
    key = (e.client, domain)
    names_lately.add_to_set(key, e.name.lower())
    bytes_out.add(key, e.bytes)
    arrivals.merge(key, lambda times: [*times, e.vs][-KEEP:])
    total.add(e.client, 1)
    if e.rcode == "NXDOMAIN":
        failures.add(e.client, 1)


@app.on(query)
def detect(e):
    domain = registered(e.name)
    if domain.endswith(ALLOWED):
        return
    key = (e.client, domain)
    host = e.name.lower().rstrip(".").removesuffix(domain).rstrip(".")

    findings = []
    distinct = len(names_lately.get(key))
    if distinct >= 8 and entropy(host) > 3.0:
        findings.append(("tunnel", f"{distinct} names, {bytes_out.get(key)} bytes"))
    failed, asked = failures.get(e.client), total.get(e.client)
    if asked >= 10 and failed / asked > 0.4:
        findings.append(("generated", f"{failed} of {asked} failed"))
    if is_regular(arrivals.get(key)):
        findings.append(("beacon", f"every {(e.vs - arrivals.get(key)[-2]) // 1_000_000} s"))

    for kind, detail in findings:
        app.emit("alert", client=e.client, domain=domain, kind=kind, detail=detail)
    if findings:
        score_of.merge(e.client, lambda s: 0.9 * s + len(findings))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(40)
    rows = []
    for _ in range(260):
        t = draw.randrange(0, 3_600_000)
        name = draw.choice(
            (
                "www.Example.com",
                "a.cdn.test.",
                "shop.store.co.uk",
                "news.site.org",
                "mail.site.org",
                "qkzjx.biz",
                "vvbnw.biz",
            )
        )
        rcode = "NXDOMAIN" if name.endswith(".biz") or draw.random() < 0.1 else "NOERROR"
        rows.append(
            {
                "client": f"10.0.0.{draw.randrange(5)}",
                "name": name,
                "qtype": "A",
                "rcode": rcode,
                "bytes": 40 + len(name),
                "at": t,
            }
        )
    for n in range(60):
        text = "".join(draw.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(24))
        rows.append(
            {
                "client": "10.0.0.7",
                "name": f"{text}.tunnel.net",
                "qtype": "TXT",
                "rcode": "NOERROR",
                "bytes": 90,
                "at": 600_000 + n * draw.choice((9_000, 20_000)),
            }
        )
        rows.append(
            {
                "client": "10.0.0.8",
                "name": "c2.evil.com.au",
                "qtype": "A",
                "rcode": "NOERROR",
                "bytes": 54,
                "at": n * 60_000 + draw.randrange(300),
            }
        )
    return {"query": sorted(rows, key=lambda row: row["at"])}


def loop(events):
    emits, names, failed, asked, sent, times, score = [], {}, {}, {}, {}, {}, {}
    minute = 60_000_000
    for _, e in events:
        c, name = e.client, e.name.lower()
        parts = name.strip(".").split(".")
        cut = 3 if parts[-2:] in (["co", "uk"], ["com", "au"]) else 2
        domain, host = ".".join(parts[-cut:]), ".".join(parts[:-cut])
        if domain in ("example.com", "cdn.test"):
            continue
        seen = names.setdefault((c, domain), {})
        seen.setdefault(name, []).append(e.vs)
        sent[c, domain] = sent.get((c, domain), 0) + e.bytes
        last = times[c, domain] = [*times.get((c, domain), []), e.vs][-6:]
        asked.setdefault(c, []).append(e.vs)
        if e.rcode == "NXDOMAIN":
            failed.setdefault(c, []).append(e.vs)
        found = []
        distinct = sum(any(e.vs < t + 10 * minute for t in ts) for ts in seen.values())
        bits = 0.0
        if host:
            bits = -sum(
                host.count(x) / len(host) * math.log2(host.count(x) / len(host))
                for x in dict.fromkeys(host)
            )
        if distinct >= 8 and bits > 3.0:
            found.append(("tunnel", f"{distinct} names, {sent[c, domain]} bytes"))
        n = sum(e.vs < t + 5 * minute for t in asked[c])
        bad = sum(e.vs < t + 5 * minute for t in failed.get(c, []))
        if n >= 10 and bad / n > 0.4:
            found.append(("generated", f"{bad} of {n} failed"))
        if len(last) == 6:
            gaps = [last[i + 1] - last[i] for i in range(5)]
            mean = statistics.fmean(gaps)
            if mean > 1_000_000 and statistics.pstdev(gaps) < 0.05 * mean:
                found.append(("beacon", f"every {gaps[-1] // 1_000_000} s"))
        for kind, detail in found:
            fields = {"client": c, "domain": domain, "kind": kind, "detail": detail}
            emits.append(("alert", e.vs, fields))
        if found:
            score[c] = 0.9 * score.get(c, 0.0) + len(found)
    return emits, {"bytes_out": sent, "arrivals": times, "score_of": score}
