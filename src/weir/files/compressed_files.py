"""Reads compressed text files: `.gz` (gzip) and `.zst` (Zstandard).

Positions are those of the decompressed text. To continue at a position, a reader must decompress
everything before it again. A file that is damaged or truncated is an error that names it.
"""

from __future__ import annotations

import io
from typing import BinaryIO

import pyarrow as pa

from weir.errors import InputError

COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
"""File endings, and Arrow's names for their codecs."""
_PIECE = 1 << 20


def codec_of(name: str) -> str | None:
    """Return the codec of a file by its ending; None if it is not compressed.

    >>> codec_of("a.jsonl.gz"), codec_of("a.jsonl")
    ('gzip', None)
    """
    return next((c for ending, c in COMPRESSED.items() if name.lower().endswith(ending)), None)


def decompressed(file: BinaryIO, codec: str, name: str) -> BinaryIO:
    """Open a compressed file as text; closing it closes the file."""
    return io.BufferedReader(_Decompressed(file, codec, name), _PIECE)


class _Decompressed(io.RawIOBase):
    """Reads the decompressed bytes of a file, forward only."""

    def __init__(self, file: BinaryIO, codec: str, name: str) -> None:
        self._file, self._name = file, name
        self._stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read(len(buffer))
        except OSError as error:
            raise InputError(f"damaged: {error}", file=self._name) from error
        if not data and not self._file.tell():  # even an empty text has a header and an end
            message = "damaged: the file is empty; a compressed file never is"
            raise InputError(message, file=self._name)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        target = position if whence == io.SEEK_SET else self._position + position
        if whence == io.SEEK_END or target < self._position:
            raise io.UnsupportedOperation("a compressed file is read forward")
        rest = bytearray(_PIECE)
        while self._position < target:
            view = memoryview(rest)[: target - self._position]
            if not self.readinto(view):
                break
        return self._position

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
