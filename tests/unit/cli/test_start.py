"""What a newcomer meets: `weir --help`, `init`, `doctor`, `completion`; and how little is
imported for it."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import unittest
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from hostile import invoke
from weir.cli import COMMANDS, doctor, load_command
from weir.errors import PlanError
from weir.files.object_store import ObjectStore
from weir.runtime import extras
from weir.runtime.extras import need_extra, packages_of, pip_line
from weir.spark.session import check_pandas


def weir(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weir.cli", *words],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, **variables},
    )


# --- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_what_a_command_says_of_itself(name: str) -> None:
    module, line = COMMANDS[name]
    function = getattr(import_module(f"weir.cli.{module}"), name)
    said = inspect.getdoc(function) or ""
    assert " ".join(said.split("\n\n")[0].split()) == line
    assert load_command(name).name == name
    assert f"Example: [bold]weir {name}" in said or f"weir {name}[/bold]" in said


def test_help_lists_all_and_imports_no_command() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from weir import cli\n"
        "said = CliRunner().invoke(cli.app, ['--help'], prog_name='weir').stdout\n"
        "assert all(name in said for name in cli.COMMANDS), said\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'sqlglot', 'pydantic', 'msgspec', 'pyspark'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["plain", "a b", "it's", "-rf", "$(x)"])
def test_a_shell_takes_the_line_that_enters_the_new_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended, said, _ = invoke(["init", "--", name])
    assert ended == 0
    [enter] = [line for line in said.splitlines() if line.startswith("  cd ")]
    subprocess.run(["sh", "-ec", f"{enter}\ntest -f clicks.weir"], check=True)


def test_a_small_run_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    assert invoke(["init", str(tmp_path / "p")])[0] == 0
    code = (
        "import sys, atexit; from weir.cli import main\n"
        "heavy = {'pandas', 'pydantic', 'pyspark', 'pyarrow.parquet', 'ssl', 'asyncio'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules))))\n"
        "sys.argv[1:] = ['run', 'clicks.weir', '--runner', 'local', '--parallelism', '2']\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "p", capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("\n[]\n")


def test_what_is_wrong_with_a_value_is_told() -> None:
    for words, said in (
        (["run", "p.weir", "--parallelism", "x"], "'--parallelism'"),
        (["run", "p.weir", "--parallelism", "0"], "'--parallelism'"),
        (["run", "p.weir", "--runner", "far"], "'--runner'"),
        (["rn"], "Did you mean 'run'?"),
    ):
        ended, out, err = invoke(words)
        assert (ended, out) == (2, "") and said in err


# --- init ----------------------------------------------------------------------------------------


def test_init_makes_what_runs(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    ended, out, _ = invoke(["init", str(folder)])
    assert ended == 0 and "weir run clicks.weir" in out
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("# shop\n")
    done = weir(folder, "run", "clicks.weir", "--json")
    found = {o["name"]: o["rows"] for o in json.loads(done.stdout)["outputs"]}
    assert found == {"PerUser": 5, "Click": 1}
    hopping = (folder / "clicks.weir").read_text(encoding="utf-8")
    (folder / "clicks.weir").write_text(
        hopping.replace("TUMBLING(1m)", "HOPPING(1m, 10s)"), encoding="utf-8"
    )
    assert weir(folder, "explain", "clicks.weir").returncode == 0  # as its page says


def test_the_test_that_init_makes_passes_and_can_fail(tmp_path: Path) -> None:
    assert invoke(["init", str(tmp_path / "new")])[0] == 0
    for is_right in (True, False):
        suite = unittest.defaultTestLoader.discover(str(tmp_path / "new"))
        found = unittest.TestResult()
        suite.run(found)
        assert found.testsRun == 2 and found.wasSuccessful() == is_right, found.errors
        program = tmp_path / "new" / "clicks.weir"
        program.write_text(program.read_text(encoding="utf-8").replace("(1m)", "(2m)"), "utf-8")
        del sys.modules["test_clicks"]


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    assert invoke(["init", str(tmp_path)])[0] == 2
    assert invoke(["init", str(tmp_path / "mine.txt")])[0] == 2
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    ended, out, _ = invoke(["init", str(tmp_path / "empty"), "--json"])
    assert ended == 0 and "clicks.weir" in json.loads(out)["files"]


# --- doctor --------------------------------------------------------------------------------------


def findings(*words: str) -> tuple[int, dict[str, dict[str, str]]]:
    ended, out, err = invoke(["doctor", "--json", *words])
    assert err == ""
    return ended, {each["of"]: each for each in json.loads(out)}


def test_a_machine_that_runs_these_tests_is_well(tmp_path: Path) -> None:
    ended, found = findings("--store", str(tmp_path / "store"))
    wrong = {of: each["what"] for of, each in found.items() if each["state"] == "wrong"}
    assert (ended, wrong) == (0, {})
    assert {"Python", "libraries", "memory", "disk", "loops", "network", "Spark", "Java"} <= set(
        found
    )
    assert not (tmp_path / "store").exists()  # who looks leaves nothing behind
    ended, out, _ = invoke(["doctor"])
    assert ended == 0 and out.endswith("nothing is wrong\n")


def test_a_store_that_is_not_there_yet_leaves_nothing_behind(tmp_path: Path) -> None:
    _, found = findings("--store", str(tmp_path / "a" / "b" / "store"))
    assert found["store"]["state"] == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_began_while_the_doctor_looked_keeps_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = tmp_path / "store" / "plan"
    look = ObjectStore.check_conditions

    def begin(self: ObjectStore, key: str, body: bytes) -> None:
        began.write_text("a job", encoding="utf-8")
        look(self, key, body)

    monkeypatch.setattr(ObjectStore, "check_conditions", begin)
    _, found = findings("--store", str(tmp_path / "store"))
    assert found["store"]["state"] == "ok" and began.read_text(encoding="utf-8") == "a job"


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("", ("memory.max", "memory.current", "inactive_file")),
        ("memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")),
    ],
)
def test_pages_of_files_are_free_memory_of_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, names: tuple[str, str, str]
) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    limit, used, cached = names
    for name, text in (
        (limit, "1000"),
        (used, "900"),
        ("memory.stat", f"anon 300\n{cached} 600\nx{cached} 7\n"),
    ):
        (tmp_path / folder / name).write_text(f"{text}\n", encoding="ascii")
    monkeypatch.setattr(doctor, "CGROUP", tmp_path)
    assert doctor._free_memory() == 700


def test_what_is_wrong_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_free_memory", lambda: 10 << 20)
    monkeypatch.setenv("WEIR_CACHE", str(tmp_path / "none yet"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where code may lie too
    (tmp_path / "file").write_text("", encoding="utf-8")
    ended, found = findings("--store", str(tmp_path / "file"))
    assert ended == 1
    assert found["memory"]["state"] == "wrong" and found["memory"]["advice"]
    assert found["store"]["state"] == "wrong"
    assert found["loops"]["state"] == "note" and "weir warm" in found["loops"]["advice"]
    ended, out, _ = invoke(["doctor"])
    assert ended == 1 and "→ end other programs" in out and out.endswith("1 thing wrong\n")


# --- extras --------------------------------------------------------------------------------------


def test_a_missing_extra_is_said_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [p for p in packages_of("spark") if p.startswith("pyspark")] == ["pyspark==4.3.*"]
    need_extra("spark", "pyspark", "this needs")
    with pytest.raises(PlanError, match="this needs no_such_module, which is not installed"):
        need_extra("spark", "no_such_module", "this needs")
    assert pip_line("spark").startswith("pip install '") and "pyspark==4.3.*" in pip_line("spark")
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    ended, found = findings()
    assert ended == 0 and found["Spark"]["state"] == "note"
    assert "pip install" in found["Spark"]["advice"]
    assert find_spec("pyspark") is not None


def test_without_pandas_neither_spark_runner_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(["init", "."])[0] == 0
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    ended, _, err = invoke(["run", "clicks.weir", "--runner", "live", "--store", "s"])
    assert ended == 2 and "need pandas, which is not installed" in err
    assert "(weirstream[spark])" in err and not Path("s").exists()
    with pytest.raises(PlanError, match="need pandas, which is not installed"):
        check_pandas()


# --- completion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_for_each_shell(shell: str) -> None:
    ended, out, _ = invoke(["completion", shell])
    assert ended == 0 and "_WEIR_COMPLETE=complete_" + shell in out
    assert invoke(["completion", "tcsh"])[0] == 2


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("weir sto", ["story", "store"]),
        ("weir run --para", ["--parallelism", "--param"]),
        ("weir run --runner l", ["local", "live"]),
    ],
)
def test_lines_are_completed(tmp_path: Path, line: str, wanted: list[str]) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = weir(tmp_path, **words, _WEIR_COMPLETE="complete_bash")
    assert done.stdout.split() == wanted
