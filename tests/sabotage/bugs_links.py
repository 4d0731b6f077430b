"""Bugs of the links between hosts: credit, turns, what is lost with a link, what is looked at."""

from sabotage.bugs import Bug

_HOST, _SERVER, _INPUTS = "job/host.py", "job/stream_server.py", "job/input_connections.py"
_STEPS, _LINKS = "job/step_choice.py", "spark/live/stream_connections.py"
_OUT, _WORDS = "spark/live/outgoing.py", "spark/live/link_messages.py"
_LINK_TESTS = ("tests/unit/spark/test_stream_connections.py",)
_WORD_TESTS = ("tests/unit/spark/test_link_messages.py",)

BUGS = (
    Bug("credit is given back twice", _HOST,
        "room = MakeRoom(name, input, cursor.connection, freed)",
        "room = MakeRoom(name, input, cursor.connection, 2 * freed)"),
    Bug("rows that came twice give credit back twice", "reliable/cursor.py",
        "if not len(new.rows):\n            size = 0",
        "if not len(entry.rows):\n            size = 0"),
    Bug("a new connection begins with all credit", _INPUTS,
        "credit=window - cursor.queued_bytes,", "credit=window,"),
    Bug("what waits beyond the window is credit in the end", _INPUTS,
        "credit=window - cursor.queued_bytes,", "credit=max(window - cursor.queued_bytes, 0),"),
    Bug("rows without credit are taken", _HOST,
        "if is_new and cursor.queued_bytes >= self._window(running):", "if False:"),
    Bug("one subscription spends the credit of another", _SERVER,
        "self._subscriptions[subscription].credit += size",
        "next(iter(self._subscriptions.values())).credit += size"),
    Bug("rows need no credit", _SERVER,
        "if len(entry.rows) and subscription.credit <= 0:", "if False:"),
    Bug("new credit wakes nobody", _SERVER,
        ".credit += size\n            self._note(subscription)", ".credit += size"),
    Bug("a claim overtakes rows that wait for credit", _SERVER,
        "subscription.rest = entry\n            return",
        "subscription.rest = entry\n"
        "            yield Entry(entry.seq, entry.rows.slice(0, 0), entry.cti)\n"
        "            return"),
    Bug("a piece carries the claim of its entry", _SERVER,
        "entry = replace(entry.before(number), cti=START)", "entry = entry.before(number)"),
    Bug("the rest of a large entry is forgotten", _SERVER,
        "entry, subscription.rest = subscription.rest or log.read_next(key), None",
        "entry, subscription.rest = log.read_next(key), None"),
    Bug("a subscription is lost with the link that another replaces", _LINKS,
        "link.inputs, link.queue = old.inputs, old.queue", "link.inputs = old.inputs",
        _LINK_TESTS),
    Bug("a refused link closes what another goes on with", _LINKS,
        "if not link.refused:  # else the other host's link takes the queue",
        "if link.queue is not None:", _LINK_TESTS),
    Bug("a broken link loses its inputs without a word", _LINKS,
        "for connection, input in link.inputs.items():",
        "for connection, input in list(link.inputs.items())[:1]:", _LINK_TESTS),
    Bug("two links are made at the same time", _LINKS,
        "stays = old is not None and old.own and self.address < address",
        "stays = False", _LINK_TESTS),
    Bug("a large entry keeps the others waiting", _OUT,
        "del self._entries[subscription]\n                if waiting:",
        "if not waiting:\n                    del self._entries[subscription]\n"
        "                elif not waiting:", _LINK_TESTS),
    Bug("claims wait for ever", _SERVER,
        "elif now >= self._claims_due:", "elif now < 0:"),
    Bug("a body may belong to other rows", _WORDS,
        "if sum(word.length for word in words if isinstance(word, Bring)) != body:",
        "if body < 0:", _WORD_TESTS),
    Bug("an instance that has more is forgotten", _STEPS,
        "if has_more:", "if False:"),
    Bug("an instance whose claims change nothing never reads them", _STEPS,
        "if waiting.since + most <= now:", "if self._goes_on(vertex, waiting) "
        "and waiting.since + most <= now:"),
    Bug("a stream that has come is not looked for", _HOST,
        "stream.on_missing = self._lacking.add\n            self._look_for(name)",
        "stream.on_missing = self._lacking.add"),
    Bug("rows that were loaded wake nobody", "reliable/log.py",
        "del self._loaded[next(iter(self._loaded))]\n        self._tell(1)",
        "del self._loaded[next(iter(self._loaded))]"),
)  # fmt: skip
