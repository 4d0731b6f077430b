"""Bugs of handlers that run as they are: their plans, their runs, what guards them."""

from sabotage.bugs import Bug

_RUNS, _STAGES = "handlers/runs/handler_runs.py", "handlers/planning/row_stages.py"
_CELLS = "kernels/structures/live_cells.py"
_RUN_TESTS = ("tests/unit/handlers/test_handler_runs.py",)
_FLOW_TESTS = ("tests/unit/handlers/test_dataflow.py",)
_CELL_TESTS = ("tests/unit/kernels/test_row_scan.py",)
_LIST_TESTS = ("tests/unit/handlers/test_list_reads.py",)
_EARLY_TESTS = ("tests/replay_oracle/test_early_reads.py",)

BUGS = (
    # --- plans ---
    Bug(
        "a read is early though the unit merges before",
        _STAGES,
        "return read.state in reachable(merged - self._live, self._edges)",
        "return False",
        _FLOW_TESTS,
    ),
    Bug(
        "live states of a unit may have many keys",
        _STAGES,
        "            if not same_key(first, access, any_state=True):",
        "            if False:",
        _FLOW_TESTS,
    ),
    Bug(
        "a key that fails is needed by every row",
        "handlers/planning/handler_order.py",
        "key = tuple(tried(changed_tree(part, leaf)) for part in read.key)",
        "key = tuple(changed_tree(part, leaf) for part in read.key)",
        _EARLY_TESTS,
    ),
    Bug(
        "a list that was changed counts as it was",
        "handlers/reading/execution.py",
        "            if part in self.handed_on and (",
        "            if False and (",
        _LIST_TESTS,
    ),
    Bug(
        "an event comes before its elements",
        "handlers/planning/gathering_scans.py",
        "StateRead(n, cell.state, last, last)",
        "StateRead(n, cell.state, -1, -1)",
        _LIST_TESTS,
    ),
    Bug(
        "a check without a place is dropped",
        "handlers/reading/checks.py",
        "            apart.append(check)",
        "            continue",
        _EARLY_TESTS,
    ),
    # --- runs ---
    Bug(
        "a failure that the handler catches is forgotten",
        _RUNS,
        'lines.append("if cursor.failure is not None: raise cursor.failure")',
        'lines.append("pass")',
        _RUN_TESTS,
    ),
    Bug(
        "a later run gets the first answer each time",
        _RUNS,
        "here.next_answers[state] = number + 1",
        "here.next_answers[state] = 0",
        _RUN_TESTS,
    ),
    Bug(
        "an answer is that of any key",
        _RUNS,
        "            if _same_key(parts, values, at):",
        "            if at:",
        _RUN_TESTS,
    ),
    Bug(
        "handlers share the lists of an event",
        _RUNS,
        'event = "made(fresh(values))" if nested else f"made({row})"',
        'event = f"made({row})"',
        _RUN_TESTS,
    ),
    Bug(
        "what handlers change outside is not looked at",
        "handlers/runs/hidden_state.py",
        "            if self._before.setdefault((name, holder), fingerprint) != fingerprint:",
        "            if False:",
        _RUN_TESTS,
    ),
    Bug(
        "a read by elements takes the first answer",
        _RUNS,
        "                answers[_dict_key(key)] = tuple(key), answer",
        "                answers[_dict_key(key)] = tuple(key), values[at][0]",
        _LIST_TESTS,
    ),
    # --- cells ---
    Bug(
        "a sum of DECIMALs has as many digits as Python's",
        "kernels/structures/cell_windows.py",
        "EXACT = Context(prec=100)",
        "EXACT = Context(prec=28)",
        ("tests/unit/handlers/test_decimal_sums.py",),
    ),
    Bug(
        "a live state takes the key of another row",
        _CELLS,
        "        if any_key(key) != row:",
        "        if False:",
        _CELL_TESTS,
    ),
    Bug(
        "a merge function may merge",
        _CELLS,
        "            if cursor.merging:\n                raise UnplannedAccess(",
        "            if False:\n                raise UnplannedAccess(",
        _CELL_TESTS,
    ),
    Bug(
        "a NaN of a state is not that of events",
        "kernels/structures/accessor_code.py",
        'lines.append("if value != value: value = nan")',
        'lines.append("pass")',
        _CELL_TESTS,
    ),
)
