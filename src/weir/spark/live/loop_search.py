"""The driver's preparation of the loops that a job needs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from weir.job.messages import DRIVER, Preparing
from weir.loops.code_cache import Code
from weir.loops.loop import packed
from weir.plan.program import Program
from weir.runtime.loop_needs import needed_loops
from weir.spark.live.host_process import PULSE_EVERY
from weir.spark.live.loop_warmup import SIGN_AFTER


class LoopSearch:
    """Loads or compiles the loops that a program needs, in a thread: Spark starts meanwhile."""

    def __init__(self, program: Program) -> None:
        self._code: Future[Code] = Future()
        threading.Thread(target=self._find, args=(program,), daemon=True, name="loops").start()

    def _find(self, program: Program) -> None:
        try:
            self._code.set_result(packed(needed_loops(program, complete=True)))
        except BaseException as error:  # whoever asks for the code gets it
            self._code.set_exception(error)

    def code(self, tell: Callable[[Preparing], None]) -> Code:
        """Wait for the code; give signs if it takes long (`loop_warmup.py`, rule 3)."""
        within = SIGN_AFTER
        while not wait([self._code], within).done:
            tell(Preparing(DRIVER, socket.gethostname(), 0, 0))
            within = PULSE_EVERY
        return self._code.result()
