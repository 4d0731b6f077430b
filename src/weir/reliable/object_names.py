"""The names of objects in a job's store.

job                              what the job is: the fingerprint of its plan, and what was decided
                                 when it began; made once
records/<number>                 the manager's record; made once each, the largest counts
records/latest                   a hint where to begin to look for the largest
checkpoints/<vertex>/<incarnation>-<number>
streams/<stream>/<first>-<incarnation>   a segment: rows from number <first> on
parts/<sink>/<incarnation>-<number>      committed rows, in sorted runs
commits/<sink>/<number>          made once each: which part, up to which positions
ingress/<vertex>/<number>        the log of a source; made once each, deleted in order
unchecked                        while the answer is still to be checked (`--check`)
status, story/<epoch>-<number>, plan, history   for onlookers

Vertices, sinks and streams have the names of the topology, a generation in front included
(`g3-1.0/0`), so objects of two generations never have one name.

Whatever else lies in a store is not the job's: nobody reads it, and nobody deletes it (`is_known`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def record_key(number: int) -> str:
    return f"records/{number:012}"


LATEST_RECORD = "records/latest"
JOB = "job"
UNCHECKED = "unchecked"
PLAN = "plan"
HISTORY = "history"
EPHEMERAL = ("checkpoints/", "streams/")
"""Checkpoints and segments: what the ledger names and a finished job no longer needs. (Logs go too,
by `sweep`.)"""


def is_ephemeral(key: str) -> bool:
    return key.startswith(EPHEMERAL)


def checkpoint_key(vertex: str, incarnation: int, number: int) -> str:
    return f"checkpoints/{vertex}/{incarnation:016}-{number:08}"


def segment_key(stream: str, first: int, incarnation: int) -> str:
    return f"streams/{stream}/{first:016}-{incarnation:016}"


def part_key(sink: str, incarnation: int, number: int) -> str:
    return f"parts/{sink}/{incarnation:016}-{number:08}"


def commit_key(sink: str, number: int) -> str:
    return f"commits/{sink}/{number:08}"


def ingress_key(vertex: str, number: int) -> str:
    return f"ingress/{vertex}/{number:012}"


def ingress_log(vertex: str) -> str:
    """Name a source's log where logs and streams share one mapping (`Ledger.collected`)."""
    return f"ingress/{vertex}"


def incarnation_of(key: str) -> int:
    """Read from a name which incarnation wrote the checkpoint, the segment or the part.

    >>> incarnation_of(checkpoint_key("1.0", 7, 3)), incarnation_of(segment_key("1.0/0", 9, 7))
    (7, 7)
    """
    first, second = _numbers(key)
    return second if key.startswith("streams/") else first


def number_of(key: str) -> int:
    """Read the number of a checkpoint, part, commit, record, or record of a log from its name.

    >>> number_of(checkpoint_key("1.0", 7, 3)), number_of(commit_key("sink.0", 5))
    (3, 5)
    """
    return _numbers(key)[-1]


def first_of(key: str) -> int:
    """Read the number of a segment's first row from its name.

    >>> first_of(segment_key("1.0/0", 9, 7))
    9
    """
    return _numbers(key)[0]


def _numbers(key: str) -> tuple[int, ...]:
    return tuple(int(number) for number in key.rsplit("/", 1)[1].split("-"))


_NAME = r"[\w.-]+"
_KNOWN = re.compile(
    rf"job|status|plan|history|unchecked|records/latest|records/\d{{12,}}|story/\d{{6,}}-\d{{8,}}"
    rf"|checkpoints/{_NAME}/\d{{16,}}-\d{{8,}}|streams/{_NAME}/{_NAME}/\d{{16,}}-\d{{16,}}"
    rf"|parts/{_NAME}/\d{{16,}}-\d{{8,}}|commits/{_NAME}/\d{{8,}}|ingress/{_NAME}/\d{{12,}}",
    re.ASCII,
)


def is_known(key: str) -> bool:
    """Say whether a job would give this name to an object.

    >>> is_known(record_key(3)), is_known("records/3"), is_known("records/latest.bak")
    (True, False, False)
    >>> is_known(segment_key("g3-1.0/0", 9, 7))
    True
    """
    return _KNOWN.fullmatch(key) is not None


def commits_of(listed: Iterable[str], sink: str) -> list[str]:
    """Select the commits of an output from these names, in order of number."""
    prefix = f"commits/{sink}/"
    return sorted((k for k in listed if k.startswith(prefix) and is_known(k)), key=number_of)


def step_of(key: str) -> str:
    """Name the kind of durable step that writes this object; tests crash hosts at these steps.

    >>> step_of(commit_key("sink.0", 5)), step_of(LATEST_RECORD), step_of(record_key(2))
    ('commit', 'hint', 'record')
    """
    if key == LATEST_RECORD:
        return "hint"
    return _STEPS[key.split("/", 1)[0]]


_STEPS = {
    "records": "record",
    "checkpoints": "checkpoint",
    "streams": "segment",
    "parts": "part",
    "commits": "commit",
    "ingress": "log",
}
