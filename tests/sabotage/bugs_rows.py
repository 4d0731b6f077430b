"""Bugs of handlers that run as they are: their plans, their runs, what guards them."""

from sabotage.bugs import Bug

_RUNS, _STAGES = "handlers/runs/handler_runs.py", "handlers/planning/row_stages.py"
_CELLS = "kernels/structures/live_cells.py"
_RUN_TESTS = ("tests/unit/handlers/test_handler_runs.py",)
_FLOW_TESTS = ("tests/unit/handlers/test_dataflow.py",)
_CELL_TESTS = ("tests/unit/kernels/test_row_scan.py",)
_EARLY_TESTS = ("tests/replay_oracle/test_early_reads.py",)

BUGS = (
    # --- plans ---
    Bug("a read is early though the unit merges before", _STAGES,
        "return read.state in reachable(merged - self._live, self._edges)", "return False",
        _FLOW_TESTS),
    Bug("live states of a unit may have many keys", _STAGES,
        "            if not same_key(first, access, any_state=True):", "            if False:",
        _FLOW_TESTS),
    Bug("a key that fails is needed by every row", "handlers/planning/handler_order.py",
        "_answered(read, following + n, tuple(map(tried, read.key)), deferring)",
        "_answered(read, following + n, read.key, deferring)", _EARLY_TESTS),
    Bug("a check without a place is dropped", "handlers/reading/checks.py",
        "            apart.append(check)", "            continue",
        _EARLY_TESTS),
    # --- runs ---
    Bug("a failure that the handler catches is forgotten", _RUNS,
        'lines.append("if cursor.failure is not None: raise cursor.failure")',
        'lines.append("pass")', _RUN_TESTS),
    Bug("a later run gets the first answer each time", _RUNS,
        "here.next_answers[state] = number + 1", "here.next_answers[state] = 0", _RUN_TESTS),
    Bug("an answer is that of any key", _RUNS,
        "            if _same_key(parts, values, at):", "            if at:", _RUN_TESTS),
    Bug("handlers share the lists of an event", _RUNS,
        'event = "made(fresh(values))" if nested else f"made({row})"', 'event = f"made({row})"',
        _RUN_TESTS),
    Bug("what handlers change outside is not looked at", "handlers/runs/hidden_state.py",
        "            if self._before.setdefault((name, holder), fingerprint) != fingerprint:",
        "            if False:", _RUN_TESTS),
    # --- cells ---
    Bug("a live state takes the key of another row", _CELLS,
        "        if any_key(key) != row:", "        if False:", _CELL_TESTS),
    Bug("a merge function may merge", _CELLS,
        "            if cursor.merging:\n                raise UnplannedAccess(",
        "            if False:\n                raise UnplannedAccess(", _CELL_TESTS),
    Bug("a NaN of a state is not that of events", "kernels/structures/accessor_code.py",
        'lines.append("if value != value: value = nan")', 'lines.append("pass")', _CELL_TESTS),
)  # fmt: skip
