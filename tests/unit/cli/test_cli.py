"""The command line: what it prints where, and the exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

import weir
from weir import cli
from weir.cli import progress
from weir.cli.command_line import clean_errors
from weir.local import file_run as files

PROGRAM = """
STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl' WITH (late = 'drop');
DECLARE @least BIGINT = 0;
Big = SELECT v FROM A WHERE v > @least;
OUTPUT Big TO 'big.jsonl';
OUTPUT LATE OF A TO 'late.jsonl';
"""

Weir = Callable[..., Result]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weir:
    """`command("run", "p.weir")` in a folder with a program and its input."""
    monkeypatch.chdir(tmp_path)
    Path("p.weir").write_text(PROGRAM, encoding="utf-8")
    rows = [{"vs": 5, "v": 1}, {"vs": 3, "v": 2}, {"vs": 7, "v": 3}]
    Path("a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")

    def call(*args: str) -> Result:
        return CliRunner().invoke(cli.app, list(args))

    return call


def program(text: str) -> str:
    Path("q.weir").write_text(text, encoding="utf-8")
    return "q.weir"


# --- run -------------------------------------------------------------------------------------


def test_run_prints_path_rows_digest_and_what_was_turned_away(command: Weir) -> None:
    result = command("run", "p.weir")
    assert result.exit_code == 0
    big, late, turned_away = result.stdout.splitlines()
    assert re.fullmatch(r"Big -> big\.jsonl: 2 rows, digest [0-9a-f]{32}-2", big)
    assert re.fullmatch(r"late rows of A -> late\.jsonl: 1 row, digest [0-9a-f]{32}-1", late)
    assert turned_away == "A: 1 late, 0 bad"
    assert re.fullmatch(r"2 events in [0-9.]+ s\n", result.stderr)


def test_run_as_json(command: Weir) -> None:
    result = command("run", "p.weir", "--json", "--param", "least=2")
    report = json.loads(result.stdout)
    assert report["events"] == 2
    assert report["inputs"] == [{"name": "A", "partitions": 1, "late": 1, "bad": 0}]
    assert [o["rows"] for o in report["outputs"]] == [1, 1]
    assert result.stderr == ""


def test_progress_as_json_is_on_stderr(command: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    result = command("run", "p.weir", "--json", "--cut", "1")
    assert json.loads(result.stdout)["events"] == 2
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert [line["events"] for line in lines] == [1, 1, 2, 2]
    assert [line["event_time"] for line in lines] == [5, 5, 7, None]


def test_cut_parallelism_and_check_change_nothing(command: Weir) -> None:
    plain = command("run", "p.weir").stdout
    written = Path("big.jsonl").read_bytes()
    for options in (["--cut", "1"], ["--parallelism", "3"], ["--check"]):
        assert command("run", "p.weir", *options).stdout == plain
        assert Path("big.jsonl").read_bytes() == written


def test_the_directory_of_relative_paths(command: Weir) -> None:
    Path("sub").mkdir()
    Path("a.jsonl").rename("sub/a.jsonl")
    assert command("run", "p.weir").exit_code == 1
    assert command("run", "p.weir", "--directory", "sub").exit_code == 0
    assert Path("sub/big.jsonl").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "nowhere.weir"], "cannot read the program nowhere.weir: No such file"),
        (["run", "pp.weir"], "No such file or directory; did you mean `p.weir`?"),
        (["run", "p.weir", "--runner", "live"], "--runner live needs --store DIR"),
        (["run", "p.weir", "--runner", "offline", "--conf", "x"], "--conf takes NAME=VALUE"),
        (["run", "p.weir", "--store", "d"], "--store belongs to --runner live"),
        (["run", "p.weir", "--master", "local"], "--master and --conf belong to"),
        (["run", "p.weir", "--param", "least"], "--param takes NAME=VALUE, not 'least'"),
        (["run", "p.weir", "--param", "most=1"], "unknown parameter `most`"),
        (["run", "p.weir", "--param", "least=x"], "--param least=x is no BIGINT"),
        (["run", "p.weir", "--cut", "0"], "--cut"),
        (["run", "p.weir", "--nonsense"], "No such option"),
        (["conform", "nowhere.jsonl"], "nowhere.jsonl: cannot read the cases"),
        (["conform", "p.weir"], "p.weir, line 2: not a case"),
        (["conform", "a.jsonl", "--cut", "1,x"], "--cut takes numbers from 1 on, not 'x'"),
        (["conform", "a.jsonl", "--parallelism", "0"], "--parallelism takes numbers"),
        (["run", "p.weir", "--resume"], "--resume belongs to --runner live"),
        (["run", "--resume", "p.weir"], "--resume belongs to --runner live"),
        (["run", "p.weir", "--resume=auto"], "--resume belongs to --runner live"),
        (["run", "p.weir", "--resume=no"], "'no' is not one of 'yes', 'auto'"),
        (["run", "p.weir", "--store", ""], "--store belongs to --runner live"),
        (["run", "p.weir", "--hosts", "2"], "--hosts belongs to --runner live"),
        (["run", "p.weir", "--set", "strategy=replay"], "--set belongs to --runner live"),
        (["run", "p.weir", "--runner", "offline", "--grace", "10s"], "--grace belongs to"),
        (["explain", "nowhere.weir"], "cannot read the program"),
    ],
)
def test_a_wrong_command_line_is_2_and_nothing_runs(
    command: Weir, args: list[str], message: str
) -> None:
    result = command(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert not Path("big.jsonl").exists()


def test_a_wrong_program_is_2_with_a_caret(command: Weir) -> None:
    text = "STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';\nB = SELECT vv FROM A;"
    result = command("run", program(text))
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "weir: error: q.weir, line 2, column 12: unknown column `vv`",
        "  B = SELECT vv FROM A;",
        "             ^",
        "  hint: did you mean `v`?",
    ]


def test_a_program_without_outputs_is_printed(command: Weir) -> None:
    text = """STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'c.jsonl';
    Few = SELECT k, v + 1 AS w FROM A WHERE v < 3;
    Out = SELECT k, w FROM Few WHERE w > 0;"""
    rows = "".join(f'{{"vs": {i}, "k": "x\\n", "v": {i}}}\n' for i in range(4))
    Path("c.jsonl").write_text(rows, encoding="utf-8")
    result = command("run", program(text), "--limit", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[:4] == [
        "Out:",
        "  vs  ve  k        w",
        "   0   1  x\\u000a  1",
        "   1   2  x\\u000a  2",
    ]
    assert result.stdout.splitlines()[4].startswith("  3 rows, 2 of them shown, digest ")
    told = json.loads(command("run", program(text), "--limit", "1", "--json").stdout)
    assert told["first"] == {"Out": [{"vs": 0, "ve": 1, "k": "x\n", "w": 1}]}
    assert told["outputs"][0]["path"] == "console:"


def test_a_limit_prints_what_is_written_too(command: Weir) -> None:
    Path("c.jsonl").write_text('{"vs": 5, "k": null}\n', encoding="utf-8")
    text = "STREAM A (vs BIGINT, k STRING) FROM 'c.jsonl';"
    text += "OUTPUT A TO 'o.csv'; OUTPUT A TO 'console:';"
    result = command("run", program(text))
    assert result.stdout.splitlines()[1:3] == ["  vs  ve  k", "   5   6  NULL"]
    assert result.stdout.count("A:") == 1
    both = command("run", program(text), "--limit", "3")
    assert both.stdout.count("A:") == 2
    assert Path("o.csv").read_text(encoding="utf-8") == "vs,ve,k\n5,6,\n"
    wrong = command("run", program(text), "--limit", "3", "--runner", "offline")
    assert wrong.exit_code == 2
    assert "--limit belongs to --runner local" in wrong.stderr


def test_a_failed_run_is_1_without_a_traceback(command: Weir) -> None:
    name = program(PROGRAM.replace("late = 'drop'", "late = 'fail'"))
    result = command("run", name)
    assert result.exit_code == 1
    assert result.stderr.startswith("weir: error: a.jsonl, line 2, column vs: late")
    assert "Traceback" not in result.stderr
    assert not Path("big.jsonl").exists()
    assert "Traceback" in command("run", name, "--debug").stderr


def test_an_output_that_cannot_be_written_is_1(command: Weir) -> None:
    Path("file").write_text("", encoding="utf-8")
    result = command("run", program(PROGRAM.replace("'big.jsonl'", "'file/big.jsonl'")))
    assert result.exit_code == 1
    why = "a part of its path is a file, not a folder"
    assert result.stderr == f"weir: error: cannot write 'file/big.jsonl': {why}\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [("'a.jsonl'", "'rate://5'"), ("'big.jsonl'", "'kafka://x'"), ("'big.jsonl'", "'a.jsonl'")],
)
def test_paths_that_cannot_be_are_2(command: Weir, old: str, new: str) -> None:
    result = command("run", program(PROGRAM.replace(old, new)))
    assert result.exit_code == 2
    assert new.strip("'") in result.stderr
    assert sorted(p.name for p in Path().iterdir()) == ["a.jsonl", "p.weir", "q.weir"]


def test_ctrl_c_is_130_and_leaves_nothing(command: Weir, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.LocalRun, "run", interrupted)
    result = command("run", "p.weir")
    assert result.exit_code == 130
    assert result.stderr == "weir: interrupted; no output was written\n"
    assert sorted(p.name for p in Path().iterdir()) == ["a.jsonl", "p.weir"]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "q.weir"),
        ("run", "q.weir", "--json"),
        ("run", "q.weir", "--runner", "live", "--store", "job"),
        ("explain", "q.weir"),
    ],
    ids=" ".join,
)
def test_strict_refuses_what_is_doubtful_before_anything_is_made(
    command: Weir, words: tuple[str, ...]
) -> None:
    head = "STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl' WITH (late = 'drop');\n"
    program(f"{head}Two = SELECT v FROM A LIMIT 2;\nOUTPUT Two TO 'two.jsonl';\n")
    before = sorted(Path().iterdir())
    result = command(*words, "--strict")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("weir: error: q.weir, line 2, column 29: LIMIT 2 without ORDER")
    assert sorted(Path().iterdir()) == before
    fine = f"{head}Two = SELECT v FROM A ORDER BY v LIMIT 2;\nOUTPUT Two TO 'two.jsonl';\n"
    program(fine)
    assert "live" in words or command(*words, "--strict").exit_code == 0


def test_what_memory_does_not_hold_is_not_a_bug(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, clean_errors(False):
        np.empty(2**56)
    assert ended.value.exit_code == 1
    told = capfd.readouterr().err
    assert told.startswith("weir: error: out of memory: Unable to allocate 512. PiB")
    assert "bug" not in told


def test_warnings_are_told(command: Weir) -> None:
    text = "B = SELECT A.v AS v FROM A INNER JOIN A AS C ON A.v < C.v; OUTPUT B TO 'b.csv';"
    result = command("run", program(PROGRAM + text))
    assert result.exit_code == 0
    assert "weir: warning: q.weir, line 7, column 28: a join without an equality" in result.stderr


def test_strict_refuses_windows_that_meet_points_by_chance(command: Weir) -> None:
    text = """STREAM C (since BIGINT, v BIGINT) FROM 'a.jsonl' WITH (vs = since, unit = 'tick');
W = SELECT v, COUNT(*) AS n FROM A GROUP BY v WITH TUMBLING(10);
B = SELECT W.n AS n FROM W INNER JOIN C ON W.v = C.v; OUTPUT B TO 'b.csv';
"""
    result = command("run", program(PROGRAM + text), "--strict")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "events of C are points: a window over A meets only those whose" in result.stderr


def test_a_program_on_stdin(command: Weir) -> None:
    text = Path("p.weir").read_text(encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["run", "-"], input=text)
    assert result.stdout.startswith("Big -> big.jsonl: 2 rows")
    result = CliRunner().invoke(cli.app, ["run", "-"], input="SELECT")
    assert result.stderr.startswith("weir: error: -, line 1, column 1: expected a statement")
    result = CliRunner().invoke(cli.app, ["explain", "-"], input=b"\xff")
    assert (result.exit_code, "it is not UTF-8 text" in result.stderr) == (2, True)


def test_a_script_with_a_byte_order_mark(command: Weir) -> None:
    text = Path("p.weir").read_text(encoding="utf-8")
    Path("p.weir").write_text(text, encoding="utf-8-sig")
    assert command("run", "p.weir").stdout.startswith("Big -> big.jsonl: 2 rows")
    assert "Filter v > 0" in command("explain", "p.weir").stdout
    marked = text.encode("utf-8-sig")
    assert CliRunner().invoke(cli.app, ["run", "-"], input=marked).exit_code == 0
    laid_out = CliRunner().invoke(cli.app, ["fmt", "-"], input=marked).stdout
    assert laid_out == CliRunner().invoke(cli.app, ["fmt", "-"], input=text).stdout != ""
    wrong = program("\ufeffSTREAMX")
    for verb in ("run", "fmt"):
        assert (
            "q.weir, line 1, column 1: expected a statement, found `STREAMX`\n  STREAMX\n  ^"
            in (command(verb, wrong).stderr)
        )


def test_scripts_that_are_not_utf8(command: Weir) -> None:
    text = "-- café\n"
    for encoding, name in (("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("latin-1", "LATIN1")):
        told = f"it is not UTF-8 text; write it in UTF-8, as by iconv -f {name} -t UTF-8\n"
        Path("p.weir").write_bytes(text.encode(encoding))
        for verb in ("run", "explain", "fmt"):
            result = command(verb, "p.weir")
            assert (result.exit_code, result.stderr.endswith(f"p.weir: {told}")) == (2, True)
            result = CliRunner().invoke(cli.app, [verb, "-"], input=text.encode(encoding))
            assert (result.exit_code, result.stderr.endswith(f"-: {told}")) == (2, True)


def test_files_beside_a_program_in_another_folder(command: Weir) -> None:
    Path("q").mkdir()
    for name in ("p.weir", "a.jsonl"):
        Path(name).rename(f"q/{name}")
    told = "weir: error: a.jsonl: no file matches, but one next to the program does"
    result = command("run", "q/p.weir")
    assert (result.exit_code, result.stderr.startswith(told)) == (1, True)
    assert "use --directory q\n" in result.stderr
    assert command("run", "q/p.weir", "--directory", "q").exit_code == 0
    Path("q/a.jsonl").unlink()
    assert command("run", "q/p.weir").stderr.endswith("a.jsonl: no file matches\n")


# --- explain ---------------------------------------------------------------------------------


def test_explain_in_three_forms(command: Weir) -> None:
    assert "Filter v > 0" in command("explain", "p.weir").stdout
    assert command("explain", "p.weir", "--format", "dot").stdout.startswith("digraph")
    as_json = command("explain", "p.weir", "--format", "json").stdout
    assert json.loads(as_json)
    assert command("explain", "p.weir", "--json").stdout == as_json


def test_explain_shows_programs_without_outputs(command: Weir) -> None:
    text = "STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';"
    assert "Source A" in command("explain", program(text)).stdout
    text += "B = SELECT v FROM A WHERE v > 1; C = SELECT v FROM B WHERE v < 9;"
    shown = command("explain", program(text)).stdout
    assert "C to" in shown and "B to" not in shown


# --- conform ---------------------------------------------------------------------------------

GOOD = {
    "id": "good",
    "program": "Out = SELECT v FROM A;",
    "inputs": {"A": [{"vs": 1, "v": 2}]},
    "expected": [{"vs": 1, "ve": 2, "v": 2}],
}
BAD = {**GOOD, "id": "bad", "expected": [{"vs": 1, "ve": 2, "v": 3}]}


def test_conform_ends_with_the_counts(command: Weir) -> None:
    Path("good.jsonl").write_text(f"{json.dumps(GOOD)}\n{json.dumps(GOOD)}\n", encoding="utf-8")
    Path("bad.jsonl").write_text(json.dumps(BAD), encoding="utf-8")
    result = command("conform", "good.jsonl")
    assert (result.exit_code, result.stdout) == (0, "2 passed, 0 failed\n")
    result = command("conform", "good.jsonl", "bad.jsonl", "--cut", "1,3", "--parallelism", "1,3")
    assert result.exit_code == 1
    failing, counts = result.stdout.splitlines()
    assert failing == (
        "bad: (cut 1, parallelism 1) missing [{vs: 1, ve: 2, v: 3}], "
        "unexpected [{vs: 1, ve: 2, v: 2}]"
    )
    assert counts == "2 passed, 1 failed"


def test_conform_as_json(command: Weir) -> None:
    Path("bad.jsonl").write_text(json.dumps(BAD), encoding="utf-8")
    result = command("conform", "bad.jsonl", "--json", "--cut", "none")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert (report["passed"], report["failed"], report["failures"][0]["id"]) == (0, 1, "bad")


# --- help ------------------------------------------------------------------------------------


def test_help_has_examples(command: Weir) -> None:
    for name in ("run", "explain", "conform"):
        assert f"Example: weir {name}" in command(name, "--help").stdout
    assert command("--version").stdout == f"weir {weir.__version__}\n"
    assert command().exit_code == 2
    result = command("completion", "tcsh")
    told = "weir: error: Invalid value for 'shell': 'tcsh' is not one of 'bash', 'zsh', 'fish'."
    assert (result.exit_code, result.stderr.startswith(told)) == (2, True)
