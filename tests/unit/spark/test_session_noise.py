"""What Spark's processes say on stderr: their farewells are left out, all else is shown."""

from __future__ import annotations

import os

import pytest

from weir.spark.session import _filter, _Start

FAREWELL = [
    "Traceback (most recent call last):",
    '  File "/lib/pyspark/daemon.py", line 233, in manager',
    "    outfile.flush()",
    "BrokenPipeError: [Errno 32] Broken pipe",
]
CHAINED = [
    "PySpark daemon failed to flush the output to the worker process:",
    *FAREWELL,
    "",
    "During handling of the above exception, another exception occurred:",
    "",
    *FAREWELL,
]
MIXED = [line for pair in zip(FAREWELL, FAREWELL, strict=True) for line in pair]
ERROR = [
    "Traceback (most recent call last):",
    '  File "/home/me/code.py", line 1, in f',
    "ValueError: no",
]


def shown(said: list[str]) -> list[str]:
    coming, filtered = os.pipe(), os.pipe()
    with os.fdopen(coming[1], "w", encoding="utf-8") as writing:
        writing.write("".join(f"{line}\n" for line in said))
    _filter(coming[0], filtered[1], _Start(is_over=True))
    with os.fdopen(filtered[0], encoding="utf-8") as reading:
        return reading.read().splitlines()


@pytest.mark.parametrize("said", [FAREWELL, CHAINED, MIXED])
def test_workers_whose_pipe_is_gone_are_not_heard(said: list[str]) -> None:
    assert shown(["before", *said, "behind"]) == ["before", "behind"]


def test_an_error_is_shown_even_among_farewells() -> None:
    assert shown([*FAREWELL, *ERROR, *FAREWELL]) == ERROR
    mixed = [FAREWELL[0], ERROR[0], *FAREWELL[1:], *ERROR[1:]]
    assert shown(mixed) == mixed
