"""Whether Arrow data that came from outside can be touched.

Arrow believes what a message says of its buffers: an offset that points beyond them is followed,
and the process dies without a word. So data from files, channels and stores is checked once,
where it comes in; behind that all code may trust it.
"""

from __future__ import annotations

import pyarrow as pa


def check_intact(batch: pa.RecordBatch | pa.Table) -> None:
    """pa.ArrowInvalid unless every buffer is large enough, offsets grow and lie within their
    values, texts are UTF-8, dictionary indices exist and NULLs are as many as it says.

    Columns of numbers cost nothing; offsets and texts are read once (some GB a second).

    >>> check_intact(pa.RecordBatch.from_pydict({"a": [1, None], "s": ["x", "é"]}))
    """
    batch.validate(full=True)
