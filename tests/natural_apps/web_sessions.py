"""Web sessions: half an hour without a page ends one; entry page, source, pages and depth."""

import random
from urllib.parse import parse_qs, urlparse

import weir

app = weir.App("web_sessions")
page = app.events(
    "page", "visitor STRING, url STRING, referrer STRING, at BIGINT", vs="at", unit="s"
)

last_seen = app.state("last_seen", default=None, type="BIGINT")
session_start = app.state("session_start", default=0)
pages = app.state("pages", default=0)
sessions = app.state("sessions", default=0)
landings = app.state("landings", default=0, key="STRING")
by_source = app.state("by_source", default=0, key="STRING, STRING")

app.emits("landing", "visitor STRING, path STRING, source STRING")

GAP = 30 * 60 * 1_000_000


def source_of(url: str, referrer: str | None) -> str:
    query = parse_qs(urlparse(url).query)
    if "utm_source" in query:
        return query["utm_source"][0].lower()
    if not referrer:
        return "direct"
    host = urlparse(referrer).hostname or ""
    if host.startswith("www."):
        host = host[4:]
    return "search" if host.split(".")[0] in {"google", "bing", "duckduckgo"} else host


@app.on(page)
def sessionize(e):
    before = last_seen.get(e.visitor)
    last_seen.set(e.visitor, e.vs)
    if before is not None and e.vs - before < GAP:
        pages.add(e.visitor, 1)
        return
    if before is not None:
        minutes = (before - session_start.get(e.visitor)) // 60_000_000
        app.emit("session", visitor=e.visitor, pages=pages.get(e.visitor), minutes=minutes)
    session_start.set(e.visitor, e.vs)
    pages.set(e.visitor, 1)
    sessions.add(e.visitor, 1)
    path = urlparse(e.url).path.rstrip("/") or "/"
    source = source_of(e.url, e.referrer)
    landings.add(path, 1)
    by_source.add((source, path), 1)
    app.emit("landing", visitor=e.visitor, path=path, source=source)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(9)
    paths = ["/", "/pricing/", "/blog/post?utm_source=Newsletter&x=1", "/docs", "/cart?id=7"]
    referrers = [None, "https://www.google.com/search?q=weir", "https://news.example/a", ""]
    rows = [
        {
            "visitor": f"v{draw.randrange(20)}",
            "url": "https://shop.example" + draw.choice(paths),
            "referrer": draw.choice(referrers),
            "at": t * 60,
        }
        for t in sorted(draw.randrange(0, 900) for _ in range(400))
    ]
    return {"page": rows}


def loop(events):
    emits, last, start, pages, sessions, landings, sources = [], {}, {}, {}, {}, {}, {}
    for _, e in events:
        v, before = e.visitor, last.get(e.visitor)
        last[v] = e.vs
        if before is not None and e.vs - before < 1_800_000_000:
            pages[v] += 1
            continue
        if before is not None:
            minutes = (before - start[v]) // 60_000_000
            emits.append(("session", e.vs, {"visitor": v, "pages": pages[v], "minutes": minutes}))
        start[v], pages[v], sessions[v] = e.vs, 1, sessions.get(v, 0) + 1
        parsed = urlparse(e.url)
        path = parsed.path.rstrip("/") or "/"
        if "utm_source=" in parsed.query:
            source = "newsletter"
        elif not e.referrer:
            source = "direct"
        else:
            source = "search" if "google" in e.referrer else "news.example"
        landings[path] = landings.get(path, 0) + 1
        sources[source, path] = sources.get((source, path), 0) + 1
        emits.append(("landing", e.vs, {"visitor": v, "path": path, "source": source}))
    return emits, {
        "last_seen": last,
        "session_start": start,
        "pages": pages,
        "sessions": sessions,
        "landings": landings,
        "by_source": sources,
    }
