"""Apps as users write them: each gives what the serial loop gives, or is refused with
a line that makes it run."""

from __future__ import annotations

import re
from dataclasses import replace

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

_KEYS = r"reads and merges that depend on each other need one key"
CIRCLES = {
    "clinical_trial": _KEYS,
    "elevator_dispatch": _KEYS,
    "library_loans": _KEYS,
    "news_dedup": _KEYS,
    "support_sla": _KEYS,
    "ticket_resale": r"the serial group of sell is in a circle with put_up",
}
"""What goes from key to key and back, so that it can only run serially; and what Weir says."""
OTHERS = {"insurance_claims": r"is used between accesses to"}
"""What else Weir refuses as it is written, and why."""
REFUSED = CIRCLES | OTHERS
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


def test_which_are_refused() -> None:
    messages = {}
    for name, path in app_files().items():
        try:
            prepare(path.read_text(encoding="utf-8"))
        except Refused as error:
            messages[name] = str(error)
    assert messages.keys() == REFUSED.keys()
    for name, reason in REFUSED.items():
        assert re.search(reason, messages[name]), name
    assert len(OTHERS) <= len(app_files()) / 20


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_the_line_that_a_refusal_names_makes_it_run(name: str) -> None:
    app = natural_app(name)
    with pytest.raises(Refused) as refused:
        prepare(app.source)
    (line,) = re.findall(r"app\.serial\([\w, ]+\)", str(refused.value))
    plain = re.sub(r"^@?app\.serial\b.*\n", "", app.source, flags=re.MULTILINE)
    mended = replace(app, source=f"{plain}\n{line}\n")
    assert by_weir(mended) == by_oracle(mended)


@pytest.mark.parametrize("name", SERIAL)
def test_serial_is_needed(name: str) -> None:
    marked, reason = SERIAL[name]
    source = natural_app(name).source
    assert source.count("app.serial") == 1
    with pytest.raises(Refused, match=reason):
        prepare(source.replace(marked, ""))
