"""Converts DECIMALs to the nearest doubles.

Arrow's own conversion multiplies by a power of ten that is not exact as a double: 853.06 becomes
853.0600000000001.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from weir.events.hashing import decimal_words, null_mask
from weir.events.python_lists import python_list

_EXACT_WHOLE = 1 << 53
_EXACT_POWER = 22  # 10**22 is the largest power of ten that is a double


def nearest_doubles(column: pa.Array) -> pa.Array:
    """Return the double nearest to each value of a decimal128 column.

    >>> from decimal import Decimal
    >>> nearest_doubles(pa.array([Decimal("853.06"), None])).to_pylist()
    [853.06, None]
    """
    words, missing = decimal_words(column), null_mask(column)
    low, high = words[:, 0], words[:, 1]
    # Dividing two exact doubles rounds only once.
    exact = (high == low >> 63) & (low > -_EXACT_WHOLE) & (low < _EXACT_WHOLE)
    if column.type.scale > _EXACT_POWER:
        exact[:] = missing
    values = low / 10.0 ** min(column.type.scale, _EXACT_POWER)
    rest = np.flatnonzero(~exact)
    if len(rest):
        # One by one, by Python's decimals, which give the nearest double too.
        values[rest] = [float(value) for value in python_list(column.take(pa.array(rest)))]
    return pa.array(values, mask=missing)
