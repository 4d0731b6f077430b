"""Errors of an app's events: handler and line, the event as it stands in the log, and its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import OperatorFailed
from weir.handlers.api.app_file import load_app

HEAD = """\
import weir

app = weir.App("shop")
columns = "ts TIMESTAMP, shop STRING, amount BIGINT, n BIGINT, note STRING"
sale = app.events("sale", columns, vs="ts")
total = app.state("total", default=0)
recent = app.state("recent", default=0, last="1h")
high = app.state("high", default=None, type="BIGINT", last="1h")

def inverse(n):
    return 12 // n

@app.on(sale)
def handle(e):
"""
LOG = """\
{"ts": "2024-01-01T00:00:00Z", "shop": "a", "amount": 5, "n": 2, "note": "x"}
{"ts": "2024-01-01T00:00:01Z", "shop": "b", "amount": 9223372036854775807, "n": 1, "note": "y"}
{"ts": "2024-01-01T00:00:02Z", "shop": "b", "amount": 3, "n": 0, "note": "z"}
"""
EVENT = (
    "event {'vs': '2024-01-01T00:00:02Z', 've': '2024-01-01T00:00:02.000001Z', "
    "'ts': '2024-01-01T00:00:02Z', 'shop': 'b', 'amount': 3, 'n': 0, 'note': 'z'} (m.jsonl, line 3)"
)
ZERO = "ZeroDivisionError: integer division or modulo by zero"
BEYOND = "gives a value beyond BIGINT, at shop = 'b'"
WIDE = "state total must be BIGINT, not 9223372036854775810 (int), which has more than 64 bits"

CASES = {
    "column": ('app.emit("o", r=10 // e.n)', 1, ZERO),
    "row": ('app.emit("o", r=f"{10 // e.n:>3}")', 1, ZERO),
    "state": (
        'total.add(e.shop, e.amount)\napp.emit("o", r=total.get(e.shop))',
        1,
        f"overflow: add state total {BEYOND}",
    ),
    "window": (
        'recent.add(e.shop, e.amount)\napp.emit("o", r=recent.get(e.shop))',
        2,
        f"overflow: reading state recent {BEYOND}",
    ),
    "merge of a window": (
        'if e.n == 0:\n    high.max(e.shop, e.n)\napp.emit("o", r=high.get(e.shop))',
        2,
        "max into a cell of high that is NULL (give it another default, or say "
        "by merge() what NULL means), at shop = 'b'",
    ),
    "behind a state": (
        'total.add(e.shop, 1)\napp.emit("o", r=10 // e.n + total.get(e.shop))',
        2,
        ZERO,
    ),
    "text behind a state": (
        "total.add(e.shop, 1)\nif total.get(e.shop) > 1:\n"
        '    app.emit("o", r=e.note[1:] + e.note[9])',
        3,
        "IndexError: string index out of range",
    ),
    "computed key": (
        'total.add(e.shop + "!", e.amount)\napp.emit("o", r=total.get(e.shop + "!"))',
        1,
        "overflow: add state total gives a value beyond BIGINT, at 'b!'",
    ),
    "merge": (
        'total.merge(e.shop, lambda t: t + 10 // e.n)\napp.emit("o", r=total.get(e.shop))',
        1,
        ZERO,
    ),
    "ring": (
        "if total.get(e.shop) < 9:\n    total.set(e.shop, e.amount)\n"
        'else:\n    total.add(e.shop, e.amount)\napp.emit("o", r=total.get(e.shop))',
        4,
        WIDE,
    ),
    "raise": (
        'if e.n == 0:\n    raise ValueError("none")\napp.emit("o", r=e.n)',
        2,
        "ValueError: none",
    ),
}
"""The body of a handler, the line of it that fails, and the cause."""
SHARED = {
    "two emits": ('app.emit("o", r=10 // e.n)\napp.emit("p", r=e.shop)', 1, ZERO),
    "two emits of one name": ('app.emit("o", r=e.amount)\napp.emit("o", r=10 // e.n)', 2, ZERO),
    "an emit and a check": ('10 // e.n\napp.emit("o", r=e.shop)', 1, ZERO),
    "after a state": (
        "total.add(e.shop, 1)\ncount = total.get(e.shop)\n"
        'app.emit("o", r=count)\nif count > 1:\n    app.emit("p", r=count // e.n)',
        5,
        ZERO,
    ),
    "a value that does not fit": (
        'app.emit("o", r=(1 - e.n) * (1 << 63))\napp.emit("p", r=e.shop)',
        1,
        "a value must be BIGINT, not 9223372036854775808 (int), which has more than 64 bits",
    ),
}
"""Handlers in columns whose rows several operators read, which are in stages of their own."""
SERIAL = {
    "code": ('total.set(e.note, total.get(e.shop))\napp.emit("o", r=10 // e.n)', 2, ZERO),
    "cell": (
        'total.add(e.note, total.get(e.shop))\ntotal.add(e.shop, e.amount)\napp.emit("o", r=1)',
        2,
        WIDE,
    ),
    "raise": (
        'total.set(e.note, total.get(e.shop))\nassert e.n, "no n"\napp.emit("o", r=1)',
        2,
        "AssertionError: no n",
    ),
}
ABOVE = HEAD.count("\n")


def told(
    body: str, monkeypatch: pytest.MonkeyPatch, folder: Path, end: str = "", **how: object
) -> OperatorFailed:
    monkeypatch.chdir(folder)
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    Path("app.py").write_text(f"{HEAD}{lines}{end}", encoding="utf-8")
    Path("m.jsonl").write_text(LOG, encoding="utf-8")
    with pytest.raises(OperatorFailed) as caught:
        load_app("app.py").replay(logs={"sale": "m.jsonl"}, out="out", **how)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize("name", CASES)
def test_handlers(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body, within, cause = CASES[name]
    line = ABOVE + within
    error = told(body, monkeypatch, tmp_path)
    shown = Path("app.py").read_text(encoding="utf-8").splitlines()[line - 1].strip()
    first, *rest = str(error).split("\n")
    assert first == f"handle (app.py:{line}) failed on {EVENT}: {cause}"
    assert rest == [f"  {shown}", "  ^"]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("name", SHARED)
def test_events_that_several_operators_read(
    name: str, parallelism: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body, within, cause = SHARED[name]
    error = told(body, monkeypatch, tmp_path, parallelism=parallelism, shadow=0)
    first, shown, _ = str(error).split("\n")
    assert first.startswith(f"handle (app.py:{ABOVE + within}) failed on {EVENT}: {cause}")
    source = Path("app.py").read_text(encoding="utf-8").splitlines()[ABOVE + within - 1]
    assert shown == f"  {source.strip()}"


@pytest.mark.parametrize("name", SERIAL)
def test_serial_handlers(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body, within, cause = SERIAL[name]
    line = ABOVE + within
    error = told(body, monkeypatch, tmp_path, "\napp.serial()\n")
    first, shown, caret = str(error).split("\n")
    assert first == f"handle (app.py:{line}) failed on {EVENT}: {cause}"
    source = Path("app.py").read_text(encoding="utf-8").splitlines()[line - 1].strip()
    assert shown == f"  {source}" and caret.strip() == "^"


def test_a_helper_has_its_own_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = told('app.emit("o", r=inverse(e.n))', monkeypatch, tmp_path)
    assert str(error) == f"handle (app.py:11) failed on {EVENT}: {ZERO}\n  return 12 // n\n  ^"


def test_what_a_serial_handler_emits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    end = '\napp.emits("o", "r BIGINT")\napp.serial()\n'
    body = 'total.set(e.note, total.get(e.shop))\napp.emit("o", r=e.n or "none")'
    error = told(body, monkeypatch, tmp_path, end)
    first, shown, _ = str(error).split("\n")
    cause = "`r` of what is emitted as `o` must be BIGINT, not 'none' (str)"
    assert first == f"handle (app.py:16) failed on {EVENT}: {cause}"
    assert shown == '  app.emit("o", r=e.n or "none")'
