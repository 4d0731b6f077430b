"""A leaderboard: the best scores of a game and of a player; who breaks a record is announced."""

import random

import weir

app = weir.App("leaderboard")
result = app.events(
    "result", "player STRING, game STRING, points BIGINT, seconds DOUBLE, at BIGINT", vs="at"
)

best = app.state("best", default=[], type="LIST(BIGINT)")
personal = app.state("personal", default=0)
played = app.state("played", default=0)
points = app.state("points", default=0)
fastest = app.state("fastest", default=float("inf"))
champion = app.state("champion", default="nobody")


@app.on(result)
def record(e):
    top = best.get(e.game)
    if not top or e.points > top[0]:
        app.emit(
            "record",
            game=e.game,
            player=e.player,
            points=e.points,
            before=top[0] if top else None,
            of=champion.get(e.game),
        )
        champion.set(e.game, e.player)
    elif len(top) < 10 or e.points > top[-1]:
        rank = 1 + sum(1 for p in top if p >= e.points)
        app.emit("top_ten", game=e.game, player=e.player, rank=rank)
    best.top_k(e.game, e.points, 10)


@app.on(result)
def own(e):
    played.add(e.player, 1)
    points.add(e.player, e.points)
    if e.points > personal.get((e.player, e.game)):
        personal.set((e.player, e.game), e.points)
        if played.get(e.player) > 3:
            average = points.get(e.player) / played.get(e.player)
            app.emit("personal_best", player=e.player, points=e.points, average=average)
    fastest.min(e.game, e.seconds)


@app.on(result)
def speed(e):
    if e.seconds == fastest.get(e.game):
        app.emit("fastest", game=e.game, player=e.player, seconds=e.seconds)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(11)
    rows = [
        {
            "player": f"p{draw.randrange(9)}",
            "game": draw.choice(("chess", "go", "snake")),
            "points": draw.randrange(1000),
            "seconds": draw.randrange(100, 9000) / 10,
            "at": t,
        }
        for t in range(0, 3000, 8)
    ]
    return {"result": rows}


def loop(events):
    emits, best, personal, played, points = [], {}, {}, {}, {}
    fastest, champion = {}, {}
    for _, e in events:
        top = best.setdefault(e.game, [])
        if not top or e.points > top[0]:
            fields = {
                "game": e.game,
                "player": e.player,
                "points": e.points,
                "before": top[0] if top else None,
                "of": champion.get(e.game, "nobody"),
            }
            emits.append(("record", e.vs, fields))
            champion[e.game] = e.player
        elif len(top) < 10 or e.points > top[-1]:
            rank = 1 + len([p for p in top if p >= e.points])
            emits.append(("top_ten", e.vs, {"game": e.game, "player": e.player, "rank": rank}))
        best[e.game] = sorted([*top, e.points], reverse=True)[:10]
        played[e.player] = played.get(e.player, 0) + 1
        points[e.player] = points.get(e.player, 0) + e.points
        if e.points > personal.get((e.player, e.game), 0):
            personal[e.player, e.game] = e.points
            if played[e.player] > 3:
                average = points[e.player] / played[e.player]
                fields = {"player": e.player, "points": e.points, "average": average}
                emits.append(("personal_best", e.vs, fields))
        fastest[e.game] = min(fastest.get(e.game, float("inf")), e.seconds)
        if e.seconds == fastest[e.game]:
            fields = {"game": e.game, "player": e.player, "seconds": e.seconds}
            emits.append(("fastest", e.vs, fields))
    return emits, {
        "best": best,
        "personal": personal,
        "played": played,
        "points": points,
        "fastest": fastest,
        "champion": champion,
    }
