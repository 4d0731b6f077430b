"""Conformance cases (docs: the script language, conform) as programs and oracle inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oracle.rows import OPEN, Cti, Row

FOLDER = Path(__file__).parent.parent / "conformance"

Item = Mapping[str, object]
Partitions = Sequence[Sequence[Item]]


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    text: str
    """The program with the declarations of its streams in front."""
    inputs: dict[str, Partitions]
    expected: list[Item] | None
    error: str | None


def read_cases() -> Iterator[Case]:
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield _case(json.loads(line))


def _case(raw: dict) -> Case:
    inputs = {name: _partitions(given) for name, given in raw["inputs"].items()}
    options = raw.get("options", {})
    declared = [_declaration(n, p, options.get(n, "")) for n, p in inputs.items()]
    text = "\n".join([*declared, raw["program"]])
    return Case(raw["id"], text, inputs, raw.get("expected"), raw.get("error"))


def _partitions(given: list[Item] | dict[str, Partitions]) -> Partitions:
    """Every event with an explicit end: a missing one makes a point."""
    partitions = given["partitions"] if isinstance(given, dict) else [given]
    return [
        [i if "$cti" in i or "ve" in i else {**i, "ve": i["vs"] + 1} for i in items]
        for items in partitions
    ]


def _declaration(name: str, partitions: Partitions, options: str) -> str:
    rows = [item for items in partitions for item in items if "$cti" not in item]
    names = dict.fromkeys(n for row in rows for n in row if n not in ("vs", "ve"))
    columns = [f"{n} {_type_of([row.get(n) for row in rows])}" for n in names]
    return (
        f"STREAM {name} ({', '.join(['vs BIGINT', 've BIGINT', *columns])})"
        f" FROM '{name}.jsonl' WITH (vs = vs, ve = ve{', ' if options else ''}{options});"
    )


def _type_of(values: list) -> str:
    kinds = {type(v) for v in values if v is not None}
    if kinds == {list}:
        return f"LIST({_type_of([e for v in values if v for e in v])})"
    if kinds == {int, float}:
        kinds = {float}
    # A column of NULLs alone can be of any type.
    (kind,) = kinds or {int}
    return {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"}[kind]


def oracle_items(partitions: Partitions, types: Mapping[str, object]) -> list[list[Row | Cti]]:
    """What the oracle reads; `types` are the payload's columns, whose order rows must have."""
    return [[_item(item, types) for item in items] for items in partitions]


def _item(item: Item, types: Mapping[str, object]) -> Row | Cti:
    if "$cti" in item:
        return Cti(item["$cti"])
    payload = {n: _value(item.get(n), str(t)) for n, t in types.items()}
    return Row(item["vs"], OPEN if item["ve"] is None else item["ve"], payload)


def _value(value: object, dtype: str) -> object:
    return float(value) if dtype == "double" and value is not None else value
