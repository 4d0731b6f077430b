"""When Python looks for garbage."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc
from weir.garbage import MANY, collect_first_after_many
gc.collect()
usual, done = gc.get_threshold(), gc.get_stats()[0]["collections"]
collect_first_after_many()
kept = [[] for _ in range(MANY // 2)]
assert gc.get_stats()[0]["collections"] == done and gc.get_threshold() != usual
kept += [[] for _ in range(MANY)]
assert gc.get_stats()[0]["collections"] > done
assert gc.get_threshold() == usual and not gc.callbacks
"""


def test_the_first_look_is_late_and_all_others_are_as_ever() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
