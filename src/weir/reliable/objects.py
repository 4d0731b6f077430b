"""How objects of a store are sealed and named, so that none can be lost or changed unseen.

Rules
1. An object begins with its seal: 16 bytes of SHA-256 over its own name and all that follows. So
   bytes that were torn or changed are found, and so is an object that lies under another's name.
2. Whoever refers to an object holds an `ObjectRef`: its name, the range that is meant, the object's
   size and the seal. An object that is not there, or is not that one, is `SnapshotCorrupt`.
3. What a surviving object refers to, directly or through a chain, must be there; what nothing
   refers to counts as never written.
"""

from __future__ import annotations

import hashlib
from typing import Self

import msgspec

from weir.errors import SnapshotCorrupt
from weir.reliable.store import Body, Store

SEAL = 16
"""Bytes of a seal: half of a SHA-256, which processors compute by themselves."""


class ObjectRef(msgspec.Struct, frozen=True, array_like=True):
    """The bytes [start, stop) of an object of this name and size, which begin with this seal."""

    key: str
    start: int = 0
    stop: int = 0
    size: int = 0
    seal: str = ""
    """In hexadecimal digits; empty while nobody has written it."""

    @classmethod
    def of(cls, key: str, body: Body) -> Self:
        """All of an object with this content."""
        return cls(key, 0, len(body), len(body), bytes(body[:SEAL]).hex())

    def check(self, body: bytes | None) -> bytes:
        """The bytes that are meant, if this is the object; whoever decodes them checks their seal
        against their content."""
        if body is None:
            raise SnapshotCorrupt(f"{self.key} is not in the store")
        if len(body) != self.size:
            raise SnapshotCorrupt(f"{self.key} has {len(body)} bytes and should have {self.size}")
        meant = body if (self.start, self.stop) == (0, self.size) else body[self.start : self.stop]
        if meant[:SEAL].hex() != self.seal:
            raise SnapshotCorrupt(f"{self.key} is not the object that was written under this name")
        return meant

    def read(self, store: Store) -> bytes:
        """The bytes that are meant."""
        return self.check(store.get(self.key))


def seal_of(key: str, content: bytes | memoryview) -> bytes:
    """The seal of what follows it in the object of this name."""
    hashed = hashlib.sha256(key.encode() + b"\0")
    hashed.update(content)
    return hashed.digest()[:SEAL]


def unsealed(key: str, body: bytes) -> memoryview:
    """What an object holds behind its seal, which is checked."""
    content = memoryview(body)[SEAL:]
    if len(body) < SEAL or seal_of(key, content) != body[:SEAL]:
        raise SnapshotCorrupt(
            f"{key}: {len(body)} bytes that do not have their checksum: torn or changed, or an "
            "object of another name"
        )
    return content
