"""What Python says of a plan and probably does not mean: it runs, and a `PlanWarning` says how.

(Those of a script, which know the words that it uses, are in `script/doubts.py`.)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from weir.errors import PlanWarning
from weir.events.types import TIMESTAMP
from weir.plan.durations import UNITS
from weir.plan.operators import Node, schema
from weir.plan.windows import Hopping, Session, Window, window_text


def warn_of_short(window: Window, nodes: Iterable[Node]) -> None:
    """Warn of windows below a millisecond over TIMESTAMPs: a plain number counts microseconds."""
    ticks = UNITS["s"]
    match window:
        case Hopping():
            ticks = min(window.size, window.hop)
        case Session():
            ticks = window.timeout
    if 0 < ticks < UNITS["ms"] and all(schema(node).time == TIMESTAMP for node in nodes):
        text = f"{window_text(window)} over TIMESTAMPs: a plain number counts microseconds"
        warnings.warn(PlanWarning(f"{text}; write '{ticks}s' for seconds"), stacklevel=3)


def warn_of_unordered(k: int) -> None:
    """Warn of a top without an order: it counts rows of each instant, not of the whole."""
    text = f"top({k}) without `by` keeps {k} rows of each instant or window, not {k} in all"
    warnings.warn(PlanWarning(f"{text}; write top({k}, by=col('x').desc())"), stacklevel=3)
