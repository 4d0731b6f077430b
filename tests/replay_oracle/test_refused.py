"""What no app may do is refused before it runs, by name and with its line: fixed apps, and random
ones with something wrong planted in them. `WEIR_NIGHT=1` for 5 000 of those."""

import os

import pytest

from replay_oracle.engine import Refused, prepare
from replay_oracle.invalid import WRONG, draw_invalid, judge_invalid
from replay_oracle.refused import REFUSED, Refusal

APPS = 5_000 if os.environ.get("WEIR_NIGHT") else 2 * len(WRONG)
PARTS = 8


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda r: r.name)
def test_refused_by_name(refusal: Refusal) -> None:
    with pytest.raises(Refused) as refused:
        prepare(refusal.source)
    missing = [word for word in refusal.words if word not in str(refused.value)]
    assert not missing, str(refused.value)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_apps_are_refused(part: int) -> None:
    for seed in range(part, APPS, PARTS):
        app = draw_invalid(seed)
        verdict = judge_invalid(app)
        assert verdict.kind in ("refused", "refused otherwise"), (
            f"seed {seed}, {app.wrong.code!r}: {verdict.kind}\n{verdict.text}\n{app.source}"
        )
