"""The store of a job: named objects that survive every process of the job.

Contract
1. `put` is atomic, and durable when it returns: an object is whole or not there. With `new` it
   makes the object only if there is none of that name: of all who try, one succeeds and the others
   get `ObjectExists`.
2. `get` returns what was put last, or None. `list` may lag behind: what it names may be gone, and
   what it does not name may be there.
3. `delete` deletes in the order of the keys, but checkpoints and segments in any order.
4. Whoever reads an object checks what it holds (`codec.py`): stores lose objects and flip bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from weir.errors import RunError

Body: TypeAlias = bytes | bytearray
"""The bytes of an object, as `put` takes them."""


class ObjectExists(RunError):
    """`put` was asked for a new object, and there is one of that name already."""


class StoreRefuses(RunError):
    """The store will not do what it was asked, however often: no such bucket, no right to it."""


class ObjectUnreadable(RunError):
    """An object cannot be read, though the store is there: a bad disk, or no right to it."""


class Store(Protocol):
    """A store holds named objects, by the module's contract."""

    def put(self, key: str, body: Body, *, new: bool = False) -> None: ...
    def get(self, key: str) -> bytes | None: ...
    def delete(self, keys: Iterable[str]) -> None: ...
    def list(self, prefix: str = "") -> list[str]: ...
