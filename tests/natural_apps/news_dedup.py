"""News deduplication: min-hashes of shingles find earlier articles that say much the same."""

import random
import re
import zlib

import weir

app = weir.App("news_dedup")
article = app.events(
    "article",
    "id BIGINT, source STRING, title STRING, body STRING, published BIGINT",
    vs="published",
    unit="s",
)

by_title = app.state("by_title", default=None, type="BIGINT", expires="2d")
bucket = app.state("bucket", default=[], type="LIST(BIGINT)", key="BIGINT, BIGINT", last="2d")
signature = app.state("signature", default=[], type="LIST(BIGINT)", key="BIGINT", expires="2d")
story_of = app.state("story_of", default=-1, key="BIGINT")
story_size = app.state("story_size", default=0, key="BIGINT")

app.emits("duplicate", "article BIGINT, of BIGINT, similarity DOUBLE")

BANDS, ROWS = 8, 3
STOP_WORDS = {"the", "a", "an", "of", "to", "and", "in", "on"}
SEEDS = [0x9E3779B1 * (n + 1) & 0xFFFFFFFF for n in range(BANDS * ROWS)]


def tokens(text):
    return [w for w in re.findall(r"[a-z0-9]+", text.lower()) if w not in STOP_WORDS]


def shingles(text, size=3):
    words = tokens(text)
    if len(words) < size:
        return {" ".join(words)}
    return {" ".join(words[i : i + size]) for i in range(len(words) - size + 1)}


def min_hashes(text) -> list[int]:
    hashes = [zlib.crc32(s.encode()) for s in sorted(shingles(text))]
    return [min(h ^ seed for h in hashes) for seed in SEEDS]


def band_keys(hashes):
    for band in range(BANDS):
        rows = hashes[band * ROWS : (band + 1) * ROWS]
        yield band, zlib.crc32(repr(rows).encode())


def similarity(a, b):
    if not a or not b:
        return 0.0
    return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)


@app.on(article)
def deduplicate(e):
    headline = " ".join(tokens(e.title))
    first = by_title.get(headline)
    if first is not None:
        story_of.set(e.id, story_of.get(first))
        app.emit("duplicate", article=e.id, of=first, similarity=1.0)
        return
    by_title.set(headline, e.id)

    mine = min_hashes(e.body)
    candidates = []
    for key in band_keys(mine):
        for other in bucket.get(key):
            if other not in candidates:
                candidates.append(other)
        bucket.append(key, e.id)
    signature.set(e.id, mine)

    best, best_similarity = None, 0.0
    for other in candidates:
        found = similarity(mine, signature.get(other))
        if found > best_similarity:
            best, best_similarity = other, found
    if best is not None and best_similarity >= 0.4:
        story = story_of.get(best)
        app.emit("duplicate", article=e.id, of=best, similarity=round(best_similarity, 3))
    else:
        story = e.id
    story_of.set(e.id, story)
    story_size.add(story, 1)
    if story_size.get(story) == 5:
        app.emit("big_story", story=story, title=e.title)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(42)
    vocabulary = [f"word{n}" for n in range(150)] + ["the", "of", "and"]
    stories = [[draw.choice(vocabulary) for _ in range(40)] for _ in range(30)]
    rows = []
    for number in range(250):
        words = list(draw.choice(stories))
        for _ in range(draw.choice((0, 1, 2, 9))):
            words[draw.randrange(40)] = draw.choice(vocabulary)
        title = f"{words[0]} and {words[1]}" if draw.random() < 0.1 else f"The {number} News!"
        rows.append(
            {
                "id": number,
                "source": draw.choice(("wire", "blog")),
                "title": title,
                "body": " ".join(words),
                "published": number * 2_000,
            }
        )
    return {"article": rows}


def loop(events):
    emits, titles, buckets, signatures, story_of, sizes = [], {}, {}, {}, {}, {}
    two_days = 172_800_000_000
    for _, e in events:
        small = ("the", "a", "an", "of", "to", "and", "in", "on")
        head = " ".join(w for w in re.findall("[a-z0-9]+", e.title.lower()) if w not in small)
        if head in titles and e.vs < titles[head][0] + two_days:
            first = titles[head][1]
            story_of[e.id] = story_of[first]
            emits.append(("duplicate", e.vs, {"article": e.id, "of": first, "similarity": 1.0}))
            continue
        titles[head] = (e.vs, e.id)
        words = [w for w in e.body.split() if w not in small]
        codes = [zlib.crc32(" ".join(part).encode()) for part in zip(words, words[1:], words[2:])]  # noqa: B905
        mine = [min(code ^ (0x9E3779B1 * n & 0xFFFFFFFF) for code in codes) for n in range(1, 25)]
        near = {}
        for band in range(8):
            key = (band, zlib.crc32(str(mine[3 * band : 3 * band + 3]).encode()))
            here = buckets.setdefault(key, [])
            near.update((other, 0) for at, other in here if e.vs < at + two_days)
            here.append((e.vs, e.id))
        signatures[e.id] = (e.vs, mine)
        best, share = None, 0.0
        for other in near:
            at, theirs = signatures[other]
            same = len([1 for x, y in zip(mine, theirs, strict=True) if x == y]) / 24
            if e.vs < at + two_days and same > share:
                best, share = other, same
        story = e.id
        if share >= 0.4:
            story = story_of[best]
            fields = {"article": e.id, "of": best, "similarity": round(share, 3)}
            emits.append(("duplicate", e.vs, fields))
        story_of[e.id] = story
        sizes[story] = sizes.get(story, 0) + 1
        if sizes[story] == 5:
            emits.append(("big_story", e.vs, {"story": story, "title": e.title}))
    return emits, {"story_of": story_of, "story_size": sizes}
