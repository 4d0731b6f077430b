"""Bugs in what comes in from outside."""

from sabotage.bugs import Bug

_FOLLOWED = ("tests/unit/ingress/test_followed.py",)
_LIMITS = ("tests/unit/files/test_record_limits.py",)
_DAMAGE = ("tests/unit/files/test_damage.py",)
_SOURCE = ("tests/machine/test_source_machine.py",)
_FRAMING, _UNCHANGED = "files/framing.py", "ingress/unchanged.py"
_MACHINE, _LOG = "ingress/source_machine.py", "ingress/ingress_log.py"
_TAIL, _FOLDER, _TCP = (f"ingress/connectors/{name}.py" for name in ("tail", "folder", "tcp"))

BUGS = (
    Bug("a last line without a line end is dropped", _TAIL,
        "self._take(self._framer.end())", "self._take([])", _FOLLOWED),
    Bug("what stands before the position is not looked at", _TAIL,
        "            self._check_window(file, begin)\n", "", _FOLLOWED),
    Bug("a file of the same size is believed at its end", _TAIL,
        "        self._check_window(file, file.tell())\n", "", _FOLLOWED),
    Bug("a file is believed after a restart", _UNCHANGED,
        "if mark.read and prefix.digest != mark.digest:", "if False:", _FOLLOWED),
    Bug("how a file begins is not logged", _TAIL,
        "if self._is_begun or until is not None:", "if True:", _FOLLOWED),
    Bug("the ends of a Parquet file are not compared", _UNCHANGED,
        "if mark.read and mark != edges:", "if False:", _FOLLOWED),
    Bug("a claim behind the end of a file is waited for", _MACHINE,
        'raise gone("was truncated", self._partition, offset)', "yield Wait(0.1)", _SOURCE),
    # --- the source's machine and its connectors ---
    Bug("rows are not cut where a record stands", _MACHINE,
        "yield Poll(self._size, until)", "yield Poll(self._size, None)", _SOURCE),
    Bug("what was offered takes effect though another's record stands there", _MACHINE,
        "        if ref is not None:\n            yield from self._take(Logged(record, ref)",
        "        if True:\n            yield from self._take(Logged(record, ref)", _SOURCE),
    Bug("a claim before rows that were given is believed", _MACHINE,
        "if record.offset < self._offset and not again:", "if False:", _SOURCE),
    Bug("a source that goes on says old claims again", _MACHINE,
        "if record.offset >= self._start:", "if True:", _FOLLOWED),
    Bug("a chunk names the first record of its log for ever", _MACHINE,
        "        self._record = found.ref\n", "", _SOURCE),
    Bug("a store that fails is asked for ever", _MACHINE,
        "if self._now > until:", "if False:", _SOURCE),
    Bug("a writer does not know its own record", _LOG,
        "                if found.ref != ref:\n", "                if True:\n", _SOURCE),
    Bug("rows of a socket are dropped when another's are logged first", _TCP,
        "if accept.own and record.claim is None:", "if self._came:", _FOLLOWED),
    Bug("a socket resumes behind the record that it stands in", _TCP,
        "        self._at = SocketState(self._lines.offset, self._lines.line)\n", "", _FOLLOWED),
    Bug("a file that another instance has found is read twice", _FOLDER,
        "            self._seen.add(record.file)\n", "", _FOLLOWED),
    Bug("a file of a folder that grew is read on", _FOLDER,
        "if until is not None and chunk.stop > until:", "if False:", _FOLLOWED),
    Bug("what was dropped of a line counts as nothing", _FRAMING,
        "stop = self._position + self._held_bytes + cut",
        "stop = self._position + len(self._held) + cut", _FOLLOWED),
    Bug("all of a line without end is held", _FRAMING,
        "data[: self._limit + _BEYOND - len(self._held)]", "data", _LIMITS),
    Bug("a quote is forgotten between two pieces", _FRAMING,
        "(np.searchsorted(quotes, breaks) + self._is_open) % 2 == 0",
        "np.searchsorted(quotes, breaks) % 2 == 0", _LIMITS),
    Bug("a long line of blanks is no row", _FRAMING,
        "if i in too_long or not text.isspace()", "if not text.isspace()", _LIMITS),
    Bug("of a name twice only the last is looked at", "files/json_scan_loops.py",
        "            if begins[column, row] > 0:\n", "            if False:\n",
        ("tests/unit/files/test_plain_blocks.py",)),
    Bug("levels are counted by line in one text", "files/nesting.py",
        "MAX_NESTING, False))", "MAX_NESTING, True))", _LIMITS),
    Bug("batches are not validated in full", "events/intact.py",
        "batch.validate(full=True)", "batch.validate()", _DAMAGE),
    Bug("rows of a Parquet file are not counted", "files/columnar.py",
        "if rows != total:", "if False:", _DAMAGE),
    Bug("checksums of pages are not looked at", "files/columnar.py",
        "page_checksum_verification=True", "page_checksum_verification=False", _DAMAGE),
    Bug("an Arrow file is mapped", "files/columnar.py",
        "with pa.OSFile(self.path) as source:",
        "with pa.memory_map(self.path) as source:", _DAMAGE),
)  # fmt: skip
