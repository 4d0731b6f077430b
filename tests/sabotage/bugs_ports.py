"""Bugs of what listens, of what peers send, and of the limits of programs."""

from sabotage.bugs import Bug

_PEERS, _FLIGHT, _MANAGER = (
    "spark/live/message_checks.py",
    "spark/live/flight.py",
    "spark/live/manager_driver.py",
)
_TLS_TESTS = ("tests/unit/spark/test_tls.py",)
_WORD_TESTS = ("tests/unit/spark/test_link_messages.py",)
_PEER_TESTS = ("tests/unit/spark/test_message_checks.py",)
_LIMIT_TESTS = ("tests/unit/plan/test_limits.py",)

BUGS = (
    Bug(
        "anybody may speak TLS",
        _FLIGHT,
        "verify_client=tls is not None,",
        "verify_client=False,",
        _TLS_TESTS,
    ),
    Bug(
        "a certificate for servers alone is taken",
        "spark/live/tls.py",
        "if refused := _refused(certificate, key, authority or certificate):",
        "if refused := '':",
        _TLS_TESTS,
    ),
    Bug(
        "half of the secret is enough",
        _FLIGHT,
        'if not hmac.compare_digest(header.encode("utf-8", "surrogateescape"), self._expected):',
        "if not self._expected.startswith(header.encode()):",
        ("tests/unit/spark/test_flight.py",),
    ),
    Bug(
        "rows are not looked at before they are read",
        _PEERS,
        "check_intact(record)",
        "record.validate()",
        _WORD_TESTS,
    ),
    Bug(
        "NULL may be a time",
        _PEERS,
        "if any(column.null_count for column in record.columns[:times]):",
        "if False:",
        _WORD_TESTS,
    ),
    Bug(
        "a report may name any object to be deleted",
        _PEERS,
        'if not (segment.key.startswith(f"streams/{stream}/") and is_known(segment.key)):',
        "if not segment.key:",
        _PEER_TESTS,
    ),
    Bug(
        "checkpoints of another vertex's shape are believed",
        _PEERS,
        "if (len(saved.inputs), len(saved.needs), len(saved.outputs)) != (reads, reads, writes):",
        "if len(saved.inputs) > 1000:",
        _PEER_TESTS,
    ),
    Bug(
        "every session is remembered for ever",
        _MANAGER,
        "if self._answers.get(report.session) is answers:",
        "if False:",
        ("tests/unit/spark/test_live_manager.py",),
    ),
    Bug(
        "whatever is asked of the manager is a report",
        _MANAGER,
        'if name != "report":',
        "if not name and not body:",
        ("tests/unit/spark/test_live_manager.py",),
    ),
    Bug(
        "what cannot be rows is waited for again",
        "job/host.py",
        'self._running[vertex].fail(f"stream {cursor.stream}: {why}")',
        "self._break(vertex, input, now)",
        ("tests/machine/test_host.py",),
    ),
    Bug(
        "schemas need a deep stack",
        "plan/operators/abstract.py",
        "unknown = [i for i in stack[-1].inputs if name not in i.__dict__]",
        "unknown = []",
        _LIMIT_TESTS,
    ),
    Bug(
        "projections are merged without end",
        "plan/rewrites/rewrite.py",
        "if _deepest(exprs) + _deepest([e for _, e in inner.columns]) > MOST_PARTS:",
        "if not exprs:",
        _LIMIT_TESTS,
    ),
    Bug(
        "a union of unions counts as two branches",
        "plan/limits.py",
        "return operators, sum(branches for _, branches in below)",
        "return operators, len(below)",
        _LIMIT_TESTS,
    ),
    Bug(
        "a long sum is not deep",
        "script/cursor.py",
        "if depth > MOST_PARTS:",
        "if depth < 0:",
        ("tests/unit/script/test_script_expressions.py",),
    ),
    Bug(
        "a terminal is told what a program says",
        "errors.py",
        "before = visible(source_line[start : column - 1])",
        "before = source_line[start : column - 1]",
        ("tests/unit/script/test_script_errors.py",),
    ),
)
