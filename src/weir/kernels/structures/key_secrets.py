"""Each index of keys draws a secret of its own from the operating system.

The secret never shows in an answer, a snapshot or a seq: copies of an instance and recovered
instances have other secrets. `tests/unit/kernels/test_secrets_stay_inside.py` checks this for every
kernel.
"""

from __future__ import annotations

import os

SECRET_BYTES = 16


def fresh_secret() -> bytes:
    """Return a random secret that nobody can guess."""
    return os.urandom(SECRET_BYTES)
