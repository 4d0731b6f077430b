"""`weir verify` and `weir diff`: what they print where, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from weir import cli

PROGRAM = """
STREAM A (vs TIMESTAMP, v BIGINT) FROM 'a.csv';
DECLARE @least BIGINT = 0;
DECLARE @times BIGINT = 1;
Big = SELECT v * @times AS v FROM A WHERE v > @least;
OUTPUT Big TO 'big.jsonl';
"""
AT = "1970-01-01T00:00:00.00000"

Weir = Callable[..., Result]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weir:
    """`command("verify", "one/big.jsonl")`, where the program has run into one, two, three."""
    monkeypatch.chdir(tmp_path)
    Path("p.weir").write_text(PROGRAM, encoding="utf-8")

    def call(*args: str) -> Result:
        return CliRunner().invoke(cli.app, list(args))

    for folder, least in (("one", 0), ("two", 0), ("three", 1)):
        Path(folder).mkdir()
        Path(folder, "a.csv").write_text(f"vs,v\n{AT}1Z,1\n{AT}2Z,2\n", encoding="utf-8")
        options = ("--directory", folder, "--param", f"least={least}", "--json")
        Path(f"{folder}.json").write_text(call("run", "p.weir", *options).stdout, encoding="utf-8")
    return call


def test_equal_is_0(command: Weir) -> None:
    for paths in (["one/big.jsonl", "two/big.jsonl"], ["one/big.jsonl"]):
        result = command("verify", *paths)
        assert result.exit_code == 0
        assert result.stdout.startswith("equal: 2 rows, digest ")
        assert result.stderr == ""
    result = command("verify", "one.json", "two.json")
    assert (result.exit_code, result.stdout[:21]) == (0, "Big: equal: 2 rows, d")
    result = command("diff", "one/big.jsonl", "two/big.jsonl")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "no difference\n", "")


def test_different_is_1(command: Weir) -> None:
    result = command("verify", "one/big.jsonl", "three/big.jsonl")
    assert result.exit_code == 1
    assert result.stdout.startswith("different: one/big.jsonl has 2 rows, digest ")
    assert "; three/big.jsonl has 1 row, digest " in result.stdout
    assert command("verify", "one.json", "three.json").exit_code == 1
    result = command("diff", "one/big.jsonl", "three/big.jsonl")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"first difference at {AT}1Z",
        f'- {{"vs":"{AT}1Z","ve":"{AT}2Z","v":1}}',
    ]


def test_corrupt_is_1(command: Weir) -> None:
    Path("one/big.jsonl").write_bytes(Path("three/big.jsonl").read_bytes())
    result = command("verify", "one/big.jsonl")
    assert result.exit_code == 1
    assert result.stdout.startswith("corrupt: one/big.jsonl has 1 row, digest ")
    result = command("verify", "one/big.jsonl", "three/big.jsonl", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert not report["equal"]
    assert [v["status"] for v in report["verdicts"]] == ["corrupt", "equal"]


def test_row_by_row(command: Weir) -> None:
    result = command("verify", "one/big.jsonl", "two/big.jsonl", "--full")
    assert result.exit_code == 0
    assert result.stdout.startswith("equal row by row: 2 rows, digest ")
    result = command("verify", "--full", "one/big.jsonl", "three/big.jsonl")
    assert result.exit_code == 1
    assert result.stdout.startswith("different: one/big.jsonl has 2 rows, digest ")
    assert result.stdout.endswith("; 1 row in one/big.jsonl alone\n")
    told = json.loads(
        command("verify", "one/big.jsonl", "three/big.jsonl", "--full", "--json").stdout
    )
    assert told["verdicts"][0]["alone"] == [1, 0]


def test_as_json(command: Weir) -> None:
    equal = json.loads(command("verify", "one.json", "two.json", "--json").stdout)
    digest = json.loads(Path("one.json").read_text(encoding="utf-8"))["outputs"][0]["digest"]
    sides = [{"path": f"{n}.json", "rows": 2, "digest": digest} for n in ("one", "two")]
    verdict = {"status": "equal", "sides": sides, "output": "Big", "columns": [], "alone": None}
    assert equal == {"equal": True, "verdicts": [verdict]}
    result = command("diff", "one/big.jsonl", "three/big.jsonl", "--json")
    row = {"vs": f"{AT}1Z", "ve": f"{AT}2Z", "v": 1}
    first = {
        "time": row["vs"],
        "only_a": {"rows": [row], "more": 0},
        "only_b": {"rows": [], "more": 0},
    }
    assert json.loads(result.stdout) == {"equal": False, "columns": [], "first": first}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["verify", "nowhere.csv", "one/big.jsonl"], "nowhere.csv: no such file or folder"),
        (
            ["verify", "one.json", "one/big.jsonl"],
            "one.json: a run can only be compared with another run",
        ),
        (["verify", "p.weir"], "p.weir: not an output"),
        (["verify"], "Missing argument"),
        (["verify", "one.json", "two.json", "--full"], "one.json: a run has no rows; --full"),
        (["verify", "one/big.jsonl", "--full"], "--full compares two outputs; name another one"),
        (["diff", "one/big.jsonl"], "Missing argument"),
        (["diff", "one/big.jsonl", "nowhere"], "nowhere: no such file or folder"),
        (["diff", "one/big.jsonl", "bad.jsonl"], "bad.jsonl, line 2, column v: wanted BIGINT"),
    ],
)
def test_what_cannot_be_read_is_2(command: Weir, args: list[str], message: str) -> None:
    rows = (f'{{"vs": "{AT}1Z", "v": {v}}}' for v in ("1", '"x"'))
    Path("bad.jsonl").write_text("\n".join(rows), encoding="utf-8")
    result = command(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_help_has_examples(command: Weir) -> None:
    for name in ("verify", "diff"):
        assert f"Example: weir {name}" in command(name, "--help").stdout
