"""Bugs that somebody could write, as changes of text: the tests must find each of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bug:
    """Replace `text`, which must be there once, by `by`."""

    name: str
    file: str
    text: str
    by: str
    tests: tuple[str, ...] = ()
    """Which tests find it, where those of the machines and the simulator cannot."""


_LOG, _CURSOR, _OBJECTS = "reliable/log.py", "reliable/cursor.py", "reliable/objects.py"
_VERTEX, _LEDGER, _RUNNING = "reliable/vertex.py", "job/ledger.py", "job/hosted_instance.py"
_LOW_WATER = "job/low_water.py"
_MANAGER, _HOST, _REQUESTS = "job/manager.py", "job/host.py", "job/store_requests.py"
_RECORDS, _COMMITS, _REGISTRY = (
    "job/record_writer.py",
    "job/sink_commits.py",
    "job/host_registry.py",
)

BUGS = (
    # --- streams ---
    Bug(
        "rows written again are not dropped",
        _LOG,
        "repeated = min(self._end - entry.seq, len(entry.rows))",
        "repeated = 0",
    ),
    Bug("a stream forgets one row too many", _LOG, "if e.end <= seq])", "if e.end <= seq + 1])"),
    Bug(
        "the last claim goes with its rows",
        _LOG,
        "self._entries = [claim]\n            self._seqs, self._sizes = [claim.seq], [0]",
        "self._entries, self._seqs, self._sizes = [], [], []",
    ),
    Bug(
        "a segment behind a gap counts as durable",
        _LOG,
        "if segment.first <= self.durable < segment.end:",
        "if self.durable < segment.end:",
    ),
    Bug(
        "volatile rows are forgotten",
        _LOG,
        "if entry.end > durable or (entry.end > read and not over):",
        "if entry.end > read:",
    ),
    Bug(
        "a slow reader holds up the writer",
        _LOG,
        "return all(\n            self._has_unread(",
        "return any(\n            self._has_unread(",
    ),
    Bug(
        "one of its streams holds up a vertex",
        _HOST,
        "all(s.is_ahead(self._settings.ahead_buffer) for s in written)",
        "any(s.is_ahead(self._settings.ahead_buffer) for s in written)",
    ),
    Bug(
        "a vertex reads what is ahead only",
        "kernels/operators/time_merge.py",
        "if self._ctis[stream] == least]",
        "if self._ctis[stream] != least]",
    ),
    Bug(
        "a cursor takes rows twice",
        _CURSOR,
        "new = entry.since(self._next_number)",
        "new = entry",
    ),
    Bug(
        "a cursor takes a gap",
        _CURSOR,
        "if entry.seq > self._next_number:",
        "if entry.seq > self._next_number + 1:",
    ),
    Bug(
        "a reconnect forgets what waits",
        _CURSOR,
        "self._next_number = self._queue[-1][0].end if self._queue else self.position",
        "self._next_number = self.position",
    ),
    Bug(
        "connections of two instances have one number",
        _CURSOR,
        'self.connection = next(_numbers)\n        """The number of the present',
        'self.connection = 0\n        """The number of the present',
    ),
    Bug(
        "checksums are not compared",
        _OBJECTS,
        "seal_of(key, content) != body[:SEAL]:",
        "seal_of(key, content) == body:",
    ),
    # --- snapshots ---
    Bug(
        "a snapshot forgets the claim",
        _VERTEX,
        'self._cti = snapshot.tables["$vertex"].column(0)[0].as_py()',
        "self._cti = START",
    ),
    Bug(
        "a mere claim must have columns",
        _VERTEX,
        "        if len(entry.rows):\n            self._chain.push(",
        "        if True:\n            self._chain.push(",
    ),
    Bug(
        "a snapshot forgets the output positions",
        _VERTEX,
        "return Snapshot(tuple(self._read), self._outputs, tables)",
        "return Snapshot(tuple(self._read), tuple(0 for _ in self._outputs), tables)",
    ),
    Bug(
        "a restart does not rewind its inputs",
        _VERTEX,
        "stream.register((self.name, input), seq)\n        # The claim",
        "pass\n        # The claim",
    ),
    Bug(
        "a source forgets where its ingress stood",
        "runtime/source_vertex.py",
        "self._ingress.load(state)",
        "self._ingress.load(state | {next(iter(state)): 0})",
    ),
    # --- what is durable ---
    Bug(
        "a checkpoint is told before it is written",
        _RUNNING,
        "        return [Put(key, lambda: encode_snapshot(key, snapshot))]",
        "        self._checkpoints.append(self._saving)\n"
        "        return [Put(key, lambda: encode_snapshot(key, snapshot))]",
    ),
    Bug(
        "a segment is told before it is written",
        "job/segment_flush.py",
        "stream.flushing = segment",
        "stream.flushed(segment)",
    ),
    Bug(
        "a commit is written before its rows",
        _COMMITS,
        "if not waiting:\n            return [self._put_commit(self._commit)]",
        "if True:\n            return [self._put_commit(self._commit)]",
    ),
    Bug(
        "a commit can be made twice",
        _COMMITS,
        "return Put(key, lambda: body, new=new)",
        "return Put(key, lambda: body)",
    ),
    Bug(
        "a refused commit counts",
        _COMMITS,
        "        if ref is None:\n            return [Get(key)]",
        "        ref = ref or ObjectRef.of(key, self._commit_body)",
    ),
    Bug(
        "a sink does not look for commits nobody heard of",
        _COMMITS,
        "        return [Get(self._key(commit.number + 1))]",
        "        self.is_ready = True\n        return []",
    ),
    Bug(
        "a checkpoint under way counts as one taken after the ask",
        _RUNNING,
        "self._kept = max(self._kept, self._saving_for)",
        "self._kept = max(self._kept, self.asked)",
    ),
    Bug("an answer goes to the successor", _REQUESTS, "if len(line) == 1:", "if len(line) >= 1:"),
    Bug(
        "a failed write is not tried again",
        _REQUESTS,
        "if all(line != (kind, key) for _, line in self._again):",
        "if False:",
    ),
    # --- recovery and collection ---
    Bug(
        "a checkpoint counts though its output is lost",
        "reliable/strategies.py",
        "if all(out <= end for out, end",
        "if all(out <= end + 1000000 for out, end",
    ),
    Bug(
        "collection is off by one",
        _LOW_WATER,
        "if s.end > needed), len(segments))",
        "if s.end > needed + 1), len(segments))",
    ),
    Bug(
        "low-water marks follow the furthest reader",
        _LEDGER,
        "needed[stream] = min(needed.get(stream, UNREAD), start)",
        "needed[stream] = start",
    ),
    Bug(
        "an older checkpoint replaces a newer one",
        _LEDGER,
        "return all(a >= b for a, b in zip(mine, before, strict=True))",
        "return True",
    ),
    Bug(
        "checkpoints after claims alone are never named",
        _LEDGER,
        "return (later.incarnation, later.number) > (earlier.incarnation, earlier.number)",
        "return False",
    ),
    Bug(
        "garbage is deleted before the record is durable",
        _RECORDS,
        "        return [self._begin(self._maker.next_record(), garbage)]",
        "        put = self._begin(self._maker.next_record(), garbage)\n"
        "        return [put, *([Delete(garbage)] if garbage else [])]",
    ),
    Bug(
        "hosts forget rows before the record is durable",
        "job/placement.py",
        "collect={s: collected.get(s, 0) for s in spec.outputs}",
        "collect={s: ledger.collected.get(s, 0) for s in spec.outputs}",
    ),
    Bug(
        "the sweep does not spare the durable record",
        _RECORDS,
        "return self._ledger.names.union(self._maker.left, leaving)",
        "return self._ledger.names",
    ),
    Bug(
        "what cannot be read is believed again",
        _MANAGER,
        "self._spoiled.update(report.corrupt)",
        "pass",
    ),
    # --- fencing ---
    Bug(
        "a record of another manager is taken for one's own",
        _RECORDS,
        "if body == written.record.body:",
        "if body is not None:",
    ),
    Bug("managers have no names", _MANAGER, "ledger.manager = name", "ledger.manager = ''"),
    Bug(
        "what a lost host says counts",
        _MANAGER,
        "if self._over or report.session in self._registry.lost:",
        "if self._over:",
    ),
    Bug(
        "what an old incarnation says counts",
        "job/placement.py",
        "if placement.incarnation == report.incarnation and placement.session == session:",
        "if placement.session == session:",
    ),
    Bug(
        "a manager that slept gives up its hosts",
        _REGISTRY,
        "host.heard = min(host.heard + slept, now)",
        "pass",
    ),
    Bug("the job ends with its first sink", _MANAGER, "if all(any(p.report", "if any(any(p.report"),
    Bug(
        "orders that were overtaken are obeyed",
        _HOST,
        "if is_same and orders.number <= self._number:",
        "if is_same and orders.number < 0:",
    ),
    Bug(
        "orders of an old manager are obeyed",
        _HOST,
        "if orders.session != self.session or orders.epoch < self._epoch:",
        "if orders.session != self.session:",
    ),
    Bug(
        "an old hint hides the last record",
        "job/record_reader.py",
        "else [])}, reverse=True):",
        "else [])}):",
    ),
    Bug(
        "a hint comes after a later one",
        _RECORDS,
        "        if self._hinting is not None:\n            return []\n",
        "",
    ),
    Bug(
        "records are deleted that the hint does not lead past",
        "job/garbage_sweep.py",
        "old_records(keys, unneeded),",
        "old_records(keys, ledger.number),",
    ),
    Bug(
        "a listing hides the last commit",
        "job/record_reader.py",
        "while (later := _whole_commit(store, sink, number)) is not None:",
        "while (later := _whole_commit(store, sink, -1)) is not None:",
    ),
    Bug(
        "all hosts are given up when the store is away",
        "job/store_trouble.py",
        "if MANAGER in self._troubles or len(troubled) >= hosts:",
        "if False:",
    ),
    Bug(
        "a host that alone cannot use the store stays",
        "job/store_trouble.py",
        "if trouble.seconds > limit and self._recorded_at",
        "if False and self._recorded_at",
    ),
    # --- logs of sources ---
    Bug(
        "a record of a log that was made anew is believed",
        "ingress/ingress_log.py",
        "ObjectRef.of(self._last.key, body) != self._last:",
        "body == b'':",
    ),
    Bug(
        "a log is collected one record too far",
        _LOW_WATER,
        "0 if usable is None else usable.log",
        "0 if usable is None else usable.log + 1",
    ),
    Bug(
        "a source that lost its log starts again for ever",
        _MANAGER,
        "if report.error and not log_is_ahead(placement, self.ledger):",
        "if False:",
    ),
    Bug(
        "a manager that cannot write goes on for ever",
        _RECORDS,
        "elif now - writing.failing_since > self._settings.trouble_limit:",
        "elif now < 0:",
    ),
)
