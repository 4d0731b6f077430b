"""Basketball live: score, leads, runs, fouls, and plus/minus of who is on the court."""

import random

import weir

app = weir.App("sports_stats")
substitution = app.events(
    "substitution",
    "game BIGINT, team STRING, coming STRING, going STRING, clock BIGINT, at BIGINT",
    vs="at",
    unit="s",
)
play = app.events(
    "play",
    "game BIGINT, team STRING, opponent STRING, player STRING, kind STRING, clock BIGINT, "
    "at BIGINT",
    vs="at",
    unit="s",
)

score = app.state("score", default=0)
lineup = app.state("lineup", default=[], type="LIST(STRING)")
plus_minus = app.state("plus_minus", default=0, key="BIGINT, STRING")
run = app.state("run", default={"team": "", "points": 0}, type="STRUCT(team STRING, points BIGINT)")
leader = app.state("leader", default="")
fouls = app.state("fouls", default=0)
box = app.state(
    "box",
    default={"points": 0, "made": 0, "tried": 0, "rebounds": 0},
    type="STRUCT(points BIGINT, made BIGINT, tried BIGINT, rebounds BIGINT)",
)

app.emits("run", "game BIGINT, team STRING, points BIGINT")

POINTS = {"free_throw": 1, "layup": 2, "jumper": 2, "three": 3}


def parse(kind):
    """'three:miss' is a try for three points that failed."""
    shot, _, result = kind.partition(":")
    return shot, POINTS.get(shot, 0) if result != "miss" else 0


@app.on(substitution)
def substitute(e):
    court = lineup.get((e.game, e.team))
    if e.going in court:
        court.remove(e.going)
    if e.coming not in court:
        court.append(e.coming)
    lineup.set((e.game, e.team), court)
    if len(court) > 5:
        app.emit("too_many", game=e.game, team=e.team, players=", ".join(court))


@app.on(play)
def keep_score(e):
    _, points = parse(e.kind)
    if points == 0:
        return
    score.add((e.game, e.team), points)
    for player in lineup.get((e.game, e.team)):
        plus_minus.add((e.game, player), points)
    for player in lineup.get((e.game, e.opponent)):
        plus_minus.add((e.game, player), -points)


@app.on(play)
def box_score(e):
    shot, points = parse(e.kind)
    line = box.get((e.game, e.player))
    if shot in POINTS:
        line["tried"] += 1
        line["made"] += points > 0
        line["points"] += points
    elif shot == "rebound":
        line["rebounds"] += 1
    box.set((e.game, e.player), line)
    if line["points"] >= 10 and line["rebounds"] >= 10:
        app.emit("double_double", game=e.game, player=e.player, clock=e.clock)


@app.on(play)
def story(e):
    _, points = parse(e.kind)
    if e.kind == "foul":
        fouls.add((e.game, e.player), 1)
        if fouls.get((e.game, e.player)) == 6:
            app.emit("fouled_out", game=e.game, player=e.player)
    if not points:
        return
    current = run.get(e.game)
    total = points + (current.points if current.team == e.team else 0)
    run.set(e.game, {"team": e.team, "points": total})
    if total >= 10 and total - points < 10:
        app.emit("run", game=e.game, team=e.team, points=total)
    ours, theirs = score.get((e.game, e.team)), score.get((e.game, e.opponent))
    if ours > theirs and leader.get(e.game) != e.team:
        leader.set(e.game, e.team)
        app.emit("lead", game=e.game, team=e.team, score=f"{ours}:{theirs}")


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(43)
    kinds = [
        "three:made",
        "three:miss",
        "layup:made",
        "jumper:miss",
        "jumper:made",
        "rebound",
        "rebound",
        "foul",
        "free_throw:made",
        "free_throw:miss",
        "turnover",
    ]
    swaps, plays = [], []
    for t in range(0, 3600, 4):
        game = t // 4 % 2
        team, other = draw.choice((("reds", "blues"), ("blues", "reds")))
        players = [f"{team}-{n}" for n in range(7)]
        coming, going = draw.sample(players, 2)
        if draw.random() < 0.6:
            coming = f"{team}-9"
        if t < 60 or t % 50 < 5:
            going = draw.choice((going, going, ""))
            swaps.append(
                {
                    "game": game,
                    "team": team,
                    "coming": coming,
                    "going": going,
                    "clock": 3600 - t,
                    "at": t,
                }
            )
        else:
            plays.append(
                {
                    "game": game,
                    "team": team,
                    "opponent": other,
                    "player": coming,
                    "kind": draw.choice(kinds),
                    "clock": 3600 - t,
                    "at": t,
                }
            )
    return {"substitution": swaps, "play": plays}


def loop(events):
    emits, score, court, plus, run, leader, fouls, box = [], {}, {}, {}, {}, {}, {}, {}
    for name, e in events:
        g, own = e.game, (e.game, e.team)
        if name == "substitution":
            there = [p for p in court.get(own, []) if p != e.going]
            court[own] = there if e.coming in there else [*there, e.coming]
            if len(court[own]) > 5:
                fields = {"game": g, "team": e.team, "players": ", ".join(court[own])}
                emits.append(("too_many", e.vs, fields))
            continue
        value = {"free_throw": 1, "layup": 2, "jumper": 2, "three": 3}.get(e.kind.split(":")[0])
        points = value if value and e.kind.endswith(":made") else 0
        them = (g, e.opponent)
        if points:
            score[own] = score.get(own, 0) + points
            for players, change in ((court.get(own, []), points), (court.get(them, []), -points)):
                for p in players:
                    plus[g, p] = plus.get((g, p), 0) + change
        line = box.setdefault((g, e.player), {"points": 0, "made": 0, "tried": 0, "rebounds": 0})
        line["points"] += points
        line["made"] += 1 if points else 0
        line["tried"] += 1 if value else 0
        line["rebounds"] += 1 if e.kind == "rebound" else 0
        if min(line["points"], line["rebounds"]) >= 10:
            fields = {"game": g, "player": e.player, "clock": e.clock}
            emits.append(("double_double", e.vs, fields))
        if e.kind == "foul":
            fouls[g, e.player] = fouls.get((g, e.player), 0) + 1
            if fouls[g, e.player] == 6:
                emits.append(("fouled_out", e.vs, {"game": g, "player": e.player}))
        if points:
            before = run[g]["points"] if g in run and run[g]["team"] == e.team else 0
            run[g] = {"team": e.team, "points": before + points}
            if before < 10 <= before + points:
                fields = {"game": g, "team": e.team, "points": before + points}
                emits.append(("run", e.vs, fields))
            a, b = score[own], score.get(them, 0)
            if a > b and leader.get(g) != e.team:
                leader[g] = e.team
                emits.append(("lead", e.vs, {"game": g, "team": e.team, "score": f"{a}:{b}"}))
    return emits, {
        "score": score,
        "lineup": court,
        "plus_minus": plus,
        "run": run,
        "leader": leader,
        "fouls": fouls,
        "box": box,
    }
