"""As much of Kubernetes' API as Spark's driver uses, on loopback; a pod is a process.

    with KubernetesApi(folder) as api:
        spark-submit --master k8s://{api.url} --deploy-mode client …

Contract
1. Pods and config maps that are created are kept, as they were sent. An executor's pod is run as
   Spark's image would do it: with its environment, and the command that its entry point makes.
2. A pod that is deleted is killed. `close` kills all.
3. Whatever else is asked for is not there (404). Watches stay open and tell nothing: the driver
   asks for the list now and then.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from cluster.cluster import SPARK

Thing = dict[str, Any]
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
LISTS = {"pods": "PodList", "configmaps": "ConfigMapList"}
ARGUMENTS = {  # as entrypoint.sh of Spark's image makes them
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


class KubernetesApi:
    """The API server, and the processes of its pods."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.things: dict[tuple[str, str], Thing] = {}
        """What was created, by kind (`pods`) and name."""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        for process in self.processes.values():
            process.kill()
            process.wait()

    def pods(self) -> list[Thing]:
        """The pods of executors."""
        with self._lock:
            return [
                t for (kind, name), t in self.things.items() if kind == "pods" and "exec" in name
            ]

    def add(self, kind: str, thing: Thing) -> Thing:
        name = thing["metadata"]["name"]
        thing["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1", "namespace": "here"}
        thing["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        with self._lock:
            self.things[kind, name] = thing
            if kind == "pods":
                thing["status"] = {"phase": "Running", "podIP": "127.0.0.1"}
                if "containers" in thing.get("spec", {}):
                    self.processes[name] = self._run(name, thing["spec"]["containers"][0])
        return thing

    def _run(self, name: str, container: Thing) -> subprocess.Popen[bytes]:
        fields = {"status.podIP": "127.0.0.1", "metadata.name": name}
        said = {
            v["name"]: v.get("value", fields.get(_field(v), "")) for v in container.get("env", ())
        }
        options = [said[n] for n in sorted(said) if n.startswith("SPARK_JAVA_OPT_")]
        arguments = [word for flag, of in ARGUMENTS.items() for word in (flag, said.get(of, "0"))]
        home = self._folder / name
        home.mkdir()
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                ["java", *options, "-Xmx512m", "-cp", f"{SPARK}/jars/*", BACKEND, *arguments],
                env={**os.environ, **said, "SPARK_HOME": str(SPARK), **_at(home)},
                cwd=home,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def remove(self, kind: str, name: str | None) -> None:
        with self._lock:
            for key in [k for k in self.things if k[0] == kind and name in (None, k[1])]:
                del self.things[key]
                if key[1] in self.processes and kind == "pods":
                    self.processes[key[1]].kill()

    def listed(self, kind: str) -> Thing:
        with self._lock:
            self._look()
            found = [t for (k, _), t in self.things.items() if k == kind]
        head = {"apiVersion": "v1", "kind": LISTS.get(kind, "List")}
        return {**head, "metadata": {"resourceVersion": "1"}, "items": found}

    def _look(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is not None and ("pods", name) in self.things:
                phase = "Failed" if process.returncode else "Succeeded"
                self.things["pods", name]["status"]["phase"] = phase


def _at(home: Path) -> dict[str, str]:
    """Where a pod has volumes of its own."""
    return {"SPARK_LOCAL_DIRS": str(home), "SPARK_CONF_DIR": str(home)}


def _field(variable: Thing) -> str:
    found: str = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
    return found


def _handler(api: KubernetesApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _asked(self) -> tuple[str, str | None, dict[str, list[str]]]:
            parts = urlsplit(self.path)
            found = re.fullmatch(r"/api/v1/namespaces/[^/]+/(\w+)(?:/([^/]+))?", parts.path)
            kind, name = (found[1], found[2]) if found else ("", None)
            return kind, name, parse_qs(parts.query)

        def _answer(self, thing: Thing | None) -> None:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
            body = json.dumps(thing if thing is not None else status).encode()
            self.send_response(200 if thing is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            kind, name, query = self._asked()
            if "Upgrade" in self.headers:  # no web sockets: then it watches over plain HTTP
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif query.get("watch") == ["true"]:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Connection", "close")
                self.end_headers()
                time.sleep(600.0)
            elif name is not None:
                self._answer(api.things.get((kind, name)))
            else:
                self._answer(api.listed(kind) if kind else None)

        def _sent(self) -> Thing:
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b"".join(iter(self._chunk, b""))
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            sent: Thing = json.loads(body or b"{}")
            return sent

        def _chunk(self) -> bytes:
            data = self.rfile.read(int(self.rfile.readline(), 16))
            self.rfile.readline()
            return data

        def do_POST(self) -> None:
            kind, _, _ = self._asked()
            self._answer(api.add(kind, self._sent()))

        def do_PATCH(self) -> None:
            kind, name, _ = self._asked()
            self._sent()
            self._answer(api.things.get((kind, name or "")))

        def do_DELETE(self) -> None:
            kind, name, _ = self._asked()
            self._sent()
            api.remove(kind, name)
            self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    return Handler
