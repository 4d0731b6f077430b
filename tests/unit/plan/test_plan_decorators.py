"""The user's functions: types from text and annotations, the registry."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from weir.errors import PlanError
from weir.events.types import BIGINT, BOOLEAN, DOUBLE, STRING
from weir.plan.durations import parse_duration
from weir.plan.fluent.sources import stream
from weir.plan.fluent.terms import call, col
from weir.plan.usercode.decorators import aggregate, operator, udf
from weir.plan.usercode.functions import FoldingAggregate, OperatorCall, UserFunctions
from weir.plan.windows import tumbling


@udf
def score(amount: float, country: str | None) -> bool:
    return amount > 1 and country is not None


@udf(args=["LIST(STRING)"], result="DECIMAL(4, 1)", vectorised=True)
def vector(values):
    return values


@aggregate(exact=True)
class Total:
    def zero(self) -> int:
        return 0

    def add(self, state: int, value: int) -> int:
        return state + value

    def remove(self, state: int, value: int) -> int:
        return state - value

    def merge(self, state: int, other: int) -> int:
        return state + other

    def result(self, state: int) -> float:
        return float(state)


@aggregate(args=["STRING", "BIGINT"], result="LIST(STRING)")
class Static:
    @staticmethod
    def zero():
        return []

    @staticmethod
    def add(state, text, n):
        return state

    @staticmethod
    def result(state):
        return state


@operator(columns={"id": "BIGINT", "tags": "LIST(STRING)"})
class Chain:
    last: int
    seen: list[str]

    def on_event(self, event, ctx):
        pass


def test_udf_types() -> None:
    assert (score.name, score.args, score.result) == ("score", (DOUBLE, STRING), BOOLEAN)
    assert score(2.0, "x") is True
    assert vector.args == (pa.list_(STRING),)
    assert vector.vectorised
    assert vector.result == pa.decimal128(4, 1)


def test_aggregate_types() -> None:
    assert (Total.args, Total.result, Total.exact) == ((BIGINT,), DOUBLE, True)
    assert Total.implementation().add(1, 2) == 3
    assert Static.args == (STRING, BIGINT)


def test_aggregates_that_declare_their_state() -> None:
    made = aggregate(state={"n": "BIGINT", "seen": "LIST(STRING)"})(Total.implementation)
    assert isinstance(made, FoldingAggregate) and made.args == Total.args
    assert made.state == pa.struct([("n", BIGINT), ("seen", pa.list_(STRING))])
    assert not isinstance(Total, FoldingAggregate)
    one = aggregate(state=pa.float64())(Total.implementation)
    assert isinstance(one, FoldingAggregate) and one.state == DOUBLE


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({}, "the state of Total has no names"),
        ({"vs": "BIGINT"}, "cannot be called `vs`"),
        ("NUMBER", "NUMBER"),
        (pa.int8(), "unsupported type int8; write 'BIGINT' or 'INT'"),
    ],
)
def test_states_that_are_refused(state: object, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        aggregate(state=state)(Total.implementation)  # type: ignore[call-overload]


def test_exact_and_a_state_exclude_each_other() -> None:
    with pytest.raises(PlanError, match="Total is exact and declares a state"):
        aggregate(exact=True, state="BIGINT")(Total.implementation)


def test_operator_types_and_call() -> None:
    assert Chain.columns == (("id", BIGINT), ("tags", pa.list_(STRING)))
    assert Chain.state == (("last", BIGINT), ("seen", pa.list_(STRING)))
    assert Chain(5) == OperatorCall(Chain, (5,))


def test_registry() -> None:
    found = UserFunctions.of([score, Total, Chain, 1])
    assert found.scalars == {"score": score}
    assert found.aggregates == {"Total": Total}
    assert found.operators == {"Chain": Chain}
    assert (found | UserFunctions.of([vector])).scalars == {"score": score, "vector": vector}


def test_what_lacks_a_type_or_a_method() -> None:
    with pytest.raises(PlanError, match="argument `x` of f"):

        @udf
        def f(x) -> int:
            return 1

    with pytest.raises(PlanError, match="result of g"):

        @udf
        def g(x: int):
            return 1

    with pytest.raises(PlanError, match="needs a method `zero`"):

        @aggregate
        class NoZero:
            pass

    with pytest.raises(PlanError, match="needs a method `remove`"):
        aggregate(exact=True)(Static.implementation)

    with pytest.raises(PlanError, match="cannot be called `vs`"):
        operator(columns={"vs": "BIGINT"})(Chain.implementation)


@pytest.mark.parametrize(
    ("text", "ticks"),
    [
        ("250ms", 250_000),
        ("5s", 5_000_000),
        ("2m", 120_000_000),
        ("1h", 3_600_000_000),
        ("7d", 604_800_000_000),
        ("10us", 10),
        ("12", 12),
        (-3, -3),
        ("-4s", -4_000_000),
    ],
)
def test_durations(text: str | int, ticks: int) -> None:
    assert parse_duration(text) == ticks


@pytest.mark.parametrize("text", ["", "5 s", "s", "5w", "1.5s", "5S", True, "٣s"])
def test_no_durations(text: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_duration(text)
    assert "invalid duration" in str(pickle.loads(pickle.dumps(caught.value)))


@pytest.mark.parametrize("name", ["sum", "median", "count", "count_distinct"])
def test_an_aggregate_with_the_name_of_a_built_in_is_refused(name: str) -> None:
    own = replace(Total, name=name)
    rows = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    with pytest.raises(PlanError, match=f"your aggregate `{name}` has the name of a built-in one"):
        rows.window(tumbling("5s")).agg(x=call(own, col("v")))
