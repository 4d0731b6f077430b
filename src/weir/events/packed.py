"""Arrow streams written where they stay: into room that was made for them, not copied from one
buffer to a larger one again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

Stream: TypeAlias = pa.Table | Sequence[pa.RecordBatch]
"""Records of one schema; at least one, or a table."""


def packed(records: Stream, sink: pa.NativeFile) -> None:
    """Write the records as one Arrow stream."""
    schema = records.schema if isinstance(records, pa.Table) else records[0].schema
    with pa.ipc.new_stream(sink, schema) as writer:
        if isinstance(records, pa.Table):
            writer.write_table(records)
        else:
            for record in records:
                writer.write_batch(record)


def packed_size(records: Stream) -> int:
    """How many bytes `packed` writes: exactly so many."""
    counted = pa.MockOutputStream()
    packed(records, counted)
    size: int = counted.size()
    return size
