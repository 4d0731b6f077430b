"""Records whether this process has used obstore.

obstore's requests run in threads that start with the first of them. A process that is forked later
has no such threads, but cannot know: its requests to a bucket never end. So whoever forks asks
here first.
"""

from __future__ import annotations

import os

_users: set[int] = set()


def note_use() -> None:
    """Note that this process uses obstore."""
    _users.add(os.getpid())


def is_used_here() -> bool:
    """Say whether this process has used obstore."""
    return os.getpid() in _users
