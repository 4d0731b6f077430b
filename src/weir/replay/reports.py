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
    """What a replay read of one log: its partitions, and the number of rejected rows."""

    name: str
    partitions: int
    late: int
    bad: int


class EmittedOutput(msgspec.Struct, frozen=True):
    """What was written for one emitted stream.

    In a comparison of variants, `only_here` counts the rows that the first variant does not have,
    and `only_first` the rows that only the first variant has.
    """

    name: str
    path: str
    rows: int
    digest: str
    only_here: int | None = None
    only_first: int | None = None


class VariantReport(msgspec.Struct, frozen=True):
    """What one variant emitted, with the values of all parameters."""

    label: str
    folder: str
    """The folder of its outputs inside the output folder; each variant has its own."""
    params: dict[str, bool | int | float | str]
    outputs: tuple[EmittedOutput, ...]

    def output(self, name: str) -> EmittedOutput | None:
        """Return the output with this name; None if nothing is emitted with these parameters."""
        return next((output for output in self.outputs if output.name == name), None)


class ReplayReport(msgspec.Struct, frozen=True):
    """The results of a replay.

    It processed `events` events in `batches` batches. Their starts are from `first` to `last`;
    these are None if there were no events, or if they were not needed.
    """

    app: str
    events: int
    batches: int
    first: int | None
    last: int | None
    inputs: tuple[ReplayInput, ...]
    variants: tuple[VariantReport, ...]
    page: str | None = None
    """The path of the page that compares the variants."""
    again: bool = False
    """Whether the replay had finished before, so that nothing was run."""
    redone: str = ""
    """What had changed since an earlier run, so that the replay ran again."""
    shadow: int = 0
    """How many of the first events agree with the serial loop; 0 if they were not compared."""
    in_rows: tuple[str, ...] = ()
    """The handlers that ran row by row."""

    def beside_first(self, variant: VariantReport, name: str) -> EmittedOutput:
        """Return a variant's output with this name, for the comparison with the first variant.

        If its parameters emit nothing there, the output has no rows and no digest, and lacks all
        rows of the first variant.
        """
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
    """Return what a run read of the logs."""
    return tuple(
        ReplayInput(i.name, i.partitions, i.late, i.bad) for i in report.inputs if i.name in paths
    )


def cut_inputs(logs: Sequence[RankedLog], cuts: LogCuts) -> tuple[ReplayInput, ...]:
    """Return what the pass that cut the logs saw of them."""
    by_source: dict[str, list[int]] = {}
    for log, total in zip(logs, cuts.totals, strict=True):
        counts = by_source.setdefault(log.source.name, [0, 0, 0])
        for i, more in enumerate((1, total.late, total.bad)):
            counts[i] += more
    return tuple(ReplayInput(name, *counts) for name, counts in by_source.items())


def variant_reports(
    variants: Sequence[Variant], written: Mapping[str, MadeFile]
) -> tuple[VariantReport, ...]:
    """Return what each variant emitted; `written` has the files by variant and name."""
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
