"""A socket and a growing folder to their ends on real Spark, the host that reads them killed."""

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

import weir
from commands import finished, wait_for, weir_run
from weir.files.object_store import ObjectStore
from weir.job.status import JobStatus
from weir.job.store_check import verify_store
from weir.job.store_listing import kept_objects

pytestmark = pytest.mark.xdist_group("processes")

PROGRAM = """
STREAM S (t BIGINT, v BIGINT) FROM '{socket}' WITH (vs = t);
STREAM F (t BIGINT, v BIGINT) FROM '{folder}' WITH (vs = t);
Both = SELECT S.v AS s, F.v AS f FROM S INNER JOIN F ON S.v == F.v;
Sums = SELECT SUM(v) AS s, COUNT(*) AS n FROM S WITH TUMBLING(50);
SET strategy = 'checkpoint(200ms)';
OUTPUT S TO 'out/s.parquet';
OUTPUT Both TO 'out/both.parquet';
OUTPUT Sums TO 'out/sums.csv';
"""
ROWS, BATCH, FILE = 3000, 20, 300


def lines(first: int, stop: int) -> bytes:
    return b"".join(json.dumps({"t": i, "v": i % 97}).encode() + b"\n" for i in range(first, stop))


class Sender:
    """Sends rows, as many as it may, to whoever connects, from the first that is not durable."""

    def __init__(self, may: int) -> None:
        self.may = may
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.connections = 0
        self.durable = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while self.durable < ROWS:
            connection, _ = self._server.accept()
            self.connections += 1
            with connection:
                try:
                    self._send(connection)
                except OSError:
                    continue  # whoever read it is gone; the next one says how far it is

    def _send(self, connection: socket.socket) -> None:
        sent, heard = -1, b""
        connection.settimeout(0.02)
        while self.durable < ROWS:
            try:
                data = connection.recv(1000)
                if not data:
                    return
                *whole, heard = (heard + data).split(b"\n")
                self.durable = int(whole[-1]) if whole else self.durable
                sent = self.durable if sent < 0 and whole else sent
            except TimeoutError:
                pass
            if 0 <= sent < self.may:
                stop = min(sent + BATCH, self.may)
                connection.sendall(lines(sent, stop))
                sent = stop


def drop(folder: Path, first: int) -> None:
    """A file appears in the folder, whole."""
    written = folder / f"{first:05}.jsonl"
    written.write_bytes(lines(first, first + FILE))
    written.rename(folder / "in" / written.name)


def pid_of(status: JobStatus, vertex: str) -> int:
    (host,) = [h for h in status.hosts if vertex in h.vertices]
    return host.pid


def test_a_socket_and_a_folder_through_the_loss_of_their_host(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    sender = Sender(may=1000)
    url = f"tcp://127.0.0.1:{sender.port}?until=eof&acks=yes"
    program = PROGRAM.format(socket=url, folder="in/")
    (tmp_path / "live.weir").write_text(program, encoding="utf-8")
    process = weir_run(
        tmp_path, "live.weir", "--runner", "live", "--store", "store", "--hosts", "1"
    )
    try:
        for first in range(0, ROWS // 2, FILE):
            drop(tmp_path, first)
        read = [0, 0]

        def both_past(status: JobStatus, socket_rows: int, folder_rows: int) -> bool:
            sources = [v.inputs for v in status.vertices if v.kind == "source"]
            read[:] = [i[0] if i else 0 for i in sources]
            return read[0] >= socket_rows and read[1] >= folder_rows

        def committed() -> int:
            return weir.read_committed(str(tmp_path / "store"), "S").rows

        status = wait_for(tmp_path, lambda s: both_past(s, 600, 900) and committed() > 0)
        sender.may = 2000  # some of it is on its way when the host dies
        time.sleep(0.1)
        os.kill(pid_of(status, "0.0"), signal.SIGKILL)
        early = weir.read_committed(str(tmp_path / "store"), "S")
        for first in range(ROWS // 2, ROWS, FILE):
            drop(tmp_path, first)
        (tmp_path / "in" / ".end").touch()
        wait_for(tmp_path, lambda s: s.recoveries > 0 and both_past(s, 2000, ROWS))
        kept = kept_objects(ObjectStore(str(tmp_path / "store")))
        sender.may = ROWS
        came = finished(process)
    finally:
        process.kill()
    assert sender.connections >= 2, "it was killed while it was connected"
    assert 0 < early.rows < ROWS and not early.finished
    logs = [k for k in kept if k.kind == "ingress" and "would restart from record 0" not in k.why]
    assert logs, "what lies before the restart is collected"
    store = ObjectStore(str(tmp_path / "store"))
    assert not store.list("ingress/"), "and all of it in the end"
    assert not verify_store(store).damage
    (tmp_path / "s.jsonl").write_bytes(lines(0, ROWS))
    (tmp_path / "out").rename(tmp_path / "came")
    wanted = PROGRAM.format(socket="s.jsonl", folder="in/*.jsonl")
    (tmp_path / "local.weir").write_text(wanted, encoding="utf-8")
    assert finished(weir_run(tmp_path, "local.weir")) == came
    for name in ("s.parquet", "both.parquet", "sums.csv"):
        assert (tmp_path / "came" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    late = weir.read_committed(str(tmp_path / "store"), "S")
    assert late.finished and late.digest == came["S"]
    assert late.table.column("v").to_pylist() == [i % 97 for i in range(ROWS)]
