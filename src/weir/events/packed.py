"""Arrow streams are measured first, so that they are written into a buffer of the right size.

A buffer that grows while it is written would be copied to a larger one again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

ArrowStream: TypeAlias = tuple[pa.Schema, Sequence[pa.RecordBatch]]
"""Records of a schema, if any."""


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
