"""A fingerprint changes with what the user's code does, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import weir
from weir.plan.code_fingerprint import changes, program_code
from weir.plan.nodes import Program
from weir.script import parse_program

RULES = "import weir\n@weir.udf\ndef f(v: int) -> int:\n    return v + 1\n"
TEXT = """IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
    B = SELECT f(v) AS w FROM A; OUTPUT B TO 'b.csv';"""

Code = Callable[..., dict[str, str]]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Code]:
    """The fingerprints of the program with these files."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def forget() -> None:
        for name in ("helper", "lazily", "pack", "pack.part", "pack.other"):
            sys.modules.pop(name, None)

    def of(**files: str) -> dict[str, str]:
        forget()
        for name, text in files.items():
            path = tmp_path / f"{name.replace('_in_', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return program_code(parse_program(TEXT, directory=tmp_path))

    yield of
    forget()


def test_comments_and_layout_do_not_count(code: Code) -> None:
    one = code(rules=RULES)
    assert list(one) == ["rules.py"]
    assert code(rules="# mine\n" + RULES.replace("v + 1", "(v  +  1)  # more")) == one
    assert changes(one, code(rules=RULES.replace("v + 1", "v + 2"))) == ["rules.py changed"]


def test_what_is_run_is_what_the_file_holds(code: Code, tmp_path: Path) -> None:
    """Python's cache would take bytecode for the same if time and size of the file are."""
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "v": 1}\n', encoding="utf-8")
    for number in (1, 2):
        code(rules=RULES.replace("v + 1", f"v + {number}"))
        os.utime(tmp_path / "rules.py", (1, 1))
        weir.run(TEXT, directory=tmp_path)
        assert (tmp_path / "b.csv").read_text().splitlines()[1] == f"1,2,{1 + number}"


def test_modules_that_are_imported_count(code: Code) -> None:
    rules = "import helper, json, numpy\nfrom pack.part import two\n" + RULES
    files = {
        "rules": rules,
        "helper": "def later():\n    import lazily\n",
        "lazily": "X = 1\n",
        "pack_in___init__": "",
        "pack_in_part": "from . import other\ntwo = 2\n",
        "pack_in_other": "three = 3\n",
    }
    one = code(**files)
    assert sorted(one) == ["helper", "lazily", "pack", "pack.other", "pack.part", "rules.py"]
    assert changes(one, code(**files | {"pack_in_other": "three = 4\n"})) == ["pack.other changed"]
    assert changes(one, code(**files | {"lazily": "X = 2\n"})) == ["lazily changed"]
    shorter = files | {"helper": ""}
    assert changes(one, code(**shorter)) == ["helper changed", "lazily is gone"]
    assert changes(code(**shorter), code(**files)) == ["helper changed", "lazily is new"]


# --- functions of a script -------------------------------------------------------------------

SCRIPT = """
import weir
LIMIT = {limit}

def helper(v):
    return v * {factor}

@weir.udf
def mine(v: int) -> int:
    {extra}
    return helper(v) + LIMIT

class Kept:
    def __init__(self): self.n = {start}
    def on_event(self, event, ctx): pass

kept = weir.operator(columns={{"n": "BIGINT"}}, state={{"n": "BIGINT"}})(Kept)
unused = {unused}
print({printed})
stream = weir.stream("A", {{"vs": "BIGINT", "v": "BIGINT"}}, "a.jsonl", vs="vs")
stream = stream.select(w=weir.call(mine, weir.col("v"))).process(kept())
"""
PLAIN = {"limit": "7", "factor": "2", "extra": "pass", "start": "0", "unused": "1", "printed": "1"}


def script_code(**changed: str) -> dict[str, str]:
    spaced = dict(PLAIN, **changed)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(SCRIPT.format(**spaced), names)
    stream = names["stream"]
    assert isinstance(stream, weir.Stream)
    from weir.local.run import program_of

    return program_code(program_of(stream))


def test_functions_of_a_script() -> None:
    one = script_code()
    assert sorted(one) == ["__main__.Kept", "__main__.mine"]
    assert script_code(unused="2", printed="'other'") == one
    assert script_code(extra="pass  # more") == one
    for change in ({"limit": "8"}, {"factor": "3"}, {"extra": "v += 1"}):
        assert changes(one, script_code(**change)) == ["__main__.mine changed"]
    assert changes(one, script_code(start="1")) == ["__main__.Kept changed"]


def test_the_same_in_every_process() -> None:
    program = "from test_code_fingerprint import script_code; print(sorted(script_code().items()))"
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": _path()},
    )  # fmt: skip
    assert told.stdout == f"1\n{sorted(script_code().items())}\n"


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])


def test_a_program_without_code() -> None:
    program = parse_program("STREAM A (vs BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'b.csv';")
    assert isinstance(program, Program) and program_code(program) == {}
