"""CI builds: tests that fail and pass on one commit are flaky, flaky ones go into quarantine."""

import random
from itertools import pairwise

import weir

app = weir.App("ci_flakiness")
build = app.events(
    "build",
    "id BIGINT, repo STRING, commit STRING, branch STRING, "
    "results LIST(STRUCT(test STRING, outcome STRING, millis BIGINT)), at BIGINT",
    vs="at",
    unit="s",
)

outcome_on = app.state("outcome_on", default=None, type="STRING", key="STRING, STRING, STRING")
history = app.state("history", default="", key="STRING, STRING")
slowest = app.state("slowest", default=0, key="STRING, STRING")
quarantine = app.state("quarantine", default=[], type="LIST(STRING)", key="STRING")
broken_since = app.state("broken_since", default=None, type="BIGINT", key="STRING")

HISTORY = 20
FLIPS = 4


def flips(marks: str) -> int:
    return sum(a != b for a, b in pairwise(marks))


def remember(repo, result):
    mark = "." if result.outcome == "pass" else "F"
    history.merge((repo, result.test), lambda old: (old + mark)[-HISTORY:])
    slowest.max((repo, result.test), result.millis)


@app.on(build)
def record(e):
    for result in e.results:
        if result.outcome == "skip":
            continue
        before = outcome_on.get((e.repo, e.commit, result.test))
        outcome_on.set((e.repo, e.commit, result.test), result.outcome)
        remember(e.repo, result)
        if before is not None and before != result.outcome:
            app.emit("flake", build=e.id, test=result.test, was=before, now=result.outcome)


@app.on(build)
def review(e):
    isolated = quarantine.get(e.repo)
    for result in e.results:
        marks = history.get((e.repo, result.test))
        if result.test in isolated:
            if len(marks) == HISTORY and "F" not in marks[-10:]:
                isolated.remove(result.test)
                app.emit("released", repo=e.repo, test=result.test)
        elif flips(marks) >= FLIPS:
            isolated.append(result.test)
            app.emit("quarantined", repo=e.repo, test=result.test, marks=marks)
    quarantine.set(e.repo, isolated)


@app.on(build)
def main_branch(e):
    if e.branch != "main":
        return
    failures = [
        r.test for r in e.results if r.outcome == "fail" and r.test not in quarantine.get(e.repo)
    ]
    since = broken_since.get(e.repo)
    if failures and since is None:
        broken_since.set(e.repo, e.vs)
        app.emit("broken", repo=e.repo, build=e.id, tests=", ".join(sorted(failures)))
    elif not failures and since is not None:
        broken_since.set(e.repo, None)
        app.emit("fixed", repo=e.repo, build=e.id, minutes=(e.vs - since) // 60_000_000)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(41)
    tests = {f"test_{n}": draw.choice((0.0, 0.02, 0.05, 0.3)) for n in range(8)}
    rows = []
    for number in range(300):
        repo = draw.choice(("core", "web"))
        results = []
        for test, rate in tests.items():
            if draw.random() < 0.2:
                continue
            outcome = "skip" if draw.random() < 0.1 else "pass"
            if outcome == "pass" and draw.random() < rate * (number < 200):
                outcome = "fail"
            results.append({"test": test, "outcome": outcome, "millis": draw.randrange(5, 900)})
        rows.append(
            {
                "id": number,
                "repo": repo,
                "commit": f"{number // 4:07x}",
                "branch": draw.choice(("main", "feature")),
                "results": results,
                "at": number * 130,
            }
        )
    return {"build": rows}


def loop(events):
    emits, outcome, marks, slow, isolated, broken = [], {}, {}, {}, {}, {}
    for _, e in events:
        repo = e.repo
        for r in e.results:
            test, result = r["test"], r["outcome"]
            if result != "skip":
                before = outcome.get((repo, e.commit, test), result)
                outcome[repo, e.commit, test] = result
                mark = {"pass": ".", "fail": "F"}[result]
                marks[repo, test] = (marks.get((repo, test), "") + mark)[-20:]
                slow[repo, test] = max(slow.get((repo, test), 0), r["millis"])
                if before != result:
                    fields = {"build": e.id, "test": test, "was": before, "now": result}
                    emits.append(("flake", e.vs, fields))
        apart = isolated.setdefault(repo, [])
        for r in e.results:
            test = r["test"]
            text = marks.get((repo, test), "")
            if test in apart:
                if len(text) == 20 and text.endswith(10 * "."):
                    apart.remove(test)
                    emits.append(("released", e.vs, {"repo": repo, "test": test}))
            elif text.count(".F") + text.count("F.") >= 4:
                apart.append(test)
                emits.append(("quarantined", e.vs, {"repo": repo, "test": test, "marks": text}))
        if e.branch == "main":
            bad = [r["test"] for r in e.results if r["outcome"] == "fail"]
            bad = sorted(test for test in bad if test not in apart)
            if bad and broken.get(repo) is None:
                broken[repo] = e.vs
                fields = {"repo": repo, "build": e.id, "tests": ", ".join(bad)}
                emits.append(("broken", e.vs, fields))
            elif not bad and broken.get(repo) is not None:
                minutes = (e.vs - broken[repo]) // 60_000_000
                broken[repo] = None
                emits.append(("fixed", e.vs, {"repo": repo, "build": e.id, "minutes": minutes}))
    return emits, {
        "outcome_on": outcome,
        "history": marks,
        "slowest": slow,
        "quarantine": isolated,
        "broken_since": broken,
    }
