"""DECIMALs become the nearest doubles, wherever they become doubles."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

import weir
from weir.events.decimal_doubles import nearest_doubles
from weir.testing import run


@pytest.mark.parametrize("precision", [1, 9, 15, 16, 17, 18, 19, 20, 23, 38])
def test_every_double_is_the_nearest(precision: int) -> None:
    chance = random.Random(precision)
    for scale in range(precision + 1):
        values: list[Decimal | None] = [None, Decimal(0)]
        for _ in range(40):
            number = chance.randrange(10 ** chance.randint(1, precision))
            values.append(Decimal(chance.choice((1, -1)) * number).scaleb(-scale))
        column = pa.array(values, pa.decimal128(precision, scale))
        expected = [None if v is None else float(v) for v in values]
        assert nearest_doubles(column).to_pylist() == expected
        assert nearest_doubles(column.slice(5, 7)).to_pylist() == expected[5:12]


@pytest.mark.parametrize("scale", [0, 22, 23])
def test_whole_numbers_around_2_to_the_53(scale: int) -> None:
    numbers = [s * (2**n + d) for s in (1, -1) for n in (53, 63, 64) for d in (-1, 0, 1)]
    values = [Decimal(n).scaleb(-scale) for n in numbers]
    doubles = nearest_doubles(pa.array(values, pa.decimal128(38, scale)))
    assert doubles.to_pylist() == [float(v) for v in values]


def test_a_price_is_the_number_that_it_reads_as() -> None:
    text = """
        STREAM A (vs BIGINT, price DECIMAL(10, 2), x DOUBLE) FROM 'a.jsonl';
        Found = SELECT A.price AS price, B.x AS x, A.price / 1 AS same, A.price IN (853.06) AS is_in
          FROM A INNER JOIN A AS B ON A.price = B.x;
        Out = SELECT * FROM Found WHERE price = 853.06;
    """
    row = {"vs": 1, "price": Decimal("853.06"), "x": 853.06}
    (found,) = run(text, {"A": [row]}).rows
    assert (found["x"], found["same"], found["is_in"]) == (853.06, 853.06, True)


def test_rows_in_memory_that_are_declared_as_doubles() -> None:
    table = pa.table({"at": [1, 2], "x": pa.array([Decimal("853.06"), None])})
    rows = weir.from_rows(table, vs="at", columns={"at": "BIGINT", "x": "DOUBLE"})
    assert rows.collect().column("x").to_pylist() == [853.06, None]
