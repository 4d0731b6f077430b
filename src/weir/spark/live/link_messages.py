"""The messages between two hosts, which have one link for all that they read of each other.

Contract
1. A message is a list of *words* and a body. The body has the rows of those words that bring any,
   one after another, as Arrow's record batches.
2. A reader asks for a stream (`Want`) under a number of its own, and says how many bytes it takes
   before it has read any; with `Room` it gives credit back (`job/stream_server.py`). `Bring` has
   rows from number `seq` on and then a claim, or a claim alone.
3. The columns of a stream follow from the plan, which both hosts have. So no schema is sent: only
   how many columns with times and origins there are.
4. Words are arrays, whose ends may be left out if they have defaults: so words can get more to say.
5. Whatever bytes come, `read_words` and `read_rows` return what can be worked with, or raise a
   RunError that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from weir.events.batch import Int64s, empty_batch
from weir.reliable.codec import numbers_after, record_of, rows_of, steps_of
from weir.reliable.stream import Entry
from weir.reliable.views import View
from weir.spark.live.message_checks import LARGEST, UNREADABLE, bad_message, check_record

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Size: TypeAlias = Annotated[int, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-LARGEST - 1, le=LARGEST)]


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """Says at which address the host that makes a link serves its own streams."""

    address: str


class Want(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Asks for a stream, or a view of it, from number `seq` on."""

    subscription: Count
    stream: str
    seq: Count
    credit: Size
    view: View | None = None


class Leave(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Ends a subscription that the sender has asked for."""

    subscription: Count


class Room(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Gives so many bytes of credit back."""

    subscription: Count
    size: Count


class Bring(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Brings rows of a stream, if it has any, and the claim after them."""

    subscription: Count
    seq: Count
    cti: Time
    size: Count = 0
    """The bytes of credit that it spends."""
    length: Count = 0
    """The bytes of the body that are its rows."""
    times: Annotated[int, msgspec.Meta(ge=2, le=1000)] = 2
    """How many columns have times and origins."""
    left_out: Count = 0
    """How many rows it leaves out, because they are in other views."""
    steps: bytes = b""
    """The numbers of the rows, if any is left out; see `codec.steps_of`."""


class Gone(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Ends a subscription: its stream is not served here, or no longer."""

    subscription: Count


class Yours(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Refuses a link: the two hosts have the one that this host has made, or is making."""


class Bye(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Ends the link."""


Word: TypeAlias = Want | Leave | Room | Bring | Gone | Yours | Bye
Outgoing: TypeAlias = tuple[int, Entry, int]
"""An entry for a subscription, and the credit that it spends."""

_NO_ROWS = empty_batch(())
_encoder = msgspec.msgpack.Encoder()
_words_decoder = msgspec.msgpack.Decoder(list[Word])
_hello_decoder = msgspec.msgpack.Decoder(Hello)


def pack_hello(address: str) -> bytes:
    return _encoder.encode(Hello(address))


def read_hello(command: bytes | None) -> Hello:
    """Decode and check what a host says that makes a link."""
    try:
        return _hello_decoder.decode(command or b"")
    except UNREADABLE as error:
        raise bad_message("the beginning of a link", error) from None


def pack_message(words: Sequence[Word], entries: Sequence[Outgoing]) -> tuple[bytes, bytes]:
    """Make a message of some words, and of entries after them: the words, and the body."""
    said, bodies = list(words), list[pa.Buffer]()
    for subscription, entry, size in entries:
        if len(entry.rows):
            record = record_of(entry)
            bodies.append(record.serialize())
            said.append(
                Bring(
                    subscription=subscription,
                    seq=entry.seq,
                    cti=entry.cti,
                    size=size,
                    length=bodies[-1].size,
                    times=2 + len(entry.rows.origin),
                    left_out=entry.left_out,
                    steps=steps_of(entry),
                )
            )
        else:
            said.append(Bring(subscription, entry.seq, entry.cti, left_out=entry.left_out))
    return _encoder.encode(said), b"".join(bodies)


def read_words(message: bytes, body: int) -> list[Word]:
    """Decode and check the words of a message whose body has so many bytes."""
    try:
        words = _words_decoder.decode(message)
    except UNREADABLE as error:
        raise bad_message("a message between hosts", error) from None
    if sum(word.length for word in words if isinstance(word, Bring)) != body:
        raise bad_message("a message between hosts", f"a body of {body} bytes for other rows")
    return words


def read_rows(word: Bring, body: pa.Buffer, types: Sequence[pa.DataType]) -> Entry:
    """Decode and check the entry of a stream whose rows have columns of these types; `body` has the
    bytes of its rows alone."""
    if word.seq + word.left_out > LARGEST:
        raise bad_message("rows", f"the number {word.seq}")
    if not word.length:
        return Entry(word.seq, _NO_ROWS, word.cti, left_out=word.left_out)
    names = [*(f"t{i}" for i in range(word.times)), *(f"c{i}" for i in range(len(types)))]
    fields = zip(names, [*[pa.int64()] * word.times, *types], strict=True)
    try:
        record = pa.ipc.read_record_batch(body, pa.schema(list(fields)))
        check_record(record, word.times)
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise bad_message("rows", error) from None
    if word.seq + len(record) + word.left_out > LARGEST:
        raise bad_message("rows", f"the number {word.seq}")
    numbers = _read_numbers(word, len(record))
    return Entry(word.seq, rows_of(record), word.cti, numbers=numbers, left_out=word.left_out)


def _read_numbers(word: Bring, count: int) -> Int64s | None:
    """Decode and check the numbers of an entry's rows; None: it leaves none out."""
    if not word.left_out or not count:
        return None
    try:
        numbers = numbers_after(word.seq, word.steps, count)
    except ValueError as error:
        raise bad_message("the numbers of rows", error) from None
    # Sums of large steps wrap around: then they are not ascending.
    if (np.diff(numbers) < 1).any() or not word.seq <= numbers[0] <= numbers[-1] < (
        word.seq + count + word.left_out
    ):
        raise bad_message("the numbers of rows", f"they are not among {count + word.left_out}")
    return numbers
