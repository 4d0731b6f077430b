"""Bugs in how the store's objects are sealed, named and chained."""

from sabotage.bugs import Bug

_COMMITS, _RECORDS, _OBJECTS = "job/commit_log.py", "job/record_reader.py", "reliable/objects.py"
_RUNNING, _MANAGER, _LOG = "job/hosted_instance.py", "job/manager.py", "ingress/ingress_log.py"
_MACHINE = ("tests/machine", "tests/faults/test_adversary.py")
_REFUSALS = ("tests/unit/spark/test_live_refusals.py",)
_RESUME = ("tests/unit/spark/test_live_resume.py",)

BUGS = (
    Bug(
        "an object's name is not under its seal",
        _OBJECTS,
        'hashlib.sha256(key.encode() + b"\\0")',
        'hashlib.sha256(b"\\0")',
        _MACHINE,
    ),
    Bug(
        "a reference does not compare the seal",
        _OBJECTS,
        "if meant[:SEAL].hex() != self.seal:",
        "if not meant:",
        ("tests/unit/reliable/test_objects.py",),
    ),
    Bug(
        "the first absent commit is taken for the end",
        _COMMITS,
        "if body is None and thorough and (later := later_commit(store, sink, number)):",
        'if body is None and (later := ""):',
        _MACHINE,
    ),
    Bug(
        "a commit need not follow the one before it",
        _COMMITS,
        "    if commit.before != last:",
        "    if commit.number < 0:",
        _MACHINE,
    ),
    Bug(
        "committed rows are not counted",
        _COMMITS,
        "if total != commit.digest or",
        "if total.count < 0 or",
        _MACHINE,
    ),
    Bug(
        "a damaged commit ends the chain though others follow",
        _COMMITS,
        "        if later := later_commit(store, sink, number):\n"
        '            raise SnapshotCorrupt(f"{error}; {later} follows it: {LOST}") from error\n',
        "",
        _MACHINE,
    ),
    Bug(
        "readers do not ask the record for the last commit",
        "job/output_reader.py",
        "recorded[-1].ref if recorded else None, since, thorough",
        "None, since, thorough",
        ("tests/faults/test_adversary.py", "tests/unit/job/test_output_reader.py"),
    ),
    Bug(
        "a hint ahead of the records is ignored",
        _RECORDS,
        "if hint is not None and hint > _number(ledger):",
        "if False:",
        _MACHINE,
    ),
    Bug(
        "a commit ahead of the records is ignored",
        _RECORDS,
        "            ledger = last_record(store)  # it may have come since\n"
        "        if commit.record > _number(ledger):",
        "            ledger = last_record(store)  # it may have come since\n        if False:",
        _MACHINE,
    ),
    Bug(
        "a damaged record hides its successors",
        _RECORDS,
        "while store.get(record_key(number)) is not None:",
        "while records.ledger(number) is not None:",
        _MACHINE,
    ),
    Bug(
        "garbage in the next record's place is another manager",
        "job/record_writer.py",
        "if _is_record(key, body):",
        "if body:",
        _MACHINE,
    ),
    Bug(
        "a lost commit is gone back from",
        _MANAGER,
        "if any(not is_ephemeral(key) for key in report.corrupt):",
        "if False:",
        _MACHINE,
    ),
    Bug(
        "a sink follows any commit",
        "job/sink_commits.py",
        "if commit.before != self._last_commit:",
        "if False:",
        _MACHINE,
    ),
    Bug(
        "rows of a commit that was lost are dropped",
        "job/sink_commits.py",
        "            return [self._put_commit(self._commit, new=new)]\n",
        "            pass\n",
        _MACHINE,
    ),
    Bug(
        "a snapshot may be of other positions",
        _RUNNING,
        "decode_snapshot(key, restart.ref.check(body))",
        "decode_snapshot(key, body or b'')",
        _MACHINE,
    ),
    Bug(
        "a log may lack records that are known",
        _LOG,
        "if later is None or number_of(later) < self._number:",
        "if True:",
        _MACHINE,
    ),
    Bug(
        "a log's records need not follow one another",
        _LOG,
        "if following.record.before != self._before:",
        "if False:",
        _MACHINE,
    ),
    Bug(
        "another format's store is read",
        "job/job_identity.py",
        "if version != str(FORMAT) or len(head) == len(version):",
        "if False:",
        _MACHINE,
    ),
    Bug(
        "a sweep deletes parts whose commit is lost",
        "job/garbage_sweep.py",
        "elif number > last.get(sink, -1):",
        "else:",
        _MACHINE,
    ),
    Bug(
        "a mark needs what was read before a whole snapshot",
        "reliable/rebuildable_vertex.py",
        "return None if at < 0 else self._positions[0]",
        "return self._positions[0]",
        (
            "tests/unit/reliable/test_rebuildable_vertex.py",
            "tests/faults/test_changed_strategies.py",
        ),
    ),
    Bug(
        "a job that is resumed is planned anew",
        "spark/live/job_setup.py",
        "plan_program(program, decisions.parallelism, pays=pays)",
        "plan_program(program, decisions.parallelism)",
        _RESUME,
    ),
    Bug(
        "any program goes on with a job",
        "spark/live/job_setup.py",
        "    if difference:\n",
        "    if False:\n",
        _RESUME,
    ),
    Bug(
        "the store is taken before strategies are checked",
        "spark/live/job_setup.py",
        "        recovering = _recovering(program, planned.stages)\n"
        "        objects = _taken_store(location, job)\n",
        "        objects = _taken_store(location, job)\n"
        "        recovering = _recovering(program, planned.stages)\n",
        _RESUME,
    ),
    Bug(
        "a store is made for a job that is refused",
        "spark/live/job_setup.py",
        "        opened = all_partitions(program, directory, recorded)\n",
        "        ObjectStore(location)\n"
        "        opened = all_partitions(program, directory, recorded)\n",
        _REFUSALS,
    ),
    Bug(
        "words of a plan are compared",
        "plan/plan_fingerprint.py",
        "if (old.where, old.hash) == (new.where, new.hash):",
        "if (old.where, old.words) == (new.where, new.words):",
        ("tests/unit/plan/test_plan_fingerprint.py", *_RESUME),
    ),
)
