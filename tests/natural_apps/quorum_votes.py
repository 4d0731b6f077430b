"""Votes on proposals: each member once, weighted by stake, decided when a quorum agrees."""

import random

import weir

app = weir.App("quorum_votes")
stake = app.events("stake", "member STRING, tokens BIGINT, at BIGINT", vs="at", unit="s")
vote = app.events(
    "vote", "proposal BIGINT, member STRING, choice STRING, at BIGINT", vs="at", unit="s"
)

tokens = app.state("tokens", default=0)
total = app.state("total", default=0)
voted = app.state("voted", default=[], type="LIST(STRING)", key="BIGINT")
tally = app.state(
    "tally",
    default={"yes": 0, "no": 0, "abstain": 0},
    key="BIGINT",
)
decided = app.state("decided", default="", key="BIGINT")

app.emits("decided", "proposal BIGINT, verdict STRING, yes BIGINT, no BIGINT, abstain BIGINT")

QUORUM = 0.5
CHOICES = ("yes", "no", "abstain")


@app.on(stake)
def deposit(e):
    total.add("all", e.tokens - tokens.get(e.member))
    tokens.set(e.member, e.tokens)


def outcome(counts, everything: int) -> str:
    if sum(counts.values()) < QUORUM * everything:
        return ""
    if counts["yes"] > counts["no"]:
        return "accepted"
    return "rejected" if counts["no"] > counts["yes"] else ""


@app.on(vote)
def cast(e):
    if e.choice not in CHOICES:
        app.emit("invalid", member=e.member, choice=e.choice)
        return
    if decided.get(e.proposal):
        app.emit("too_late", proposal=e.proposal, member=e.member)
        return
    if e.member in voted.get(e.proposal):
        app.emit("twice", proposal=e.proposal, member=e.member)
        return
    weight = tokens.get(e.member)
    if weight <= 0:
        return
    voted.append(e.proposal, e.member)
    counts = tally.get(e.proposal)
    counts[e.choice] += weight
    tally.set(e.proposal, counts)
    verdict = outcome(counts, total.get("all"))
    if verdict:
        decided.set(e.proposal, verdict)
        app.emit("decided", proposal=e.proposal, verdict=verdict, **counts)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(26)
    members = [f"m{n}" for n in range(15)]
    stakes = [
        {"member": draw.choice(members), "tokens": draw.randrange(0, 100, 5), "at": t}
        for t in range(0, 400, 8)
    ]
    votes = [
        {
            "proposal": t // 40,
            "member": draw.choice(members),
            "at": t,
            "choice": draw.choice(("yes", "yes", "no", "no", "abstain", "maybe")),
        }
        for t in range(60, 400)
    ]
    return {"stake": stakes, "vote": votes}


def loop(events):
    emits, tokens, voted, tally, decided = [], {}, {}, {}, {}
    for name, e in events:
        if name == "stake":
            tokens[e.member] = e.tokens
            continue
        p, who = e.proposal, {"proposal": e.proposal, "member": e.member}
        if e.choice == "maybe":
            emits.append(("invalid", e.vs, {"member": e.member, "choice": e.choice}))
        elif p in decided:
            emits.append(("too_late", e.vs, who))
        elif e.member in voted.get(p, []):
            emits.append(("twice", e.vs, who))
        elif tokens.get(e.member, 0) > 0:
            voted.setdefault(p, []).append(e.member)
            counts = tally.setdefault(p, {"yes": 0, "no": 0, "abstain": 0})
            counts[e.choice] += tokens[e.member]
            enough = sum(counts.values()) >= sum(tokens.values()) / 2
            if enough and counts["yes"] != counts["no"]:
                decided[p] = "accepted" if counts["yes"] > counts["no"] else "rejected"
                fields = {"proposal": p, "verdict": decided[p], **counts}
                emits.append(("decided", e.vs, fields))
    return emits, {
        "tokens": tokens,
        "total": {"all": sum(tokens.values())},
        "voted": voted,
        "tally": tally,
        "decided": decided,
    }
