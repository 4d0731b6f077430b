"""Processes that compile loops at once: each loop is one's, they end with the first, one speaks."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="helpers are forks")

COMPILE = """
import os, time
from weir.loops import code_cache, parallel_compilation

class Slow:
    def __init__(self, name):
        self.name = name

    def make_ready(self):
        os.write(1, f"{{os.getpid()}} {{self.name}}\\n".encode())
        code_cache.keep(self.name, b"code")
        time.sleep({seconds})

parallel_compilation._size = lambda loop: 0
parallel_compilation._helpers = lambda count: 2
parallel_compilation.compile_together([Slow(f"loop-{{i}}") for i in range({loops})])
"""


def start(folder: Path, *, loops: int, seconds: float) -> subprocess.Popen[str]:
    (folder / "tmp").mkdir()
    (folder / "file").write_bytes(b"")  # no folder can be made there
    cache = {"WEIR_CACHE": str(folder / "file"), "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        [sys.executable, "-c", COMPILE.format(loops=loops, seconds=seconds)],
        env=os.environ | cache,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_each_loop_is_compiled_once_and_one_process_speaks(tmp_path: Path) -> None:
    out, said = start(tmp_path, loops=300, seconds=0.002).communicate(timeout=60)
    pairs = [line.split() for line in out.splitlines()]
    assert sorted(name for _, name in pairs) == sorted(f"loop-{i}" for i in range(300))
    assert len({pid for pid, _ in pairs}) == 3
    assert said.count("weir: note: compiled loops are kept in") == said.count("\n") == 1


def test_helpers_end_with_the_process_that_they_help(tmp_path: Path) -> None:
    process = start(tmp_path, loops=1000, seconds=0.2)
    assert process.stdout is not None
    pids: set[int] = set()
    try:
        while len(pids) < 3:
            pids.add(int(process.stdout.readline().split()[0]))
        process.kill()
        process.communicate(timeout=10)  # all who could write have ended
    except subprocess.TimeoutExpired:
        for pid in pids - {process.pid}:
            os.kill(pid, signal.SIGKILL)
        raise
    assert [path.name.split("-")[1] for path in (tmp_path / "tmp").iterdir()] == ["loops"]
