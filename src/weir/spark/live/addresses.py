"""Where the manager and the hosts of a live job listen, and by what name others reach them.

Rules
1. The manager listens where Spark's driver does (`spark.driver.bindAddress`), and is dialled by the
   driver's name (`spark.driver.host`). Through Spark Connect the manager is in the client, which
   Spark does not dial: there it has the address that this machine uses towards the server.
2. A host listens at the address that its machine uses towards the manager, or at SPARK_LOCAL_IP,
   which its executor listens at too.
3. Settings say otherwise (`AddressSettings`): in the program, on the command line, in Python, or as
   `spark.weir.NAME`.
4. On a local master nothing is reached from elsewhere: all listen at sockets in a folder that only
   this user can enter, or at the loopback address where that cannot be.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import random
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from weir.errors import RunError
from weir.plan.program import Program
from weir.plan.settings import ADDRESSES

LOOPBACK = "127.0.0.1"
_FOLDER = re.compile(r"[\w./~-]{1,64}", re.ASCII)
"""The folders for sockets: the name of a socket has about 100 characters at most, and is part of a
URL, from which Arrow and gRPC read other characters in different ways."""
_ANY_PORT = (0, 0)
_DISCARD = 9
"""The port of a probe, which sends nothing."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Says where a server listens: at an address of its machine, or at a socket in a folder."""

    bind: str
    """The address, or the folder (which begins with `/`)."""
    name: str = ""
    """The address or the name by which others reach it; empty: `bind`."""
    ports: tuple[int, int] = _ANY_PORT
    """The first and the last port that it may use; 0: any free one."""

    @property
    def in_folder(self) -> bool:
        return self.bind.startswith("/")

    def url(self, scheme: str, port: int) -> str:
        return f"{scheme}://{bracketed(self.name or self.bind)}:{port}"

    def candidates(self) -> list[int]:
        """List the ports to try, in an order in which servers of one machine seldom meet."""
        first, last = self.ports
        ports = list(range(first, last + 1))
        start = random.randrange(len(ports))
        return ports[start:] + ports[:start]


@dataclass(frozen=True, slots=True)
class AddressSettings:
    """The addresses that were asked for; None means the module's rules."""

    manager_address: str | None = None
    """By which name or address hosts dial the manager."""
    manager_bind: str | None = None
    """The address of its machine at which the manager listens."""
    host_address: str | None = None
    """A network (10.1.0.0/16): each host is dialled at its machine's address there."""
    host_bind: str | None = None
    """The address at which every host listens, as in 0.0.0.0."""
    ports: tuple[int, int] = _ANY_PORT
    """The first and the last port that manager and hosts may listen at."""


def address_settings(program: Program, setting: Callable[[str, str], str]) -> AddressSettings:
    """Read the addresses that a program sets, or else Spark's configuration."""
    said = dict(program.settings)
    addresses: dict[str, object] = {}
    for name, read in ADDRESSES.items():
        text = str(said.get(name) or setting(f"spark.weir.{name}", ""))
        if text:
            addresses[name] = read(text)
    return AddressSettings(**addresses)  # type: ignore[arg-type]  # `ADDRESSES` has a reader for each


@contextmanager
def listening(
    setting: Callable[[str, str], str], asked: AddressSettings, *, tls: bool, connect: str
) -> Iterator[tuple[Endpoint, Endpoint | None]]:
    """Choose where the manager listens, and where hosts do (None: each finds its own address on its
    machine). A folder for sockets is removed in the end.

    `connect` is the machine of a server of Spark Connect; empty: Spark's driver is on this one.
    """
    master = setting("spark.master", "local")
    ports = asked.ports
    if not master.startswith("local") or asked.manager_address or asked.manager_bind:
        name, bind = (
            (own_address(f"//{bracketed(connect)}"), "") if connect else _of_driver(setting)
        )
        name = asked.manager_address or name
        yield Endpoint(asked.manager_bind or bind or name, name, ports), None
    elif tls or connect or not _FOLDER.fullmatch(tempfile.gettempdir()):
        yield Endpoint(LOOPBACK, ports=ports), Endpoint(LOOPBACK, ports=ports)
    else:
        with tempfile.TemporaryDirectory(prefix="weir-", ignore_cleanup_errors=True) as folder:
            yield Endpoint(folder), Endpoint(folder)


def _of_driver(setting: Callable[[str, str], str]) -> tuple[str, str]:
    """Return by what name Spark's driver is dialled, and where it listens."""
    name = setting("spark.driver.host", "") or socket.gethostname()
    return name.strip("[]"), setting("spark.driver.bindAddress", "").strip("[]")


def own_endpoint(asked: AddressSettings, manager: str) -> Endpoint:
    """Find where a host listens on this machine; `manager` is the URL of the manager."""
    if asked.host_address is not None:
        name = _address_in(asked.host_address)
    else:
        name = os.environ.get("SPARK_LOCAL_IP", "").strip("[]") or own_address(manager)
    return Endpoint(asked.host_bind or name, name, asked.ports)


def own_address(towards: str) -> str:
    """Find the address that this machine uses towards the host of a URL; RunError if there is no
    way to it. Nothing is sent."""
    parts = urlsplit(towards)
    host, port = parts.hostname or "", parts.port or _DISCARD
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, address = resolved[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise RunError(
            f"{socket.gethostname()} has no way to {host}: {error.strerror or error}"
        ) from error


def _address_in(network: str) -> str:
    """Find the address that this machine has in a network; an address means itself."""
    asked = ipaddress.ip_network(network, strict=False)
    if asked.num_addresses == 1:
        return str(asked.network_address)
    address = own_address(f"//{bracketed(str(asked[1]))}")
    if ipaddress.ip_address(address) not in asked:
        raise RunError(f"{socket.gethostname()} has no address in {network}, which host_address is")
    return address


def free_port(at: Endpoint) -> int:
    """Find a port that an endpoint may use and nobody does; RunError if it can listen at none."""
    error: OSError | None = None
    for port in at.candidates():
        try:
            resolved = socket.getaddrinfo(at.bind, port, type=socket.SOCK_STREAM)
            family, kind, protocol, _, address = resolved[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
        except OSError as failed:
            error = failed
            if failed.errno != errno.EADDRINUSE:
                break
        else:
            return port
    assert error is not None
    first, last = at.ports
    where = f"{at.bind}, ports {first}-{last}" if last else at.bind
    raise RunError(
        f"{socket.gethostname()} cannot listen at {where}: {error.strerror or error} (SET "
        "manager_bind, host_bind or ports, or Spark's own addresses, say otherwise)"
    ) from error


def bracketed(address: str) -> str:
    """Write an address as a URL has it.

    >>> bracketed("fd77::1"), bracketed("10.0.0.1")
    ('[fd77::1]', '10.0.0.1')
    """
    return f"[{address}]" if ":" in address else address
