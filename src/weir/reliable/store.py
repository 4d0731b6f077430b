"""The store: where what must survive lies, as named objects.

Contract
1. `put` is atomic and durable when it returns: an object is whole or not there. With `new` it is
   made once: of all who try, one succeeds and the others get `ObjectExists`.
2. `get` gives what was put last, or None. `list` may be behind: what it names may be gone, and
   what it does not name may be there.
3. What an object holds is checked by whoever reads it (`codec.py`): stores forget and flip bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from weir.errors import RunError

Body: TypeAlias = bytes | bytearray
"""What an object holds, as it is put."""


class ObjectExists(RunError):
    """There is an object of that name already."""


class Store(Protocol):
    """See the module's contract."""

    def put(self, key: str, body: Body, *, new: bool = False) -> None: ...
    def get(self, key: str) -> bytes | None: ...
    def delete(self, keys: Iterable[str]) -> None: ...
    def list(self, prefix: str = "") -> list[str]: ...
