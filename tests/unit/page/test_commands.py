"""`weir ui`, and what `weir run` says to `--ui` and `--metrics`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from hostile import invoke
from simulated_store import SimulatedStore


def test_the_page_is_served_until_ctrl_c(tmp_path: Path) -> None:
    """And a browser is told of it without the token in its command line."""
    asked, temporary = tmp_path / "asked", tmp_path / "temporary"
    temporary.mkdir()
    browser = tmp_path / "browser.py"
    text = """
import pathlib, sys, urllib.parse
file = pathlib.Path(urllib.parse.urlsplit(sys.argv[2]).path)
assert not file.parent.stat().st_mode & 0o077
pathlib.Path(sys.argv[1]).write_text(" ".join(sys.argv) + chr(10) + file.read_text())
"""
    browser.write_text(text, encoding="utf-8")
    env = {
        **os.environ,
        "TMPDIR": str(temporary),
        "BROWSER": f"{sys.executable} {browser} {asked} %s",
    }
    job = SimulatedStore(tmp_path, seconds=2)
    job.pass_second()
    command = [sys.executable, "-m", "weir.cli", "ui", job.store.location, "--open"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        address, token = process.stdout.readline().decode().strip().split("#token=")
        request = urllib.request.Request(f"{address}view")
        request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["status"]["state"] in ("starting", "running")
        until = time.monotonic() + 30
        while not asked.exists() or not asked.read_text(encoding="utf-8"):
            assert time.monotonic() < until
            time.sleep(0.05)
        line, page = asked.read_text(encoding="utf-8").split("\n", 1)
        assert token not in line and f"url={address}#token={token}" in page
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == b"weir: interrupted\n"
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("option", [["--ui"], ["--metrics", "9464"]])
def test_a_local_run_has_no_page(tmp_path: Path, option: list[str]) -> None:
    ended, _, err = invoke(["run", str(tmp_path / "p.weir"), *option])
    assert (ended, err) == (2, f"weir: error: {option[0]} belongs to --runner live\n")


def test_an_address_for_metrics_is_checked_before_the_store_is_taken(tmp_path: Path) -> None:
    program = tmp_path / "p.weir"
    program.write_text(
        "STREAM A (vs BIGINT, ve BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'b.csv';", encoding="utf-8"
    )
    store = tmp_path / "store"
    ended, _, err = invoke(
        ["run", str(program), "--runner", "live", "--store", str(store), "--metrics", "nowhere"]
    )
    assert ended == 2 and "--metrics takes PORT or HOST:PORT, not 'nowhere'" in err
    assert not store.exists()


def test_where_no_job_is_there_is_no_page(tmp_path: Path) -> None:
    ended, _, err = invoke(["ui", str(tmp_path)])
    assert ended == 2 and "there is no live job" in err
