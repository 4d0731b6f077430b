"""Bugs in what comes in from outside."""

from sabotage.bugs import Bug

_FOLLOWED = ("tests/unit/ingress/test_followed.py",)
_LIMITS = ("tests/unit/files/test_record_limits.py",)
_DAMAGE = ("tests/unit/files/test_damage.py",)
_TAILED, _FRAMING, _UNCHANGED = (
    "ingress/connectors/tailed.py",
    "files/framing.py",
    "ingress/unchanged.py",
)

BUGS = (
    Bug("a last line without a line end is dropped", _TAILED,
        "for block in self._framer.end():", "for block in ():", _FOLLOWED),
    Bug("what stands before the position is not looked at", _TAILED,
        "            self._check_window(begin)\n", "", _FOLLOWED),
    Bug("a file of the same size is believed at its end", _TAILED,
        "        self._check_window(self._file.tell())\n", "", _FOLLOWED),
    Bug("a file is believed after a restart", _UNCHANGED,
        "if place.read and prefix.digest != place.digest:", "if False:", _FOLLOWED),
    Bug("how a file begins is not logged", _TAILED,
        "                self._begin()\n", "                pass\n", _FOLLOWED),
    Bug("the ends of a Parquet file are not compared", _UNCHANGED,
        "if known.read and (known.read, known.digest) != edges:", "if False:", _FOLLOWED),
    Bug("a claim behind the end of a file is waited for", _TAILED,
        "        if self._claims:\n            raise", "        if False:\n            raise",
        _FOLLOWED),
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
