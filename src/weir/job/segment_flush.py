"""Writes the streams of one instance to the store, segment by segment.

Rules
1. A segment is written when it has `segment_size` bytes, or when its first row has been only in
   memory for `flush_interval` seconds. A tail of `tail_buffer` bytes, which would hold the vertex
   back, is written at once.
2. Of each stream one segment is under way at a time (`log.py`); it counts when the store has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from weir.job.settings import HostSettings
from weir.job.signals import Put
from weir.reliable.codec import encode_entries
from weir.reliable.digest import OrderedChecksum
from weir.reliable.log import LogStream, Segment
from weir.reliable.object_names import segment_key
from weir.reliable.objects import ObjectRef
from weir.reliable.views import HeldEntry


class StreamSegment(NamedTuple):
    """A durable segment, and the stream that it is of."""

    stream: str
    segment: Segment


class SegmentFlush:
    """Writes the segments of one instance's streams, by the module's rules."""

    def __init__(self, incarnation: int, settings: HostSettings) -> None:
        self._incarnation, self._settings = incarnation, settings
        self._under_way: dict[str, tuple[LogStream, Segment]] = {}
        """The segments that are being written, by key."""
        self._volatile_since: dict[str, float] = {}
        """For each stream since when it has had rows that are only in memory."""
        self.next_due = math.inf
        """When a segment will be old enough, if nothing is written before."""
        self.flushed: dict[str, int] = {}
        """For each stream the first row of the last segment whose write has ended."""

    def flush(self, streams: Iterable[LogStream], now: float) -> list[Put]:
        """Write one segment for each stream whose volatile tail is large or old enough."""
        settings = self._settings
        commands: list[Put] = []
        self.next_due = math.inf
        large = min(settings.segment_size, settings.tail_buffer)
        for stream in streams:
            if stream.flushing is not None or stream.end <= stream.durable:
                continue
            since = self._volatile_since.setdefault(stream.name, now)
            old = now - since >= settings.flush_interval or settings.synchronous
            if not old and stream.held_bytes < large:
                self.next_due = min(self.next_due, since + settings.flush_interval)
                continue
            entries = stream.next_segment(settings.segment_size)
            if entries is not None and (old or stream.volatile_bytes >= large):
                commands.append(self._begin(stream, entries))
            elif not old:
                self.next_due = min(self.next_due, since + settings.flush_interval)
        return commands

    def _begin(self, stream: LogStream, entries: tuple[HeldEntry, ...]) -> Put:
        checksum = OrderedChecksum()
        for entry in entries if self._settings.check else ():
            checksum.add(entry.in_order().rows)
        key = segment_key(stream.name, entries[0].seq, self._incarnation)
        last = entries[-1]
        checked = str(checksum) if self._settings.check else ""
        segment = Segment(
            ref=ObjectRef(key), first=entries[0].seq, end=last.end, cti=last.cti, checksum=checked
        )
        stream.flushing = segment
        self._under_way[key] = (stream, segment)
        stored = tuple(entry.stored() for entry in entries)
        return Put(key, lambda: encode_entries(key, stored))

    def stored(self, key: str, ref: ObjectRef) -> StreamSegment | None:
        """Take in that an object is durable; return the segment that it is, if it is one of these
        streams'."""
        if key not in self._under_way:
            return None
        stream, segment = self._under_way.pop(key)
        segment = msgspec.structs.replace(segment, ref=ref)
        stream.flushed(segment)
        self.flushed[stream.name] = segment.first
        self._volatile_since.pop(stream.name, None)
        return StreamSegment(stream.name, segment)
