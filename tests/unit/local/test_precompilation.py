"""What a run lacks is guessed without compiling it, and compiled at once."""

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

GUESS = f"""
import json
from weir.loops.code_cache import count_compiled, every_loop, used
from weir.local.file_run import run_files
from weir.local.rehearsal import guessed_needs
from weir.script.program import parse_program
program = parse_program({PROGRAM!r})
guessed = {{(n.name, str(n.args)) for n in guessed_needs(program, 1, many=False)}}
assert not used() and not count_compiled()
assert not any("_compile_for_args" in vars(loop) for loop in every_loop)
run_files(program)
print(json.dumps([sorted(guessed), sorted((n.name, str(n.args)) for n in used())]))
"""

TOGETHER = """
import numpy as np
from weir.loops.dry_runs import compile_together, dry_run
from weir.loops.code_cache import count_compiled, is_kept, on_miss
from weir.events.order_loops import still_tied, tell_apart
def use():
    return tell_apart(np.arange(3), np.ones(2, bool)), still_tied(*[np.zeros(2, np.int64)] * 3)
with dry_run() as found:
    use()
asked = []
def step():
    asked.append(len(found))
    compile_together(list(found))
    assert all(map(is_kept, found))
with on_miss(step, step):
    use()
print(asked, len(found), count_compiled())
"""


def python(folder: Path, code: str, **variables: str) -> str:
    # What other runs have left in the folder for temporary files is not this test's.
    environment = {**os.environ, "TMPDIR": str(folder), **variables}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_a_run_needs_is_guessed_without_compiling(tmp_path: Path) -> None:
    rows = [{"vs": vs, "k": "ab"[vs % 2], "v": vs / 2} for vs in (1, 2, 2, 30)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    guessed, needed = json.loads(python(tmp_path, GUESS))
    called_by_others = {name for name, _ in needed} - {name for name, _ in guessed}
    assert not called_by_others, "the run would compile these one by one"
    assert len(guessed) - len(needed) <= 3, "these would be compiled in vain"


def test_what_is_lacking_is_compiled_at_once_and_in_all_processes(tmp_path: Path) -> None:
    cache = str(tmp_path / "loops")
    asked, found, compiled = python(tmp_path, TOGETHER, WEIR_CACHE=cache).rsplit(" ", 2)
    assert (asked, found) == ("[2]", "2") and int(compiled) <= 2
    asked, _, compiled = python(tmp_path, TOGETHER, WEIR_CACHE=cache).rsplit(" ", 2)
    assert (asked, compiled) == ("[]", "0\n")  # nothing is lacking any more


AGAIN = """
import numpy as np
from weir.loops.dry_runs import dry_run
from weir.loops.code_cache import every_loop
from weir.events.order_loops import sort_within
def use(count):
    groups, values = np.zeros(count, np.int64), np.arange(count)[::-1].copy()
    return sort_within(groups, values).tolist()
expected = use(40)
inner = {loop.py_func.__name__: set(loop.overloads) for loop in every_loop}
assert inner["_insert"] and inner["_sort_run"]
sort_within._reset_overloads()  # as one that was never compiled for such arguments
with dry_run() as found:
    assert use(40) == expected
print(len(found), {loop.py_func.__name__: set(loop.overloads) for loop in every_loop} == {
    **inner, "sort_within": set()}, use(40) == expected)
"""


def test_a_dry_run_reaches_inner_loops_that_are_compiled_already(tmp_path: Path) -> None:
    """They have no entry for Python; a call of it was a crash of the process."""
    cache = str(tmp_path / "loops")
    assert python(tmp_path, AGAIN, WEIR_CACHE=cache).strip() == "1 True True"


ENDLESS = """
import weir.loops.dry_runs as dry
from weir.loops.compiled import compiled
dry.LINES = 1000
@compiled
def endless(n):
    while n >= 0:
        n += 1
    return n
with dry.dry_run():
    try:
        endless(1)
    except dry.TooLong:
        print("broken off")
"""


def test_a_dry_run_that_would_not_end_is_broken_off(tmp_path: Path) -> None:
    assert python(tmp_path, ENDLESS) == "broken off\n"
