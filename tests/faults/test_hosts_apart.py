"""Hosts that cannot use the store while others can."""

from __future__ import annotations

from weir.simulator.faults import Faults
from weir.simulator.simulate import Wish, run_seed


def test_hosts_that_cannot_use_the_store_are_given_up_and_the_answer_is_the_same() -> None:
    faults = Faults(delay=0.02, until=10.0, apart=0.9)
    given_up = 0
    for seed in range(8):
        result = run_seed(seed, wish=Wish(faults=faults))
        assert result.passed, "\n".join(result.log)
        given_up += sum("it cannot use the store, and others can" in line for line in result.log)
    assert given_up > 1
