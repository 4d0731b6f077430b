"""Checks the paths of a replay before it runs, so that no needed file is overwritten or deleted.

Rules
1. No output has the path of a log or a stream that is read, in any batch.
2. `DIR/.replay` and the folders of saved states are removed as a whole. So no other file that the
   replay reads or writes may be in one of them.
3. The state that a replay starts from is kept, because a replay that was killed starts from it
   again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weir.errors import PlanError
from weir.ingress.connectors.registry import needed_path
from weir.plan.program import Output
from weir.replay.batch_cuts import RankedLog
from weir.replay.batch_programs import BatchProgram
from weir.replay.run_folder import NAME
from weir.replay.saved_state import check_replaceable
from weir.replay.what_if import PAGE
from weir.runtime.outputs import check_outputs


def check_places(
    program: BatchProgram,
    paths: Mapping[str, str],
    logs: Sequence[RankedLog],
    *,
    out: Path,
    state_in: Path | None,
    saved: Sequence[Path],
) -> None:
    """Raise PlanError for paths that break the module's rules.

    `paths` has the outputs by key, `out` is the output folder, `state_in` the state to start from,
    `saved` the folders of saved states.
    """
    for folder in saved:
        check_replaceable(folder)
    states = {_real(folder): f"--state-out '{folder}'" for folder in saved}
    outputs = [(_real(path), f"the output '{path}'") for path in paths.values()]
    kept = {_real(out / NAME): f"'{out / NAME}'"}
    used = [(_real(out), f"--out '{out}'"), (_real(out / PAGE), f"'{out / PAGE}'"), *outputs]
    if state_in is not None:
        used.insert(0, (_real(state_in), f"--state-in '{state_in}'"))
    for log in logs:
        path = needed_path(log.partition)
        if path is not None:
            used.append((_real(path), f"the log '{log.partition.name}'"))
    _check_outside(used, kept | states)
    _check_outside(states.items(), kept | dict(outputs))
    if outputs:
        written = tuple(Output(key, o.node, paths[key]) for key, o in program.emitted.items())
        read = tuple(s for s in program.program.sources if s.name not in program.restored)
        check_outputs(replace(program.program, outputs=written, sources=read), "")


def _check_outside(used: Iterable[tuple[Path, str]], folders: Mapping[Path, str]) -> None:
    """Raise PlanError for the first path that is one of the folders, or lies below one."""
    for path, what in used:
        for above in (path, *path.parents):
            if above in folders:
                where = "is" if above == path else "lies in"
                message = f"{what} {where} {folders[above]}, which the replay replaces as a whole"
                raise PlanError(message, hint="give each a place of its own")


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
