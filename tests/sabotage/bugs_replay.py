"""Bugs in analysis, compilation and scans of event handlers; the serial loop finds them."""

from sabotage.bugs import Bug

_WORKED = ("tests/replay_oracle/test_engine.py", "-k", "worked or found")
_SCANS = ("tests/replay_oracle/test_scans.py",)
_REFUSED = ("tests/replay_oracle/test_refused.py",)
_USES = ("tests/unit/handlers/test_state_uses.py",)
_CELLS, _MERGES = "kernels/structures/cells.py", "handlers/planning/scan_merges.py"
_WINDOWS = "kernels/structures/cell_windows.py"

BUGS = (
    # --- analysis ---
    Bug(
        "a return ends nothing",
        "handlers/reading/statements.py",
        "return Exits(returns=(Path(run.conditions, {RETURNED: result}),))",
        "return Exits(falls=_here(run, frame))",
        _WORKED,
    ),
    Bug(
        "a new UUID is let in",
        "handlers/reach/forbidden_calls.py",
        '"random. secrets. uuid. ',
        '"random. secrets. ',
        _REFUSED,
    ),
    Bug(
        "nested containers hold no states",
        "handlers/reach/held_values.py",
        "            waiting += contained(part) or ()\n",
        "",
        _USES,
    ),
    Bug(
        "an access that the order does not count with is let in",
        "handlers/reading/analysis.py",
        "    _check_uses(accesses, uses, function.__code__.co_filename)\n",
        "",
        _USES,
    ),
    # --- compilation ---
    Bug(
        "handlers run as they are defined",
        "handlers/planning/handler_order.py",
        "writer.writes & (reader.reads - reader.writes)",
        "writer.writes & frozenset()",
        _WORKED,
    ),
    Bug(
        "who reads and writes waits for other writers",
        "handlers/planning/handler_order.py",
        "writer.writes & (reader.reads - reader.writes)",
        "writer.writes & reader.reads",
        _WORKED,
    ),
    Bug(
        "event types go from the last to the first",
        "handlers/planning/entrance.py",
        "Enter(node, n, depth) for",
        "Enter(node, -n, depth) for",
        ("tests/unit/handlers/test_app_compiler.py",),
    ),
    Bug(
        "what is emitted in loops comes behind the rest",
        "handlers/planning/emitted_streams.py",
        "if _mixes_elements(emitting):",
        "if False:",
        _WORKED,
    ),
    Bug(
        "n + x on DOUBLE becomes an exact sum",
        _MERGES,
        'return "call", (number,), function',
        'return "add", (number,), None',
        ("tests/unit/handlers/test_scan_merges.py",),
    ),
    Bug(
        "n - 1 adds one",
        _MERGES,
        "Const(-value, line=new.line)",
        "Const(value, line=new.line)",
        ("tests/unit/handlers/test_scan_merges.py",),
    ),
    Bug(
        "a ring that begins with a loop has a row for each element",
        "handlers/planning/scan_planner.py",
        "if place.block is not None:",
        "if place.steps[0].block is not None:",
        _WORKED,
    ),
    Bug(
        "a later run goes on from a rounded sum",
        "handlers/planning/scan_planner.py",
        "return self._inputs.final or bool(others)",
        "return bool(others)",
        _WORKED,
    ),
    # --- scans ---
    Bug(
        "what has ended is saved",
        "kernels/operators/final_state.py",
        "            self._scan.drop(self._as_of)",
        "            pass",
        ("tests/unit/kernels/test_state_scan.py",),
    ),
    Bug(
        "a handler's functions in a window share their arguments",
        "kernels/structures/saved_cells.py",
        'column.rpartition(".")[0] == name',
        'column.startswith(f"{name}.")',
        _WORKED,
    ),
    Bug(
        "a cell expires one tick late",
        _CELLS,
        "time >= merged + (self._expires or 0)",
        "time > merged + (self._expires or 0)",
        _SCANS,
    ),
    Bug(
        "an expired cell goes on from its old value",
        _CELLS,
        "            old = self.default\n        if kind in _OF_ELEMENTS",
        "            pass\n        if kind in _OF_ELEMENTS",
        _SCANS,
    ),
    Bug(
        "a window holds a merge one tick too long",
        _CELLS,
        "over = time - self._last",
        "over = time - self._last - 1",
        _SCANS,
    ),
    Bug(
        "the largest of a window never leaves",
        _WINDOWS,
        "if self._best and self._best[0] is merge:",
        "if False:",
        ("tests/unit/kernels/test_cell_windows.py",),
    ),
    Bug(
        "what a silent key holds is kept",
        _CELLS,
        " or time >= self._at + self._span",
        "",
        ("tests/unit/kernels/test_cell_windows.py",),
    ),
    Bug(
        "saved cells undo what was merged",
        "kernels/structures/saved_cells.py",
        "if len(rows) and int(rows.vs.max()) > first:",
        "if False:",
        ("tests/unit/kernels/test_cell_windows.py",),
    ),
    Bug(
        "another app's merges are taken over",
        "replay/saved_state.py",
        'if differences := ", ".join(changes(before.merges, now.merges)):',
        "if False:",
        ("tests/unit/replay/test_saved_merges.py",),
    ),
    Bug(
        "a state is as of the tick before the end",
        "replay/app_replay.py",
        "return upto if upto is None or self.task.end is not None else upto - 1",
        "return None if upto is None else upto - 1",
        ("tests/unit/replay/test_spans.py",),
    ),
    Bug(
        "requests of an event go backwards",
        "kernels/structures/requests.py",
        "key=lambda r: (r.block, r.order, r.port)",
        "key=lambda r: (-r.block, -r.order, r.port)",
        _SCANS,
    ),
    Bug(
        "a set has elements twice",
        _CELLS,
        "if any(canonical_key(v) == mine for v in old):",
        "if not old:",
        _SCANS,
    ),
    Bug(
        "the best values are ascending",
        _WINDOWS,
        "sorted(values, key=_rank, reverse=True)[:k]",
        "sorted(values, key=_rank)[:k]",
        _SCANS,
    ),
)
