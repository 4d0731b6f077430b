"""Names: columns, qualifiers, lifetimes, structs, hints, positions."""

import pyarrow as pa
import pytest

from weir.errors import PlanError
from weir.events.types import BIGINT, STRING, TIMESTAMP
from weir.plan.binding.binder import bind, bind_condition, schema_scope
from weir.plan.expressions import AggregateCall, Call, Column, Expr, Literal
from weir.plan.schema import Schema
from weir.plan.usercode.functions import ScalarFunction, UserFunctions

NESTED = pa.struct([("in", pa.struct([("x", BIGINT)]))])
SCHEMA = Schema((("UserID", BIGINT), ("k", STRING), ("rec", NESTED)), TIMESTAMP)
TWICE = ScalarFunction("Twice", lambda x: x, (BIGINT,), BIGINT)
SCOPE = schema_scope(SCHEMA, "A", UserFunctions.of([TWICE]))


def bound(name: str) -> Expr:
    return bind(Column(name), SCOPE)


def test_bare_and_qualified() -> None:
    assert bound("k") == bound("A.k") == Column("k", type=STRING)
    assert bound("vs") == bound("A.vs") == Column("vs", type=TIMESTAMP)


def test_struct_fields_by_dots() -> None:
    inner = bound("A.rec.in.x")
    assert inner.type == BIGINT
    assert inner == bound("rec.in.x")
    assert isinstance(inner, Call)
    assert inner.args[1] == Literal("x", type=STRING)


def test_unknown_column_has_hint_and_position() -> None:
    with pytest.raises(PlanError) as caught:
        bind(Call("eq", (Column("UserId", position=(3, 7)), Literal(1))), SCOPE)
    assert caught.value.message == "unknown column `UserId`"
    assert caught.value.hint == "did you mean `UserID`?"
    assert caught.value.position == (3, 7)


def test_nothing_near_tells_what_there_is_in_python() -> None:
    with pytest.raises(PlanError) as caught:
        bound("zzz")
    assert caught.value.hint.startswith("there are UserID, ")
    with pytest.raises(PlanError) as caught:
        bind(Column("zzz", position=(1, 1)), SCOPE)
    assert caught.value.hint == ""


def test_unknown_function_and_the_users_own() -> None:
    with pytest.raises(PlanError, match=r"unknown function `lowr`; did you mean `lower`\?"):
        bind(Call("lowr", (Column("k"),)), SCOPE)
    call = bind(Call("Twice", (Column("UserID"),)), SCOPE)
    assert call.type == BIGINT
    with pytest.raises(PlanError, match="Twice takes 1 argument"):
        bind(Call("Twice", ()), SCOPE)
    with pytest.raises(PlanError, match="argument 1 must be BIGINT, not STRING"):
        bind(Call("Twice", (Column("k"),)), SCOPE)


def test_aggregate_in_where() -> None:
    with pytest.raises(PlanError, match="cannot stand in WHERE; HAVING"):
        bind_condition(AggregateCall("count_star", (), position=(1, 1)), SCOPE.at("WHERE"))
    with pytest.raises(PlanError, match=r"cannot stand in WHERE; \.having"):
        bind_condition(AggregateCall("count_star", ()), SCOPE.at("WHERE"))


def test_condition_must_be_boolean() -> None:
    with pytest.raises(PlanError, match="WHERE must be BOOLEAN, not BIGINT"):
        bind_condition(Column("UserID"), SCOPE.at("WHERE"))


def test_no_window_yet() -> None:
    with pytest.raises(PlanError, match="cannot stand in WHERE: there are no windows"):
        bind(Column("window_start"), SCOPE.at("WHERE"))
