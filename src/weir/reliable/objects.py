"""Seals and references for objects of a store: a lost or changed object is always noticed.

Rules
1. An object begins with its seal: 16 bytes of SHA-256 over its own name and all that follows. So
   whoever reads it notices bytes that are missing or changed, and an object that lies under the
   name of another.
2. Whoever refers to an object holds an `ObjectRef`: its name, the range of bytes that is meant, the
   object's size and its seal. Reading by it raises `SnapshotCorrupt` when the object is not there,
   or is another one.
3. An object that is referred to, directly or through other objects, must be there. An object that
   nothing refers to counts as never written.
"""

from __future__ import annotations

import hashlib
from typing import Self

import msgspec

from weir.errors import SnapshotCorrupt
from weir.reliable.store import Body, Store

SEAL = 16
"""The bytes of a seal: half of a SHA-256, for which processors have instructions."""


class ObjectRef(msgspec.Struct, frozen=True, array_like=True):
    """A reference to the bytes [start, stop) of an object of this name and size; they begin with
    this seal."""

    key: str
    start: int = 0
    stop: int = 0
    size: int = 0
    seal: str = ""
    """In hexadecimal digits; empty while nobody has written it."""

    @classmethod
    def of(cls, key: str, body: Body) -> Self:
        """Refer to the whole of an object that has this content."""
        seal = bytes(body[:SEAL]).hex()
        return cls(key=key, start=0, stop=len(body), size=len(body), seal=seal)

    def check(self, body: bytes | None) -> bytes:
        """Return the bytes that are meant, if `body` is the object. Whoever decodes them checks
        that the seal is that of their content."""
        if body is None:
            raise SnapshotCorrupt(f"{self.key} is not in the store")
        if len(body) != self.size:
            raise SnapshotCorrupt(f"{self.key} has {len(body)} bytes and should have {self.size}")
        meant = body if (self.start, self.stop) == (0, self.size) else body[self.start : self.stop]
        if meant[:SEAL].hex() != self.seal:
            raise SnapshotCorrupt(f"{self.key} is not the object that was written under this name")
        return meant

    def read(self, store: Store) -> bytes:
        """Read the bytes that are meant from the store."""
        return self.check(store.get(self.key))


def seal_of(key: str, content: bytes | memoryview) -> bytes:
    """Compute the seal of an object of this name with this content after the seal."""
    hashed = hashlib.sha256(key.encode() + b"\0")
    hashed.update(content)
    return hashed.digest()[:SEAL]


def unsealed(key: str, body: bytes) -> memoryview:
    """Check an object's seal, and return what follows it."""
    content = memoryview(body)[SEAL:]
    if len(body) < SEAL or seal_of(key, content) != body[:SEAL]:
        raise SnapshotCorrupt(
            f"{key}: {len(body)} bytes that do not have their checksum: torn or changed, or an "
            "object of another name"
        )
    return content
