"""All cases with known answers, under every cut and parallelism that the reference names.

A case passes when its rows are right in all six runs, the ordered checksums of all streams agree
across cuts, and the digests agree across all of them. In slices, so that workers share them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.local.conform import check_cases, read_cases

CASES = [c for path in sorted(Path(__file__).parent.glob("*.jsonl")) for c in read_cases(path)]
SLICES = 8


def test_no_case_is_lost() -> None:
    assert len(CASES) == 693
    assert len({c.id for c in CASES}) == len(CASES)


@pytest.mark.parametrize("slice_", range(SLICES))
def test_known_answers(slice_: int) -> None:
    verdicts = list(check_cases(CASES[slice_::SLICES], (1, 3, None), (1, 3)))
    failed = [f"{v.id}: {v.reason}" for v in verdicts if not v.passed]
    assert not failed, "\n".join(failed)
