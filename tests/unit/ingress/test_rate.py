"""Generated rows become due by the clock, in steps that are worth a wake-up."""

from __future__ import annotations

import pytest

from weir.ingress.connectors.rate import open_rate
from weir.ingress.source_signals import Finished, Quiet, Rows
from weir.plan.operators import Source
from weir.script.program import parse_program


def source(rate: str) -> Source:
    columns = "(t BIGINT, value BIGINT)"
    text = f"STREAM L {columns} FROM 'rate://{rate}' WITH (vs = t); OUTPUT L TO 'o.csv';"
    (found,) = parse_program(text).sources
    return found


def driven(rate: str, seconds: float) -> tuple[list[int], int]:
    """Poll whenever it is said to be worth it; return the numbers of the rows, and count the
    polls."""
    reading, now, numbers, polls = open_rate(source(rate)).open(None, 0), 5.0, list[int](), 0
    until = now + seconds
    while now < until:
        polls += 1
        match reading.poll(65_536, None, now):
            case Rows(chunk):
                numbers += chunk.offsets.tolist()
            case Quiet(offset, again_in):
                assert offset == len(numbers)
                assert again_in > 0
                now += again_in + 1e-9
            case Finished():
                break
    return numbers, polls


@pytest.mark.parametrize(
    ("rate", "rows", "most"), [("2000", 2000, 210), ("10000", 10_000, 1010), ("3", 3, 210)]
)
def test_rows_come_in_time_with_few_wake_ups(rate: str, rows: int, most: int) -> None:
    numbers, polls = driven(rate, 1.005)
    assert numbers == list(range(len(numbers)))
    assert abs(len(numbers) - 1.005 * rows) <= 21
    assert polls <= most


def test_it_ends_after_its_last_row() -> None:
    numbers, _ = driven("2000?rows=33", 9.0)
    assert numbers == list(range(33))
