"""What people write in Python: texts as conditions, Python's types, rows in memory, mistakes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
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
        "small",
        "big",
        "big",
    ]


def test_types_of_python_and_arrow_are_columns() -> None:
    written = {
        "t": datetime,
        "i": int,
        "f": float,
        "b": bool,
        "x": bytes,
        "d": date,
        "l": list[str],
        "o": int | None,
        "a": pa.int32(),
        "n": pa.list_(pa.int64()),
    }
    found = weir.stream("A", written, "a.jsonl", vs="t").schema.columns
    assert [type_name(t) for _, t in found] == [
        "TIMESTAMP",
        "BIGINT",
        "DOUBLE",
        "BOOLEAN",
        "BINARY",
        "DATE",
        "LIST(STRING)",
        "BIGINT",
        "INT",
        "LIST(BIGINT)",
    ]


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


def test_categories_are_texts() -> None:
    polars = pl.DataFrame({"at": [1, 2, 3], "c": pl.Series(["a", None, "b"], dtype=pl.Categorical)})
    pandas = pd.DataFrame({"at": [1, 2, 3], "c": pd.Categorical(["a", None, "b"])})
    for given in (polars, pandas):
        assert weir.from_rows(given, vs="at").collect().column("c").to_pylist() == ["a", None, "b"]


def test_what_tables_hold_is_what_is_read() -> None:
    table = pl.DataFrame(
        {"at": [1, 2], "b": [b"x", None], "e": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"]))}
    )
    found = weir.from_rows(table, vs="at").collect().to_pydict()
    assert (found["b"], found["e"]) == ([b"x", None], ["a", "b"])
    missing = pd.DataFrame({"at": [1, 2], "t": [pd.Timestamp("2026-01-01"), None]})
    read = weir.from_rows(missing.to_dict("records"), vs="at").collect().column("t").to_pylist()
    assert read == [datetime(2026, 1, 1, tzinfo=UTC), None]
    batches = pa.table({"at": [1, 2]}).to_reader()
    assert weir.from_rows(batches, vs="at").collect().num_rows == 2


@pytest.mark.parametrize(
    "given",
    [
        [{"at": pd.Timestamp("2026-03-01T00:00:00.000000999")}],
        [{"at": np.datetime64("2026-03-01T00:00:00.000000999")}],
        [{"at": "2026-03-01T00:00:00.000000999Z"}],
        pd.DataFrame({"at": pd.to_datetime(["2026-03-01T00:00:00.000000999"])}),
        pl.DataFrame({"at": pd.to_datetime(["2026-03-01T00:00:00.000000999"])}),
    ],
    ids=repr,
)
def test_nanoseconds_are_cut_with_a_warning(given: object) -> None:
    with pytest.warns(weir.PlanWarning, match="`at` of the rows has nanoseconds") as told:
        s = weir.from_rows(given, vs="at", columns={"at": datetime})
    assert len(told) == 1 and told[0].filename == __file__
    assert s.collect().column("vs").to_pylist() == [datetime(2026, 3, 1, tzinfo=UTC)]


def test_functions_of_python_are_those_of_a_script() -> None:
    s = sales()
    for python, script in (
        (abs(col("Amount")), "ABS(Amount)"),
        (round(col("Amount"), 1), "ROUND(Amount, 1)"),
        (col("Amount") ** 2, "POWER(Amount, 2)"),
        (2 ** col("Amount"), "POWER(2, Amount)"),
        (weir.call("max", col("Amount")), "MAX(Amount)"),
        (weir.call("MEDIAN", col("Amount")), "MEDIAN(Amount)"),
    ):
        assert s.select(w=python) == s.select(w=weir.expr(script))
    assert s.select(w=round(col("Amount"))).collect(inputs={"Sales": ROWS}).num_rows == 3


def test_lists_are_several() -> None:
    s = sales()
    assert s.group_by(["Shop"]).agg(n=count()) == s.group_by("Shop").agg(n=count())
    assert s.select(["Shop", "Amount"]) == s.select("Shop", "Amount")
    assert s.agg([count().as_("n")]) == s.agg(n=count())
    assert s.union([s.shift(5)]) == s.union(s.shift(5))
    wanted = s.where(col("Shop").isin("a", "b"))
    for given in (["a", "b"], ("a", "b"), {"b", "a"}, pd.Series(["a", "b"])):
        assert s.where(col("Shop").isin(given)) == wanted
    assert s.where(col("Amount").isin(np.array([2.5]))) == s.where(col("Amount").isin(2.5))
    assert s.where(col("vs").isin(np.int64(4))) == s.where("vs IN (4)")
    assert s.where(col("Shop").isin([])).collect(inputs={"Sales": ROWS}).num_rows == 0
    assert s.where(~col("Shop").isin([])).collect(inputs={"Sales": ROWS}).num_rows == 3


@pytest.mark.parametrize("given", [[], {}, pd.DataFrame(), pl.DataFrame(), pa.table({})], ids=repr)
def test_no_rows_are_a_stream_too(given: object) -> None:
    s = weir.from_rows(given, vs="t", columns={"t": datetime, "k": str})
    assert s.collect().num_rows == 0
    assert s.columns == ("t", "k")


def test_times_may_be_numbers_or_texts() -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    seconds = weir.from_rows([{"t": int(day.timestamp()), "k": "x"}], vs="t", unit="s")
    assert seconds.collect().column("vs").to_pylist() == [day]
    rows = [{"t": "2026-03-01T00:00:00Z", "d": "2026-03-01"}, {"t": "2026-03-02", "d": None}]
    declared = {"t": datetime, "d": date}
    for given in (rows, pd.DataFrame(rows)):
        s = weir.from_rows(given, vs="t", columns=declared)
        assert s.collect().column("vs").to_pylist() == [day, day + timedelta(days=1)]
        assert s.collect().column("d").to_pylist() == [date(2026, 3, 1), None]
    read = weir.stream("A", declared, "a.jsonl", vs="t").collect(inputs={"A": rows})
    assert read.column("vs").to_pylist() == [day, day + timedelta(days=1)]


def test_names_that_are_not_there_are_just_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """`hasattr`, copies, pickle and notebooks ask for names that an object may not have."""
    s = sales()
    selection = s.group_by("Shop")
    for thing in (s, selection, col("v"), weir):
        for name in ("alias", "shape", "__array__", "_repr_mimebundle_", "_ipython_display_"):
            assert not hasattr(thing, name)
    with pytest.raises(ImportError, match=r"weir has no `when`; write weir\.case\("):
        exec("from weir import col, when")
    monkeypatch.delattr(weir, "testing", raising=False)
    with pytest.raises(AttributeError, match=r"write import weir\.testing"):
        weir.testing  # noqa: B018
    assert not hasattr(selection, "collect")
    assert getattr(s, "Shop", None) is None
    assert copy.deepcopy(s) == copy.copy(s) == pickle.loads(pickle.dumps(s)) == s
    assert repr(pickle.loads(pickle.dumps(copy.deepcopy(col("v") + 1)))) == "<v + 1>"
    with pytest.raises(AttributeError):
        object.__new__(Stream).node  # noqa: B018
    with pytest.raises(weir.PlanError) as caught:
        s.filter("Amount > 3")
    assert pickle.loads(pickle.dumps(caught.value)).hint.startswith("write .where(")
    with pytest.raises(TypeError, match=r"in parentheses, .* \.between\(1, 3\)"):
        assert 1 < col("v") < 3


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
    with pytest.raises(weir.PlanError, match="rows -1; expected 0 or more"):
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
        (lambda s: s.where(lambda e: True), "is not a condition; expected a term, such as col"),
        (lambda s: s.where(col("Amount") > {1}), "{1} (set) is not a constant"),
        (lambda s: s.select(3), "3 (int) is not a column; expected a column's name"),
        (lambda s: s.select("Amount * 2"), "unknown column `Amount * 2`; weir.expr('Amount * 2')"),
        (lambda s: col(3), "a column's name must be a text, not 3 (int)"),
        (lambda s: weir.expr(3), "an expression must be a text, not 3"),
        (lambda s: weir.call(len, "x"), "is not a function that a program can call"),
        (lambda s: s.window("10s"), "'10s' is not a window; expected one of weir.tumbling"),
        (lambda s: s.group_by("Shop").collect(), "`.collect` is for a stream: end the selection"),
        (lambda s: weir.collect(s.group_by("Shop")), "a selection is not a stream yet; end it: ."),
        (lambda s: s.union(s.group_by("Shop")), "a selection is not a stream yet"),
        (lambda s: s.union("Sales"), "'Sales' (str) is not a stream"),
        (lambda s: s.join(s.to("x.csv")), "an output is not a stream"),
        (lambda s: weir.run(s), "a stream needs a path to write to; stream.to("),
        (lambda s: weir.run([s.group_by("Shop")]), "a stream needs a path to write to"),
        (lambda s: s.shift("2 weeks"), "invalid duration '2 weeks'; expected a number and a unit"),
        (lambda s: s.shift(2.5), "invalid duration 2.5"),
        (lambda s: s.select(col("Amount").cast(dict)), "unsupported type dict"),
        (lambda s: weir.stream("A", ["vs"], "a.jsonl", vs="vs"), "a stream has a name, columns"),
        (
            lambda s: weir.stream("A", {"vs": int, "d": Decimal}, "a.jsonl", vs="vs"),
            "column `d`: unsupported type Decimal; write its digits",
        ),
        (
            lambda s: weir.stream("A", {"vs": pa.timestamp("ns")}, "a.jsonl", vs="vs"),
            "column `vs`: unsupported type timestamp[ns]; write 'TIMESTAMP'",
        ),
        (
            lambda s: weir.stream("A", {"vs": int}, 3, vs="vs"),
            "expected rows, not a value of type int; rows are a list",
        ),
        (lambda s: weir.stream("A", {"vs": int, "w": int}, ROWS, vs="vs"), "unknown column `w`"),
        (lambda s: weir.from_rows(ROWS, vs="at"), "unknown column `at`"),
        (lambda s: weir.from_rows([{"vs": 1, "k": None}], vs="vs"), "cannot tell the type of"),
        (
            lambda s: weir.from_rows([{"vs": 1, "k": 1}, {"vs": 2, "k": "x"}], vs="vs"),
            "the rows, column k: Could not convert 'x'",
        ),
        (lambda s: weir.from_rows("rows.csv", vs="vs"), "expected rows, not 'rows.csv'"),
        (lambda s: weir.from_rows({"vs": [2**63]}, vs="vs"), "row 0: 9223372036854775808 fits no"),
        (lambda s: weir.from_rows({"vs": [1, 2], "k": [1]}, vs="vs"), "the rows do not fit into"),
        (
            lambda s: weir.from_rows({"d": [date(2026, 1, 1), datetime(2026, 1, 1, 5)]}, vs="d"),
            "column d: days and times are in one column: make all of them datetimes",
        ),
        (lambda s: weir.from_rows([{"vs": 1, "l": {"a", "b"}}], vs="vs"), "write sorted(…)"),
        (lambda s: weir.from_rows({"vs": [1], "l": [[{"a"}]]}, vs="vs"), "write sorted(…)"),
        (
            lambda s: weir.from_rows([{"vs": 1, "l": {"a"}}], vs="vs", columns={"l": list[str]}),
            "column l: row 0: {'a'} is not a valid LIST(STRING): a set has no order: "
            "write sorted(…)",
        ),
        (
            lambda s: weir.from_rows([{"vs": 1, "b": b"x"}, {"vs": 2, "b": "x"}], vs="vs"),
            "column b: text is not bytes: call .encode() on it",
        ),
        (lambda s: weir.from_rows([{"vs": 1, "d": Decimal("NaN")}], vs="vs"), "has no NaN"),
        (lambda s: weir.from_rows([{"vs": 1, 5: 2}], vs="vs"), "the name of a column must be a te"),
        (lambda s: weir.from_rows([{"vs": 1, "a.b": 2}], vs="vs"), "cannot be called `a.b`; ren"),
        (
            lambda s: weir.from_rows(
                [{"vs": 1, "d": datetime(2026, 1, 1, 5)}], vs="vs", columns={"vs": int, "d": date}
            ),
            "a DATE has no time of day",
        ),
        (
            lambda s: weir.from_rows(pl.DataFrame({"vs": [1], "a": [object()]}), vs="vs"),
            "column `a` holds Python objects; convert them to texts",
        ),
        (lambda s: weir.from_rows(pd.Series([1], name="vs"), vs="vs"), "call .to_frame() on it"),
        (lambda s: weir.from_rows(pl.Series("vs", [1]), vs="vs"), "call .to_frame() on it"),
        (
            lambda s: weir.from_rows(pa.table([[1], [2]], names=["vs", "vs"]), vs="vs"),
            "two columns of the rows are called `vs`; rename one",
        ),
        (lambda s: s.collect(inputs={"Sales": 7}), "expected rows, not a value of type int"),
        (lambda s: s.join(s.as_("B"), "Sales.Shop = B.Shop", kind="outer"), 'write kind="full"'),
        (lambda s: s.join(s.as_("B"), "Sales.Shop = B.Shop", kind="LEFT_SEMI"), 'kind="semi"'),
        (lambda s: s.join(s.as_("B"), "Sales.Shop = B.Shop", kind="odd"), "one of inner, left, ri"),
        (lambda s: s.join(s.as_("B"), "Sales.Shop = B.Shop", how="left"), 'write kind="left"'),
        (lambda s: s.group_by("Shop").join(s.as_("B"), left_on="Shop"), 'write on="A.k = B.k"'),
        (lambda s: s.join(s.as_("B"), on="Shop"), 'write on="Sales.Shop = B.Shop"'),
        (lambda s: s.join(s.as_("B"), on=["Shop", "Amount"]), " AND Sales.Amount = B.Amount"),
        (
            lambda s: s.join(pd.DataFrame(ROWS), "Sales.Shop = B.Shop"),
            "a value of type DataFrame is not a stream; weir.from_rows(",
        ),
        (lambda s: s.filter("Amount > 3"), 'a stream has no `filter`; write .where(col("v") > 3)'),
        (lambda s: s.withColumn("w", 1), 'write .select("*", w=col("v") + 1)'),
        (lambda s: s.with_columns(w=1), 'write .select("*", w=col("v") + 1)'),
        (lambda s: s.to_pandas(), "write .collect().to_pandas()"),
        (lambda s: s.slect("Shop"), "a stream has no `slect`; did you mean `select`?"),
        (lambda s: s.Shop, "a stream has no `Shop`; a column is col('Shop')"),
        (lambda s: s["Shop"], "a column is col('Shop'), and s.select('Shop')"),
        (lambda s: s[["Shop"]], "write s.select(['Shop'])"),
        (lambda s: s[col("Amount") > 3], "write s.where("),
        (lambda s: list(s), "s.collect().to_pylist()"),
        (lambda s: s.group_by("Shop").count(), ".agg(n=weir.count())"),
        (lambda s: s.group_by("Shop").filter("Amount > 3"), "a selection has no `filter`; write ."),
        (lambda s: s.group_by("Shop").sum("Amount"), '.agg(total=col("v").sum())'),
        (lambda s: col("v").alias("w"), 'a term has no `alias`; write .as_("w")'),
        (lambda s: col("v").mean(), "write .avg()"),
        (lambda s: col("v").nunique(), "write .count_distinct()"),
        (lambda s: col("k").upper(), 'write weir.call("upper", col("k")), or weir.expr("UPPER(k)"'),
        (lambda s: col("k").str.upper(), "with the functions of scripts"),
        (lambda s: col("k").to_char(), 'in weir.expr("…"): write DATE_FORMAT('),
        (lambda s: col("l")[0], 'weir.call("element_at", col("l"), 1)'),
        (lambda s: weir.when(col("v") > 3, 1), 'weir has no `when`; write weir.case((col("v") > 3'),
        (lambda s: weir.sql("SELECT 1"), "weir.parse_program(text)"),
        (lambda s: weir.lower(col("k")), 'write weir.call("lower", col("k"))'),
        (lambda s: weir.read_csv("a.csv"), "write weir.stream("),
        (lambda s: weir.colect(s), "weir has no `colect`; did you mean `collect`?"),
        (lambda s: col("v") > 3 & col("w") > 1, '(col("v") > 3) & (col("w") > 1)'),
        (lambda s: col("v") > 3 | col("w") > 1, '(col("v") > 3) | (col("w") > 1)'),
        (lambda s: s.where((col("Amount") > 3) & col("Amount") > 1), '& (col("w") > 1)'),
        (lambda s: s.select(col("Amount") + 1), "needs a name; by keyword, x=…, or with .as_('x')"),
        (lambda s: s.agg(count()), "needs a name; by keyword, x=…"),
        (lambda s: s.select(w=col("Shop") + "x"), "texts are joined by weir.call('concat', …)"),
        (lambda s: col("v").cast("VARCHAR"), "unknown type `VARCHAR`; write STRING"),
        (lambda s: col("v").cast("TIMESTMP"), "did you mean `TIMESTAMP`?"),
        (lambda s: weir.stream("A", {"vs": int}, "a.csv", vs="vs", watermark="5s"), "delay='10s'"),
        (lambda s: weir.from_rows(ROWS, time="vs"), "`from_rows` has no option `time`; write vs="),
        (lambda s: weir.from_rows(ROWS, vs="ts"), "unknown column `ts`; there are vs, Shop"),
        (lambda s: weir.from_rows([{"at": "noon"}], vs="at"), "declare it in `columns`: as 'TIME"),
        (
            lambda s: weir.from_rows(pd.DataFrame(ROWS).set_index("vs"), vs="vs"),
            "`vs` is the index of the DataFrame, not a column; df.reset_index()",
        ),
        (lambda s: weir.from_rows([], vs="vs"), "there are no rows to take the columns from; nam"),
        (lambda s: weir.from_rows([{"x": 1}], vs="vs", columns={"vs": int}), "unknown column `vs`"),
        (
            lambda s: weir.from_rows([{"vs": 1}, {"vs": 2.5}], vs="vs", columns={"vs": int}),
            "column vs: row 1: 2.5 is not a valid BIGINT",
        ),
        (
            lambda s: weir.from_rows([{"vs": "noon"}], vs="vs", columns={"vs": datetime}),
            "column vs: row 0: 'noon' is not a valid TIMESTAMP: a time is a datetime, or a",
        ),
        (lambda s: weir.from_rows(pl.LazyFrame(ROWS), vs="vs"), "LazyFrame; call .collect() on it"),
        (lambda s: weir.from_rows((r for r in ROWS), vs="vs"), "generator; write list(…) around"),
        (lambda s: s.top("2", by="Amount"), "the number of rows must be a whole number, not '2'"),
        (lambda _: weir.count_window(2.5), "n of a count window must be a whole number, not 2.5"),
        (lambda _: weir.count_window("2"), "n of a count window must be a whole number, not '2'"),
        (lambda _: weir.count_window(2, True), "step of a count window must be a whole number"),
        (lambda s: weir.from_rows([1, 2], vs="vs"), "not a value of type list; rows"),
        (lambda s: s.top(3, by="Amount", descending=True), 'write by=col("v").desc()'),
        (lambda s: s.process(len), "is not an operator; expected a call of a class with"),
        (lambda s: weir.case(col("v") > 3, "a"), "a branch of case is a pair of condition and va"),
        (lambda s: s.having("n > 3"), '.group_by("k").having("COUNT(*) > 3")'),
        (lambda s: s.group_by("Shop").agg({"Amount": "sum"}), 'such as col("v").sum(), or a text'),
        (lambda s: s.group_by("Shop").agg(n=count), "is not an aggregate; expected a term, such"),
        (lambda s: s.where(col("Amount").sum() > 3), "cannot stand in WHERE; .having(…) filters"),
        (lambda s: s.window(tumbling("1m")).select("Shop", n=count()), "col('Shop').last() or .ma"),
        (lambda s: s.join(s.as_("B")).select("B.Shop"), 'needs ON; on="A.k = B.k"'),
        (lambda s: s.select("*", Amount=col("Amount") + 1), "w=col('Amount') under another name"),
        (lambda s: s.shift("5 minutes"), "invalid duration '5 minutes'; write '5m'"),
        (lambda s: s.where(col("Shop") > 3), "in a text or weir.expr(…) write CAST(Shop AS BIGINT"),
        (lambda s: s.explain("svg"), "unknown format 'svg'; expected one of text, dot, json"),
        (lambda s: weir.spark_transform("X = SELECT 1", vs="at"), "a query is a function of a str"),
        (lambda s: s.agg(), "agg has nothing to compute; as in .agg(n=weir.count())"),
        (
            lambda s: s.collect(inputs={"Sales": [{**ROWS[0], "Amount": "x"}]}),
            "Sales, column Amount: row 0: 'x' is not a valid DOUBLE",
        ),
    ],
)
def test_mistakes_are_told_at_the_call(wrong: Callable[[Stream], object], said: str) -> None:
    with pytest.raises(weir.WeirError) as caught:
        wrong(sales())
    assert said in str(caught.value)
