"""Three inputs, and a query's plan over them."""

from collections.abc import Callable

import pytest

from weir.plan.operators import Node
from weir.script.program import parse_program

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT, f DOUBLE, i INT, x LIST(BIGINT),
          p DECIMAL(10, 2), r STRUCT(a BIGINT)) FROM 'a.jsonl' WITH (vs = vs, ve = ve);
STREAM B (vs BIGINT, ve BIGINT, k STRING, w BIGINT, i INT) FROM 'b.jsonl' WITH (vs = vs, ve = ve);
STREAM T (At TIMESTAMP, k STRING) FROM 't.jsonl' WITH (vs = At);
"""


@pytest.fixture
def plan() -> Callable[[str], Node]:
    """`plan("SELECT …")`: the node of one query."""

    def plan_of(query: str) -> Node:
        streams = dict(parse_program(f"{INPUTS} Out = {query};").streams)
        return streams["Out"]

    return plan_of
