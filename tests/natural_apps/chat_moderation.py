"""Chat moderation: banned words, shouting and repetition give strikes; three strikes mute."""

import random
import re
from collections import Counter

import weir

app = weir.App("chat_moderation")
message = app.events(
    "message", "id BIGINT, room STRING, author STRING, text STRING, at BIGINT", vs="at", unit="s"
)

strikes = app.state("strikes", default=0, last="1h")
muted = app.state("muted", default=False, expires="10m")
last_text = app.state("last_text", default="")
repeats = app.state("repeats", default=0)
said = app.state("said", default=0)
links = app.state("links", default=0, last="1m")

BANNED = {"spam", "scam", "idiot"}
MILD = ["darn", "heck"]
WORD = re.compile(r"[a-z']+")


def normalise(text: str) -> str:
    leet = str.maketrans("013457@$", "oieastas")
    return text.lower().translate(leet)


def is_shouting(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return len(letters) >= 8 and sum(c.isupper() for c in letters) / len(letters) > 0.8


def badness(text: str) -> int:
    words = WORD.findall(normalise(text))
    score = 2 * len(BANNED.intersection(words))
    score += sum(1 for word in words if word in MILD)
    if words and Counter(words).most_common(1)[0][1] > 4:
        score += 1
    return score + is_shouting(text)


@app.on(message)
def repeated(e):
    if e.text.strip() == last_text.get(e.author):
        repeats.add(e.author, 1)
    else:
        repeats.set(e.author, 0)
    last_text.set(e.author, e.text.strip())
    said.add(e.room, 1)


@app.on(message)
def moderate(e):
    if muted.get(e.author):
        app.emit("dropped", message=e.id)
        return
    score = badness(e.text)
    if repeats.get(e.author) >= 2:
        score += 1
    if "http" in e.text:
        links.add(e.room, 1)
        if links.get(e.room) > 3:
            score += 1
    if score == 0:
        return
    strikes.add(e.author, score)
    app.emit("strike", message=e.id, score=score, total=strikes.get(e.author))
    if strikes.get(e.author) >= 3:
        muted.set(e.author, True)
        app.emit("muted", author=e.author, room=e.room)


app.serial(moderate)  # by author and by room
app.emits("strike", "message BIGINT, score BIGINT, total BIGINT")


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(17)
    texts = [
        "hello there",
        "you 1d10t",
        "buy now http://x.example",
        "THIS IS VERY LOUD",
        "darn it",
        "go go go go go",
        "what a nice day",
        "sc@m sp4m",
        "  hello there ",
    ]
    rows = [
        {
            "id": t,
            "room": draw.choice(("a", "b")),
            "author": f"u{draw.randrange(8)}",
            "text": draw.choice(texts),
            "at": t,
        }
        for t in range(0, 9000, 21)
    ]
    return {"message": rows}


def loop(events):
    emits, strikes, muted, last, repeats, said, links = [], {}, {}, {}, {}, {}, {}
    points = {
        "hello there": 0,
        "you 1d10t": 2,
        "buy now http://x.example": 0,
        "THIS IS VERY LOUD": 1,
        "darn it": 1,
        "go go go go go": 1,
        "what a nice day": 0,
        "sc@m sp4m": 4,
    }
    second = 1_000_000
    for _, e in events:
        a, text = e.author, e.text.strip()
        repeats[a] = repeats.get(a, 0) + 1 if text == last.get(a, "") else 0
        last[a] = text
        said[e.room] = said.get(e.room, 0) + 1
        if a in muted and e.vs < muted[a] + 600 * second:
            emits.append(("dropped", e.vs, {"message": e.id}))
            continue
        score = points[text] + (repeats[a] >= 2)
        if "http" in text:
            links.setdefault(e.room, []).append(e.vs)
            score += sum(e.vs < at + 60 * second for at in links[e.room]) > 3
        if score == 0:
            continue
        strikes.setdefault(a, []).append((e.vs, score))
        total = sum(s for at, s in strikes[a] if e.vs < at + 3600 * second)
        emits.append(("strike", e.vs, {"message": e.id, "score": score, "total": total}))
        if total >= 3:
            muted[a] = e.vs
            emits.append(("muted", e.vs, {"author": a, "room": e.room}))
    return emits, {"last_text": last, "repeats": repeats, "said": said}
