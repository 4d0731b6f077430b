"""The log of what a live source decided or cannot read again (architecture §3.5, §3.6).

Rules
1. A record says what happened at an offset of the partition: rows that came (their text), a claim
   made by the clock, a file that was found, the end. It is durable before it takes effect.
2. Records are numbered and made once each. Of two instances that write the next one, the second
   takes the first one's record over, and writes its own behind it.
3. A source that starts again goes through the records first, so it says the same again.
"""

from __future__ import annotations

import msgspec

from weir.reliable.codec import decode_record, encode_record
from weir.reliable.store import ObjectExists, Store


class IngressRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """See rule 1. `offset` is that of the next row when it was written."""

    offset: int
    lines: bytes = b""
    claim: int | None = None
    file: str = ""
    ends: bool = False


class IngressLog:
    """The log of one partition; see the module's rules."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._number = 0

    def read(self) -> IngressRecord | None:
        """The next record that is there."""
        body = self._store.get(self._key(self._number))
        if body is None:
            return None
        self._number += 1
        return msgspec.json.decode(decode_record(body), type=IngressRecord)

    def append(self, record: IngressRecord) -> bool:
        """Write the next record; False if somebody else's stands there, to be read first."""
        try:
            self._store.put(self._key(self._number), encode_record(record), new=True)
        except ObjectExists:
            return False
        self._number += 1
        return True

    def _key(self, number: int) -> str:
        return f"ingress/{self._name}/{number:012}"
