"""The one place where property tests touch the engine.

`run` takes a program's text and the partitions of its streams and gives what came out of `Out`.
An error that Weir raises on purpose is an outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from oracle import OPEN, Row
from property.reference import Inputs, Outcome
from weir import testing
from weir.errors import WeirError
from weir.plan.program import Program
from weir.script import parse_program


def run(
    text: str,
    inputs: Inputs,
    *,
    cut: int | None = None,
    parallelism: int = 1,
    snapshot_at: int | None = None,
    duplicate_writes: int | None = None,
) -> Outcome:
    """`cut`: events handed over at a time. `snapshot_at`: after this step every vertex is
    replaced by a fresh one that loads its snapshot. `duplicate_writes`: a seed; entries are
    written again, whole or in part, to every stream."""
    try:
        result = testing.run_program(
            _parsed(text),
            inputs,
            cut=cut,
            parallelism=parallelism,
            snapshot_at=snapshot_at,
            duplicate_writes=duplicate_writes,
        )
    except WeirError as error:
        return Outcome(error=str(error))
    rows = [_row(r) for r in result.rows]
    return Outcome(rows, None, result.digest, result.checksums)


@lru_cache(maxsize=4)  # an example is run several times
def _parsed(text: str) -> Program:
    return testing.with_output(parse_program(text), "Out")


def _row(values: Mapping[str, object]) -> Row:
    payload = {n: v for n, v in values.items() if n not in ("vs", "ve")}
    ve = values["ve"]
    return Row(values["vs"], OPEN if ve is None else ve, payload)
