"""Bugs of what finds rows that kill their host, and of what tells slow from dead."""

from sabotage.bugs import Bug

_POISON, _MANAGER, _RUNNING = "job/poison.py", "job/manager.py", "job/hosted_instance.py"
_VERTEX, _PROCESS = "reliable/vertex.py", "spark/live/host_process.py"
_FAILURES = "job/host_failures.py"
_RULES = ("tests/unit/job/test_poison.py",)
_MACHINE = ("tests/machine/test_manager_poison.py",)
_WORLD = ("tests/faults/test_poison.py",)
_FORK = ("tests/unit/spark/test_host_process.py",)

BUGS = (
    Bug(
        "deaths in large steps count",
        _POISON,
        "small = self.pieces == 1 and self.count <= 1",
        "small = True",
        (*_RULES, *_MACHINE),
    ),
    Bug(
        "deaths at any rows of a vertex count together",
        _POISON,
        "return mine == others",
        "return True",
        _RULES,
    ),
    Bug(
        "deaths at one event time count apart",
        _POISON,
        "if one.claims and other.claims and one.since < one.until and other.since < other.until:",
        "if False:",
        (*_RULES, *_WORLD),
    ),
    Bug(
        "a checkpoint right before a claim clears a vertex",
        _POISON,
        "return reached > step.end if step.claims else reached >= step.end",
        "return reached >= step.end",
        _RULES,
    ),
    Bug(
        "a vertex is never cleared",
        _POISON,
        "return tuple(s for s in counted if s.since < CLEARED_BY and not _is_behind(s, inputs))",
        "return tuple(counted)",
        (*_RULES, *_MACHINE),
    ),
    Bug(
        "what was died at is run in one piece again",
        "job/placement.py",
        "pieces=pieces_for(ledger.suspects.get(placement.vertex, ())),",
        "pieces=0,",
        (*_MACHINE, *_WORLD),
    ),
    Bug(
        "a death counts each time it is told",
        _FAILURES,
        "        is_new = death.session not in self._counted\n",
        "        is_new = True\n",
        _MACHINE,
    ),
    Bug(
        "a later manager counts a death again",
        _FAILURES,
        "self._counted = {s.death.session for suspects in "
        "ledger.suspects.values() for s in suspects}",
        "self._counted: set[str] = set()",
        _MACHINE,
    ),
    Bug(
        "deaths are not recorded",
        _FAILURES,
        "        self._ledger.suspects[vertex] = suspects\n",
        "",
        (*_MACHINE, *_WORLD),
    ),
    Bug(
        "signs of life from beside a host are not heard",
        "job/host_registry.py",
        "host.heard, host.step, host.hung_up = now, pulse.step, None",
        "host.step = pulse.step",
        _MACHINE,
    ),
    Bug(
        "a note stays behind its step",
        _RUNNING,
        "        self._notes.end()\n",
        "",
        ("tests/machine/test_host.py",),
    ),
    Bug(
        "pieces lose their last rows",
        _VERTEX,
        "piece, those = rows.slice(start, start + self.pieces), numbers[start:][: self.pieces]",
        "piece, those = rows.slice(start, start + self.pieces - 1), numbers[start:][: self.pieces]",
        ("tests/unit/reliable/test_vertex.py",),
    ),
    Bug(
        "a claim in pieces claims too much",
        _VERTEX,
        "self._chain.push(input, piece, self._claims[input])",
        "self._chain.push(input, piece, int(piece.vs.max()) + 1)",
        (*_WORLD, "tests/unit/reliable/test_vertex.py"),
    ),
    Bug(
        "a stopped host gets signs of life",
        _PROCESS,
        "elif session and not stopped and not is_stuck:",
        "elif session and not is_stuck:",
        _FORK,
    ),
    Bug(
        "a host outlives its task",
        _PROCESS,
        "ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)",
        "pass",
        _FORK,
    ),
)
