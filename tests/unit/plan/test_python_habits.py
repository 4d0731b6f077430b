"""What people write in Python: texts as conditions, Python's types, rows in memory, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import weir
from weir import Stream, col, count, tumbling
from weir.events.types import type_name
from weir.runtime.programs import program_of

COLUMNS = {"vs": "BIGINT", "Shop": str, "Amount": float}
ROWS = [
    {"vs": 1, "Shop": "a", "Amount": 2.5},
    {"vs": 4, "Shop": "b", "Amount": 7.0},
    {"vs": 12, "Shop": "a", "Amount": 9.0},
]


def sales() -> Stream:
    return weir.stream("Sales", COLUMNS, "sales.jsonl", vs="vs")


# --- what is accepted -------------------------------------------------------------------------


def test_texts_are_expressions() -> None:
    s = sales()
    assert s.where("Amount > 3") == s.where(col("Amount") > 3)
    assert s.select(weir.expr("upper(Shop)").as_("S")).columns == ("S",)
    grouped = s.group_by("Shop").window(tumbling("10s"))
    as_text = grouped.having("SUM(Amount) > 3").agg(
        n="COUNT(*)", big="COUNT(*) FILTER (WHERE Amount > 3)"
    )
    as_terms = grouped.having(col("Amount").sum() > 3).agg(
        n=count(), big=count().filter("Amount > 3")
    )
    assert as_text == as_terms
    other = weir.stream("Other", COLUMNS, "o.jsonl", vs="vs")
    joined = s.join(other, "Sales.Shop = Other.Shop").select("Sales.Shop")
    assert joined == s.join(other, col("Sales.Shop") == col("Other.Shop")).select("Sales.Shop")
    choice = weir.case(("Amount > 3", "big"), otherwise="small")
    assert s.select(c=choice).collect(inputs={"Sales": ROWS}).column("c").to_pylist() == [
        "small", "big", "big",
    ]  # fmt: skip


def test_types_of_python_and_arrow_are_columns() -> None:
    written = {
        "t": datetime, "i": int, "f": float, "b": bool, "x": bytes, "d": date,
        "l": list[str], "o": int | None, "a": pa.int32(), "n": pa.list_(pa.int64()),
    }  # fmt: skip
    found = weir.stream("A", written, "a.jsonl", vs="t").schema.columns
    assert [type_name(t) for _, t in found] == [
        "TIMESTAMP", "BIGINT", "DOUBLE", "BOOLEAN", "BINARY", "DATE",
        "LIST(STRING)", "BIGINT", "INT", "LIST(BIGINT)",
    ]  # fmt: skip


def test_timedeltas_are_durations() -> None:
    s = sales()
    assert s.shift(timedelta(seconds=2)) == s.shift("2s")
    hour = s.window(tumbling(timedelta(hours=1))).agg(n=count())
    assert hour == s.window(tumbling("1h")).agg(n=count())
    assert s.where(col("vs") > timedelta(seconds=1)) == s.where("vs > 1s")


def test_dates_and_times_are_constants() -> None:
    rows = [{"t": datetime(2026, 3, 1, tzinfo=UTC), "d": date(2026, 3, 1)}]
    s = weir.from_rows(rows, vs="t")
    assert s.where(col("t") >= datetime(2026, 3, 1)).collect().num_rows == 1
    assert s.where(col("d") > date(2026, 3, 1)).collect().num_rows == 0


def test_a_path_may_be_a_path(tmp_path: Path) -> None:
    path = tmp_path / "sales.jsonl"
    path.write_text('{"vs": 1, "Shop": "a", "Amount": 1}\n', encoding="utf-8")
    assert weir.stream("Sales", COLUMNS, path, vs="vs").collect().num_rows == 1


@pytest.mark.parametrize(
    "given",
    [
        ROWS,
        tuple(ROWS),
        {name: [row[name] for row in ROWS] for name in ROWS[0]},
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=[7, 8, 9]),
        pl.DataFrame(ROWS),
    ],
    ids=lambda given: type(given).__module__ + "." + type(given).__name__,
)
def test_rows_in_memory_are_inputs(given: object) -> None:
    wanted = [(1, "a", 2.5), (4, "b", 7.0), (12, "a", 9.0)]
    for s in (
        weir.from_rows(given, vs="vs"),
        weir.stream("Sales", COLUMNS, given, vs="vs"),
    ):
        found = s.collect().to_pydict()
        assert list(zip(found["vs"], found["Shop"], found["Amount"], strict=True)) == wanted
    held = sales().collect(inputs={"Sales": given})
    assert held.column("Amount").to_pylist() == [2.5, 7.0, 9.0]


def test_rows_in_memory_are_read_as_any_file_is() -> None:
    late = [ROWS[1], ROWS[0]]
    with pytest.raises(weir.InputError, match="late"):
        weir.from_rows(late, vs="vs").collect()
    assert weir.from_rows(late, vs="vs", delay=10).collect().num_rows == 2
    assert weir.from_rows(ROWS, vs="vs") == weir.from_rows(list(ROWS), vs="vs")
    stamps = pd.DataFrame({"t": pd.to_datetime(["2026-03-01T00:00:00.123456"])})
    assert weir.from_rows(stamps, vs="t").collect().column("vs").to_pylist() == [
        datetime(2026, 3, 1, 0, 0, 0, 123456, tzinfo=UTC)
    ]


def test_inputs_need_no_numbers() -> None:
    b = weir.from_rows([{"vs": 1, "k": 1}], vs="vs", name="B")
    a = weir.from_rows([{"vs": 1, "k": 1}], vs="vs", name="A")
    kept = b.union(a.select(k=col("k") + 1)).window(tumbling(10)).agg(k=col("k").collect())
    swapped = a.select(k=col("k") + 1).union(b).window(tumbling(10)).agg(k=col("k").collect())
    assert kept.collect().column("k").to_pylist() == [[2, 1]]  # A before B, however it is written
    assert swapped.collect().column("k").to_pylist() == [[2, 1]]
    both = [a.to("a.csv"), b.to("b.csv"), b.bad_to("bad.jsonl")]
    made = program_of(both)
    assert [(s.name, s.index) for s in made.sources] == [("A", 0), ("B", 1)]
    assert made.outputs[2].node == made.sources[1]


# --- what is shown ----------------------------------------------------------------------------


def test_a_stream_shows_its_name_and_columns() -> None:
    s = sales()
    assert repr(s) == "<Stream Sales (Shop STRING, Amount DOUBLE)>"
    assert repr(s.select("Shop")) == "<Stream (Shop STRING)>"
    assert repr(s.group_by("Shop")) == "<Selection of Sales, which .select(…) or .agg(…) ends>"
    assert repr((col("v") + 1).as_("w")) == "<v + 1 AS w>"
    assert repr(col("v").count_distinct().filter("v > 3")) == (
        "<COUNT(DISTINCT v) FILTER (WHERE v > 3)>"
    )


def test_show_and_head(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    s = weir.from_rows(ROWS, vs="vs")
    s.show()
    assert capsys.readouterr().out == (
        "vs  ve  Shop  Amount\n 1   2  a        2.5\n 4   5  b        7.0\n12  13  a        9.0\n"
    )
    s.where("Amount > 100").show()
    assert capsys.readouterr().out == "vs  ve  Shop  Amount\nno rows\n"
    assert s.head(0).num_rows == 0
    with pytest.raises(weir.PlanError, match="0 or more, not -1"):
        s.head(-1)
    s.explain()
    assert "Source Rows FROM" in capsys.readouterr().out
    lines = "".join(f'{{"vs": {i}, "Shop": "a", "Amount": 1}}\n' for i in range(200_000))
    (tmp_path / "sales.jsonl").write_text(lines + "no row\n", encoding="utf-8")
    first = sales().head(3, directory=tmp_path)  # the bad line at the end is not reached
    assert first.column("vs").to_pylist() == [0, 1, 2]


def test_a_notebook_shows_graph_columns_and_rows() -> None:
    s = weir.from_rows([{"vs": 1, "k": "<b>"}], vs="vs").where("k <> '<i>'")
    shown = s._repr_html_()
    assert "<svg" in shown and "Filter" in shown and "k &lt;&gt; " in shown
    assert "<td>&lt;b&gt;</td>" in shown and "<b></td>" not in shown
    assert "sales.jsonl: no file" in sales()._repr_html_()


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda s: s.where("Amount >"), "column 9: expected an expression"),
        (lambda s: s.where("Amout > 3"), "unknown column `Amout`; did you mean `Amount`"),
        (lambda s: s.where(lambda e: True), "is no condition; as in col"),
        (lambda s: s.where(col("Amount") > {1}), "{1} (set) is no constant"),
        (lambda s: s.select(3), "3 (int) is no column; a column's name"),
        (lambda s: s.select("Amount * 2"), "unknown column `Amount * 2`; weir.expr('Amount * 2')"),
        (lambda s: col(3), "a column's name is a text, not 3 (int)"),
        (lambda s: weir.expr(3), "an expression is a text, not 3"),
        (lambda s: weir.call(len, "x"), "is no function of a program"),
        (lambda s: s.window("10s"), "'10s' is no window; weir.tumbling"),
        (lambda s: s.group_by("Shop").collect(), "`.collect` is for a stream: end the selection"),
        (lambda s: weir.collect(s.group_by("Shop")), "a selection is no stream yet; end it: .agg"),
        (lambda s: s.union(s.group_by("Shop")), "a selection is no stream yet"),
        (lambda s: s.union("Sales"), "'Sales' (str) is no stream"),
        (lambda s: s.join(s.to("x.csv")), "an output is no stream"),
        (lambda s: weir.run(s), "a stream has no place to write to; stream.to("),
        (lambda s: weir.run([s.group_by("Shop")]), "a stream has no place to write to"),
        (lambda s: s.shift("2 weeks"), "'2 weeks' is no duration; as in 250ms"),
        (lambda s: s.shift(2.5), "2.5 is no duration"),
        (lambda s: s.select(col("Amount").cast(dict)), "dict is no type of the language"),
        (lambda s: weir.stream("A", ["vs"], "a.jsonl", vs="vs"), "a stream has a name, columns"),
        (lambda s: weir.stream("A", {"vs": int, "d": Decimal}, "a.jsonl", vs="vs"),
         "column `d`: Decimal is no type of the language; write its digits"),
        (lambda s: weir.stream("A", {"vs": pa.timestamp("ns")}, "a.jsonl", vs="vs"),
         "column `vs`: timestamp[ns] is no type of the language; write 'TIMESTAMP'"),
        (lambda s: weir.stream("A", {"vs": int}, 3, vs="vs"),
         "a value of type int is no rows; rows are a list"),
        (lambda s: weir.stream("A", {"vs": int, "w": int}, ROWS, vs="vs"), "unknown column `w`"),
        (lambda s: weir.from_rows(ROWS, vs="at"), "unknown column `at`"),
        (lambda s: weir.from_rows([{"vs": 1, "k": None}], vs="vs"), "of which the type is not"),
        (lambda s: weir.from_rows([{"vs": 1, "k": 1}, {"vs": 2, "k": "x"}], vs="vs"),
         "the rows do not fit into columns"),
        (lambda s: weir.from_rows("rows.csv", vs="vs"), "'rows.csv' is no rows"),
        (lambda s: weir.from_rows({"vs": [2**63]}, vs="vs"), "do not fit"),
        (lambda s: s.collect(inputs={"Sales": 7}), "a value of type int is no rows"),
    ],
)  # fmt: skip
def test_mistakes_are_told_at_the_call(wrong: Callable[[Stream], object], said: str) -> None:
    with pytest.raises(weir.WeirError) as caught:
        wrong(sales())
    assert said in str(caught.value)
