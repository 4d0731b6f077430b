"""A link on which packets take their time: `python delays.py BRIDGE LINK MEAN JITTER`.

It runs on a machine in a box for as long as the link is to be there. The machine's `eth0` is a tap
device of this process, and so is the link's other end, LINK, in the namespace of the bridge. What
the machine sends waits for MEAN seconds, more or less by up to JITTER, as in Linux's netem; what it
is sent passes at once. Packets stay in order.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
LARGEST = 1 << 16


def open_tap(name: str) -> int:
    """Make a tap device in this network namespace; it goes with the handle that is returned."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def forward(inside: int, outside: int, mean: float, jitter: float) -> None:
    """Carry packets both ways, without end."""
    waiting: deque[tuple[float, bytes]] = deque()
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _send(outside, waiting.popleft()[1])
        left = max(waiting[0][0] - now, 0.0) if waiting else None
        ready, _, _ = select.select([inside, outside], [], [], left)
        if outside in ready:
            _send(inside, os.read(outside, LARGEST))
        if inside in ready:
            due = time.monotonic() + random.uniform(mean - jitter, mean + jitter)
            last = waiting[-1][0] if waiting else due
            waiting.append((max(due, last), os.read(inside, LARGEST)))


def _send(tap: int, packet: bytes) -> None:
    try:
        os.write(tap, packet)
    except OSError:
        return  # the link is down at that end: the packet is lost


def main(bridge: str, link: str, mean: float, jitter: float) -> None:
    os.nice(-10)  # it is part of the network
    inside, outside = open_tap("eth0"), open_tap(link)
    subprocess.run(("ip", "link", "set", link, "netns", bridge), check=True)
    forward(inside, outside, mean, jitter)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
