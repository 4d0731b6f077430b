"""A query's tree, or an expression's, straight from text: nothing is bound or built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weir.events.types import BIGINT, DOUBLE
from weir.plan.binding.query import Query
from weir.plan.expressions import Expr
from weir.plan.usercode.functions import AggregateFunction, UserFunctions
from weir.script.constants import Parameter, StatementScope, overridden
from weir.script.dialect import parse_statements
from weir.script.query_translation import translate_query
from weir.script.source import ProgramSource


def _parameter(text: str, dtype: object) -> Parameter:
    found = overridden(text, dtype)
    assert found is not None
    return found


def _translated(text: str) -> Query:
    source = ProgramSource(f"Out = {text};")
    (tree,) = parse_statements(source)
    parameters = {"k": _parameter("3", BIGINT), "p": _parameter("0.90", DOUBLE)}
    own = AggregateFunction("spread", type("Spread", (), {}), (BIGINT,), BIGINT)
    scope = StatementScope(source, parameters, UserFunctions.of([own]))
    return translate_query(tree.args["expression"], scope)


@pytest.fixture
def query() -> Callable[[str], Query]:
    return _translated


@pytest.fixture
def expr() -> Callable[[str], Expr]:
    def parse(text: str) -> Expr:
        item = _translated(f"SELECT {text} AS x FROM A").selects[0].items[0].expr
        assert isinstance(item, Expr)
        return item

    return parse
