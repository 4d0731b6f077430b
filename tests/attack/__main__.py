"""`make attack`: every known attack on real runs; exit code 1 when one succeeds.

Words after the command choose attacks whose item or name contains one of them.
"""

import sys
import tempfile
import time
import traceback
from pathlib import Path

from attack.attacks import Attack, all_attacks


def main() -> int:
    wanted = sys.argv[1:]
    chosen = [
        a for a in all_attacks() if not wanted or any(w in f"{a.item} {a.name}" for w in wanted)
    ]
    failed = [a for a in chosen if not _held(a)]
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not chosen else 0


def _held(attack: Attack) -> bool:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weir-attack-") as folder:
        try:
            what, held = attack.run(Path(folder)), True
        except Exception:  # an attack that cannot be carried out is one that was not held off
            what, held = traceback.format_exc(), False
    took = time.monotonic() - began
    word = "held" if held else "FAILED"
    print(f"{word:6}  [{attack.item}] {attack.name}: {what}  ({took:.0f} s)", flush=True)
    return held


if __name__ == "__main__":
    sys.exit(main())
