"""Bugs in views of streams: rows in the wrong part, positions that stand still, claims too soon."""

from sabotage.bugs import Bug

_VIEWS, _HASHING, _CODEC = "reliable/views.py", "events/hashing.py", "reliable/codec.py"
_PARTS = ("tests/unit/events/test_hashing.py",)
_READING = ("tests/unit/reliable/test_views.py",)

# fmt: off
BUGS = (
    Bug("a bucket is in two parts", _HASHING,
        "-(-BUCKETS * (part + 1) // parts)", "min(-(-BUCKETS * (part + 1) // parts) + 1, BUCKETS)",
        _PARTS),
    Bug("a bucket is in no part", _HASHING,
        "return -(-BUCKETS * part // parts),", "return -(-BUCKETS * part // parts) + (part > 0),",
        _PARTS),
    Bug("a view lacks its last row", _VIEWS,
        "start, stop = self.starts[first], self.starts[end]",
        "start, stop = self.starts[first], max(self.starts[first], self.starts[end] - 1)",
        _READING),
    Bug("rows of several cells come cell by cell", _VIEWS,
        "if end - first > 1:", "if False:", _READING),
    Bug("a view without rows stands still until a claim comes", _VIEWS,
        "    if last is None:\n", "    if last is None or last.cti <= cti:\n", _READING),
    Bug("a claim comes before the rows that it waits for", _VIEWS,
        "return found if found.seq == seq else _covering(found, seq)",
        "return Entry(seq, found.rows, held[-1].cti, found.row_numbers, "
        "found.left_out + found.seq - seq)",
        _READING),
    Bug("a stream is ahead of a view by the rows of all", "reliable/log.py",
        "left += size * entry.count(reading) / (entry.end - entry.seq)", "left += size", _READING),
    Bug("a part may be as far behind as the whole", "reliable/log.py",
        "most if reading is None else most * reading.share", "most", _READING),
    Bug("a stored entry is cut at the wrong row", "reliable/log.py",
        "entry.in_order().since(durable)", "entry.in_order()", _READING),
    Bug("numbers that travel are one too large", _CODEC,
        "return seq - 1 + np.cumsum", "return seq + np.cumsum", _READING),
    Bug("rows that are in no cell are taken", _CODEC,
        "if not covered.all() or ends[0]", "if ends[0]", _READING),
    Bug("cells of other readers are taken", "reliable/log.py",
        "if not all(map(self._arrangement.fits, entries)):", "if False:", _READING),
    Bug("another host gives all rows instead of a view", "job/input_connections.py",
        "view=cursor.view,", "view=None,", ("tests/machine/test_views_on_hosts.py",)),
    Bug("a reader on the same host gets all rows instead of a view", "reliable/cursor.py",
        "stream.register(self.reader, self.position, self.view)",
        "stream.register(self.reader, self.position)"),
    Bug("a cursor stands where its last row is", "reliable/cursor.py",
        "self._next_number = new.end", "self._next_number = new.seq + len(new.rows)"),
    Bug("what covers numbers alone needs credit", "job/host.py",
        "is_new = len(entry.rows) > 0 and entry.number_of(-1) >= cursor.wanted",
        "is_new = entry.end > cursor.wanted", ("tests/machine/test_host.py",)),
    Bug("rows of other parts count as rows that killed a host", "job/poison.py",
        "return self.end - self.first - self.left_out", "return self.end - self.first",
        ("tests/unit/job/test_poison.py",)),
)
