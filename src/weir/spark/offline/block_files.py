"""Keeps blocks in files if all tasks run on one machine: Spark carries only their places.

Spark copies what it carries some ten times between two tasks; it was a third of the processor time
of a replay. A task writes all its blocks into one file of its own. A task that runs twice writes
two, and readers find the one that the surviving rows name.
"""

from __future__ import annotations

import os
import uuid

import msgspec
import pyarrow as pa


class BlockPlace(msgspec.Struct, frozen=True, array_like=True):
    """Says where a block lies: in which file, from where on, how many bytes."""

    file: str
    start: int
    size: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BlockPlace)


class BlockFile:
    """Is the file of a task; it is made with its first block."""

    def __init__(self, folder: str) -> None:
        self._folder, self._name = folder, uuid.uuid4().hex
        self._file: pa.NativeFile | None = None

    def write(self, block: pa.Buffer) -> bytes:
        """Write a block, and return its place as it goes through Spark."""
        if self._file is None:
            self._file = pa.OSFile(os.path.join(self._folder, self._name), "wb")
        start = self._file.tell()
        self._file.write(block)
        return _encoder.encode(BlockPlace(self._name, start, block.size))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_block(folder: str, place: bytes | pa.Buffer) -> pa.Buffer:
    """Read the block that lies at a place."""
    block = _decoder.decode(place)
    with pa.OSFile(os.path.join(folder, block.file)) as file:
        file.seek(block.start)
        return file.read_buffer(block.size)
