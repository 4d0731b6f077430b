"""The spam rules by micro-batches, as Spark Streaming has them in the ReStream paper (Figure 5).

Each event sees the state that the batches before its own have left, and what it adds itself: the
friendships and counts of the other events of its batch are not there yet. With batches of one event
that is the serial loop. The larger they are, the further the number of messages that are found to
be spam is off that of the serial loop: that is the error.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path

from replay_peers import EMAIL, _friendships, _messages, parts


def spam_by_micro_batches(data: Path, batch: int) -> set[int]:
    """The messages that are found to be spam."""
    search = re.compile(EMAIL).search
    friends: set[int] = set()
    friend_msgs: Counter[int] = Counter()
    nonfriend_msgs: Counter[int] = Counter()
    ip_msgs: Counter[str] = Counter()
    ip_email_msgs: Counter[str] = Counter()
    events = _in_order(data)
    found: set[int] = set()
    while rows := list(islice(events, batch)):
        befriended: list[int] = []
        others: list[int] = []
        advertised: list[str] = []
        messages = [row for row in rows if row[1] is not None]
        for pair, message in messages:  # type: ignore[misc]
            sender, ip, content, number = message
            to_friends, to_others = friend_msgs[sender], nonfriend_msgs[sender]
            emails = ip_email_msgs[ip]
            if pair in friends:
                to_friends += 1
                befriended.append(sender)
            else:
                to_others += 1
                others.append(sender)
            if search(content):
                emails += 1
                advertised.append(ip)
            if to_others > 2 * to_friends and emails > 0.2 * (ip_msgs[ip] + 1):
                found.add(number)
        friend_msgs.update(befriended)
        nonfriend_msgs.update(others)
        ip_msgs.update(m[1] for _, m in messages)
        ip_email_msgs.update(advertised)
        friends.update(pair for pair, message in rows if message is None)
    return found


def _in_order(data: Path):  # type: ignore[no-untyped-def]
    """Every event in log order: (pair, None) or (pair, (sender, ip, content, id))."""
    pairs, times = _friendships(data)
    begun = 0
    for path in parts(data, "message"):
        for number, pair, sender, ip, ts, content in _messages(path, True):
            while times[begun] <= ts:
                yield pairs[begun], None
                begun += 1
            yield pair, (sender, ip, content, number)
    yield from ((pair, None) for pair in pairs[begun:])
