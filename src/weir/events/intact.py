"""Arrow data that came from outside is checked here before other code touches it.

Arrow trusts what a message says of its buffers: it follows an offset that points beyond them, and
the process dies without an error. So data from files, channels and stores is checked once, where it
comes in; all code behind that may trust it.
"""

from __future__ import annotations

import pyarrow as pa


def check_intact(batch: pa.RecordBatch | pa.Table) -> None:
    """Raise pa.ArrowInvalid unless the data's buffers agree with each other.

    Every buffer must be large enough, offsets must grow and lie within their values, texts must be
    UTF-8, dictionary indices must exist, and there must be as many NULLs as the data says.

    Columns of numbers cost nothing; offsets and texts are read once (some GB a second).

    >>> check_intact(pa.RecordBatch.from_pydict({"a": [1, None], "s": ["x", "é"]}))
    """
    batch.validate(full=True)
