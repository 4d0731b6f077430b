"""The code in README and docs runs.

Each page has a folder of its own, in which its blocks are worked off from top to bottom:

    ```weir NAME       is written to that file, and must parse; without a name it must parse
                       (with the streams of PRELUDE that it does not declare itself)
    ```python [NAME]   runs, in one namespace for the page; with a name it is written as well
    ```jsonl NAME      is written (so are csv)
    ```console         `$ weir …` and `$ cat …` run; what is printed must be what follows, where
                       `…` stands for anything
"""

from __future__ import annotations

import math
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weir import cli
from weir.cli import load_command, progress
from weir.script.program import parse_program

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = sorted({*PAGES, *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")})
BLOCK = re.compile(r"^```([a-z]+)(?: ([^\n]+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)

PRELUDE = {
    "Alert": "STREAM Alert (ProcessID BIGINT, Name STRING, At TIMESTAMP) FROM 'a.jsonl'"
    " WITH (vs = At);",
    "Process": "STREAM Process (ProcessID BIGINT, UserID BIGINT, Began TIMESTAMP, Ended TIMESTAMP)"
    " FROM 'p.jsonl' WITH (vs = Began, ve = Ended);",
    "A": "STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT, x DOUBLE, tags LIST(STRING))"
    " FROM 'a.jsonl';",
    "B": "STREAM B (vs BIGINT, ve BIGINT, k STRING, w BIGINT) FROM 'b.jsonl';",
}


@dataclass
class Page:
    """What the blocks before have left behind."""

    folder: Path
    names: dict[str, object] = field(default_factory=dict)

    def work_off(self, kind: str, name: str, text: str) -> None:
        if name:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        match kind:
            case "weir":
                self.parse(text, declared=bool(name))
            case "python":
                exec(compile(text, name or "<docs>", "exec"), self.names)
            case "console":
                self.console(text)

    def parse(self, text: str, declared: bool) -> None:
        known = [] if declared else [d for n, d in PRELUDE.items() if f"STREAM {n} " not in text]
        parse_program("\n".join([*known, text]), directory=self.folder)

    def console(self, text: str) -> None:
        for command, wanted in dialogues(text):
            program, *args = shlex.split(command)
            if program == "weir":
                came = CliRunner().invoke(cli.app, args).output
            elif program == "cat":
                came = "".join((self.folder / a).read_text(encoding="utf-8") for a in args)
            else:
                continue
            pattern = ".*".join(re.escape(part) for part in wanted.strip().split("…"))
            assert re.fullmatch(pattern, came.strip(), re.DOTALL), f"$ {command}\n{came}"


def dialogues(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block and what is shown after it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        yield command, wanted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "LINE_SECONDS", math.inf)  # compiling may take that long
    monkeypatch.setattr(progress.Meter, "compiling", lambda *_: None)  # a new machine
    state = Page(tmp_path)
    for kind, name, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        state.work_off(kind, name, text)


def test_the_docs_have_code() -> None:
    kinds = [kind for p in PAGES for kind, _, _ in BLOCK.findall(p.read_text(encoding="utf-8"))]
    assert {"weir", "python", "console"} <= set(kinds)
    assert len(kinds) > 20


@pytest.mark.parametrize("page", LINKED, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_text_names_each_file(page: Path) -> None:
    """Readers see no info strings of code blocks."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        before = text[: block.start()].rstrip("\n").rsplit("\n\n", 1)[-1]
        assert not block[2] or f"`{block[2]}`" in before, block[2]


COMMAND_LINE = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_page_of_the_command_line_has_all_options(name: str) -> None:
    lines = re.findall(rf"^ {{4}}weir {name} .*(?:\n {{5,}}.*)*", COMMAND_LINE, re.MULTILINE)
    assert {*re.findall(r"--[a-z][a-z-]*", " ".join(lines))} == {
        option
        for parameter in load_command(name).params
        if not getattr(parameter, "hidden", False)  # the old name of an option
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--") and option != "--help"
    }


@pytest.mark.parametrize("maker", ["pictures.py", "reference_pages.py"])
def test_pages_are_what_their_makers_make(maker: str) -> None:
    made = runpy.run_path(str(ROOT / "docs" / maker))
    assert made["main"](True) == 0


def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_design_note_is_in_the_index() -> None:
    notes = sorted(p.name for p in (ROOT / "docs" / "design").glob("0*.md"))
    index = (ROOT / "docs" / "design" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((.+\.md)\)", index) == notes


@pytest.mark.parametrize("page", sorted((ROOT / "docs/design").glob("0*.md")), ids=lambda p: p.stem)
def test_a_design_note_is_titled_by_its_number(page: Path) -> None:
    assert page.read_text(encoding="utf-8").startswith(f"# {page.stem[:4]} ")
