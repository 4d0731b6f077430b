"""Attacks on what listens: large requests, garbage, wrong secrets, broken peers; and on the script.

Without TLS, hosts and manager of a local master listen at sockets in a folder, and at no port.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
from pyarrow import flight

from attack.attacks import attack
from certificates import certificate
from commands import END_LIMIT, finished, wait_for, weir_run
from machine.jobs import report
from weir.job.messages import VertexReport
from weir.job.status import JobStatus
from weir.spark.live.link_messages import Bring, Want, pack_hello

PROGRAM = """
STREAM R (t BIGINT, value BIGINT, k BIGINT) FROM 'rate://2000?rows=60000&keys=5' WITH (vs = t);
Sums = SELECT k, SUM(value) AS s FROM R GROUP BY k WITH TUMBLING(1s);
OUTPUT Sums TO 'sums.csv';
"""
LIVE = ("p.weir", "--runner", "live", "--store", "store", "--parallelism", "2")
LARGE = 900 << 20
ALLOWED = 600 << 20
"""By how much the manager may grow in all: a job of this size takes some 250 MB."""


def _prepared(folder: Path) -> dict[str, str]:
    """The program in the folder, and what it gives."""
    (folder / "p.weir").write_text(PROGRAM, "utf-8")
    return finished(weir_run(folder, "p.weir"))


def _is_running(status: JobStatus) -> bool:
    return status.state == "running" and status.events > 2000


def _ended_well(process: subprocess.Popen[str], wanted: dict[str, str]) -> None:
    out, err = process.communicate(timeout=END_LIMIT)
    assert process.returncode == 0, err
    # Spark's own workers may complain of one another when Spark ends.
    assert not re.search(r'File ".*/weir/', err) and "SSL" not in err, err
    found = {o["name"]: o["digest"] for o in msgspec.json.decode(out)["outputs"]}
    assert found == wanted


def _peak(pid: int) -> int:
    """The most memory that a process had."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _ports(pid: int) -> Iterator[int]:
    """Those at which a process listens."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
        except FileNotFoundError:
            continue
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text("utf-8").splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and rest[5] in inodes:
                yield int(local.split(":")[1], 16)


def _speaks_tls(port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection(("127.0.0.1", port), 2) as plain:
            plain.settimeout(2)
            context.wrap_socket(plain).close()
    except OSError:
        return False
    return True


def _is_refused(url: str, body: pa.Buffer, **certificates: bytes) -> None:
    client = flight.FlightClient(url, **certificates)
    options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer guessed")], timeout=4.0)
    try:
        list(client.do_action(flight.Action("report", body), options))
    except (flight.FlightError, pa.ArrowException):
        return
    raise AssertionError("it was answered")


def _throw(port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 5) as thrown:
        thrown.settimeout(0.5)
        try:
            thrown.sendall(data)
            thrown.recv(100)
        except OSError:
            return


GARBAGE = (
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100_000,
    b"\x16\x03\x01\xff\xff" + bytes(70_000),
    os.urandom(1 << 20),
)


@attack("12.12")
def large_requests_and_garbage_at_a_port_with_tls(folder: Path) -> str:
    """Large requests without a certificate or the secret, and garbage, at a port with TLS."""
    wanted = _prepared(folder)
    cert, key = certificate(folder, "job")
    other_cert, other_key = certificate(folder, "other")
    process = weir_run(folder, *LIVE, "--tls-cert", str(cert), "--tls-key", str(key))
    try:
        status = wait_for(folder, _is_running)
        ports = [p for p in _ports(process.pid) if _speaks_tls(p)]
        assert len(ports) == 1, "the manager's"
        ports += [int(h.address.rsplit(":", 1)[1]) for h in status.hosts]
        before = _peak(process.pid)
        root = {"tls_root_certs": cert.read_bytes()}
        others = {"cert_chain": other_cert.read_bytes(), "private_key": other_key.read_bytes()}
        mine = {"cert_chain": cert.read_bytes(), "private_key": key.read_bytes()}
        large = pa.py_buffer(bytes(LARGE))
        for given in ({}, others):
            url = f"grpc+tls://127.0.0.1:{ports[0]}"
            threads = [
                threading.Thread(target=_is_refused, args=(url, large), kwargs=root | given)
                for _ in range(3)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        _is_refused(url, pa.py_buffer(b"x" * 1000), **root, **mine)
        for port in ports:
            for data in GARBAGE:
                _throw(port, data)
        waiting = [socket.create_connection(("127.0.0.1", ports[0])) for _ in range(200)]
        grown = _peak(process.pid) - before
        assert grown < ALLOWED, f"the manager grew by {grown >> 20} MB"
        _ended_well(process, wanted)
        for silent in waiting:
            silent.close()
    finally:
        process.kill()
    return f"refused before anything was read; the manager grew by {grown >> 20} MB"


@attack("12.12")
def no_port_on_a_local_master(folder: Path) -> str:
    """Somebody else on the machine looks for a way in to a job without TLS."""
    wanted = _prepared(folder)
    process = weir_run(folder, *LIVE)
    try:
        status = wait_for(folder, _is_running)
        for host in status.hosts:
            scheme, _, path = host.address.partition("://")
            assert scheme == "grpc+unix", host.address
            where = Path(path).parent
            assert stat.S_IMODE(where.stat().st_mode) == 0o700
            assert where.stat().st_uid == os.getuid()
            if os.getuid() == 0:  # others can be tried
                tried = subprocess.run(
                    ["/bin/ls", path], user=65534, capture_output=True, text=True, check=False
                )
                assert "Permission denied" in tried.stderr, tried
        _ended_well(process, wanted)
        assert not where.exists(), "its sockets went with it"
    finally:
        process.kill()
    return "sockets that only the job's user can reach, gone with the job"


KNOWN_SECRET = """
import secrets
secrets.token_hex = lambda size=32: "ab" * size
from weir.cli import app
app()
"""


@attack("12.12")
def a_broken_peer_with_the_secret(folder: Path) -> str:
    """A peer that knows the secret sends garbage, unknown actions, bogus sessions and wishes."""
    wanted = _prepared(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", KNOWN_SECRET, "run", *LIVE, "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        status = wait_for(folder, _is_running)
        hosts = {h.address for h in status.hosts}
        sockets = Path(next(iter(hosts)).removeprefix("grpc+unix://")).parent
        (manager,) = {f"grpc+unix://{path}" for path in sockets.iterdir()} - hosts
        before = _peak(process.pid)
        _bother_manager(manager)
        for host in hosts:
            _bother_host(host)
        grown = _peak(process.pid) - before
        assert grown < ALLOWED, f"the manager grew by {grown >> 20} MB"
        _ended_well(process, wanted)
    finally:
        process.kill()
    return "each was refused with its reason, and the job went on"


_SECRET = flight.FlightCallOptions(
    headers=[(b"authorization", b"Bearer " + b"ab" * 32)], timeout=10.0
)


def _bother_manager(url: str) -> None:
    client = flight.FlightClient(url)
    said = [
        ("report", b""),
        ("report", b"\xc1"),
        ("report", b"\x81\xa1z" + b"\x91" * 100_000),
        ("report", msgspec.msgpack.encode(report("x", 1, VertexReport("9.9", 1, "running")))),
        ("report", msgspec.msgpack.encode({"session": 3})),
        ("nothing", b""),
        ("", b"x"),
    ]
    for name, body in said:
        try:
            list(client.do_action(flight.Action(name, body), _SECRET))
        except flight.FlightServerError as error:
            assert "Traceback" not in str(error), error
            continue
        raise AssertionError(f"{name!r} {body[:20]!r} was answered")
    for number in range(200):  # these could be hosts: they are heard, and lost
        body = msgspec.msgpack.encode(report(f"bogus-{number}", 1))
        list(client.do_action(flight.Action("report", body), _SECRET))


def _bother_host(url: str) -> None:
    client = flight.FlightClient(url)
    hello = pack_hello("grpc://nobody:1")
    said = (
        (b"", b""),
        (b"\x99", b""),
        (hello, b""),
        (hello, b"\xc1"),
        (hello, b"\x91" * 100_000),
        (hello, msgspec.msgpack.encode([Want(-5, "0.0/0", -5, 1)])),
        (hello, msgspec.msgpack.encode([Bring(1, 2, 3, 4, 5)])),
    )
    for command, words in said:
        descriptor = flight.FlightDescriptor.for_command(command)
        writer, reader = client.do_exchange(descriptor, _SECRET)
        try:
            if command == hello:
                assert reader.read_chunk().app_metadata.to_pybytes() == b"\x90", "it stands"
                writer.write_metadata(words)
            reader.read_chunk()
            raise AssertionError(f"{command!r}, {words[:20]!r} was answered")
        except (flight.FlightServerError, StopIteration) as error:
            assert "Traceback" not in str(error), error
        reader.cancel()
        try:
            writer.close()
        except (flight.FlightError, pa.ArrowException):
            continue


A = "STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.csv';\n"
MONSTERS = {
    "parentheses": A + "O = SELECT " + "(" * 100_000 + "v" + ")" * 100_000 + " AS w FROM A;",
    "a long sum": A + "O = SELECT v" + " + v" * 300 + " AS w FROM A; OUTPUT O TO 'o.csv';",
    "many joins": A
    + "O = SELECT A.k AS k FROM A"
    + "".join(f" JOIN A AS A{i} ON A.k = A{i}.k" for i in range(2000))
    + "; OUTPUT O TO 'o.csv';",
    "unions of unions": A
    + "B0 = SELECT * FROM A;\n"
    + "".join(
        f"B{i} = SELECT * FROM B{i - 1} UNION ALL SELECT * FROM B{i - 1};\n" for i in range(1, 40)
    )
    + "OUTPUT B39 TO 'o.csv';",
    "streams in a row": A
    + "B0 = SELECT * FROM A;\n"
    + "".join(
        f"B{i} = SELECT k, SUM(v) AS v FROM B{i - 1} GROUP BY k WITH TUMBLING(5);\n"
        for i in range(1, 2000)
    )
    + "OUTPUT B1999 TO 'o.csv';",
    "a long literal": A + "O = SELECT " + "9" * 1_000_000 + " AS w FROM A;",
    "many vertices": A + "O = SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 999999999 AS 'p' "
    "GROUP BY k WITH TUMBLING(5); OUTPUT O TO 'o.csv';",
    "a NUL in a path": A + "OUTPUT A TO 'o\0.csv';",
    "what a terminal obeys": A + "O = SELECT \x1b[2J FROM A;",
}


@attack("12.12")
def programs_that_are_too_large(folder: Path) -> str:
    """Programs that are too large or too deep, and odd characters."""
    (folder / "a.csv").write_text("vs,k,v\n1,a,2\n", "utf-8")
    for name, text in MONSTERS.items():
        (folder / "p.weir").write_text(text, "utf-8")
        for command in ("explain", "run"):
            done = subprocess.run(
                [sys.executable, "-m", "weir.cli", command, "p.weir"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode in (1, 2), (name, done.stdout[-500:], done.stderr[-500:])
            assert "Traceback" not in done.stderr and len(done.stderr) < 5000, (name, done.stderr)
            assert "line " in done.stderr and "\x1b[2J" not in done.stderr, (name, done.stderr)
    return f"{len(MONSTERS)} of them refused, each with its place"
