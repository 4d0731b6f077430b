"""Seals and references: an object is the one that was written under this name, or an error."""

import pytest

from weir.errors import SnapshotCorrupt
from weir.reliable.codec import encode_record
from weir.reliable.objects import SEAL, ObjectRef, unsealed

KEY = "parts/sink.0/1"
BODY = encode_record(KEY, [1, 2, 3])
REF = ObjectRef.of(KEY, BODY)


def test_the_object_that_was_written_is_taken() -> None:
    assert REF.check(BODY) == BODY
    assert bytes(unsealed(KEY, BODY)) == b"[1,2,3]"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (None, "is not in the store"),
        (BODY + b" ", "bytes and should have"),
        (BODY[:-1], "bytes and should have"),
        (encode_record(KEY, [3, 2, 1]), "is not the object that was written under this name"),
    ],
)
def test_any_other_is_named(body: bytes | None, why: str) -> None:
    with pytest.raises(SnapshotCorrupt, match=f"^{KEY} .*{why}"):
        REF.check(body)


@pytest.mark.parametrize("at", [0, SEAL - 1, SEAL, len(BODY) - 1])
def test_a_changed_byte_is_found(at: int) -> None:
    changed = BODY[:at] + bytes([BODY[at] ^ 1]) + BODY[at + 1 :]
    with pytest.raises(SnapshotCorrupt, match=KEY):
        unsealed(KEY, changed)


@pytest.mark.parametrize("key", ["parts/sink.0/2", "parts/sink.0/1 ", ""])
def test_a_whole_object_under_another_name_is_found(key: str) -> None:
    with pytest.raises(SnapshotCorrupt, match="another name"):
        unsealed(key, BODY)


def test_a_range_of_an_object_is_referred_to_like_a_whole_one() -> None:
    other = encode_record(KEY, "other")
    both = other + BODY
    ref = ObjectRef(KEY, len(other), len(both), len(both), BODY[:SEAL].hex())
    assert ref.check(both) == BODY
    with pytest.raises(SnapshotCorrupt, match="is not the object"):
        ref.check(BODY + other)
