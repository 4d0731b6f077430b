"""Writes Arrow data as bytes, and checks the data that it reads.

A stream is measured before it is written, so that its buffer has the right size: one that grows is
copied again and again.

Arrow trusts what a message says about its buffers. It follows an offset that points beyond them,
and the process dies without an error. So data from files, channels and stores is checked once,
where it comes in. All code after that may trust it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

ArrowStream: TypeAlias = tuple[pa.Schema, Sequence[pa.RecordBatch]]
"""A schema and its records, which may be none."""


def write_stream(stream: ArrowStream, sink: pa.NativeFile) -> None:
    schema, records = stream
    with pa.ipc.new_stream(sink, schema) as writer:
        for record in records:
            writer.write_batch(record)


def stream_size(stream: ArrowStream) -> int:
    """Return exactly how many bytes `write_stream` writes."""
    counted = pa.MockOutputStream()
    write_stream(stream, counted)
    size: int = counted.size()
    return size


def check_intact(batch: pa.RecordBatch | pa.Table) -> None:
    """Raise pa.ArrowInvalid unless the data's buffers agree with each other.

    Every buffer must be large enough. Offsets must grow and lie within their values. Texts must be
    UTF-8, and dictionary indices must exist. The count of NULLs must be right.

    Columns of numbers cost nothing; offsets and texts are read once, at some GB a second.

    >>> check_intact(pa.RecordBatch.from_pydict({"a": [1, None], "s": ["x", "é"]}))
    """
    batch.validate(full=True)
