"""Records whether this process has used obstore.

obstore runs requests in threads that it starts with the first request. A process that is forked
later lacks these threads, so its requests to a bucket never end. Check here before forking.
"""

from __future__ import annotations

import os

_users: set[int] = set()


def note_use() -> None:
    """Note that this process uses obstore."""
    _users.add(os.getpid())


def is_used_here() -> bool:
    """Tell whether this process has used obstore."""
    return os.getpid() in _users
