"""Finds the logs of an app: the path of each event type, and the partitions of that path."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence

import pyarrow as pa

from weir.errors import PlanError
from weir.events.batch import LATEST
from weir.events.value_text import parse_timestamps
from weir.files.chunks import DataFile, SourcePartition
from weir.handlers.api.app import App
from weir.ingress.connectors.registry import open_any, rooted
from weir.plan.binding.binder import unknown
from weir.plan.operators import Source
from weir.plan.program import Program
from weir.replay.batch_cuts import RankedLog
from weir.runtime.input_warnings import warn_of_inputs
from weir.runtime.program_plan import columns_read

_EDGE = 1 << 16


def log_paths(app: App, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the path of each log, overridden or declared.

    PlanError for an unknown name, or for a log without a path.
    """
    logs = [name for name, event in app.event_types.items() if event.is_log]
    for name in overrides:
        if name in app.event_types and name not in logs:
            message = f"the events of `{name}` come from a stream, so they have no log"
            raise PlanError(message, hint="set the paths where the stream is declared")
        if name not in logs:
            raise unknown("log", name, logs)
    paths = {name: overrides.get(name) or app.event_types[name].path for name in logs}
    missing = [name for name, path in paths.items() if not path]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        name = missing[0]
        hint = f"pass --log {name}=PATH, or declare app.events('{name}', …, path='PATH')"
        raise PlanError(f"no log for {names}", hint=hint)
    return {name: path for name, path in paths.items() if path}


def parse_log(text: str) -> tuple[str, str]:
    """Split NAME=PATH; PlanError for any other text.

    >>> parse_log("message=data/m-*.jsonl")
    ('message', 'data/m-*.jsonl')
    """
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise PlanError(f"invalid --log '{text}'; expected NAME=PATH")
    return name, path


def parse_time(text: str | int, option: str) -> int:
    """Return the ticks of a time: a number, or ISO 8601 (UTC unless it has an offset).

    PlanError for any other text, and for a time outside of the range of events.

    >>> parse_time("1970-01-01T00:00:01", "--from"), parse_time("-5", "--to"), parse_time(7, "end")
    (1000000, -5, 7)
    """
    try:
        ticks = int(text)
    except ValueError:
        ticks = _iso_ticks(str(text), option)
    if not -LATEST <= ticks <= LATEST + 1:  # one tick after the last possible event
        raise PlanError(f"invalid {option} {text}", hint="expected a time from -2^62 to 2^62 ticks")
    return ticks


def _iso_ticks(text: str, option: str) -> int:
    try:
        return int(parse_timestamps(pa.array([text]))[0].value)
    except pa.ArrowInvalid:
        hint = "expected ticks (microseconds since 1970), or ISO 8601 such as 2024-05-01T12:00:00"
        raise PlanError(f"invalid {option} '{text}'", hint=hint) from None


def open_logs(
    program: Program, paths: Mapping[str, str], *, only_times: bool = False
) -> list[RankedLog]:
    """Open the partitions of all logs that a program reads, by rank.

    They have the columns that the program needs, or `only_times`. Their paths are valid in any
    working directory.
    """
    columns = columns_read(program, program.sources)
    logs = []
    for source in program.sources:
        if source.name in paths:
            needed = _times(source) if only_times else columns[source]
            opened = open_any(source, "", needed=needed)
            here = os.getcwd()
            logs += [RankedLog(source, n, rooted(p, here)) for n, p in enumerate(opened)]
    return logs


def warn_of_logs(logs: Sequence[RankedLog]) -> None:
    """Warn of problems that the first rows of each log show."""
    opened: dict[Source, list[SourcePartition]] = {}
    for log in logs:
        opened.setdefault(log.source, []).append(log.partition)
    warn_of_inputs(opened.items())


def open_sources(sources: Sequence[Source]) -> list[RankedLog]:
    """Open the partitions of the other sources that an app's streams read."""
    return [
        RankedLog(source, number, partition)
        for source in sources
        if source.has_origins
        for number, partition in enumerate(open_any(source, ""))
    ]


def _times(source: Source) -> frozenset[str]:
    options = source.options
    return frozenset(name for name in (options.vs, options.ve) if name is not None)


def logs_size(logs: Sequence[RankedLog]) -> int:
    """Return the size of all logs together in bytes; in rows for those that are not in files."""
    return sum(log.partition.size for log in logs)


def log_marks(logs: Sequence[RankedLog]) -> dict[str, str]:
    """Return a mark of each log's files, by log, to find out later whether they have changed.

    The mark covers names, sizes, modification times, and both ends of each file.
    """
    marks: dict[str, list[str]] = {}
    for log in logs:
        marks.setdefault(log.source.name, [log.source.path, str(log.source.options)])
        marks[log.source.name].append(_mark(log.partition))
    return {
        f"log {name}": hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
        for name, parts in marks.items()
    }


def _mark(partition: SourcePartition) -> str:
    if not isinstance(partition, DataFile):
        return repr(partition.name)
    if partition.version is not None:
        return repr((partition.name, partition.version.size, partition.version.tag))
    with open(partition.path, "rb") as file:
        status = os.fstat(file.fileno())
        first = file.read(_EDGE)
        file.seek(max(0, status.st_size - _EDGE))
        ends = hashlib.sha256(first + file.read(_EDGE)).hexdigest()
    return repr((partition.name, status.st_size, status.st_mtime_ns, ends))
