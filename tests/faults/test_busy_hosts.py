"""A busy host is not a lost host; one whose processes died is lost at once."""

from weir.simulator.faults import Faults
from weir.simulator.simulate import Wish, run_seed

BUSY = Faults(delay=0.02, busy=3.0, until=4.0)


def test_a_host_that_is_busy_for_a_minute_is_kept() -> None:
    busy = 0
    for seed in range(12):
        result = run_seed(seed, wish=Wish(faults=BUSY))
        assert result.passed, "\n".join([result.reason, *result.log])
        busy += sum("is busy until" in line for line in result.log)
        assert not any("lost" in line for line in result.log), "\n".join(result.log)
    assert busy > 10


def test_companions_that_die_cost_no_host() -> None:
    for seed in range(12):
        result = run_seed(seed, wish=Wish(faults=Faults(delay=0.005, hang_up=5.0, until=4.0)))
        assert result.passed, "\n".join([result.reason, *result.log])
        assert not any("lost" in line for line in result.log), "\n".join(result.log)
