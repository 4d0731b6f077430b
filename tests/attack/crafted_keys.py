"""Attacks by the keys of rows: two that are to be one, many that are to be slow."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from attack.attacks import attack
from attack.key_collisions import crowded_numbers, find_collision
from commands import END_LIMIT

PROGRAM = """
STREAM A (vs BIGINT, a BIGINT, b BIGINT) FROM 'a.jsonl' WITH (vs = vs);
Counts = SELECT a, b, COUNT(*) AS n FROM A GROUP BY a, b WITH TUMBLING(10);
Once = SELECT DISTINCT a, b FROM A;
OUTPUT Counts TO 'counts.jsonl';
OUTPUT Once TO 'once.jsonl';
"""
CROWD = """
STREAM A (vs BIGINT, a BIGINT) FROM 'a.jsonl' WITH (vs = vs);
Counts = SELECT a, COUNT(*) AS n FROM A GROUP BY a WITH TUMBLING(10);
OUTPUT Counts TO 'counts.parquet';
"""


def _run(folder: Path, program: str, rows: Iterable[dict[str, int]]) -> float:
    """Run a program in a process of its own; return the CPU seconds that it took."""
    (folder / "p.weir").write_text(program, encoding="utf-8")
    with (folder / "a.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "weir.cli", "run", "p.weir"],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=END_LIMIT,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@attack("24.2")
def keys_of_one_stable_hash(folder: Path) -> str:
    """Two (BIGINT, BIGINT) keys of one stable hash, another pair each time."""
    keys = find_collision(random.Random().getrandbits(32))
    _run(folder, PROGRAM, ({"vs": 1, "a": a, "b": b} for a, b in keys))
    for name in ("counts", "once"):
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        assert {(row["a"], row["b"]) for row in rows} == set(keys), rows
        assert all(row.get("n", 1) == 1 for row in rows), rows
    return f"{keys[0]} and {keys[1]} are two"


@attack("24.2")
def numbers_of_one_slot(folder: Path) -> str:
    """240 000 numbers whose stable hashes end in the same twenty bits."""
    count = 240_000
    numbers = np.random.default_rng(1).integers(-(2**63), 2**63, count)
    seconds = []
    for keys in (numbers, numbers, crowded_numbers(count)):  # the first compiles what is missing
        seconds.append(_run(folder, CROWD, ({"vs": 1, "a": a} for a in keys.tolist())))
    assert seconds[2] < 1.5 * seconds[1], seconds
    return f"{seconds[2]:.1f} s of CPU, random ones {seconds[1]:.1f} s"
