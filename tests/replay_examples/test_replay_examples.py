"""The examples of `examples/replay` give the rows of a plain loop, which is beside them here."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from replay_examples.cases import CASES, EXAMPLES, Case, as_ticks, module, rows_of
from replay_examples.loops import Emitted
from weir import cli
from weir.handlers.api.app_file import load_app


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("logs")
    for case in CASES.values():
        case.generate(folder / case.name)
    return {name: folder / name for name in CASES}


every_case = pytest.mark.parametrize("case", CASES.values(), ids=lambda c: c.name)


def test_no_app_is_left_out() -> None:
    assert {*CASES} == {path.parent.name for path in EXAMPLES.rglob("app.py")}


@every_case
def test_the_command_finds_what_the_loop_finds(
    case: Case, logs: dict[str, Path], tmp_path: Path
) -> None:
    given = [f"--log={name}={path}" for name, path in case.paths(logs[case.name]).items()]
    command = ["replay", str(case.app), *given, "--out", str(tmp_path), "--format", "jsonl"]
    told = CliRunner().invoke(cli.app, command)
    assert told.exit_code == 0, told.output
    assert_emitted(tmp_path, case.expected(logs[case.name]))


@every_case
def test_the_page_shows_what_its_commands_print(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(case.app.parent, tmp_path / "copy"))
    page = Path("README.md").read_text(encoding="utf-8").replace("\\\n", "")
    (block,) = re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    made, replayed = (text.partition("\n") for text in block.removeprefix("$ ").split("\n$ "))
    assert made[0].startswith("python ") and made[2] == ""
    subprocess.run([sys.executable, *made[0].split()[1:]], check=True)
    assert replayed[0].startswith("weir ")
    told = CliRunner().invoke(cli.app, shlex.split(replayed[0])[1:])
    assert (told.exit_code, told.stdout) == (0, replayed[2])


@every_case
def test_row_by_row_is_the_same(case: Case, logs: dict[str, Path], tmp_path: Path) -> None:
    app = load_app(case.app)
    paths = case.paths(logs[case.name])
    app.replay(logs=paths, out=tmp_path, format="jsonl", vectorise=False, parallelism=2)
    assert_emitted(tmp_path, case.expected(logs[case.name]))


def assert_emitted(out: Path, expected: Emitted) -> None:
    """The files have the loop's rows, in log order; nothing else was emitted."""
    assert {path.stem for path in out.glob("*.jsonl")} == set(expected)
    for name, rows in expected.items():
        found = [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]
        times = [(as_ticks(row.pop("vs")), as_ticks(row.pop("ve"))) for row in found]
        assert found == [row for _, row in rows]
        assert times == [(vs, vs + 1) for vs, _ in rows]
        assert len(rows) > 5


def test_the_model_of_the_naive_join_promises_too_much(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    case = CASES["features"]
    load_app(case.app).replay(logs=case.paths(logs["features"]), out=tmp_path)
    scores = module("features", "train").train(logs["features"], tmp_path)
    assert scores.naive_offline > scores.naive_live + 0.05
    assert abs(scores.replayed_offline - scores.replayed_live) < 0.05
    assert scores.replayed_live >= scores.naive_live
    assert scores.replayed_live > scores.constant


@every_case
def test_generators_make_the_same_logs_again(
    case: Case, logs: dict[str, Path], tmp_path: Path
) -> None:
    case.generate(tmp_path)
    files = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert files
    for file in files:
        assert (tmp_path / file).read_bytes() == (logs[case.name] / file).read_bytes()


def test_logs_of_the_spam_example_are_as_the_paper_says(tmp_path: Path) -> None:
    generate = module("spam", "generate")
    generate.generate(tmp_path, 20_000, users=2000, files=3)
    messages = rows_of(tmp_path, "message/*.parquet")
    times = [vs for vs, _ in messages]
    assert times == sorted(times) and len(set(times)) < len(times)
    sizes = [32 + len(m["ip"]) + len(m["content"]) for _, m in messages]
    assert 110 < sum(sizes) / len(sizes) < 140
    assert len(pq.read_table(tmp_path / "friendship")) == pytest.approx(4000, rel=0.1)


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.py")), ids=lambda p: p.parent.name)
def test_examples_use_the_public_names_alone(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    assert not [name for name in names if name.startswith("weir.")]
