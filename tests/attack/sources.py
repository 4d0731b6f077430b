"""Attacks by what comes in from outside: files, growing files, sockets."""

from __future__ import annotations

import json
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from attack.attacks import attack
from commands import END_LIMIT, finished, wait_for, weir_run

LIVE = ("--runner", "live", "--store", "store", "--hosts", "1")
MEMORY = 1 << 30


def program(
    folder: Path, path: str, options: str = "", columns: str = "t BIGINT, v STRING"
) -> None:
    text = f"STREAM A ({columns}) FROM '{path}' WITH (vs = t{options});\n"
    outputs = "OUTPUT A TO 'out.csv';\nOUTPUT BAD OF A TO 'bad.jsonl';\n"
    (folder / "p.weir").write_text(text + outputs)


def lines(first: int, stop: int) -> bytes:
    return b"".join(json.dumps({"t": i, "v": f"{i}"}).encode() + b"\n" for i in range(first, stop))


def failed(process: subprocess.Popen[str], *words: str) -> str:
    """What a run that fails says: one or two lines with these words, no traceback."""
    out, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == 1, (process.returncode, out, err)
    said = err.strip().splitlines()[-1]
    assert "Traceback" not in err, err
    assert all(word in err for word in words), err
    return said[:160]


def largest(folder: Path, *arguments: str) -> int:
    """The most memory that a local run had, once it has ended well. It is the only child of a
    process of its own: what the system counts of children is that of the largest so far."""
    measuring = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-m", "weir.cli", "run", *arguments]
    done = subprocess.run(
        [sys.executable, "-c", measuring, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=END_LIMIT,
    )
    return int(done.stdout.splitlines()[-1]) << 10


def rows(folder: Path, name: str) -> list[str]:
    return (folder / name).read_text().splitlines()


@attack("12.3")
def a_last_line_without_a_line_end(folder: Path) -> str:
    """A last line without a line end, and a torn one, live and locally."""
    answers = {}
    for last in (b'{"t": 1004, "v": "1004"}', b'{"t": 1004, "v"'):
        (folder / "a.jsonl").write_bytes(lines(0, 1004) + last)
        (folder / "a.jsonl.end").touch()
        for runner, path, options in (("local", "a.jsonl", ()), ("live", "tail://a.jsonl", LIVE)):
            program(folder, path, ", bad = 'skip'")
            digests = finished(weir_run(folder, "p.weir", *options))
            bad = [json.loads(line)["reason"] for line in rows(folder, "bad.jsonl")]
            answers[runner] = digests["A"], len(rows(folder, "out.csv")) - 1, bad
            subprocess.run(["rm", "-rf", str(folder / "store")], check=True)
        assert answers["local"] == answers["live"], answers
    return f"the same rows: {answers['live'][1]} and {len(answers['live'][2])} bad one"


@attack("12.4")
def copytruncate_between_two_looks(folder: Path) -> str:
    """A growing file is truncated and rewritten longer, while it is read and while it is not."""
    (folder / "a.jsonl").write_bytes(lines(0, 1000))
    program(folder, "tail://a.jsonl")
    process = weir_run(folder, "p.weir", *LIVE)
    try:
        wait_for(folder, lambda status: status.events >= 1000)
        (folder / "a.jsonl").write_bytes(lines(5000, 9000))
        said = failed(process, "a.jsonl", "truncated")
    finally:
        process.kill()
    again = failed(weir_run(folder, "p.weir", *LIVE, "--resume"), "a.jsonl", "--resume")
    (folder / "a.jsonl").write_bytes(lines(0, 2000))
    (folder / "a.jsonl.end").touch()
    finished(weir_run(folder, "p.weir", *LIVE, "--resume"))
    assert len(rows(folder, "out.csv")) == 2001
    return f"{said} / after --resume: {again}"


@attack("12.9")
def an_arrow_file_with_crafted_offsets(folder: Path) -> str:
    """An Arrow file whose offsets point beyond its end."""
    table = pa.table({"t": list(range(9000)), "v": [f"text {i:05}" for i in range(9000)]})
    with pa.ipc.new_file(folder / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    data = bytearray((folder / "a.arrow").read_bytes())
    at = data.index(struct.pack("<3i", 0, 10, 20))
    data[at + 400 : at + 404] = struct.pack("<i", 2**31 - 8)
    (folder / "a.arrow").write_bytes(data)
    program(folder, "a.arrow")
    return failed(weir_run(folder, "p.weir"), "a.arrow")


@attack("12.9")
def parquet_files_with_random_edits(folder: Path) -> str:
    """300 random edits of a Parquet file of ours: the same rows, or an error that names it."""
    (folder / "a.jsonl").write_bytes(lines(0, 3000))
    (folder / "p.weir").write_text(
        "STREAM A (t BIGINT, v STRING) FROM 'a.jsonl' WITH (vs = t);\nOUTPUT A TO 'b.parquet';\n"
    )
    finished(weir_run(folder, "p.weir"))
    whole = (folder / "b.parquet").read_bytes()
    script = Path(__file__).with_name("read_each.py")
    rng = random.Random(0)
    for i in range(300):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (folder / f"{i:03}.parquet").write_bytes(data)
    (folder / "whole.parquet").write_bytes(whole)
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout)
    assert counts["other"] == 0 and counts["refused"] > 200, counts
    assert len(pq.read_table(folder / "whole.parquet")) == 3000
    return f"{counts['refused']} refused with the file's name, {counts['same']} with the same rows"


@attack("12.10")
def one_stray_quote(folder: Path) -> str:
    """25 MB of CSV behind one stray quote."""
    (folder / "a.csv").write_bytes(b't,v\n1,a\n2,"b\n' + b"3,ccccccccccccccccccccc\n" * 1_050_000)
    program(folder, "a.csv", ", bad = 'skip'")
    began = time.monotonic()
    memory = largest(folder, "p.weir")
    assert memory < MEMORY, memory
    assert len(rows(folder, "bad.jsonl")) == 1
    return f"one bad row, {memory >> 20} MB, {time.monotonic() - began:.0f} s"


@attack("12.10")
def json_of_ten_thousand_levels(folder: Path) -> str:
    """10 000 levels of JSON in a field that nobody declared."""
    deep = b'{"t": 1, "v": "x", "more": ' + b"[" * 10_000 + b"]" * 10_000 + b"}\n"
    (folder / "a.jsonl").write_bytes(lines(0, 1) + deep + lines(2, 4))
    program(folder, "a.jsonl", ", bad = 'skip'")
    finished(weir_run(folder, "p.weir"))
    assert (len(rows(folder, "out.csv")), len(rows(folder, "bad.jsonl"))) == (4, 1)
    program(folder, "a.jsonl")
    return failed(weir_run(folder, "p.weir"), "a.jsonl", "line 2", "nested deeper")


@attack("12.10")
def a_line_without_end_on_a_socket(folder: Path) -> str:
    """300 MB on a socket without a line end, then good rows."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(lines(0, 5))
                for _ in range(300):
                    connection.sendall(b"x" * (1 << 20))
                connection.sendall(b"\n" + lines(5, 9))

        threading.Thread(target=serve, daemon=True).start()
        port = server.getsockname()[1]
        program(folder, f"tcp://127.0.0.1:{port}?until=eof", ", bad = 'skip', max_record = '1MB'")
        began = time.monotonic()
        finished(weir_run(folder, "p.weir", *LIVE))
    logged = sum(f.stat().st_size for f in (folder / "store").rglob("*") if f.is_file())
    assert (len(rows(folder, "out.csv")), len(rows(folder, "bad.jsonl"))) == (10, 1)
    assert logged < 32 << 20, logged
    return f"9 rows, one bad one, {logged >> 20} MB in the store, {time.monotonic() - began:.0f} s"
