"""A busy host is not a lost host; one whose processes died is lost at once, a machine soon."""

import re

from weir.simulator.faults import Faults
from weir.simulator.simulate import SeedResult, Wish, run_seed

BUSY = Faults(delay=0.02, busy=3.0, until=4.0)


def passed(seed: int, faults: Faults) -> SeedResult:
    result = run_seed(seed, wish=Wish(faults=faults))
    assert result.passed, "\n".join([result.reason, *result.log])
    return result


def lost(result: SeedResult) -> bool:
    return any(" lost" in line for line in result.log)


def test_a_host_that_is_busy_for_minutes_is_kept() -> None:
    for_seconds = []
    for seed in range(12):
        result = passed(seed, BUSY)
        assert not lost(result), "\n".join(result.log)
        for line in result.log:
            if found := re.match(r" *([\d.]+)  \S+ is busy until ([\d.]+)", line):
                for_seconds.append(float(found[2]) - float(found[1]))
    assert len(for_seconds) > 10 and max(for_seconds) > 120.0


def test_connections_that_break_cost_no_host_even_a_busy_one() -> None:
    broken = Faults(delay=0.005, hang_up=5.0, until=4.0)
    for seed in range(12):
        assert not lost(passed(seed, broken))
    both = Faults(delay=0.005, hang_up=5.0, busy=3.0, until=4.0)
    for seed in range(6):
        assert not lost(passed(seed, both))


def test_dead_processes_are_found_at_once_and_dead_machines_soon() -> None:
    found = []
    for seed in range(12):
        result = passed(seed, Faults(delay=0.005, crash=1.0, until=4.0))
        killed: dict[str, float] = {}
        for line in result.log:
            at = float(line[:9])
            if died := re.match(r"(\S+) killed, hosting", line[11:]):
                killed[died[1]] = at
            elif gone := re.search(r"host (\S+) lost: ", line):
                found.append(at - killed.pop(gone[1]))
    at_once = [seconds for seconds in found if seconds <= 0.3]
    assert len(at_once) > 10 and len(found) - len(at_once) > 3
    assert max(found) < 2.0
