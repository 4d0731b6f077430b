"""TLS of a live job's channels: one certificate for the manager and all hosts.

Each side shows the certificate, and each checks the other's: a peer that has none is refused before
it can send anything. The certificate must name the addresses that hosts and manager listen at, and
if it says what it may be used for (extendedKeyUsage), that must be both serverAuth and clientAuth.
It may sign itself; else the authority that signed it is given too. Every call needs the job's
secret all the same.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from weir.errors import PlanError


@dataclass(frozen=True, slots=True)
class Tls:
    """Holds PEM texts; the other side's certificate is checked against `authority`."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes


def read_tls(certificate: str | Path, key: str | Path, authority: str | Path | None = None) -> Tls:
    """Read and check the files that TLS needs; a PlanError says what is wrong with them."""
    texts = [_read(path) for path in (certificate, key, authority or certificate)]
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _no_password)
    except (ssl.SSLError, ValueError) as error:
        hint = "both in PEM, the key without a password and of this certificate"
        raise PlanError(
            f"'{certificate}' and '{key}' are no certificate with its key: {error}", hint=hint
        ) from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(authority or certificate)
    except ssl.SSLError as error:
        message = f"'{authority or certificate}' is no certificate of an authority: {error}"
        raise PlanError(message, hint="give it in PEM") from None
    if refused := _refused(certificate, key, authority or certificate):
        raise PlanError(
            f"hosts and manager would not accept the certificate '{certificate}' of each other: "
            f"{refused}",
            hint="it must be valid now, signed by itself or by the authority that is given "
            "(--tls-ca), and where it has an extendedKeyUsage, that must hold serverAuth and "
            "clientAuth",
        )
    return Tls(*texts)


def _refused(certificate: str | Path, key: str | Path, authority: str | Path) -> str | None:
    """Say why one side would not accept the other's certificate; None: both do. Two sides shake
    hands here, in memory: over a channel, the side that is refused is not told why."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides: list[ssl.SSLObject] = []
    for protocol in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER):
        context = ssl.SSLContext(protocol)
        context.check_hostname = False  # the addresses are not known yet
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as gRPC does
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority)
        is_server = protocol == ssl.PROTOCOL_TLS_SERVER
        incoming, outgoing = (there, back) if is_server else (back, there)
        sides.append(context.wrap_bio(incoming, outgoing, server_side=is_server))
    client, server = sides
    try:
        for side in (client, server, client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except ssl.SSLError as error:
        return str(error)
    return None


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise PlanError(f"cannot read '{path}' for TLS: {error.strerror}") from None


def _no_password() -> str:
    raise ValueError("the key has a password")
