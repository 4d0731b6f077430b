"""The apps of this folder, each run in three ways: by Weir, by the oracle's serial loop, and by the
loop over dictionaries that stands below each app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from natural_apps.plain_loop import PlainLoop, thawed
from replay_oracle.cells import comparable
from replay_oracle.engine import prepare
from replay_oracle.final_states import saved_values
from replay_oracle.loop import NUMBER, Answer
from weir.events.batch import Batch
from weir.local.runner import LocalRun
from weir.runtime.outputs import output_schema
from weir.testing import batch_rows
from weir.testing.memory_runs import memory_partitions

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parents[1] / "examples" / "replay"
_OTHERS = ("__init__", "__main__", "plain_loop", "natural_cases", "test_natural_apps")
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in _OTHERS)

Logs = Mapping[str, list[list[dict[str, Any]]]]
Emits = dict[str, list[tuple[object, ...]]]
States = dict[str, dict[object, object]]


@dataclass(frozen=True)
class NaturalApp:
    """A `NaturalApp` is an app of this folder with its log, in two partitions of each type."""

    name: str
    source: str
    logs: Logs
    loop: Callable[[list[tuple[str, Any]]], tuple[list[Any], dict[str, Any]]]


def natural_app(name: str) -> NaturalApp:
    """Return an app with its log."""
    path = FOLDER / f"{name}.py"
    module = _module(path)
    logs = {kind: [rows[::2], rows[1::2]] for kind, rows in module.logs().items()}
    return NaturalApp(name, path.read_text(encoding="utf-8"), logs, module.loop)


def app_files() -> dict[str, Path]:
    """Return the files of all apps, those of the examples too."""
    files = {name: FOLDER / f"{name}.py" for name in NAMES}
    return files | {f"examples/{p.parent.name}": p for p in sorted(EXAMPLES.glob("*/app.py"))}


def _module(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"natural_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the three ways ------------------------------------------------------------------------------


def by_oracle(app: NaturalApp) -> tuple[Emits, States]:
    """Return emits in order and final states of the oracle's serial loop."""
    answer: Answer = PlainLoop(app.source).run(app.logs)
    emits = {
        name: [(row.vs, comparable(dict(row.fields))) for row in rows]
        for name, rows in answer.emits.items()
    }
    states = {n: {k: comparable(v) for k, v in c.items()} for n, c in answer.state.items()}
    return emits, states  # type: ignore[return-value]


def by_hand(app: NaturalApp) -> tuple[Emits, States]:
    """Return emits in order and those final states that the loop below the app gives."""
    loop = PlainLoop(app.source)
    rows = loop.in_log_order(app.logs)
    events = [(kind.name, loop.event_of(kind, row)) for kind, row in rows]
    emitted, states = app.loop(events)
    emits: Emits = {}
    for name, vs, fields in emitted:
        emits.setdefault(name, []).append((vs, comparable(thawed(fields))))
    return emits, {name: _cells(cells) for name, cells in states.items()}


def _cells(cells: Mapping[object, object]) -> dict[object, object]:
    return {
        comparable(key if isinstance(key, tuple) else (key,)): comparable(thawed(value))
        for key, value in cells.items()
    }


def by_weir(
    app: NaturalApp, *, cut: int | None = None, parallelism: int = 1, vectorise: bool = True
) -> tuple[Emits, States]:
    """Return emits in order and final states of Weir's local runner."""
    prepared = prepare(app.source, vectorise=vectorise, numbered=True)
    came: list[list[Batch]] = [[] for _ in prepared.program.outputs]

    def kept(batches: list[Batch]) -> Callable[[object, Batch], None]:
        return lambda _, rows: batches.append(rows)

    partitions = memory_partitions(prepared.program, app.logs)
    LocalRun(
        prepared.program,
        partitions,
        [kept(batches) for batches in came],
        cut=cut,
        parallelism=parallelism,
    ).run()
    rows = [
        [row for batch in batches for row in batch_rows(batch, output_schema(output))]
        for output, batches in zip(prepared.program.outputs, came, strict=True)
    ]
    emits = dict(zip(prepared.emits, rows, strict=False))
    saved = dict(zip(prepared.states, rows[len(prepared.emits) :], strict=True))
    loop = PlainLoop(app.source)
    end = max(loop.time_of(kind, row) for kind, row in loop.in_log_order(app.logs))
    return (
        {name: _in_order(of) for name, of in emits.items() if of},
        {n: saved_values(kind, saved.get(n, []), end) for n, kind in loop.store.kinds.items()},
    )


def _in_order(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    """Return emitted rows in the order in which another app sees them, which numbers them."""
    own = ("vs", "ve", NUMBER)
    return [
        (row["vs"], comparable({name: v for name, v in row.items() if name not in own}))
        for row in sorted(rows, key=lambda row: row[NUMBER])  # type: ignore[arg-type,return-value]
    ]
