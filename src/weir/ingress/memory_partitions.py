"""Partitions in memory, for tests and `weir conform`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from weir.errors import InputError
from weir.files.chunks import CHUNK_ROWS, Chunk
from weir.files.python_values import column_of
from weir.files.time_units import WANTED_CTI, cti_ticks

CTI_KEY = "$cti"


class MemoryPartition:
    """Reads rows from dicts, in offset order; `{"$cti": T}` is an explicit CTI."""

    def __init__(
        self,
        name: str,
        items: Sequence[Mapping[str, object]],
        columns: Sequence[tuple[str, pa.DataType]],
    ) -> None:
        self.name = name
        rows = [item for item in items if CTI_KEY not in item]
        arrays = [column_of([row.get(n) for row in rows], t, n, name) for n, t in columns]
        self._rows = pa.RecordBatch.from_arrays(arrays, names=[n for n, _ in columns])
        before = np.cumsum([CTI_KEY not in item for item in items], dtype=np.int64)
        claims = [i for i, item in enumerate(items) if CTI_KEY in item]
        self._cti_places = before[claims] if claims else np.zeros(0, dtype=np.int64)
        times = [_cti_time(items[i][CTI_KEY], i, name) for i in claims]
        self._cti_times = np.array(times, dtype=np.int64)

    @property
    def size(self) -> int:
        return len(self._rows)

    def chunks(self, size: int = CHUNK_ROWS, start: int = 0) -> Iterator[Chunk]:
        total = self._rows.num_rows
        while True:
            stop = min(start + size, total)
            is_last = stop == total
            # A CTI right after the last row of a chunk belongs to the next chunk.
            inside = (self._cti_places >= start) & (
                (self._cti_places <= stop) if is_last else (self._cti_places < stop)
            )
            yield Chunk(
                self._rows.slice(start, stop - start),
                np.arange(start, stop),
                stop,
                cti_times=self._cti_times[inside],
                cti_indexes=self._cti_places[inside] - start,
                read=stop,
            )
            if is_last:
                return
            start = stop


def _cti_time(value: object, row: int, where: str) -> int:
    time = cti_ticks(value, None)
    if time is None:
        raise InputError(f"row {row}: {WANTED_CTI}, came {value!r}", file=where, column=CTI_KEY)
    return time
