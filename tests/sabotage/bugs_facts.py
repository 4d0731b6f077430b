"""Bugs in what hosts and the manager tell each other, and in the records as differences."""

from sabotage.bugs import Bug

_FACTS, _HOST, _MANAGER = "job/facts.py", "job/host.py", "job/manager.py"
_PLACEMENT, _LOW_WATER, _WRITER = "job/placement.py", "job/low_water.py", "job/record_writer.py"
_CHANGE, _READER = "job/ledger_difference.py", "job/record_reader.py"
_TOLD = ("tests/machine/test_facts.py",)
_LEDGERS = ("tests/property/test_ledger_changes.py",)
_STORED = ("tests/machine/test_record_chain.py",)

BUGS = (
    # --- facts ---
    Bug("one fact too few is said", _FACTS, "if said <= number:", "if said <= number + 1:", _TOLD),
    Bug("a fact that replaces another keeps its place", _FACTS,
        "        self._facts.pop(key, None)\n", "", _TOLD),
    Bug("facts are forgotten before they are acknowledged", _FACTS,
        "            if said > number:", "            if said > number + 1:", _TOLD),
    Bug("who needs what is forgotten is told the rest", _FACTS,
        "if not self.acknowledged <= number <= self.number:", "if number > self.number:", _TOLD),
    Bug("what was never said can be acknowledged", _FACTS,
        "if not self.acknowledged <= number <= self.number:",
        "if number < self.acknowledged:", _TOLD),
    # --- reports ---
    Bug("the manager does not miss a gap", _MANAGER,
        "if host is None or report.since > host.taken:", "if host is None:", _TOLD),
    Bug("the manager acknowledges what it did not take", _MANAGER,
        "            taken=host.taken,", "            taken=host.report.upto,", _TOLD),
    Bug("of several facts a host says the last one", _HOST,
        "facts = self._facts.since(since) if since else None",
        "facts = self._facts.since(max(since, self._facts.number - 1)) if since else None", _TOLD),
    Bug("a manager that has less is told the rest", _HOST,
        "self._taken_by_manager = orders.taken\n",
        "self._taken_by_manager = max(self._taken_by_manager, orders.taken)\n", _TOLD),
    Bug("a host with news waits for its next sign of life", _HOST,
        "            self._facts.number > self._taken_by_manager\n            or ",
        "            ", _TOLD),
    Bug("a segment that was said once and did not fit is forgotten", _PLACEMENT,
        "                if not held or segment.end > held[-1].end:",
        "                held.clear()\n                if True:", _TOLD),
    # --- orders ---
    Bug("a host does not miss a gap", _HOST,
        "if orders.since <= self._taken:", "if True:", _TOLD),
    Bug("a host acknowledges what another manager has said", _HOST,
        "        if not is_same:\n            self._taken = 0\n", "", _TOLD),
    Bug("a manager believes what a host has of another's", _MANAGER,
        "since = heard.taken if is_ours else 0", "since = heard.taken", _TOLD),
    Bug("hosts are not told what to drop", _PLACEMENT,
        "dropped=tuple(name for name in kinds.get(\"run\", ()) if name not in runs),",
        "dropped=(),", _TOLD),
    Bug("readers are not told who serves them now", _PLACEMENT,
        "self._say_all(reader, \"served\", vertex)", "pass", _TOLD),
    Bug("one that another instance has overtaken does not learn of it", _PLACEMENT,
        "if placement.incarnation != restart.incarnation:", "if False:", _TOLD),
    Bug("one that still loads misses what is collected", _HOST,
        "stream: max(collected, order.collect.get(stream, 0))},", "},", _TOLD),
    # --- marks ---
    Bug("a mark does not rise with its slowest reader", _LOW_WATER,
        "        elif old == before:", "        elif old != before:", _LEDGERS),
    Bug("a vertex whose segments grew is not looked at again", _LOW_WATER,
        "vertices[self._topology.streams[stream].writer] = None", "pass", _LEDGERS),
    Bug("a writer is not looked at when less is asked of it", _LOW_WATER,
        "                yield writer", "                yield from ()", _LEDGERS),
    # --- records ---
    Bug("a base that is still needed is deleted", _WRITER,
        "min(self.hinted - self._settings.kept_records, bases[-2] if len(bases) > 1 else -1)",
        "self.hinted - self._settings.kept_records", _STORED),
    Bug("a difference is taken after another record than its own", _CHANGE,
        "if (ledger.number, ledger.base) != (self.before, self.base):", "if False:", _LEDGERS),
    Bug("a record is skipped that a later one needs", _READER,
        "        if lost > _number(ledger):", "        if False:", _STORED),
    Bug("what follows a record that was not written is no base", _CHANGE,
        "        self._base_is_due = True\n        made", "        made", _STORED),
    Bug("a difference forgets what has gone in front", _CHANGE,
        "                slides[key] = dropped, kept, new[kept:]",
        "                slides[key] = 0, kept, new[kept:]", _LEDGERS),
)  # fmt: skip
