"""Whether a record batch that came from outside can be touched.

Arrow believes what a message says of its buffers: an offset that points beyond them is followed,
and the process dies without a word. So batches from files, channels and stores are checked once,
where they come in; behind that all code may trust them.
"""

from __future__ import annotations

import pyarrow as pa


def check_intact(batch: pa.RecordBatch) -> None:
    """pa.ArrowInvalid unless every buffer is large enough, offsets grow and lie within their
    values, texts are UTF-8, dictionary indices exist and NULLs are as many as it says.

    Columns of numbers cost nothing; offsets and texts are read once (some GB a second).

    >>> check_intact(pa.RecordBatch.from_pydict({"a": [1, None], "s": ["x", "é"]}))
    """
    batch.validate(full=True)
