"""APP … EMIT in a script: names, streams, parameters; what it emits is a stream like others."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import ScriptError
from weir.script import parse_program

APP = """
import weir

app = weir.App("spam")
message = app.events("message", "vs BIGINT, sender BIGINT, text STRING")
block = app.events("block", "vs BIGINT, sender BIGINT")
threshold = app.param("threshold", 2)
sent = app.state("sent", default=0)
blocked = app.state("blocked", default=False)

@app.on(block)
def note(e):
    blocked.set(e.sender, True)

@app.on(message)
def judge(e):
    sent.add(e.sender, 1)
    if sent.get(e.sender) > threshold and not blocked.get(e.sender):
        app.emit("spam", sender=e.sender, sent=sent.get(e.sender))
"""
STREAMS = """
IMPORT 'spam.py';
STREAM M (vs BIGINT, sender BIGINT, text STRING, size BIGINT) FROM 'm.jsonl';
STREAM B (vs BIGINT, sender BIGINT, reason STRING) FROM 'b.jsonl';
Short = SELECT sender, text FROM M WHERE size < 100;
"""


def parsed(tmp_path: Path, text: str):
    (tmp_path / "spam.py").write_text(APP, encoding="utf-8")
    return parse_program(STREAMS + text, directory=tmp_path)


def test_what_an_app_emits_is_a_stream(tmp_path: Path) -> None:
    program = parsed(
        tmp_path,
        """
        Spam = APP spam(message = Short, block = B) EMIT spam WITH (threshold = 5);
        Counts = SELECT sender, COUNT(*) AS n FROM Spam GROUP BY sender WITH TUMBLING(10);
        OUTPUT Counts TO 'counts.jsonl';
        """,
    )
    assert [name for name, _ in program.streams] == ["Short", "Spam", "Counts"]
    assert [name for name, _ in program.code] == ["spam.py"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("APP spm(message = M, block = B) EMIT spam", "unknown app `spm`"),
        ("APP spam(mesage = M, block = B) EMIT spam", "unknown event type `mesage`"),
        ("APP spam(message = N, block = B) EMIT spam", "unknown stream `N`"),
        ("APP spam(message = M) EMIT spam", "the app `spam` needs the events of `block`"),
        ("APP spam(message = M, message = M) EMIT spam", "event type `message` is given twice"),
        ("APP spam(message = M, block = B) EMIT span", "does not emit `span`"),
        ("APP spam(message = B, block = B) EMIT spam", "the stream `B` has no column `text`"),
        ("APP spam(message = M, block = B)", "expected EMIT and what it emits"),
        ("APP spam(message = M, block = B) EMIT spam WITH (thresh = 1)", "unknown parameter"),
        (
            "APP spam(message = M, block = B) EMIT spam WITH (threshold = 'x')",
            "the parameter `threshold` must be an integer (default 2), not 'x'",
        ),
        (
            "APP spam(message = M, block = B) EMIT spam WITH (threshold = sender)",
            "an app takes constants",
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parsed(tmp_path, f"Spam = {text};\nOUTPUT Spam TO 's.jsonl';")
    assert message in str(caught.value)
    assert caught.value.line == 6
