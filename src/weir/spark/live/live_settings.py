"""How a live job runs: hosts, limits, addresses; none of it changes its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.errors import PlanError
from weir.job.settings import HostSettings, ManagerSettings
from weir.plan.durations import UNITS, parse_duration
from weir.spark.live.tls import Tls

GRACE = "10s"
"""How long a stopped job may take for its last checkpoint."""


def grace_seconds(text: str) -> float:
    """Read the grace of a stop, a duration, in seconds.

    >>> grace_seconds("1500ms")
    1.5
    """
    ticks = parse_duration(text)
    if text.strip().isdigit():
        raise PlanError(f"the grace of a stop has a unit, like {text.strip()}s")
    if not 0 <= ticks <= UNITS["d"]:
        raise PlanError(f"the grace of a stop is from 0s to 1d, not {text}")
    return ticks / UNITS["s"]


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """The settings of a live job: none of them changes its answer."""

    hosts: int = 2
    """How many hosts run it."""
    host: HostSettings = field(default_factory=HostSettings)
    """The limits of hosts that the program does not set."""
    manager: ManagerSettings = field(default_factory=ManagerSettings)
    """The limits of the manager; the run sets its `hosts`, `step_limit` and `trouble_limit`."""
    check: bool = False
    """Compare the answer with that of two more runs (`live_check.py`)."""
    tls: Tls | None = None
    """What channels are encrypted with; None: they are not. See `tls.py`."""
    shadow: int | None = None
    """How many first events of an app are compared with the serial loop; None: nothing was said."""
