"""What a program's files import from its folder goes with them, and is that program's alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark import cloudpickle

import weir
from weir.errors import ScriptError
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes
from weir.plan.usercode.code_fingerprint import changes, program_code, user_functions
from weir.plan.usercode.functions import ScalarFunction
from weir.script import parse_program

TEXT = """IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
    B = SELECT f(v) AS w FROM A; OUTPUT B TO 'b.csv';"""
RULES = """
import weir
import helper
import pack.part as part
from pack import other
from spread.far import away

@weir.udf
def f(v: int) -> str:
    import lately
    from pack.part import two as second
    return f"{helper.one} {part.two} {second} {other.three} {away()} {lately.four} {v}"
"""
FILES = {
    "rules.py": RULES,
    "helper.py": "one = 1\n",
    "pack/__init__.py": "from . import other\n",
    "pack/part.py": "from .other import three\ntwo = three - 1\n",
    "pack/other.py": "three = 3\n",
    "spread/far.py": "import helper\ndef away():\n    return helper.one + 8\n",
    "lately.py": "four = 4\n",
}
LOAD = """
import pickle, sys
from weir.plan.usercode.code_fingerprint import user_functions
from weir.plan.traversal import ordered_nodes
for path in sys.argv[1:]:
    program = pickle.load(open(path, "rb"))
    (function,) = user_functions(ordered_nodes([o.node for o in program.outputs]))
    print(function(7))
"""


def written(folder: Path, files: Mapping[str, str], program: str = TEXT) -> Program:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return parse_program(program, directory=folder)


def function_of(program: Program) -> ScalarFunction:
    (function,) = user_functions(ordered_nodes([o.node for o in program.outputs]))
    assert isinstance(function, ScalarFunction)
    return function


def called_elsewhere(folder: Path, *programs: Program) -> list[str]:
    """What another process says, one that has none of the files."""
    paths = []
    for number, program in enumerate(programs):
        paths.append(folder / f"pickled-{number}")
        paths[-1].write_bytes(cloudpickle.dumps(program))
    empty = folder / "empty"
    empty.mkdir()
    command = [sys.executable, "-c", LOAD, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=empty)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_modules_of_the_folder_are_there_in_every_process(tmp_path: Path) -> None:
    program = written(tmp_path / "program", FILES)
    assert function_of(program)(7) == "1 2 2 3 9 4 7"
    for name in FILES:
        (tmp_path / "program" / name).unlink()
    assert called_elsewhere(tmp_path, program) == ["1 2 2 3 9 4 7"]


def test_two_programs_have_modules_of_their_own(tmp_path: Path) -> None:
    one = written(tmp_path / "one", FILES)
    other = written(tmp_path / "other", FILES | {"helper.py": "one = 5\n", "lately.py": "four=6"})
    again = written(tmp_path / "one", FILES | {"pack/other.py": "three = 4\n"})
    told = ["1 2 2 3 9 4 7", "5 2 2 3 13 6 7", "1 3 3 4 9 4 7"]
    assert [function_of(p)(7) for p in (one, other, again)] == told
    assert called_elsewhere(tmp_path, one, other, again, one) == [*told, told[0]]
    assert not {"helper", "pack", "spread", "lately"} & sys.modules.keys()


def test_all_files_of_a_program_share_them(tmp_path: Path) -> None:
    files = {
        "rules.py": "import table\ntable.marks.append('rules')\n",
        "more.py": "import weir, table\ntable.marks.append('more')\n"
        "@weir.udf\ndef f(v: int) -> str:\n    return str(table.marks)\n",
        "table.py": "marks = []\n",
    }
    both = TEXT.replace("IMPORT 'rules.py';", "IMPORT 'rules.py'; IMPORT 'more.py';")
    program = written(tmp_path / "one", files, both)
    assert function_of(program)(1) == "['rules', 'more']"
    assert called_elsewhere(tmp_path, program) == ["['rules', 'more']"]


def test_they_are_under_the_fingerprint(tmp_path: Path) -> None:
    one = program_code(written(tmp_path, FILES))
    names = ["helper", "lately", "pack", "pack.other", "pack.part", "rules.py", "spread.far"]
    assert sorted(one) == names
    other = program_code(written(tmp_path, FILES | {"lately.py": "four = 5\n"}))
    assert changes(one, other) == ["lately changed"]


def test_pythons_own_modules_and_installed_ones_are_found_before_a_plain_folder(
    tmp_path: Path,
) -> None:
    """A folder of data may be called as a library, a file may not hide one of Python's own."""
    rules = "import weir, json, numpy\n@weir.udf\ndef f(v: int) -> str:\n"
    rules += "    return json.dumps(int(numpy.int64(v)))\n"
    files = {"rules.py": rules, "json.py": "x = 1\n", "numpy/data.csv": ""}
    program = written(tmp_path, files)
    assert function_of(program)(7) == "7"
    assert sorted(program_code(program)) == ["rules.py"]


def test_what_does_not_travel_is_named_with_who_imports_it(tmp_path: Path) -> None:
    rules = """
import helper
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import hypothesis
try:
    import is_nowhere
except ImportError:
    pass
""" + RULES.replace("helper.one", "1")
    files = FILES | {"rules.py": rules, "helper.py": "import rich.table\none = 1\n"}
    assert dict(written(tmp_path, files).needed) == {"rich": "helper"}


def test_a_program_from_python(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "v": 7}\n', encoding="utf-8")
    (tmp_path / "p.weir").write_text(TEXT, encoding="utf-8")
    weir.run(tmp_path / "p.weir", directory=tmp_path, check=True)
    assert (tmp_path / "b.csv").read_text().splitlines()[1] == "1,2,1 2 2 3 9 4 7"


def test_an_error_in_a_module_is_told_at_the_import(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"'rules.py', line 3: ZeroDivisionError"):
        written(tmp_path, FILES | {"helper.py": "one = 1 // 0\n"})
    with pytest.raises(ScriptError, match=r"line 3: SyntaxError.*\(helper.py, line 2\)"):
        written(tmp_path, FILES | {"helper.py": "one = 1\none = = 2\n"})
