"""Every program of `examples` has one digest, the one that its page names: under cuts and
parallelisms here, on all runners with WEIR_NIGHT=1."""

from __future__ import annotations

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weir

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = runpy.run_path(str(EXAMPLES / "run.py"))
PROGRAMS = [str(p.relative_to(EXAMPLES).with_suffix("")) for p in RUN["programs"]()]
PRINTED = re.compile(r"^.+ -> (\S+): [\d,]+ rows?, digest (\S+)$", re.MULTILINE)
JOINS = {"INNER", "LEFT", "SEMI", "ANTI", "CLIP"}
make_data = RUN["make_data"]


@pytest.fixture(scope="module")
def with_data(tmp_path_factory: pytest.TempPathFactory):
    """A function: a folder with an example's data, which is made once."""
    made: dict[str, Path] = {}

    def folder(example: str) -> Path:
        if example not in made:
            made[example] = tmp_path_factory.mktemp(example)
            if (EXAMPLES / example / "generate.py").exists():
                make_data(EXAMPLES / example, made[example])
            else:
                shutil.copytree(EXAMPLES / example / "data", made[example] / "data")
        return made[example]

    return folder


def expected(program: str) -> dict[str, str]:
    """The digests of a program's outputs as the folder's page has them."""
    page = (EXAMPLES / program).parent / "README.md"
    shown = page.read_text(encoding="utf-8").split(f"run.py {program}\n")
    assert len(shown) == 2, f"{page} does not show how to run {program} once"
    return dict(PRINTED.findall(shown[1].split("```")[0]))


def digests(report: weir.RunReport) -> dict[str, str]:
    return {output.path: output.digest for output in report.outputs}


@pytest.mark.filterwarnings("error::weir.PlanWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_digest_under_cuts_and_parallelisms(
    program: str, with_data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(with_data(program.split("/")[0]))
    file = EXAMPLES / f"{program}.weir"
    first = digests(weir.run(file))
    again = digests(weir.run(file, cut=61, parallelism=3))
    assert first == again == expected(program)
    assert all(not digest.endswith("-0") for digest in first.values())


@pytest.mark.skipif("WEIR_NIGHT" not in os.environ, reason="minutes: make night")
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_digest_on_spark(
    program: str, with_data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(with_data(program.split("/")[0]))
    file = EXAMPLES / f"{program}.weir"
    offline = weir.run_offline(file, parallelism=2)
    live = weir.run_live(file, tmp_path / "store", parallelism=2)
    assert live is not None
    assert digests(offline) == digests(live) == expected(program)


@pytest.mark.parametrize("runner", ["local", "offline", "live"])
@pytest.mark.parametrize("app", [p.parent.name for p in RUN["apps"]()])
def test_apps_have_one_digest_on_every_runner(app: str, runner: str, tmp_path: Path) -> None:
    """By the command of the page, in a copy of the folder."""
    if runner != "local" and "WEIR_NIGHT" not in os.environ:
        pytest.skip("minutes: make night")
    shutil.copy(EXAMPLES / "run.py", tmp_path)
    made = shutil.ignore_patterns("data", "out", "__pycache__")
    shutil.copytree(EXAMPLES / "replay" / app, tmp_path / "replay" / app, ignore=made)
    command = [sys.executable, "run.py", f"replay/{app}", "--runner", runner]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (EXAMPLES / "replay" / app / "README.md").read_text(encoding="utf-8")
    wanted, found = ({d for _, d in PRINTED.findall(text)} for text in (page, done.stdout))
    assert found and found <= wanted


def test_every_folder_is_in_the_table() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE)
    assert sorted(named) == sorted(p.name for p in EXAMPLES.glob("[a-z]*/"))


def test_no_script_is_left_out() -> None:
    scripts = {str(p.relative_to(EXAMPLES).with_suffix("")) for p in EXAMPLES.rglob("*.weir")}
    assert scripts - {*PROGRAMS} == {"ads/ads"}  # which follows a log that `demo.py` makes


@pytest.mark.skipif("WEIR_NIGHT" not in os.environ, reason="a minute: make night")
def test_the_demo_gives_one_answer(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "ads" / "demo.py"), "--seconds", "8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "one answer"
    for begin in ("kill -9 ", "recovery: found ", "the same log offline", "the job's page: demo/"):
        assert [line for line in lines if line.startswith(begin)], f"{begin}\n{done.stdout}"
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.py")), ids=str)
def test_no_internals_are_imported(file: Path) -> None:
    """`weir.cli` is the command itself, which `cluster/submit.py` hands to Spark."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        for name in names:
            allowed = ("weir", "weir.testing", "weir.cli")
            assert name.split(".")[0] != "weir" or name in allowed, f"{file}: {name}"


def test_click_fraud_has_all_joins_of_the_paper() -> None:
    command = [sys.executable, "-m", "weir.cli", "explain", "clickfraud.weir"]
    folder = EXAMPLES / "clickfraud"
    plan = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    stages = len(re.findall(r"^  stage \d+:", plan, re.MULTILINE))
    assert f"{stages} stages" in (folder / "README.md").read_text(encoding="utf-8")
    assert stages >= 20
    assert {*re.findall(r"Join ([A-Z ]+?) ON", plan)} >= JOINS
