"""The examples of `examples/replay`, each with small logs and the plain loop of its rules."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq

from replay_examples import loops
from replay_examples.loops import Emitted, Row

EXAMPLES = Path(__file__).parents[2] / "examples" / "replay"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """An example: how its logs are made, where they lie, in order of declaration, its loop."""

    name: str
    made: Mapping[str, Any]
    logs: Mapping[str, str]
    loop: Callable[[Any], Emitted]

    @property
    def app(self) -> Path:
        return EXAMPLES / self.name / "app.py"

    def generate(self, folder: Path) -> None:
        module(self.name, "generate").generate(folder, **self.made)

    def paths(self, folder: Path) -> dict[str, str]:
        return {name: str(folder / path) for name, path in self.logs.items()}

    def expected(self, folder: Path) -> Emitted:
        """What the plain loop emits."""
        logs = {name: rows_of(folder, path) for name, path in self.logs.items()}
        return self.loop(loops.in_log_order(logs))


CASES = {
    case.name: case
    for case in (
        Case(
            "spam",
            {"events": 6000, "users": 300, "files": 2},
            {"friendship": "friendship/*.parquet", "message": "message/*.parquet"},
            loops.spam,
        ),
        Case(
            "payments",
            {"payments": 2500},
            {
                "chargeback": "chargeback.jsonl",
                "support": "support.jsonl",
                "payment": "payment.jsonl",
            },
            loops.payments,
        ),
        Case("trading", {"trades": 2000}, {"trade": "trade.csv"}, loops.trading),
        Case(
            "features",
            {"impressions": 5000},
            {"click": "click.parquet", "impression": "impression.parquet"},
            loops.features,
        ),
    )
}


def module(example: str, name: str) -> ModuleType:
    """A module of an example's folder."""
    known = f"replay_{example}_{name}"
    if known not in sys.modules:
        spec = spec_from_file_location(known, EXAMPLES / example / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[known] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


def rows_of(folder: Path, path: str) -> Sequence[tuple[int, Row]]:
    """The rows of a log with their times."""
    found: list[tuple[int, Row]] = []
    for file in sorted(folder.glob(path)):
        match file.suffix:
            case ".parquet":
                found += [(row["ts"], row) for row in pq.read_table(file).to_pylist()]
            case ".jsonl":
                rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
                found += [(as_ticks(row["at"]), row) for row in rows]
            case ".csv":
                with open(file, newline="", encoding="utf-8") as lines:
                    found += [(as_ticks(row["at"]), _numbers(row)) for row in csv.DictReader(lines)]
    return found


def _numbers(row: Mapping[str, str]) -> Row:
    return row | {"price": float(row["price"]), "size": int(row["size"])}


def as_ticks(text: str | int) -> int:
    """A time as a file has it, in ticks."""
    if isinstance(text, int):
        return text
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
