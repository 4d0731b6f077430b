"""A game: experience, levels, streaks of days and achievements, each told once."""

import random
from datetime import timedelta

import weir

app = weir.App("achievements")
kill = app.events("kill", "player STRING, monster STRING, weapon STRING, at TIMESTAMP", vs="at")
quest = app.events("quest", "player STRING, name STRING, reward BIGINT, at TIMESTAMP", vs="at")

xp = app.state("xp", default=0)
level = app.state("level", default=1)
kills = app.state("kills", default=0)
weapons = app.state("weapons", default=[], type="LIST(STRING)")
last_day = app.state("last_day", default="")
streak = app.state("streak", default=0)
unlocked = app.state("unlocked", default=[], type="LIST(STRING)")

app.emits("achievement", "player STRING, name STRING")

XP = {"rat": 1, "wolf": 5, "dragon": 100}


def level_for(points: int) -> int:
    n = 1
    while points >= 25 * n * (n + 1):
        n += 1
    return n


@app.on(kill)
def slay(e):
    xp.add(e.player, XP.get(e.monster, 2))
    kills.add((e.player, e.monster), 1)
    weapons.add_to_set(e.player, e.weapon)


@app.on(quest)
def solve(e):
    xp.add(e.player, e.reward)


@app.on(kill, quest)
def daily(e):
    today = e.at.date()
    before = last_day.get(e.player)
    if before == today.isoformat():
        return
    if before == (today - timedelta(days=1)).isoformat():
        streak.add(e.player, 1)
    else:
        streak.set(e.player, 1)
    last_day.set(e.player, today.isoformat())


@app.on(kill, quest)
def level_up(e):
    new = level_for(xp.get(e.player))
    if new > level.get(e.player):
        level.set(e.player, new)
        app.emit("level_up", player=e.player, level=new)


@app.on(kill)
def award(e):
    earned = {
        "first blood": True,
        "rat catcher": kills.get((e.player, "rat")) >= 10,
        "dragon slayer": kills.get((e.player, "dragon")) >= 1,
        "armoury": len(weapons.get(e.player)) >= 4,
        "faithful": streak.get(e.player) >= 3,
        "hero": level.get(e.player) >= 5,
    }
    have = unlocked.get(e.player)
    for name, is_earned in earned.items():
        if is_earned and name not in have:
            unlocked.append(e.player, name)
            app.emit("achievement", player=e.player, name=name)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

DAY = 86_400_000_000


def logs():
    draw = random.Random(18)
    start = 1_750_000_000_000_000

    def at(t):
        return start + t * DAY // 30

    kills = [
        {
            "player": f"p{draw.randrange(5)}",
            "monster": draw.choice(("rat",) * 6 + ("wolf",) * 5 + ("bat", "dragon")),
            "weapon": draw.choice(("axe", "bow", "club", "sword")),
            "at": at(t),
        }
        for t in range(300)
    ]
    quests = [
        {"player": f"p{draw.randrange(5)}", "name": f"q{t}", "reward": 40, "at": at(t)}
        for t in range(0, 300, 9)
    ]
    return {"kill": kills, "quest": quests}


def loop(events):
    emits, xp, level, kills, weapons, last, streak, unlocked = [], {}, {}, {}, {}, {}, {}, {}
    days = {}
    for name, e in events:
        p = e.player
        if name == "kill":
            xp[p] = xp.get(p, 0) + {"rat": 1, "wolf": 5, "dragon": 100}.get(e.monster, 2)
            kills[p, e.monster] = kills.get((p, e.monster), 0) + 1
            if e.weapon not in weapons.setdefault(p, []):
                weapons[p].append(e.weapon)
        else:
            xp[p] = xp.get(p, 0) + e.reward
        day = e.vs // DAY
        if days.get(p) != day:
            streak[p] = streak[p] + 1 if days.get(p) == day - 1 else 1
            days[p] = day
            last[p] = str(timedelta(days=day) + __import__("datetime").date(1970, 1, 1))
        new = next(n for n in range(1, 1000) if xp[p] < 25 * n * (n + 1))
        if new > level.get(p, 1):
            level[p] = new
            emits.append(("level_up", e.vs, {"player": p, "level": new}))
        if name != "kill":
            continue
        earned = ["first blood"]
        earned += ["rat catcher"] if kills.get((p, "rat"), 0) >= 10 else []
        earned += ["dragon slayer"] if kills.get((p, "dragon"), 0) >= 1 else []
        earned += ["armoury"] if len(weapons[p]) >= 4 else []
        earned += ["faithful"] if streak[p] >= 3 else []
        earned += ["hero"] if level.get(p, 1) >= 5 else []
        for what in earned:
            if what not in unlocked.setdefault(p, []):
                unlocked[p].append(what)
                emits.append(("achievement", e.vs, {"player": p, "name": what}))
    return emits, {
        "xp": xp,
        "level": level,
        "kills": kills,
        "weapons": weapons,
        "last_day": last,
        "streak": streak,
        "unlocked": unlocked,
    }
