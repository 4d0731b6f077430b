"""Random apps that must be refused: a valid one (`programs.py`) with something planted in it that
no app may do, in a handler, under a branch of it, in a helper or in a function inside of one.

python -m replay_oracle.invalid --seeds 2000         print what was not refused as it should be
python -m replay_oracle.invalid --seed 17            one app, and what is said of it
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass

from replay_oracle.differences import Verdict
from replay_oracle.engine import Refused, prepare
from replay_oracle.programs import draw_case

HEAD = """
import itertools
import random
import time
import uuid
from datetime import datetime

w0 = app.state("w0", default=0)
w1 = app.state("w1", default=0)
ws = app.state("ws", default=(), type="LIST(BIGINT)")
wt = app.state("wt", default="")
wr = app.state("wr", default={"n": 1}, type="STRUCT(n BIGINT)")
app.emits("wrong", "n BIGINT")
SEEN = []
TABLE = {"x": 1}
TURNS = itertools.count()
STATES = {"p": w0, "q": w1}
"""


@dataclass(frozen=True)
class Wrong:
    """A `Wrong` is a piece of code that is refused, with words that the refusal has."""

    code: str
    words: tuple[str, ...]
    serially: bool = False
    """Whether a serial group takes it: to run it, or to fail when it runs."""
    of_text: bool = False
    """Whether it is refused wherever it stands, even where it is never reached."""


def _banned(code: str, *words: str) -> Wrong:
    return Wrong(code, words, of_text=True)


def _circle(code: str, *words: str) -> Wrong:
    return Wrong(code, (*words, "app.serial"), serially=True)


WRONG = (
    _banned("w0.set(1, int(time.time()))", "time.time()", "clock"),
    _banned("app.emit('wrong', n=datetime.now().year)", "datetime.now()", "clock"),
    _banned("w0.set(1, time.monotonic_ns() if time.monotonic() else 0)", "time.monotonic"),
    _banned("w0.add(1, random.randint(0, 9))", "random.randint()", "random"),
    _banned("app.emit('wrong', n=uuid.uuid4().int % 7)", "uuid.uuid4()"),
    _banned("w0.set(1, hash(e.k))", "hash()"),
    _banned("w0.set(1, id(e))", "id()"),
    _banned("print(e.ts)", "print()"),
    _banned("w0.set(1, eval('1 + 1'))", "eval()"),
    _banned("for c in set(e.k):\n    app.emit('wrong', n=len(c))", "set", "sorted"),
    _banned("w0.set(1, len({e.k, 'b'}.pop()))", "set", "sorted"),
    _banned("w0.set(1, len([c for c in {e.k, 'b'}][0]))", "set", "sorted"),
    _banned("SEEN.append(e.ts)", "SEEN"),
    _banned("TABLE['x'] = e.ts", "TABLE"),
    _banned("TABLE.update(x=e.ts)", "TABLE"),
    _banned("global LIMIT\nLIMIT = 3", "global LIMIT"),
    _banned("w0.set(1, next(TURNS))", "TURNS", "iterator"),
    _banned("import time as t0\nw0.set(1, int(t0.time()))", "t0.time()", "clock"),
    _banned("from uuid import uuid4\nw0.set(1, uuid4().int % 7)", "uuid4()"),
    _banned("import numpy\nw0.set(1, 2)", "import numpy", "top of the file"),
    Wrong("w0.merge(1, lambda v: (app.emit('wrong', n=v), v)[1])", ("emit", "merge", "w0")),
    Wrong("w0.merge(1, lambda v: v + (w1.add(1, 1) or 1))", ("w1", "merge", "w0")),
    Wrong("w0.merge(1, lambda v: w1.get(v))", ("w1", "old value")),
    Wrong("app.emit('wrong', n=e.nothing)", ("nothing", "column")),
    Wrong("app.emit('wrong', m=1)", ("`m`", "wrong")),
    Wrong("app.emit('wrong', vs=1)", ("`vs`",)),
    Wrong("w0.push(1, 2)", ("push", "method")),
    Wrong("w0.add(1)", ("add", "arguments")),
    Wrong("w0.add(1, 1)\nw1.add(1, w0.get((1, 2)))", ("w0", "key", "parts")),
    Wrong("w0.add(1, 1)\nw1.add(1, w0.get('x'))", ("w0", "key"), serially=True),
    Wrong("w0.set(1, 'x')", ("BIGINT",), serially=True),
    Wrong("wt.add(1, 'x')", ("`add`", "numbers", "wt")),
    Wrong("wr.max(1, {'n': 2})", ("`max`", "ordered", "wr")),
    Wrong("w0.append(1, 2)", ("`append`", "LIST", "w0")),
    Wrong("ws.append(1, 'x')", ("BIGINT",), serially=True),
    Wrong("ws.top_k(1, e.ts, e.ts)", ("top_k", "constant")),
    _circle("w0.set(e.ts, w0.get(e.ts + 1) + 1)", "w0", "circle"),
    _circle("if w0.get(e.ts) > 2:\n    w0.add(0, 1)", "w0", "circle"),
    _circle("w0.add(w0.get(e.ts), 1)", "w0", "circle"),
    _circle("w0.set(1, w1.get(e.ts))\nw1.set(2, w0.get(e.ts))", "w0", "w1", "circle"),
    _circle("w0.merge(e.ts, lambda v: v + w0.get(0))", "w0", "circle"),
    _circle("while w0.get(1) < e.ts:\n    w0.add(e.ts, 1)", "w0", "key"),
    _circle("for t in e.k:\n    for u in e.k:\n        w0.add(t, w1.get(u))", "w1", "loop"),
    _circle("n = 0\nfor t in e.k:\n    w1.set(t, n)\n    n += w0.get(t)", "`w0`", "loop"),
    _circle(
        "n = 0\nwhile n < e.ts:\n    n += 3\ntry:\n    w0.set(1, w1.get(n))\nexcept:\n    pass",
        "w1",
        "try",
    ),
    _circle("w0.add(1, [s.get(1) for s in [*STATES.values()]][0])", "states"),
)


@dataclass(frozen=True)
class Invalid:
    """An `Invalid` app has what is wrong, and the lines where it stands, or is called."""

    source: str
    base: str
    wrong: Wrong
    lines: frozenset[int]


def draw_invalid(seed: int) -> Invalid:
    """Draw a valid app and plant something wrong."""
    rng = random.Random(f"invalid {seed}")
    wrong = WRONG[seed % len(WRONG)]
    base = draw_case(seed).source
    if wrong.serially:
        base = re.sub(r"^app\.serial\(.*\)$", "", base, flags=re.MULTILINE)
    elif rng.random() < 0.2:
        base += "\napp.serial()\n"
    head, handlers = base[: base.index("@app.on(")], base[base.index("@app.on(") :]
    head += HEAD
    lines = wrong.code.split("\n")
    how = rng.choice(["here", "here", "helper", "inside"])
    if how == "helper":
        head += "\ndef planted(e):\n" + _indented(lines, 4) + "\n\n"
    elif how == "inside":
        lines = ["def planted(e):", *(f"    {line}" for line in lines)]
    if how != "here":
        lines = [*(lines if how == "inside" else ()), "planted(e)"]
    base = head + handlers
    text = base.split("\n")
    starts = [i for i, line in enumerate(text) if re.match(r"def h\d+\(e\):", line)]
    at = rng.choice(starts) + 1
    if wrong.of_text:
        end = next((i for i in range(at, len(text)) if text[i] and text[i][0] != " "), len(text))
        places = [i for i in range(at, end) if not re.match(r"\s*(el|$)", text[i])]
        at = rng.choice(places)
    indent = len(text[at]) - len(text[at].lstrip())
    text[at:at] = _indented(lines, indent).split("\n")
    source = "\n".join(text)
    calls = [i for i, line in enumerate(source.split("\n"), 1) if line.strip() == "planted(e)"]
    first = source[: source.index(wrong.code.split("\n")[0])].count("\n") + 1
    own = range(first, first + wrong.code.count("\n") + 1)
    return Invalid(source, base, wrong, frozenset((*own, *calls)))


def _indented(lines: list[str], by: int) -> str:
    return "\n".join(" " * by + line for line in lines)


def judge_invalid(app: Invalid) -> Verdict:
    """Say whether an app is refused as it should be: by name, with its line."""
    try:
        prepare(app.source)
    except Refused as refused:
        text = str(refused)
    except Exception as error:
        return Verdict("crashed", f"{type(error).__name__}: {error}")
    else:
        return Verdict("taken")
    missing = [word for word in app.wrong.words if word not in text]
    places = {int(n) for n in re.findall(r"(?:line |app\.py:)(\d+)", text)}
    if not missing and places & app.lines:
        return Verdict("refused")
    if _is_refused(app.base):
        return Verdict("refused otherwise", text)
    return Verdict("other", f"without {missing}, lines {sorted(app.lines)}: {text}")


def _is_refused(source: str) -> bool:
    try:
        prepare(source)
    except Refused:
        return True
    return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="replay_oracle.invalid", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    one = args.seed is not None
    counts: Counter[str] = Counter()
    for seed in [args.seed] if one else range(args.start, args.start + args.seeds):
        app = draw_invalid(seed)
        verdict = judge_invalid(app)
        counts[verdict.kind] += 1
        if one:
            print(app.source)
        if one or verdict.kind not in ("refused", "refused otherwise"):
            print(f"seed {seed}, {app.wrong.code!r}: {verdict.kind}\n{verdict.text}\n", flush=True)
    print(dict(counts))
    return 1 if counts.keys() - {"refused", "refused otherwise"} else 0


if __name__ == "__main__":
    sys.exit(main())
