"""The hash functions md5, sha256 and xxhash64, of STRING (its UTF-8 bytes) and BINARY.

They are for users. Partitions and digests (`events/hashing.py`) and keys
(`structures/key_hashes.py`) have hashes of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from weir.events.hashing import binary_buffers
from weir.events.python_lists import python_list
from weir.events.types import STRING
from weir.kernels.expressions.evaluation import (
    ArrayFunction,
    Builder,
    plain,
    valid_rows,
    with_nulls,
)
from weir.kernels.expressions.functions_hashes_loops import xxhash64_rows


def _hex(digest: Callable[[bytes], str]) -> ArrayFunction:
    def run(column: pa.Array) -> pa.Array:
        texts = python_list(column.cast(pa.binary()))
        return pa.array([None if t is None else digest(t) for t in texts], STRING)

    return run


def _xxhash64(column: pa.Array) -> pa.Array:
    offsets, data = binary_buffers(column)
    hashes = np.zeros(len(column), dtype=np.uint64)
    xxhash64_rows(offsets, data, hashes)
    return with_nulls(hashes.view(np.int64), valid_rows(column))


FUNCTIONS: Mapping[str, Builder] = {
    "md5": plain(_hex(lambda text: hashlib.md5(text, usedforsecurity=False).hexdigest())),
    "sha256": plain(_hex(lambda text: hashlib.sha256(text).hexdigest())),
    "xxhash64": plain(_xxhash64),
}
