"""Elo ratings of chess players: a game changes the ratings of both, so games go one by one."""

import random
from typing import NamedTuple

import weir

app = weir.App("elo_ratings")
game = app.events(
    "game", "white STRING, black STRING, result STRING, moves STRING, at BIGINT", vs="at", unit="s"
)

rating = app.state("rating", default=1500.0)
games = app.state("games", default=0)
streak = app.state("streak", default=0)
openings = app.state("openings", default=0)
best = app.state("best", default=1500.0)


class Outcome(NamedTuple):
    white: float
    black: float


OUTCOMES = {"1-0": Outcome(1, 0), "0-1": Outcome(0, 1), "1/2-1/2": Outcome(0.5, 0.5)}


def expected(own: float, other: float) -> float:
    return 1 / (1 + 10 ** ((other - own) / 400))


def k_factor(played: int, own: float) -> int:
    if played < 5:
        return 40
    return 10 if own >= 1700 else 20


def settle(player: str, before: float, other: float, score: float) -> float:
    after = before + k_factor(games.get(player), before) * (score - expected(before, other))
    rating.set(player, after)
    games.add(player, 1)
    if score == 1:
        streak.add(player, 1)
    else:
        streak.set(player, 0)
    return after


@app.on(game)
@app.serial
def play(e):
    outcome = OUTCOMES.get(e.result)
    if outcome is None or e.white == e.black:
        app.emit("invalid", white=e.white, black=e.black, result=e.result)
        return
    white, black = rating.get(e.white), rating.get(e.black)
    new_white = settle(e.white, white, black, outcome.white)
    new_black = settle(e.black, black, white, outcome.black)
    if abs(white - black) > 100 and outcome.white != 0.5:
        winner_was_weaker = (white < black) == (outcome.white == 1)
        if winner_was_weaker:
            app.emit("upset", white=e.white, black=e.black, gap=abs(white - black))
    for player, after in ((e.white, new_white), (e.black, new_black)):
        if after > best.get(player) and games.get(player) > 5:
            app.emit("peak", player=player, rating=round(after))
        best.max(player, after)
        if streak.get(player) == 3:
            app.emit("streak", player=player)


app.emits("upset", "white STRING, black STRING, gap DOUBLE")
app.emits("peak", "player STRING, rating BIGINT")


@app.on(game)
def count_opening(e):
    first = " ".join(e.moves.split()[:2])
    if first:
        openings.add(first, 1)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(25)
    strength = {f"p{n}": draw.gauss(0, 1) for n in range(10)}
    rows = []
    for t in range(300):
        white, black = draw.choice(list(strength)), draw.choice(list(strength))
        edge = strength[white] - strength[black] + draw.gauss(0, 1)
        result = "1-0" if edge > 0.4 else "0-1" if edge < -0.4 else "1/2-1/2"
        if draw.random() < 0.03:
            result = "*"
        moves = draw.choice(("e4 e5 Nf3", "d4 d5 c4", "e4 c5 Nf3", "", "c4"))
        rows.append({"white": white, "black": black, "result": result, "moves": moves, "at": t})
    return {"game": rows}


def loop(events):
    emits, rating, games, streak, openings, best = [], {}, {}, {}, {}, {}
    for _, e in events:
        first = " ".join(e.moves.split()[:2])
        if first:
            openings[first] = openings.get(first, 0) + 1
        if e.white == e.black or e.result == "*":
            fields = {"white": e.white, "black": e.black, "result": e.result}
            emits.append(("invalid", e.vs, fields))
            continue
        score = {"1-0": 1, "0-1": 0, "1/2-1/2": 0.5}[e.result]
        old = {p: rating.get(p, 1500.0) for p in (e.white, e.black)}
        for p, other, mine in ((e.white, e.black, score), (e.black, e.white, 1 - score)):
            k = 40 if games.get(p, 0) < 5 else 10 if old[p] >= 1700 else 20
            rating[p] = old[p] + k * (mine - 1 / (1 + 10 ** ((old[other] - old[p]) / 400)))
            games[p] = games.get(p, 0) + 1
            streak[p] = streak.get(p, 0) + 1 if mine == 1 else 0
        gap = old[e.white] - old[e.black]
        if (gap > 100 and score == 0) or (gap < -100 and score == 1):
            fields = {"white": e.white, "black": e.black, "gap": abs(gap)}
            emits.append(("upset", e.vs, fields))
        for p in (e.white, e.black):
            if rating[p] > best.get(p, 1500.0) and games[p] > 5:
                emits.append(("peak", e.vs, {"player": p, "rating": round(rating[p])}))
            best[p] = max(best.get(p, 1500.0), rating[p])
            if streak[p] == 3:
                emits.append(("streak", e.vs, {"player": p}))
    return emits, {
        "rating": rating,
        "games": games,
        "streak": streak,
        "openings": openings,
        "best": best,
    }
