"""Makes the program of a batch: the emitted streams of all variants, and the states after it.

Rules
1. Variants are compiled one by one; equal parts of their plans are merged. An output that several
   variants share is written once.
2. The states that a batch starts with are sources that read the tables of the batch before.
   Variants that share a state's table share its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.handlers.planning.app_compiler import compile_app
from weir.handlers.planning.app_explanation import ways
from weir.handlers.planning.dataflow import Flow
from weir.plan.fluent.stream import Stream
from weir.plan.operators import FinalState, Node, Source, SourceOptions, schema
from weir.plan.program import Output, Program
from weir.replay.variants import Variant
from weir.runtime.programs import program_of

FIRST_INDEX = 1 << 20
"""Sources of states are numbered from here, above all sources of a program."""


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """What is replayed: an app with its logs, its variants, and the time span."""

    app: App
    paths: Mapping[str, str]
    variants: Sequence[Variant]
    start: int | None = None
    end: int | None = None
    vectorise: bool = True


@dataclass(frozen=True, slots=True)
class BatchProgram:
    """The program of a batch, with its outputs.

    The keys of emitted streams and of states are `variant folder/name`; several keys may have one
    output.
    """

    program: Program
    emitted: Mapping[str, Output]
    states: Mapping[str, Output]
    saved: Mapping[str, FinalState]
    """The states whose cells the tables hold, by their keys."""
    restored: Mapping[str, tuple[Source, str]]
    """The sources of the tables that the batch starts with, by name.

    Each comes with the key of a state whose table it is.
    """
    flows: Sequence[Flow]
    """The dataflow of each variant."""
    hands_on: bool
    """Whether the states after the batch are among its outputs."""
    in_rows: tuple[str, ...] = ()
    """The handlers that CPython runs row by row, in any variant."""


def key_of(variant: Variant, name: str) -> str:
    """Return the key of a variant's emitted stream or state."""
    return f"{variant.folder}/{name}" if variant.folder else name


def first_program(task: ReplayTask, *, saved: bool) -> BatchProgram:
    """Make the program of a first batch, including the states after it.

    If no table can hold these, they are left out unless an option needs them (`saved`); then there
    can be no second batch.
    """
    try:
        return batch_program(task, final=True)
    except PlanError:
        if saved:
            raise
        return batch_program(task)  # raises the error if it has another cause


def batch_program(
    task: ReplayTask,
    *,
    emitted: Mapping[str, str] | None = None,
    final: bool = False,
    as_of: int | None = None,
    restored: Mapping[str, str] | None = None,
    first: BatchProgram | None = None,
) -> BatchProgram:
    """Make the program of a batch.

    `emitted` has the paths of emitted streams by key (None: in the batch's folder). With `final`,
    the states after the batch go to its folder. If `as_of` is set, no event is later, and cells
    that have ended by then are left out. `restored` has the tables to start with, by the keys of
    states. `first` is the program of the first batch: the tables hold its states, and its dataflow
    is reused.
    """
    begun = _Restored({} if first is None else first.saved, restored or {})
    flows = [None] * len(task.variants) if first is None else first.flows
    compiled = [
        compile_app(
            task.app,
            paths=task.paths,
            params=variant.values,
            start=task.start,
            end=task.end,
            restored=begun.streams(variant, task.app),
            final=final,
            as_of=as_of,
            vectorise=task.vectorise,
            flow=flow,
        )
        for variant, flow in zip(task.variants, flows, strict=True)
    ]
    files = _BatchFiles()
    variant_apps = list(zip(task.variants, compiled, strict=True))
    streams = {key_of(v, n): s for v, app in variant_apps for n, s in app.emitted.items()}
    kept = {key_of(v, n): s for v, app in variant_apps for n, s in app.final.items()}
    if emitted is None:
        emits = {
            key: files.once("emitted", key, stream, ".arrow") for key, stream in streams.items()
        }
    else:
        emits = {key: Output(key, stream.node, emitted[key]) for key, stream in streams.items()}
    states = {key: files.once("state", key, stream, ".parquet") for key, stream in kept.items()}
    finals = {
        key: stream.node for key, stream in kept.items() if isinstance(stream.node, FinalState)
    }
    outputs = list(dict.fromkeys((*emits.values(), *states.values())))
    program = replace(program_of(outputs), code=task.app.code, needed=task.app.needed)
    in_rows = tuple(
        name
        for name in task.app.handlers
        if any(ways(one.flow).get(name) != "columns" for one in compiled)
    )
    return BatchProgram(
        program,
        emits,
        states,
        finals,
        begun.sources,
        [one.flow for one in compiled],
        final,
        in_rows,
    )


class _BatchFiles:
    """Names the outputs of a batch and their paths in its folder; equal nodes share one output."""

    def __init__(self) -> None:
        self._outputs: dict[tuple[str, Node], Output] = {}

    def once(self, folder: str, key: str, stream: Stream, ending: str) -> Output:
        if (folder, stream.node) not in self._outputs:
            path = f"{folder}/{len(self._outputs)}{ending}"
            self._outputs[folder, stream.node] = Output(f"{folder} {key}", stream.node, path)
        return self._outputs[folder, stream.node]


class _Restored:
    """Makes the sources of the states that a batch starts with."""

    def __init__(self, saved: Mapping[str, FinalState], tables: Mapping[str, str]) -> None:
        self._saved, self._tables = saved, tables
        self._streams: dict[str, Stream] = {}
        self.sources: dict[str, tuple[Source, str]] = {}

    def streams(self, variant: Variant, app: App) -> dict[str, Stream]:
        """Return the streams of a variant's tables, by state."""
        keys = {name: key_of(variant, name) for name in app.states}
        return {name: self._stream(name, k) for name, k in keys.items() if k in self._tables}

    def _stream(self, state: str, key: str) -> Stream:
        table = self._tables[key]
        if table not in self._streams:
            number = len(self._streams)
            shape, name = schema(self._saved[key]), f"state {state} {number}"
            # Their ends are the next ticks, even after the latest time, because ends are not read.
            columns = (("vs", shape.time), *shape.columns)
            # The run sets the path of its table: batches share the program.
            path = f"restored/{number}.parquet"
            source = Source(name, columns, path, SourceOptions("vs"), FIRST_INDEX + number)
            self.sources[name] = (source, key)
            self._streams[table] = Stream(source, name)
        return self._streams[table]
