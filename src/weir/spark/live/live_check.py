"""`--check` of a live job: its answer against runs of the same program over the same inputs.

Rules
1. In the hosts, rows that are written again under the same numbers are compared with the rows that
   were written first (`HostSettings.check`).
2. When the job has finished, and before its outputs are put in their places, the program runs
   twice more: in this process and in one that is unlike it (`local/second_run.py`). The two must
   agree on every stream, and each output of the live job must have the digest of theirs. The
   outputs of an app must be those of the serial loop.
3. The wish for a check lies in the store (`unchecked`) until the check has passed.
4. So the inputs must end by themselves: what was followed cannot be read again as it came.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

from weir.conform.verify import diff
from weir.errors import DeterminismViolation, PlanError
from weir.ingress.connectors.connector import Endless
from weir.ingress.connectors.registry import has_end, open_any
from weir.job.output_reader import OutputReader
from weir.local.file_run import run_files
from weir.plan.program import DIRECT, Output, Program
from weir.reliable.differences import SUSPICION
from weir.reliable.store import Store
from weir.runtime.partitions import Partitions, start_of
from weir.runtime.reports import OnProgress, OutputReport
from weir.shadow.app_shadow import app_shadow


def refuse_endless(partitions: Partitions) -> None:
    """Raise a PlanError if a partition is not known to end by itself."""
    for parts in partitions.values():
        for partition in parts:
            if not has_end(partition):
                path = partition.source.path if isinstance(partition, Endless) else partition.name
                raise PlanError(
                    f"--check runs everything again, and '{path}' has no end",
                    hint="check the program over files",
                )


def check_answer(
    program: Program,
    store: Store,
    directory: str | Path,
    cut: int | None,
    parallelism: int,
    *,
    progress: OnProgress | None = None,
) -> None:
    """Raise a DeterminismViolation if the finished job in the store gave other rows than two more
    runs of its program do; `progress` is called during the first of them."""
    with tempfile.TemporaryDirectory(prefix="weir-check-") as folder:
        again = tuple(
            replace(output, path=os.path.join(folder, f"again-{number}.arrow"))
            for number, output in enumerate(program.outputs)
        )
        report = run_files(
            replace(program, outputs=again),
            directory=directory,
            cut=cut,
            parallelism=parallelism,
            check=True,
            progress=progress,
        )
        for output, local in zip(program.outputs, report.outputs, strict=True):
            if output.path not in DIRECT:
                _compare(output, local, store, folder)
        if (shadow := app_shadow(program)) is not None:
            start = start_of(directory)
            inputs = {source.name: open_any(source, start) for source in program.sources}
            shadow.check(inputs, {o.name: o.path for o in again})


def _compare(output: Output, again: OutputReport, store: Store, folder: str) -> None:
    reader = OutputReader(store, output.name, output.kind)
    if str(reader.look().digest) == again.digest:
        return
    live = os.path.join(folder, "live.arrow")
    reader.write(live)
    differences = diff(live, again.path, lambda _: None)
    raise DeterminismViolation(
        f"OUTPUT {again.title}: the live job gave other rows (-) than a local run over the same "
        f"inputs (+): {differences}; {SUSPICION}"
    )
