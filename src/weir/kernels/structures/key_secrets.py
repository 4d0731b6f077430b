"""Each index of keys draws a secret of its own, from the operating system.

It never shows in an answer, a snapshot or a seq: copies of an instance and recovered
instances have other secrets. `tests/unit/kernels/test_secrets_stay_inside.py` holds every kernel
to that.
"""

from __future__ import annotations

import os

SECRET_BYTES = 16


def fresh_secret() -> bytes:
    """Draw a secret that nobody else has or can guess."""
    return os.urandom(SECRET_BYTES)
