"""What SET says, and what counts before it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from weir.errors import PlanError
from weir.job.settings import HostSettings, host_settings
from weir.plan.program import Program
from weir.plan.settings import HOST_LIMITS, step_limit, with_settings
from weir.plan.strategy import default_strategy
from weir.script.program import parse_program


def program(said: str = "") -> Program:
    return parse_program(f"{said} STREAM A (vs BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'b.csv';")


def test_the_limits_of_hosts_have_one_name() -> None:
    assert set(HOST_LIMITS) <= {f.name for f in fields(HostSettings)}


def test_what_a_program_says_counts_before_what_is_given() -> None:
    given = HostSettings(flush_interval=7.0, commit_interval=7.0)
    said = program("SET flush_interval = '200ms'; SET tail_buffer = '1GB';")
    found = host_settings(said, given)
    assert found == HostSettings(flush_interval=0.2, commit_interval=7.0, tail_buffer=1 << 30)
    assert host_settings(program(), HostSettings()) == HostSettings()


def test_what_a_run_says_counts_before_what_the_program_says() -> None:
    said = program("SET flush_interval = '200ms'; SET strategy = 'replay'; SET step_limit = '3s';")
    changed = with_settings(said, {"flush_interval": "1s", "segment_size": "64KB"})
    found = host_settings(changed, HostSettings())
    assert (found.flush_interval, found.segment_size) == (1.0, 65536)
    assert step_limit(changed) == 3.0 and str(default_strategy(changed)) == "replay"
    again = with_settings(changed, {"strategy": "checkpoint(1s)", "allow_unbounded": "true"})
    assert str(default_strategy(again)) == "checkpoint(1s)"
    assert dict(again.settings)["allow_unbounded"] is True
    assert with_settings(said, {}) == said


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("flush", "1s", "unknown setting `flush`; the settings are strategy, .*flush_interval"),
        ("flush_interval", "0s", "invalid interval '0s'; expected a duration from 1ms to 1h"),
        ("flush_interval", "-1s", "invalid interval '-1s'"),
        ("flush_interval", "5", "invalid interval '5'"),
        ("flush_interval", "2h", "invalid interval '2h'"),
        ("commit_interval", "often", "invalid duration 'often'"),
        ("segment_size", "100", "'100' is too small; expected a size from 1KB to 1GB"),
        ("segment_size", "2GB", "'2GB' is too large"),
        ("tail_buffer", "much", "invalid size 'much'"),
        ("send_buffer", "0", "too small"),
        ("ahead_buffer", "9TB", "invalid size"),
        ("allow_unbounded", "1", "invalid value '1'; expected TRUE or FALSE"),
        ("strategy", "often", "unknown strategy 'often'"),
        ("step_limit", "3", "invalid step limit '3'"),
    ],
)
def test_nonsense_is_refused(name: str, value: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        with_settings(program(), {name: value})
