"""Matchmaking: players wait in a queue by mode and region until a rating near theirs turns up."""

import random
from dataclasses import asdict, dataclass

import weir

app = weir.App("matchmaking")
rated = app.events("rated", "player STRING, rating BIGINT, at BIGINT", vs="at", unit="s")
join = app.events("join", "player STRING, mode STRING, region STRING, at BIGINT", vs="at", unit="s")
leave = app.events(
    "leave", "player STRING, mode STRING, region STRING, at BIGINT", vs="at", unit="s"
)

rating = app.state("rating", default=1000)
queue = app.state(
    "queue", default=[], type="LIST(STRUCT(player STRING, rating BIGINT, since BIGINT))"
)
matches = app.state("matches", default=0)
waited = app.state("waited", default=0)

app.emits("match", "home STRING, away STRING, gap BIGINT, mode STRING")


@dataclass(frozen=True)
class Waiting:
    player: str
    rating: int
    since: int

    def tolerance(self, now: int) -> int:
        """The longer somebody waits the more is acceptable."""
        seconds = (now - self.since) // 1_000_000
        return 50 + min(300, 5 * seconds)


@app.on(rated)
def remember(e):
    rating.set(e.player, e.rating)


@app.on(join)
def find(e):
    lobby = (e.mode, e.region)
    mine = rating.get(e.player)
    waiting = [Waiting(**entry) for entry in queue.get(lobby)]
    if any(other.player == e.player for other in waiting):
        return
    best = None
    for other in waiting:
        gap = abs(other.rating - mine)
        if gap > other.tolerance(e.vs):
            continue
        if best is None or gap < abs(best.rating - mine):
            best = other
    if best is None:
        queue.append(lobby, {"player": e.player, "rating": mine, "since": e.vs})
        return
    queue.set(lobby, [asdict(other) for other in waiting if other is not best])
    matches.add(lobby, 1)
    waited.add(lobby, e.vs - best.since)
    app.emit("match", home=best.player, away=e.player, gap=abs(best.rating - mine), mode=e.mode)


@app.on(leave)
def give_up(e):
    lobby = (e.mode, e.region)
    queue.merge(lobby, lambda old: [entry for entry in old if entry["player"] != e.player])


@app.on(join)
def slow(e):
    played = matches.get((e.mode, e.region))
    if played >= 3:
        seconds = waited.get((e.mode, e.region)) / played / 1_000_000
        if seconds > 20:
            app.emit("slow", mode=e.mode, region=e.region, seconds=round(seconds, 1))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(22)
    players = [f"p{n}" for n in range(30)]
    ratings = [
        {"player": draw.choice(players), "rating": draw.randrange(600, 1600), "at": t}
        for t in range(0, 900, 20)
    ]

    def some(t):
        return {
            "player": draw.choice(players),
            "mode": draw.choice(("solo", "duo")),
            "region": draw.choice(("eu", "us")),
            "at": t,
        }

    joins = [some(t) for t in range(0, 900, 3)]
    leaves = [some(t) for t in range(100, 900, 6)]
    return {"rated": ratings, "join": joins, "leave": leaves}


def loop(events):
    emits, rating, queues, matches, waited = [], {}, {}, {}, {}
    for name, e in events:
        if name == "rated":
            rating[e.player] = e.rating
            continue
        lobby = (e.mode, e.region)
        if name == "leave":
            queues[lobby] = [w for w in queues.get(lobby, []) if w[0] != e.player]
            continue
        mine, line = rating.get(e.player, 1000), queues.get(lobby, [])
        if e.player not in [w[0] for w in line]:
            near = [
                (abs(w[1] - mine), n)
                for n, w in enumerate(line)
                if abs(w[1] - mine) <= 50 + min(300, 5 * ((e.vs - w[2]) // 1_000_000))
            ]
            if near:
                gap, n = min(near)
                other = line[n]
                queues[lobby] = line[:n] + line[n + 1 :]
                matches[lobby] = matches.get(lobby, 0) + 1
                waited[lobby] = waited.get(lobby, 0) + e.vs - other[2]
                fields = {"home": other[0], "away": e.player, "gap": gap, "mode": e.mode}
                emits.append(("match", e.vs, fields))
            else:
                queues[lobby] = [*line, (e.player, mine, e.vs)]
        if matches.get(lobby, 0) >= 3:
            seconds = waited[lobby] / matches[lobby] / 1_000_000
            if seconds > 20:
                fields = {"mode": e.mode, "region": e.region, "seconds": round(seconds, 1)}
                emits.append(("slow", e.vs, fields))
    saved = {
        lobby: [{"player": p, "rating": r, "since": s} for p, r, s in line]
        for lobby, line in queues.items()
    }
    return emits, {"rating": rating, "queue": saved, "matches": matches, "waited": waited}
