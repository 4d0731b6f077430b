"""`weir replay`, and `weir run` and `weir explain` of an app: what they print, and exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from small_app import APP, rows, spam, write
from weir import cli
from weir.cli import progress
from weir.kernels.expressions.evaluator import PYTHON_BUILDERS

Weir = Callable[..., Result]
LOG = ("--log", "message=m.jsonl")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weir:
    """`command("replay", "app.py", …)` in a folder with an app and its log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "LINE_SECONDS", 1e9)
    Path("app.py").write_text(APP, "utf-8")
    write(Path("m.jsonl"), rows(60))

    def call(*args: str) -> Result:
        return CliRunner().invoke(cli.app, list(args))

    return call


def test_replay_prints_path_rows_and_digest(command: Weir) -> None:
    result = command("replay", "app.py", *LOG, "--out", "out")
    assert result.exit_code == 0, result.stderr
    count = len(spam(rows(60)))
    line = rf"spam -> out/spam\.parquet: {count} rows, digest [0-9a-f]{{32}}-{count}\n"
    assert re.fullmatch(line, result.stdout)
    agree = "all 60 events agree with the serial loop"
    assert re.fullmatch(rf"60 events in [0-9.]+ s\n{agree}\n", result.stderr)


def test_replay_in_batches_as_json(command: Weir) -> None:
    result = command("replay", "app.py", *LOG, "--out", "out", "--batch", "25", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["app"], told["events"], told["batches"]) == ("spam", 60, 3)
    assert told["inputs"] == [{"name": "message", "partitions": 1, "late": 0, "bad": 0}]
    assert told["variants"][0]["params"] == {"threshold": 3}
    (output,) = told["variants"][0]["outputs"]
    assert (output["path"], output["rows"]) == ("out/spam.parquet", len(spam(rows(60))))


def test_what_is_finished_is_told(command: Weir) -> None:
    command("replay", "app.py", *LOG, "--out", "out")
    again = command("replay", "app.py", *LOG, "--out", "out")
    assert again.exit_code == 0
    assert "this replay had finished already: nothing was run" in again.stderr
    changed = command("replay", "app.py", *LOG, "--out", "out", "--batch", "3")
    assert changed.exit_code == 2
    assert changed.stderr == (
        "weir: error: 'out/.replay' holds another replay: --batch is new; choose another --out, or "
        "delete that folder with --fresh\n"
    )
    assert (
        command("replay", "app.py", *LOG, "--out", "out", "--batch", "30", "--fresh").exit_code == 0
    )


def test_the_old_name_of_fresh_warns(command: Weir) -> None:
    command("replay", "app.py", *LOG, "--out", "out")
    again = command("replay", "app.py", *LOG, "--out", "out", "--anew")
    assert again.exit_code == 0
    assert again.stderr.startswith("weir: warning: --anew is deprecated; use --fresh\n")
    assert "finished already" not in again.stderr
    assert "--anew" not in command("replay", "--help").stdout


def test_variants_are_a_table(command: Weir) -> None:
    result = command("replay", "app.py", *LOG, "--out", "out", "--param", "threshold=2,4")
    assert result.exit_code == 0, result.stderr
    head, first, second, page = result.stdout.splitlines()
    assert head.split() == ["variant", "spam", "new", "gone", "digest"]
    counts = [len(spam(rows(60), n)) for n in (2, 4)]
    assert first.split()[:4] == ["threshold=2", str(counts[0]), "+0", "-0"]
    assert second.split()[:4] == ["threshold=4", str(counts[1]), "+0", f"-{counts[0] - counts[1]}"]
    assert page == "side by side -> out/what-if.html"
    assert Path("out/threshold=4/spam.parquet").exists()


def test_states_in_and_out(command: Weir) -> None:
    one = command("replay", "app.py", *LOG, "--out", "one", "--to", "30", "--state-out", "state")
    assert one.stdout.splitlines()[-1] == "state -> state"
    two = command("replay", "app.py", *LOG, "--out", "two", "--state-in", "state", "--check")
    assert two.exit_code == 0, two.stderr
    counts = [int(r.stdout.split("parquet: ")[1].split(" ")[0]) for r in (one, two)]
    assert sum(counts) == len(spam(rows(60)))


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--log", "mesage=m.jsonl"), 2, "unknown log `mesage`; did you mean `message`?"),
        (("--log", "message"), 2, "invalid --log 'message'; expected NAME=PATH"),
        ((), 2, "no log for `message`; pass --log message=PATH, or declare app.events("),
        (("--log", "message=no.jsonl"), 1, "no.jsonl: no file matches"),
        ((*LOG, "--param", "threshold"), 2, "--param takes NAME=VALUE, not 'threshold'"),
        ((*LOG, "--param", "thresold=1"), 2, "unknown parameter `thresold`; did you mean"),
        (
            (*LOG, "--param", "threshold=a,b"),
            2,
            "`threshold` must be an integer (default 3), not 'a'",
        ),
        ((*LOG, "--from", "noon"), 2, "invalid --from 'noon'"),
        ((*LOG, "--master", "local"), 2, "--master and --conf belong to --runner offline"),
        ((*LOG, "--state-in", "no"), 2, "there is no saved state in 'no': no manifest.json"),
        ((*LOG, "--app", "span"), 2, "unknown app `span`; did you mean `spam`?"),
    ],
)
def test_what_is_wrong(command: Weir, args: tuple[str, ...], code: int, message: str) -> None:
    result = command("replay", "app.py", *args, "--out", "out")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("weir: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_files_that_are_no_apps(command: Weir) -> None:
    Path("none.py").write_text("x = 1\n", "utf-8")
    Path("broken.py").write_text("import weir\n\n1 / 0\n", "utf-8")
    for name, message in [
        ("no.py", "no Python file 'no.py'"),
        ("none.py", "no app in 'none.py'"),
        ("broken.py", "broken.py, line 3: ZeroDivisionError: division by zero"),
    ]:
        for words in (("replay", name, *LOG, "--out", "out"), ("explain", name)):
            result = command(*words)
            assert result.exit_code == 2
            assert message in result.stderr


# --- run and explain -------------------------------------------------------------------------


def test_run_of_an_app_equals_its_replay(command: Weir) -> None:
    ran = command("run", "app.py", *LOG, "--out", "ran", "--format", "jsonl", "--check")
    assert ran.exit_code == 0, ran.stderr
    replayed = command("replay", "app.py", *LOG, "--out", "out", "--batch", "7")
    assert ran.stdout.split("digest ")[1] == replayed.stdout.split("digest ")[1]
    assert ran.stdout.startswith("spam -> ran/spam.jsonl: ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("app.py", *LOG), "an app needs --out DIR, the folder for what it emits"),
        (("app.py", "--out", "out"), "no log for `message`"),
        (
            ("app.py", *LOG, "--out", "out", "--param", "threshold=1,2"),
            "--param threshold has several values here; weir replay compares variants",
        ),
        (("p.weir", *LOG), "--log belongs to an app's .py file; a script sets this itself"),
        (("p.weir", "--out", "out"), "--out belongs to an app's .py file"),
    ],
)
def test_run_of_an_app_that_is_wrong(command: Weir, args: tuple[str, ...], message: str) -> None:
    Path("p.weir").write_text("STREAM A (vs BIGINT) FROM 'a.jsonl';", "utf-8")
    result = command("run", *args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_explain_of_an_app(command: Weir) -> None:
    text = command("explain", "app.py")
    assert text.exit_code == 0, text.stderr
    assert "judge" in text.stdout and "spam" in text.stdout and "Stages" in text.stdout
    assert json.loads(command("explain", "app.py", "--json").stdout)
    assert command("explain", "app.py", "--format", "dot").stdout.startswith("digraph")
    assert not Path("__pycache__").exists()


SECONDS_APP = """
import weir

app = weir.App("cards")
payment = app.events("payment", "id BIGINT, card STRING, at BIGINT", vs="at"UNIT)
count = app.state("count", default=0, last="1h")

@app.on(payment)
def note(e):
    count.add(e.card, 1)
    app.emit("seen", id=e.id, count=count.get(e.card))
"""


def test_seconds_in_a_log_are_warned_of(command: Weir) -> None:
    Path("cards.py").write_text(SECONDS_APP.replace("UNIT", ""), "utf-8")
    Path("in_s.py").write_text(SECONDS_APP.replace("UNIT", ', unit="s"'), "utf-8")
    days = [{"id": n, "card": "a", "at": 1772323200 + 86_400 * n} for n in range(2)]
    Path("p.jsonl").write_text("".join(f"{json.dumps(day)}\n" for day in days), "utf-8")
    log = ("--log", "payment=p.jsonl", "--format", "jsonl")
    strict = command("replay", "cards.py", *log, "--out", "strict", "--strict")
    assert (strict.exit_code, Path("strict").exists()) == (2, False)
    assert strict.stderr.startswith("weir: error: STREAM payment: `at` looks like seconds")
    warned = command("replay", "cards.py", *log, "--out", "out", "--json")
    (text,) = json.loads(warned.stdout)["warnings"]
    assert f"weir: warning: {text}" in warned.stderr
    assert "in Python vs='at', unit='s'" in text
    assert command("replay", "in_s.py", *log, "--out", "mended", "--strict").exit_code == 0
    found = Path("mended/seen.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["count"] for line in found] == [1, 1]


# --- the serial loop beside it -----------------------------------------------------------------


def test_a_wrong_answer_ends_the_command(command: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    builders: Any = PYTHON_BUILDERS
    monkeypatch.setitem(builders, "py_gt", builders["py_lt"])
    for args in (("replay",), ("run",)):
        result = command(*args, "app.py", *LOG, "--out", "out")
        assert result.exit_code == 1
        assert result.stderr.startswith("weir: error: Weir and the serial loop differ at event 1,")
        assert "report" in result.stderr and not Path("out/spam.parquet").exists()
    for args in (("replay", "--fresh"), ("run",)):
        result = command(*args, "app.py", *LOG, "--out", "out", "--shadow", "0")
        assert result.exit_code == 0, result.stderr
        assert "serial loop" not in result.stderr


def test_how_many_events_are_compared(command: Weir) -> None:
    result = command("replay", "app.py", *LOG, "--out", "out", "--shadow", "7")
    assert "the first 7 events agree with the serial loop" in result.stderr
    result = command("replay", "app.py", *LOG, "--out", "one", "--shadow", "1", "--json")
    assert json.loads(result.stdout)["shadow"] == 1
    assert command("replay", "app.py", *LOG, "--out", "bad", "--shadow", "-1").exit_code == 2
    Path("p.weir").write_text("STREAM A (t BIGINT) FROM 'a.jsonl' WITH (vs = t);", "utf-8")
    result = command("run", "p.weir", "--shadow", "5")
    assert result.exit_code == 2 and "--shadow belongs to an app" in result.stderr
