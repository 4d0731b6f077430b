"""Reports of a replay: what it read, what each variant emitted, and where the outputs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from weir.runtime.reports import RunReport

if TYPE_CHECKING:
    from weir.replay.batch_cuts import LogCuts, RankedLog
    from weir.replay.run_folder import MadeFile
    from weir.replay.variants import Variant


class ReplayInput(msgspec.Struct, frozen=True):
    """Says what was read of one log: its partitions, and how many rows were rejected."""

    name: str
    partitions: int
    late: int
    bad: int


class EmittedOutput(msgspec.Struct, frozen=True):
    """Says what was written of one emitted stream. Beside other variants, `only_here` counts the
    rows that the first of them does not have, `only_first` those that it alone has."""

    name: str
    path: str
    rows: int
    digest: str
    only_here: int | None = None
    only_first: int | None = None


class VariantReport(msgspec.Struct, frozen=True):
    """Says what one variant has emitted, with the values of all parameters."""

    label: str
    folder: str
    """Where its outputs are, within those of all: no other variant has this one."""
    params: dict[str, bool | int | float | str]
    outputs: tuple[EmittedOutput, ...]

    def output(self, name: str) -> EmittedOutput | None:
        """Return what it emitted under a name; None: with its parameters, nothing is."""
        return next((output for output in self.outputs if output.name == name), None)


class ReplayReport(msgspec.Struct, frozen=True):
    """Says what a replay has done. `events` were taken, in `batches`, with starts from `first` to
    `last` (None if there were none, or they were not needed)."""

    app: str
    events: int
    batches: int
    first: int | None
    last: int | None
    inputs: tuple[ReplayInput, ...]
    variants: tuple[VariantReport, ...]
    page: str | None = None
    """Where the variants are compared."""
    again: bool = False
    """Whether it had finished before, and nothing was run."""
    redone: str = ""
    """What was not as an earlier run had left it, so that it was run again."""
    shadow: int = 0
    """How many of the first events agree with the serial loop; 0: they were not compared."""
    in_rows: tuple[str, ...] = ()
    """The handlers that ran row by row."""

    def beside_first(self, variant: VariantReport, name: str) -> EmittedOutput:
        """Return what a variant emitted under a name. One whose parameters emit nothing there has
        no rows and no digest, and lacks those of the first variant."""
        own, first = variant.output(name), self.variants[0].output(name)
        return own or EmittedOutput(name, "", 0, "", 0, first.rows if first else 0)

    @property
    def emitted_names(self) -> list[str]:
        """The names under which any variant emits."""
        return list(dict.fromkeys(output.name for output in self.outputs))

    @property
    def outputs(self) -> tuple[EmittedOutput, ...]:
        """All outputs, variant by variant."""
        return tuple(output for variant in self.variants for output in variant.outputs)


def run_inputs(report: RunReport, paths: Mapping[str, str]) -> tuple[ReplayInput, ...]:
    """Return what a run has read of the logs."""
    return tuple(
        ReplayInput(i.name, i.partitions, i.late, i.bad) for i in report.inputs if i.name in paths
    )


def cut_inputs(logs: Sequence[RankedLog], cuts: LogCuts) -> tuple[ReplayInput, ...]:
    """Return what there was of logs when they were cut."""
    by_source: dict[str, list[int]] = {}
    for log, total in zip(logs, cuts.totals, strict=True):
        counts = by_source.setdefault(log.source.name, [0, 0, 0])
        for i, more in enumerate((1, total.late, total.bad)):
            counts[i] += more
    return tuple(ReplayInput(name, *counts) for name, counts in by_source.items())


def variant_reports(
    variants: Sequence[Variant], written: Mapping[str, MadeFile]
) -> tuple[VariantReport, ...]:
    """Return what each variant has emitted; `written` has it by variant and name."""
    reports = []
    for variant in variants:
        before = f"{variant.folder}/" if variant.folder else ""
        own = {
            key.removeprefix(before): file
            for key, file in written.items()
            if key.startswith(before)
        }
        outputs = (EmittedOutput(name, m.path, m.rows, m.digest) for name, m in own.items())
        reports.append(VariantReport(variant.label, variant.folder, variant.values, tuple(outputs)))
    return tuple(reports)
