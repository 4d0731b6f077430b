"""User code in the command's process: what it prints, threads that it leaves, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOUD = """
import os, sys, threading, weir

print("at import")
os.write(1, b"below Python\\n")

def forever():
    while True:
        threading.Event().wait(1)

@weir.udf
def loud(v: int) -> int:
    print("called", v)
    sys.__stdout__.write("aside\\n")
    os.system("echo from a process")
    if v == 1:
        threading.Thread(target=forever).start()
    return v

@weir.udf
def ends(v: int) -> int:
    threading.Thread(target=forever).start()
    sys.exit(0)
"""


def run(folder: Path, function: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "rules.py").write_text(LOUD, encoding="utf-8")
    (folder / "a.jsonl").write_text('{"vs": 1, "v": 1}\n{"vs": 2, "v": 2}\n', encoding="utf-8")
    (folder / "p.weir").write_text(
        "IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl'; "
        f"B = SELECT {function}(v) AS v FROM A; OUTPUT B TO 'b.csv';",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "weir.cli", "run", "p.weir", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_prints_and_threads_change_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "loud", "--json", "--check")
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    assert json.loads(line)["outputs"][0]["rows"] == 2
    for text in ("at import", "below Python", "called 1", "aside", "from a process"):
        assert text in done.stderr


def test_a_function_does_not_end_the_command(tmp_path: Path) -> None:
    done = run(tmp_path, "ends", "--json")
    assert done.returncode == 1 and done.stdout == ""
    assert "ends (rules.py:" in done.stderr and "SystemExit: 0" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "b.csv").exists()
