"""TLS of a live job's channels: one certificate for the manager and all hosts.

The certificate must name the addresses that hosts and manager listen at. It may sign itself; else
the authority that signed it is given too. The job's secret is asked for all the same.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from weir.errors import PlanError


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM texts; `authority` is what the other side's certificate is checked against."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes


def read_tls(certificate: str | Path, key: str | Path, authority: str | Path | None = None) -> Tls:
    """The files that TLS needs; a PlanError says what is wrong with them."""
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
    return Tls(*texts)


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise PlanError(f"cannot read '{path}' for TLS: {error.strerror}") from None


def _no_password() -> str:
    raise ValueError("the key has a password")
