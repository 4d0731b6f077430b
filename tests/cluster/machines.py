"""Machines in a box: network namespaces of one Linux machine, each with an address and a name.

    with Network() as network:
        head, worker = network.machine("head"), network.machine("w1")
        worker.run("hostname", "-I")

Contract
1. Every machine has a network namespace of its own, joined to the others by a bridge in one more
   namespace, so nothing of the real machine's network changes. It has its own host name, and an
   /etc/hosts as Debian writes it: its own name is 127.0.1.1 there, and nobody else is named.
2. `Machine.start` starts a process there, in a session of its own; `Machine.lose` is a power cut:
   its link goes down first, so that nobody is told by a closed connection, and then everything
   that runs there is killed.
3. Links can be cut and mended, both ways or one way, to all or to one other machine; they can lose
   packets, be narrow, and be long (`delays.py`).
4. `close` kills what runs and removes every namespace.

`why_not()` says why this machine cannot have them (it needs root, iproute2 and nftables).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

PREFIX = "10.77.0"
PREFIX6 = "fd77::"
_HOSTS = """\
127.0.0.1 localhost
127.0.1.1 {name}
::1 localhost ip6-localhost ip6-loopback
"""


def why_not() -> str:
    """Say why network namespaces cannot be made here; empty if they can."""
    missing = [tool for tool in ("ip", "nft", "unshare") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: iproute2, nftables, util-linux)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"weir{os.getpid()}-try"
    if said := _try("ip", "netns", "add", name):
        return f"ip netns add: {said}"
    return _try("ip", "netns", "del", name)


def _try(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def _do(*command: str) -> None:
    if said := _try(*command):
        raise RuntimeError(f"{' '.join(command)}: {said}")


@dataclass
class Machine:
    """A network namespace with an address, and the processes that were started in it."""

    name: str
    namespace: str
    address: str
    address6: str
    bridge: str
    """The namespace of the bridge, in which the other end of its link is."""
    own: dict[Path, str] = field(default_factory=dict)
    """Folders that are this machine's own, with their sizes (as in `10m`): what others have there
    is not here. They are empty whenever a process is started."""
    env: dict[str, str] = field(default_factory=dict)
    """What the environment of processes there has besides that of this one."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def link(self) -> str:
        """The name of the link's end at the bridge."""
        return f"to-{self.name}"

    def command(self, *command: str) -> tuple[str, ...]:
        """Return the command that runs a command on this machine."""
        mounts = "".join(
            f"mount -t tmpfs -o size={size} own {path} && " for path, size in self.own.items()
        )
        script = f'hostname {self.name} && {mounts}exec "$@"'
        named = ("unshare", "--uts", "--mount", "sh", "-c", script, "sh")
        return ("ip", "netns", "exec", self.namespace, *named, *command)

    def run(
        self, *command: str, env: Mapping[str, str] | None = None, timeout: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command here to its end."""
        return subprocess.run(
            self.command(*command), env=env, capture_output=True, text=True, timeout=timeout
        )

    def start(
        self,
        *command: str,
        log: IO[bytes] | int,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a process here; what it says goes to `log`."""
        process = subprocess.Popen(
            self.command(*command),
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def pids(self) -> list[int]:
        """List the processes that run here."""
        done = subprocess.run(
            ("ip", "netns", "pids", self.namespace), capture_output=True, text=True
        )
        return [int(pid) for pid in done.stdout.split()]

    def lose(self) -> None:
        """Cut the power: the link is dead, and then all that runs here."""
        self.cut()
        self.kill()

    def kill(self) -> None:
        """Kill all that runs here."""
        while pids := self.pids():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            for process in self.processes:
                process.poll()
        for process in self.processes:
            process.wait()
        self.processes.clear()

    # --- the link ----------------------------------------------------------------------------

    def cut(self) -> None:
        """Take the link down: nothing comes in or goes out, and nobody is told."""
        _do("ip", "-n", self.bridge, "link", "set", self.link, "nomaster")

    def mend(self) -> None:
        """Put the link up again, and end whatever was dropped."""
        _do("ip", "-n", self.bridge, "link", "set", self.link, "master", "br0")
        _try("ip", "netns", "exec", self.namespace, "nft", "delete", "table", "inet", "faults")

    def drop(self, *rules: str) -> None:
        """Drop packets that come in by nftables' rules, as in `ip saddr 10.77.0.3`."""
        lines = "\n".join(f"    {rule} drop" for rule in rules)
        text = (
            "table inet faults {\n  chain come {\n    type filter hook input priority 0;\n"
            f"{lines}\n  }}\n}}\n"
        )
        done = subprocess.run(
            ("ip", "netns", "exec", self.namespace, "nft", "-f", "-"),
            input=text,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"nft: {done.stderr.strip()}")

    def limit(self, rate: str) -> None:
        """Let the link carry so much each way, as in `10mbit`."""
        shape = ("root", "tbf", "rate", rate, "burst", "64kb", "latency", "400ms")
        _do("ip", "netns", "exec", self.namespace, "tc", "qdisc", "replace", "dev", "eth0", *shape)
        _do("ip", "netns", "exec", self.bridge, "tc", "qdisc", "replace", "dev", self.link, *shape)

    def delay(self, mean: float, jitter: float) -> None:
        """Replace the link by one on which what is sent takes so many seconds, more or less; to be
        called before anything runs here."""
        _do("ip", "-n", self.namespace, "link", "del", "eth0")
        forwarder = str(Path(__file__).with_name("delays.py"))
        arguments = (self.bridge, self.link, str(mean), str(jitter))
        self.start(sys.executable, forwarder, *arguments, log=subprocess.DEVNULL)
        until = time.monotonic() + 10.0
        while _try("ip", "-n", self.bridge, "link", "show", self.link):
            if time.monotonic() > until:
                raise RuntimeError(f"{self.name}: the delayed link does not come")
            time.sleep(0.02)
        self.join()

    def join(self) -> None:
        """Give the link's ends their places: an address here, and the bridge there."""
        _do("ip", "-n", self.bridge, "link", "set", self.link, "master", "br0", "up")
        inside = ("ip", "-n", self.namespace)
        _do(*inside, "link", "set", "lo", "up")
        _do(*inside, "address", "add", f"{self.address}/24", "dev", "eth0")
        _do(*inside, "address", "add", f"{self.address6}/64", "dev", "eth0", "nodad")
        _do(*inside, "link", "set", "eth0", "up")


class Network:
    """Makes machines that reach each other over a bridge, and removes them in the end."""

    def __init__(self) -> None:
        self._prefix = f"weir{os.getpid()}"
        self.machines: dict[str, Machine] = {}
        self._bridge = f"{self._prefix}-net"
        _do("ip", "netns", "add", self._bridge)
        _do("ip", "-n", self._bridge, "link", "add", "br0", "type", "bridge")
        _do("ip", "-n", self._bridge, "link", "set", "br0", "up")

    def machine(self, name: str) -> Machine:
        """Make a machine of this name, with the next address."""
        number = len(self.machines) + 1
        namespace = f"{self._prefix}-{name}"
        made = Machine(name, namespace, f"{PREFIX}.{number}", f"{PREFIX6}{number}", self._bridge)
        hosts = Path("/etc/netns", namespace, "hosts")  # `ip netns exec` mounts it at /etc/hosts
        hosts.parent.mkdir(parents=True)
        hosts.write_text(_HOSTS.format(name=name), encoding="utf-8")
        _do("ip", "netns", "add", namespace)
        self.machines[name] = made
        peer = ("peer", "name", "eth0", "netns", namespace)
        _do("ip", "-n", self._bridge, "link", "add", made.link, "type", "veth", *peer)
        made.join()
        return made

    def close(self) -> None:
        for made in self.machines.values():
            made.kill()
        for namespace in (*(m.namespace for m in self.machines.values()), self._bridge):
            _try("ip", "netns", "del", namespace)
            shutil.rmtree(Path("/etc/netns", namespace), ignore_errors=True)


@contextmanager
def network() -> Iterator[Network]:
    """Make a network, and remove it in the end."""
    made = Network()
    try:
        yield made
    finally:
        made.close()
