"""Bugs in the serial loop, in what is compared with it, and in the gate of live apps."""

from sabotage.bugs import Bug

_CELLS, _LOOP, _SHADOW = (
    ("tests/unit/shadow/test_serial_cells.py",),
    ("tests/unit/shadow/test_serial_loop.py",),
    ("tests/unit/shadow",),
)
_REPLAY, _GATE = ("tests/unit/replay/test_shadow.py",), ("tests/unit/spark/test_shadow_gate.py",)
_COMPARISON, _RUN = "shadow/comparison.py", "shadow/shadow_run.py"
_SERIAL, _READING, _REPLAYING = (
    "shadow/serial_cells.py",
    "shadow/log_events.py",
    "replay/app_replay.py",
)

BUGS = (
    # --- the loop ---
    Bug(
        "the loop hands out its own lists",
        _SERIAL,
        "return copied(seen(self._value(state, key, version, time)))",
        "return seen(self._value(state, key, version, time))",
        _CELLS,
    ),
    Bug(
        "a function in a window sees what is there now",
        _SERIAL,
        "        if version < self.version:\n",
        "        if False:\n",
        _CELLS,
    ),
    Bug(
        "the loop's window is a tick too long",
        _SERIAL,
        "m.time <= time < m.time + state.last",
        "m.time <= time <= m.time + state.last",
        _CELLS,
    ),
    Bug(
        "handlers share an event",
        "shadow/serial_loop.py",
        "(copied(value) for value in event.values)",
        "event.values",
        _LOOP,
    ),
    # --- what is compared ---
    Bug(
        "what the engine emits too much is not seen",
        _COMPARISON,
        "zip_longest(ours, theirs)",
        "zip(ours, theirs, strict=False)",
        _SHADOW,
    ),
    Bug(
        "only the number of rows counts",
        _COMPARISON,
        "        if one != other:\n",
        "        if (one is None) != (other is None):\n",
        _SHADOW,
    ),
    Bug(
        "states are not compared",
        _COMPARISON,
        "    if engine.states is None:\n",
        "    if True:\n",
        _SHADOW,
    ),
    Bug(
        "a loop that fails alone is fine",
        _RUN,
        "        if engine.failed is None:\n",
        "        if False:\n",
        _SHADOW,
    ),
    Bug(
        "the last event that differs is named",
        _RUN,
        "                low = middle\n",
        "                return self._error(difference, count, None)\n",
        _SHADOW,
    ),
    Bug(
        "partitions are read one behind the other",
        _READING,
        "np.lexsort((offsets, ranks, vs))",
        "np.lexsort((vs, offsets, ranks))",
        _SHADOW,
    ),
    Bug(
        "an engine gets an event too many",
        _READING,
        "self.placed[:count]",
        "self.placed[:count + 1]",
        _SHADOW,
    ),
    Bug(
        "all cells are touched",
        "shadow/restored_states.py",
        "rows = rows.filter(_equal(rows.column(name), value, dtype))",
        "rows = rows",
        _SHADOW,
    ),
    Bug(
        "rows beyond those that are held are forgotten",
        "shadow/whole_loop.py",
        "            self._files.append(file)\n",
        "",
        _SHADOW,
    ),
    # --- replays ---
    Bug(
        "no later batch is compared",
        _REPLAYING,
        "if number and not is_compared:",
        "if False:",
        _REPLAY,
    ),
    Bug(
        "a check does not run the loop",
        _REPLAYING,
        "        if is_checked or (is_one and self.compared.are_all):\n",
        "        if False:\n",
        _REPLAY,
    ),
    Bug(
        "saved states are not checked",
        "replay/loop_check.py",
        "        if not written.states:\n",
        "        if True:\n",
        _REPLAY,
    ),
    # --- live ---
    Bug(
        "sinks do not wait",
        "job/host.py",
        'running.held = orders.held and running.spec.kind == "sink"',
        "running.held = False",
    ),
    Bug(
        "a sink that waits commits",
        "job/hosted_instance.py",
        "        if self.held:\n",
        "        if False:\n",
    ),
    Bug("a job is never released", "job/manager.py", "        self.held = False\n", ""),
    Bug(
        "a gate opens by itself",
        "spark/live/shadow_gate.py",
        "        if count == 0 and events >= 0:\n",
        "        if False:\n",
        _GATE,
    ),
    Bug(
        "what grows is not compared again",
        "spark/live/shadow_gate.py",
        "or count <= self._count:",
        "or True:",
        _GATE,
    ),
)
