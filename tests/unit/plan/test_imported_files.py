"""What a file did when IMPORT ran it, it does in every process that gets a function of it."""

import subprocess
import sys
from pathlib import Path

from pyspark import cloudpickle

from weir.script import parse_program

TEXT = """IMPORT 'setup.py'; IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
    B = SELECT f(v) AS w FROM A; OUTPUT B TO 'b.csv';"""
SETUP = "import decimal, json\ndecimal.getcontext().prec = 5\njson.marks = ['setup']\n"
RULES = """
import decimal, json, weir
json.marks.append("rules")

@weir.udf
def f(v: int) -> str:
    return f"{json.marks} {decimal.Decimal(1) / v}"
"""
LOAD = """
import pickle, sys
for _ in range(2):  # it comes with every task, and is run once
    program = pickle.load(open(sys.argv[1], "rb"))
from weir.plan.usercode.code_fingerprint import user_functions
from weir.plan.traversal import ordered_nodes
(function,) = user_functions(ordered_nodes([o.node for o in program.outputs]))
print(function(3))
"""


def test_files_are_run_where_their_functions_go(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(SETUP, encoding="utf-8")
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")
    program = parse_program(TEXT, directory=tmp_path)
    (tmp_path / "setup.py").unlink()
    (tmp_path / "pickled").write_bytes(cloudpickle.dumps(program))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "pickled")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout == "['setup', 'rules'] 0.33333\n", done.stderr


def test_a_file_that_cannot_be_run_there_says_so(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("", encoding="utf-8")
    rules = RULES.replace("json.marks.append", "open('only-here.txt'); [].append")
    (tmp_path / "rules.py").write_text(rules, encoding="utf-8")
    here = tmp_path / "only-here.txt"
    (tmp_path / "rules.py").write_text(rules.replace("only-here.txt", str(here)), encoding="utf-8")
    here.touch()
    pickled = cloudpickle.dumps(parse_program(TEXT, directory=tmp_path))
    here.unlink()
    (tmp_path / "pickled").write_bytes(pickled)
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "pickled")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert "RunError: IMPORT 'rules.py' cannot be run in a worker: FileNotFound" in done.stderr
