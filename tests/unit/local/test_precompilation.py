"""What a run lacks is compiled before it begins, at once, and only then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
STREAM A (vs BIGINT, k STRING, v DOUBLE) FROM 'a.jsonl';
S = SELECT k, COUNT(*) AS n, COUNT(DISTINCT v) AS d FROM A GROUP BY k WITH HOPPING(10, 5);
OUTPUT S TO 's.csv';
"""

RUN = f"""
import json, os
from weir.local.file_run import run_files
from weir.local.precompilation import compile_ahead
from weir.loops.code_cache import code_folder
from weir.loops.loop import count_compiled, ready_loops
from weir.script.program import parse_program
program = parse_program({PROGRAM!r})
said = []
compile_ahead(program, said.append)
before = set(os.listdir(code_folder()))
run_files(program)
assert set(os.listdir(code_folder())) == before, "the run compiled these one by one"
print(json.dumps([said, len(before), len(ready_loops()), count_compiled()]))
"""


def run(folder: Path) -> tuple[list[int], int, int, int]:
    # What other runs have left in the folder for temporary files is not this test's.
    environment = os.environ | {"TMPDIR": str(folder), "WEIR_CACHE": str(folder / "loops")}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, files, ready, compiled = json.loads(done.stdout)
    return said, files, ready, compiled


def test_what_a_run_lacks_is_compiled_at_once_and_in_all_processes(tmp_path: Path) -> None:
    rows = [{"vs": vs, "k": "ab"[vs % 2], "v": vs / 2} for vs in (1, 2, 2, 30)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    said, files, ready, compiled = run(tmp_path)
    assert said == [files, 0]
    assert compiled <= files and ready <= files
    assert run(tmp_path) == ([], files, run(tmp_path)[2], 0)  # nothing is missing any more
    (torn, *_) = (tmp_path / "loops").glob("*/events.*")
    torn.write_bytes(b"torn")
    assert run(tmp_path)[3] <= 1  # it is compiled when it is called
