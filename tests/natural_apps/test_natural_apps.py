"""Apps as users write them: each gives what the serial loop gives, and few are refused."""

from __future__ import annotations

import re

import pytest

from natural_apps.natural_cases import (
    NAMES,
    app_files,
    by_hand,
    by_oracle,
    by_weir,
    natural_app,
)
from replay_oracle.engine import Refused, prepare

REFUSED = {
    "inventory": r"`stock` is used in a loop, .* which may be another one each time",
    "recommendations": r"`together` is used in a loop, .* which may be another one each time",
}
"""What Weir refuses, and why."""
SERIAL = {
    "bank_transfers": ("app.serial(move)", r"in a circle over different keys"),
    "chat_moderation": ("app.serial(moderate)", r"reads and merges that depend on each other"),
    "elo_ratings": ("@app.serial\n", r"reads and merges that depend on each other"),
}
"""What goes from key to key and back, so that its user runs it serially; and why it must be."""
ACCEPTED = [name for name in NAMES if name not in REFUSED]


@pytest.mark.parametrize("name", NAMES)
def test_both_loops_agree(name: str) -> None:
    app = natural_app(name)
    emits, states = by_oracle(app)
    emits_by_hand, states_by_hand = by_hand(app)
    assert emits == emits_by_hand
    assert {state: states[state] for state in states_by_hand} == states_by_hand
    assert emits, "the log lets nothing happen"


@pytest.mark.parametrize("name", ACCEPTED)
def test_weir_does_what_the_loop_does(name: str) -> None:
    app = natural_app(name)
    expected = by_oracle(app)
    assert by_weir(app) == expected
    assert by_weir(app, cut=200, parallelism=2, vectorise=False) == expected


def test_few_are_refused() -> None:
    found = {}
    for name, path in app_files().items():
        try:
            prepare(path.read_text(encoding="utf-8"))
        except Refused as error:
            found[name] = str(error)
    assert found.keys() == REFUSED.keys()
    for name, reason in REFUSED.items():
        assert re.search(reason, found[name]), name
    assert len(app_files()) >= 28


@pytest.mark.parametrize("name", SERIAL)
def test_serial_is_needed(name: str) -> None:
    marked, reason = SERIAL[name]
    source = natural_app(name).source
    assert source.count("app.serial") == 1
    with pytest.raises(Refused, match=reason):
        prepare(source.replace(marked, ""))
