"""Assembles the outputs of a replay from the emitted rows of its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from weir.files.saved_outputs import open_outputs
from weir.files.writers import OutputStaging, OutputWriter, put_all_in_place
from weir.plan.operators import schema
from weir.reliable.digest import Digest
from weir.replay.batch_programs import BatchProgram
from weir.replay.run_folder import FinishedBatch, MadeFile
from weir.runtime.reports import RunReport


def finished_batch(
    program: BatchProgram, report: RunReport, folder: Path, events: int
) -> FinishedBatch:
    """Return what a batch wrote, from its report; paths are relative to its folder."""
    by_path = {str(Path(o.path)): o for o in report.outputs}

    def file(path: str) -> MadeFile:
        written = by_path[str(folder / path)]
        return MadeFile(path, written.rows, written.digest)

    return FinishedBatch(
        events,
        {key: file(output.path) for key, output in program.emitted.items()},
        {key: file(output.path) for key, output in program.states.items()},
    )


def assemble(
    program: BatchProgram,
    batches: Sequence[tuple[Path, FinishedBatch]],
    path_of: Callable[[str], str],
) -> dict[str, MadeFile]:
    """Write the emitted rows of all batches to the outputs, by their keys.

    The outputs are renamed to their paths when all of them are complete.
    """
    assembled: dict[str, MadeFile] = {}
    staged: list[OutputStaging] = []
    with ExitStack() as undo:
        for key, output in program.emitted.items():
            files = [(folder, batch.emitted[key]) for folder, batch in batches]
            path, total = path_of(key), Digest()
            writer = OutputWriter(path, schema(output.node))
            undo.callback(writer.abort)
            for folder, file in files:
                total += _digest(file.digest)
                if file.rows:
                    (saved,) = open_outputs([str(folder / file.path)])
                    for batch in saved.batches(saved.files[0]):
                        writer.write(0, batch)
            staged.append(writer.finish(total))
            assembled[key] = MadeFile(path, total.count, str(total))
        put_all_in_place(staged)
    return assembled


def _digest(text: str) -> Digest:
    total, _, count = text.partition("-")
    return Digest(int(total, 16), int(count))
