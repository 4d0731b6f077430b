"""Prints how Weir runs each app of this folder, and the examples: `python -m natural_apps`.

columns  handlers that are column expressions
ring     handlers in columns whose reads and merges form a circle over one key
rows     handlers that run as they are, by CPython
serial   handlers that `app.serial` runs in one partition
runs     how often a handler in rows runs on an event, at most
stages   stages of the plan
share    of all (event, handler) pairs of the log, those whose handler is in columns
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from natural_apps.natural_cases import app_files, natural_app
from replay_examples.cases import CASES, rows_of
from weir.errors import WeirError
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import Compiled, compile_app
from weir.runtime.program_plan import plan_program
from weir.runtime.programs import program_of


@dataclass(frozen=True)
class Ways:
    """`Ways` are the handlers of an app by how they run, and what that comes to."""

    handlers: Mapping[str, int]
    runs: int
    stages: int
    share: float


def ways(path: Path, events: Mapping[str, int]) -> Ways:
    """Compile an app, and say how it runs on so many events of each type."""
    compiled = compile_app(load_app(path), final=True)
    kinds = {name: kind_of(compiled, name) for name in compiled.app.handlers}
    pairs: Counter[str] = Counter()
    for flow in compiled.flow.events:
        for handler in flow.handlers:
            pairs[kinds[handler]] += events[flow.event]
    outputs = [s.to("", name=f"e.{n}") for n, s in compiled.emitted.items()]
    outputs += [s.to("", name=f"s.{n}") for n, s in compiled.final.items()]
    runs = max((len(unit.steps) for unit in compiled.flow.units()), default=0)
    stages = len(plan_program(program_of(outputs), optimise=False).stages.stages)
    return Ways(Counter(kinds.values()), runs, stages, pairs["columns"] / pairs.total())


def kind_of(compiled: Compiled, handler: str) -> str:
    for unit in compiled.flow.units():
        if unit.handler == handler:
            return "rows" if unit.unit.group is None else "serial"
    steps = (s for ring in compiled.flow.rings for place in ring.places for s in place.steps)
    return "ring" if any(step.handler == handler for step in steps) else "columns"


def event_counts(name: str) -> dict[str, int]:
    """Return how many events of each type the log of an app has."""
    if not name.startswith("examples/"):
        return {n: sum(map(len, parts)) for n, parts in natural_app(name).logs.items()}
    case = CASES[name.removeprefix("examples/")]
    with tempfile.TemporaryDirectory() as folder:
        case.generate(Path(folder))
        return {n: len(rows_of(Path(folder), path)) for n, path in case.logs.items()}


def main() -> None:
    kinds = ("columns", "ring", "rows", "serial")
    print(f"{'app':20}", *(f"{kind:>7}" for kind in (*kinds, "runs", "stages", "share")))
    total: Counter[str] = Counter()
    refused = []
    for name, path in app_files().items():
        try:
            of = ways(path, event_counts(name))
        except WeirError as error:
            refused.append((name, str(error).splitlines()[0]))
            continue
        total.update(of.handlers)
        counts = [*(of.handlers.get(kind, 0) for kind in kinds), of.runs, of.stages]
        print(f"{name:20}", *(f"{n:7}" for n in counts), f"{of.share:7.0%}")
    print(f"{'all':20}", *(f"{total[kind]:7}" for kind in kinds))
    print(f"\nrefused: {len(refused)} of {len(app_files())}")
    for name, why in refused:
        print(f"  {name}: {why}")


if __name__ == "__main__":
    main()
