"""States that no compiled loop keeps: `weir explain` names them, and errors in them their merge."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler_apps import app_of
from small_app import write
from weir.errors import OperatorFailed
from weir.replay.app_programs import how_it_runs
from weir.replay.app_replay import replay_app


def explained(declared: str, merges: str) -> list[str]:
    lines = "\n".join(f"    {line}" for line in merges.split("; "))
    text = f"s = app.state('s', {declared})\n\n@app.on(n)\ndef h(e):\n{lines}\n"
    told = how_it_runs(app_of(f"{text}    app.emit('out', v=s.get(e.a))\n"))
    return told.partition("\nrow by row\n")[2].splitlines()


@pytest.mark.parametrize(
    ("declared", "merges", "lines"),
    [
        ("default=0", "s.max(e.a, e.c)", ["  nothing: all values are column expressions"]),
        ("default=0, last=9", "s.add(e.a, 1)", ["  nothing: all values are column expressions"]),
        (
            "default=0, last=9",
            "s.max(e.a, e.c)",
            ["  the state s: with `last`, max of BIGINT, one by one in Python"],
        ),
        (
            "default=0, last=9",
            "s.max(e.a, e.c); s.set(e.a, 0)",
            [
                "  the state s: with `last`, a read goes through all merges in the window: max, "
                "set, one by one in Python"
            ],
        ),
        (
            "default=0, last=9",
            "s.merge(e.a, lambda n: n * 2 + e.c)",
            [
                "  h, line 16: the merge's function is called for each merge",
                "  the state s: with `last`, a read calls the functions of all merges in the "
                "window, one by one in Python",
            ],
        ),
        (
            "default=(), type='LIST(BIGINT)'",
            "s.append(e.a, e.c)",
            ["  the state s: append of LIST(BIGINT), one by one in Python"],
        ),
    ],
)
def test_explain_names_slow_states(declared: str, merges: str, lines: list[str]) -> None:
    assert explained(declared, merges) == lines


def test_the_merge_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = app_of(
        """
s = app.state("s", default=0, last=100)

@app.on(n)
def fine(e):
    s.merge(e.a, lambda old: old * 2 + e.c)

@app.on(n)
def wrong(e):
    s.merge(e.a, lambda old: old // e.c)

@app.on(n)
def shown(e):
    app.emit("out", v=s.get(e.a))
"""
    )
    log = write(tmp_path / "n.jsonl", [{"a": 1, "c": 0, "ts": 1}])
    write(tmp_path / "m.jsonl", [])
    with pytest.raises(OperatorFailed, match=r"^wrong .*ZeroDivisionError"):
        replay_app(app, logs={"n": log, "m": str(tmp_path / "m.jsonl")}, out="out")
