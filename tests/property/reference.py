"""What a program must give: the oracle, asked with a program's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oracle import Cti, OracleError, Row, evaluate
from oracle.cases import oracle_items
from weir.plan.operators import schema
from weir.plan.program import Program
from weir.script.program import parse_program

Inputs = Mapping[str, Sequence[Sequence[Mapping[str, object]]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`rows` in the order in which the engine gave them; `error` where it refused to go on."""

    rows: list[Row] = field(default_factory=list)
    error: str | None = None
    digest: str = ""
    checksums: Mapping[str, str] = field(default_factory=dict)


def oracle_run(text: str, inputs: Inputs) -> Outcome:
    program = parse_program(text)
    try:
        return Outcome(evaluate(dict(program.streams)["Out"], oracle_inputs(program, inputs)))
    except OracleError as error:
        return Outcome(error=str(error))


def oracle_inputs(program: Program, inputs: Inputs) -> dict[str, list[list[Row | Cti]]]:
    """The partitions of every source, as the oracle reads them."""
    return {
        source.name: oracle_items(inputs[source.name], dict(schema(source).columns))
        for source in program.sources
    }
