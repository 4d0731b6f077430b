"""Loads or compiles the loops of a job before a host joins it.

Rules
1. The driver compiles those of the loops that a job needs (`loop_search.py`) that it has no code
   of, and sends all code to the hosts with their tasks, as it sends the program's own code;
   not through the store, which never holds code.
2. The process of a host's task loads it, if it is of its machine's kind, or compiles; then it forks
   the host, and later those that follow it, which all have the loops from the start.
3. A process that takes longer than `SIGN_AFTER` seconds reports that to the manager, repeatedly.
"""

from __future__ import annotations

import mmap
import socket
import struct
import time
from functools import partial

import msgspec

from weir.job.messages import Preparing
from weir.loops.code_cache import unpack
from weir.loops.loop import make_ready
from weir.spark.live.flight import ChannelErrors, Client
from weir.spark.live.host_process import PULSE_EVERY, meanwhile
from weir.spark.live.job_description import JobDescription

SIGN_AFTER = 1.0
"""Seconds; see rule 3. To load code takes less."""
_AT = struct.Struct("<II")
"""How many loops are ready, and of how many, in memory that two processes share."""


def make_warm(job: JobDescription, slot: int) -> None:
    """Load the loops that the job needs, or compile them, in the task's process: all hosts that it
    forks have them then. A child gives signs of it, since that process has no channels."""
    if job.loops is None:
        return
    at = mmap.mmap(-1, _AT.size)

    def tell(done: int, of: int) -> None:
        at[:] = _AT.pack(done, of)

    with meanwhile(partial(_say_preparing, job, slot, at)):
        unpack(job.loops)
        make_ready(job.loops.loops, tell)


def _say_preparing(job: JobDescription, slot: int, at: mmap.mmap) -> None:
    """Tell the manager again and again how many loops are ready, if it takes long."""
    time.sleep(SIGN_AFTER)
    client: Client | None = None
    while True:
        said = Preparing(slot, socket.gethostname(), *_AT.unpack(at[:]))
        try:
            client = client or Client(job.manager, job.security)
            client.act("prepare", msgspec.msgpack.encode(said))
        except ChannelErrors:
            client = None
        time.sleep(PULSE_EVERY)
