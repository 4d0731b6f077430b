"""Readers: what files hold, row by row, whatever the chunks."""

import json
import math
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as D

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import InputError
from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.files import columnar as columnar_files
from weir.files.columnar import ArrowFile
from weir.files.readers import open_source
from weir.ingress.connectors.registry import open_any
from weir.plan.operators import Source, SourceOptions

DECIMAL = pa.decimal128(6, 2)


def source(path, **columns):
    declared = tuple(columns.items()) or (("vs", BIGINT), ("v", BIGINT))
    return Source("A", declared, str(path), SourceOptions(vs=declared[0][0]), 0)


def read(path, size=65536, start=0, **columns):
    """All chunks as plain values: (offset, line, row), (bad), CTIs as (time, next offset)."""
    [partition] = open_source(source(path, **columns))
    rows, bad, ctis = [], [], []
    for chunk in partition.chunks(size, start):
        chunk.rows.validate(full=True)
        offsets = chunk.offsets.tolist()
        lines = [None] * len(offsets) if chunk.lines is None else chunk.lines.tolist()
        rows += zip(offsets, lines, chunk.rows.to_pylist(), strict=True)
        bad += chunk.bad
        for time, place in zip(chunk.cti_times.tolist(), chunk.cti_indexes.tolist(), strict=True):
            ctis.append((time, offsets[place] if place < len(offsets) else chunk.stop))
    return rows, bad, ctis


def jsonl(tmp_path, *lines):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


# --- jsonl ---------------------------------------------------------------------------------

ALL_TYPES = {
    "vs": BIGINT,
    "i": INT,
    "f": DOUBLE,
    "b": BOOLEAN,
    "s": STRING,
    "x": BINARY,
    "t": TIMESTAMP,
    "d": DATE,
    "n": DECIMAL,
    "l": pa.list_(TIMESTAMP),
    "r": pa.struct([("p q", pa.list_(DOUBLE)), ("z", DECIMAL)]),
}
FULL = {
    "vs": 2**63 - 2,
    "i": -(2**31),
    "f": "-Infinity",
    "b": True,
    "s": "é\n",
    "x": "aGk=",
    "t": "2020-01-01T01:00:00+01:00",
    "d": "2020-02-29",
    "n": "12.5",
    "l": ["2020-01-01", None],
    "r": {"p q": [1, "NaN"], "z": 3, "ignored": {}},
    "ignored": [1],
}


def test_jsonl_reads_every_type(tmp_path):
    numbers = '{"vs": 1, "f": 3, "n": 0.10, "l": []}\n'
    path = jsonl(tmp_path, json.dumps(FULL), "\n", numbers, '{"vs": 2}')
    rows, bad, _ = read(path, **ALL_TYPES)
    assert not bad
    first, second, third = (row for _, _, row in rows)
    assert math.isnan(first["r"]["p q"].pop())
    assert first == {
        "vs": 2**63 - 2,
        "i": -(2**31),
        "f": -math.inf,
        "b": True,
        "s": "é\n",
        "x": b"hi",
        "t": datetime(2020, 1, 1, tzinfo=UTC),
        "d": date(2020, 2, 29),
        "n": D("12.50"),
        "l": [datetime(2020, 1, 1, tzinfo=UTC), None],
        "r": {"p q": [1.0], "z": D("3.00")},
    }
    nothing = dict.fromkeys(ALL_TYPES)
    assert second == {**nothing, "vs": 1, "f": 3.0, "n": D("0.10"), "l": []}
    assert third == {**nothing, "vs": 2}


WRONG = [
    ("vs", '"1"', "BIGINT"),
    ("vs", "1.5", "BIGINT"),
    ("vs", str(2**63), "BIGINT"),
    ("i", str(2**31), "INT"),
    ("f", '"nan"', "DOUBLE"),
    ("f", "true", "DOUBLE"),
    ("b", "1", "BOOLEAN"),
    ("s", "1", "STRING"),
    ("x", '"aGk"', "BINARY"),
    ("t", '"yesterday"', "TIMESTAMP"),
    ("t", "5", "TIMESTAMP"),
    ("d", '"2021-02-29"', "DATE"),
    ("n", '"1.005"', "DECIMAL"),
    ("n", '"10000"', "DECIMAL"),
    ("n", '"NaN"', "DECIMAL"),
    ("l", '["2020-01-01", "x"]', "TIMESTAMP"),
    ("l", "{}", "LIST"),
    ("r", '{"p q": ["x"]}', "STRUCT"),
    ("r", '{"z": "1.001"}', "DECIMAL"),
]


@pytest.mark.parametrize(("column", "value", "wanted"), WRONG)
def test_jsonl_names_the_place_of_a_wrong_value(tmp_path, column, value, wanted):
    path = jsonl(tmp_path, '{"vs": 1}\n\n', f'{{"{column}": {value}}}\n', '{"vs": 3}\n')
    rows, [bad], _ = read(path, **ALL_TYPES)
    assert [(offset, line) for offset, line, _ in rows] == [(0, 1), (2, 4)]
    assert (bad.offset, bad.line, bad.column) == (1, 3, column)
    assert wanted in bad.reason
    assert value in bad.text


TORN = [b'{"vs": 1', b"[1]", b'{"vs": 1} {"vs": 2}', b"x", b'{"vs":', b"3"]


@pytest.mark.parametrize("line", TORN)
def test_jsonl_torn_lines(tmp_path, line):
    path = jsonl(tmp_path, '{"vs": 1}\n', line, b"\n", b'{"vs": 2}\n')
    rows, [bad], _ = read(path)
    assert [row["vs"] for _, _, row in rows] == [1, 2]
    assert (bad.offset, bad.line) == (1, 2)


def test_jsonl_texts_must_be_utf8(tmp_path):
    rows, [bad], _ = read(jsonl(tmp_path, b'{"vs": 1, "s": "\xff"}\n'), vs=BIGINT, s=STRING)
    assert not rows
    assert "\\xff" in bad.text


def test_jsonl_values_over_two_lines_are_two_torn_lines(tmp_path):
    rows, bad, _ = read(jsonl(tmp_path, '{"vs":\n1}\n{"vs": 2}\n'))
    assert [b.line for b in bad] == [1, 2]
    assert [(o, line) for o, line, _ in rows] == [(2, 3)]


def test_jsonl_explicit_ctis(tmp_path):
    path = jsonl(
        tmp_path,
        '{"$cti": -4}\n{"vs": 1}\n{"$cti": "1970-01-01T00:00:00.000007Z"}\n',
        '{"$cti": 8.0}\n{"vs": 2}\n{"$cti": null}\n{"$cti": "soon"}\n{"$cti": 99}',
    )
    for size in (1, 2, 100):
        rows, bad, ctis = read(path, size)
        assert [row["vs"] for _, _, row in rows] == [1, 2]
        assert ctis == [(-4, 0), (7, 1), (8, 1), (99, 4)]
        assert [(b.line, b.column) for b in bad] == [(6, "$cti"), (7, "$cti")]


CTI = '{"$cti": 5}'


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(['{"vs": 1}', '{"vs": "x"}', CTI, "", "{", '{"vs":2,"v":3}'])),
    st.integers(1, 5),
    st.integers(0, 6),
)
def test_chunks_do_not_change_what_is_read(tmp_path_factory, lines, size, start):
    path = tmp_path_factory.mktemp("c") / "a.jsonl"
    path.write_text("\n".join(lines))
    rows, bad, ctis = read(path)
    again = read(path, size, start)
    assert again[0] == [r for r in rows if r[0] >= start]
    assert again[1] == [b for b in bad if b.offset >= start]
    # Where a CTI stands is told by the next good row: bad ones do not matter to it.
    good = [*(offset for offset, _, _ in rows), math.inf]
    places, later = (
        [(t, min(o for o in good if o >= at)) for t, at in c] for c in (ctis, again[2])
    )
    data = [line for line in lines if line]
    before = [i - data[:i].count(CTI) for i, line in enumerate(data) if line == CTI]
    kept = sum(count >= start for count in before)
    assert later == places[len(places) - kept :]


@pytest.mark.parametrize("size", [1, 65536])
def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path, size):
    mark = b"\xef\xbb\xbf"
    good, bad = '{"vs": 1, "v": 2}\n', "nonsense\n"
    plain = read(jsonl(tmp_path, good, bad, good), size)
    assert read(jsonl(tmp_path, mark, good, bad, good), size) == plain
    assert [line for _, line, _ in plain[0]] == [1, 3]
    assert read(jsonl(tmp_path, mark), size) == ([], [], [])
    # Anywhere else it is what it is.
    assert [b.line for b in read(jsonl(tmp_path, good, mark, good), size)[1]] == [2]


# --- csv -----------------------------------------------------------------------------------


def csv(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv_reads_quotes_nulls_and_line_ends(tmp_path):
    path = csv(
        tmp_path, '\ufeffs,ignored,vs,x\r\n"a,""b""\nc",,1,aGk=\r\n\r\n"",q,2,\r\n,,3,"aGk="\n'
    )
    rows, bad, _ = read(path, vs=BIGINT, s=STRING, x=BINARY)
    assert not bad
    assert rows == [
        (0, 2, {"vs": 1, "s": 'a,"b"\nc', "x": b"hi"}),
        (1, 5, {"vs": 2, "s": "", "x": None}),
        (2, 6, {"vs": 3, "s": None, "x": b"hi"}),
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["1,2", '"1",2', "1,", "x,1", "1", '3,"4\n"', "", "5,6\r"])),
    st.integers(1, 4),
    st.integers(0, 5),
)
def test_csv_chunks_do_not_change_what_is_read(tmp_path_factory, lines, size, start):
    path = csv(tmp_path_factory.mktemp("c"), "\n".join(["vs,s", *lines]))
    columns = {"vs": BIGINT, "s": STRING}
    rows, bad, _ = read(path, **columns)
    again = read(path, size, start, **columns)
    assert again[0] == [r for r in rows if r[0] >= start]
    assert again[1] == [b for b in bad if b.offset >= start]
    texts = {"1,2": "2", '"1",2': "2", "1,": None, '3,"4\n"': "4\n", "5,6\r": "6"}
    assert [row["s"] for _, _, row in rows] == [texts[line] for line in lines if line in texts]
    assert len(bad) == sum(line in ("x,1", "1") for line in lines)


def test_csv_values(tmp_path):
    path = csv(
        tmp_path, "vs,f,t,n,b,d\n2020-01-01,NaN,2020-01-01T00:00:00+01:00,1.5,true,2020-01-02\n"
    )
    columns = {"vs": TIMESTAMP, "f": DOUBLE, "t": TIMESTAMP, "n": DECIMAL, "b": BOOLEAN, "d": DATE}
    [(_, _, row)], bad, _ = read(path, **columns)
    assert not bad
    assert math.isnan(row.pop("f"))
    assert row == {
        "vs": datetime(2020, 1, 1, tzinfo=UTC),
        "t": datetime(2019, 12, 31, 23, tzinfo=UTC),
        "n": D("1.50"),
        "b": True,
        "d": date(2020, 1, 2),
    }


@pytest.mark.parametrize(
    ("line", "column"),
    [
        (b"x,1", "vs"),
        (b"1,1.005", "n"),
        (b"1,x", "n"),
        (b"1", ""),
        (b"1,2,3", ""),
        (b'1,"2"3', ""),
        (b"\xff,2", ""),
    ],
)
def test_csv_bad_rows(tmp_path, line, column):
    path = csv(tmp_path, b"vs,n\n1,1\n" + line + b"\n2,2\n")
    for size in (1, 10):
        rows, [bad], _ = read(path, size, vs=BIGINT, n=DECIMAL)
        assert [(o, line_) for o, line_, _ in rows] == [(0, 2), (2, 4)]
        assert (bad.offset, bad.line, bad.column) == (1, 3, column)


NESTED = {
    "vs": BIGINT,
    "l": pa.list_(STRING),
    "r": pa.struct([("a", pa.list_(DOUBLE)), ("b", pa.struct([("n", DECIMAL), ("x", BINARY)]))]),
}


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_number_that_is_too_large_for_a_double_is_a_bad_row(tmp_path, ending):
    numbers = ["1e308", "-1e309", "1e400", "1e-400"]
    if ending == "csv":
        words = ["-Infinity", "inf"]
        path = csv(tmp_path, "\n".join(["f", *numbers, *words]))
    else:
        words = ['"-Infinity"', '"Infinity"']
        path = jsonl(tmp_path, "\n".join(f'{{"f": {x}}}' for x in [*numbers, *words]))
    for size in (1, 10):
        rows, bad, _ = read(path, size, f=DOUBLE)
        assert [row["f"] for _, _, row in rows] == [1e308, 0.0, -math.inf, math.inf]
        assert [b.offset for b in bad] == [1, 2]


def test_csv_nested_values_are_json_texts(tmp_path):
    path = csv(
        tmp_path,
        """vs,l,r
1,[],{}
2,"["","",""é\\n"",null]","{""a"": [1, ""NaN"", null], ""b"": {""n"": ""2.50"", ""x"": ""aGk=""}}"
3,,
""",
    )
    rows, bad, _ = read(path, **NESTED)
    nothing = {"a": None, "b": None}
    second = {"a": [1.0, math.nan, None], "b": {"n": D("2.50"), "x": b"hi"}}
    assert not bad
    assert [row["l"] for _, _, row in rows] == [[], [",", "é\n", None], None]
    assert repr([row["r"] for _, _, row in rows]) == repr([nothing, second, None])


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ("[1],", "l"),
        ("{},", "l"),
        ("null,", "l"),
        ("[,", "l"),
        (',"{""b"": {""n"": 1.234567}}"', "r"),
        (",[]", "r"),
    ],
)
def test_csv_nested_values_that_do_not_fit(tmp_path, fields, column):
    rows, [bad], _ = read(csv(tmp_path, f"vs,l,r\n1,,\n2,{fields}\n3,,\n"), **NESTED)
    assert [row["vs"] for _, _, row in rows] == [1, 3]
    assert (bad.offset, bad.line, bad.column) == (1, 3, column)
    assert bad.reason.startswith("wanted ")


def test_csv_an_open_quote_is_a_torn_row(tmp_path):
    rows, [bad], _ = read(csv(tmp_path, 'vs,v\n1,1\n2,"x\n3,3\n'))
    assert len(rows) == 1
    assert bad.line == 3


def test_csv_without_a_header(tmp_path):
    for text in ("", "\n\n"):
        with pytest.raises(InputError, match="line 1: the file is empty; its first row must be a"):
            read(csv(tmp_path, text))
    with pytest.raises(InputError, match="line 1: the header row has unbalanced quotes"):
        read(csv(tmp_path, 'vs,"v"x\n1,2\n'))


@pytest.mark.parametrize("header", ["v", "vs,v,v", ""])
def test_csv_headers_must_have_each_column_once(tmp_path, header):
    with pytest.raises(InputError, match="line 1"):
        read(csv(tmp_path, f"{header}\n" if header else ""))


# --- parquet and arrow ---------------------------------------------------------------------


def columnar(tmp_path, table, kind):
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    return path


TABLE = pa.table(
    {
        "vs": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "s": pa.array(["a", "b", None, "a", "b"]).dictionary_encode(),
        "t": pa.array([1, 2, 3, 4, 5], pa.timestamp("ms")),
        "f": pa.array([1, 2, 3, 4, None], pa.float32()),
        "extra": pa.array([1] * 5),
        "l": pa.array([[1], [], None, [2], [3]], pa.list_(pa.int32())),
    }
)
COLUMNS = {"vs": BIGINT, "s": STRING, "t": TIMESTAMP, "f": DOUBLE, "l": pa.list_(BIGINT)}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("start", [0, 1, 4, 5])
def test_columnar_files_widen(tmp_path, kind, size, start):
    path = columnar(tmp_path, TABLE, kind)
    rows, bad, _ = read(path, size, start, **COLUMNS)
    assert not bad
    expected = TABLE.select(list(COLUMNS)).to_pylist()
    for row in expected:
        row["t"] = row["t"].replace(tzinfo=UTC)
    assert [(o, row) for o, _, row in rows] == list(enumerate(expected))[start:]


@pytest.mark.parametrize("narrow", [True, False])
def test_an_arrow_file_is_read_from_the_batch_that_is_wanted(tmp_path, monkeypatch, narrow):
    table = pa.table({"s": [f"{i}" for i in range(20)], "vs": range(20)})
    table = table if narrow else table.select(["s"]).append_column("t", table["s"])
    columns = {name: BIGINT if name == "vs" else STRING for name in table.column_names}
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, table.schema) as file:
        for begin, stop in ((0, 3), (3, 3), (3, 11), (11, 12), (12, 20)):
            file.write_batch(
                table.slice(begin, stop - begin).to_batches()[0]
                if stop > begin
                else pa.RecordBatch.from_pylist([], table.schema)
            )
    read_batches = []
    check = columnar_files.check_intact
    monkeypatch.setattr(
        columnar_files, "check_intact", lambda b: (read_batches.append(len(b)), check(b))
    )
    partition = ArrowFile(str(path), tuple(columns.items()))
    for start in range(22):
        read_batches.clear()
        chunks = list(partition.chunks(4, start))
        assert [o for c in chunks for o in c.offsets.tolist()] == list(range(start, 20))
        assert [v for c in chunks for v in c.rows.column("s").to_pylist()] == [
            f"{i}" for i in range(start, 20)
        ]
        assert sum(read_batches) == sum(
            n for n, stop in ((3, 3), (8, 11), (1, 12), (8, 20)) if stop > start
        )


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columnar_types_must_fit(tmp_path, kind):
    path = columnar(tmp_path, TABLE, kind)
    for columns in ({"vs": STRING}, {"missing": BIGINT}, {"f": BIGINT}, {"vs": BOOLEAN}):
        with pytest.raises(InputError, match=next(iter(columns))):
            read(path, **columns)


def test_a_value_that_does_not_fit_is_a_bad_row(tmp_path):
    table = pa.table({"vs": pa.array([1000, 2**60, 2000], pa.timestamp("ms"))})
    rows, [bad], _ = read(columnar(tmp_path, table, "arrow"), vs=TIMESTAMP)
    assert [o for o, _, _ in rows] == [0, 2]
    assert (bad.offset, bad.column) == (1, "vs")


WIDE = {"vs": BIGINT, "v": BIGINT, "s": STRING, "l": pa.list_(STRING)}


def wide_table(rows=500):
    texts = [f"{n}" * 400 for n in range(rows)]
    return pa.table(
        {
            "vs": pa.array(range(rows), BIGINT),
            "v": pa.array([n % 3 for n in range(rows)], BIGINT),
            "s": pa.array(texts, STRING),
            "l": pa.array([[text, None] for text in texts], pa.list_(STRING)),
        }
    )


def write_parquet(table, path):
    pq.write_table(table, path, row_group_size=170, use_dictionary=False)


def write_repeating_parquet(table, path):
    """Each value is stored once: the file seems small."""
    pq.write_table(table, path, use_dictionary=True)


def write_arrow(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("write", [write_parquet, write_repeating_parquet, write_arrow])
def test_a_chunk_of_wide_rows_has_fewer_of_them(tmp_path, monkeypatch, write):
    path = tmp_path / ("a.arrow" if write is write_arrow else "a.parquet")
    table = wide_table()
    if write is write_repeating_parquet:
        same = ["x" * 1000] * 500
        table = table.set_column(2, "s", pa.array(same, STRING))
    write(table, path)
    whole = read(path, **WIDE)
    monkeypatch.setattr(columnar_files, "CHUNK_BYTES", 1 << 16)
    [partition] = open_source(source(path, **WIDE))
    chunks = list(partition.chunks())
    assert max(chunk.rows.nbytes for chunk in chunks) < 3 << 15
    assert [c.read for c in chunks] == sorted(c.read for c in chunks)
    assert read(path, **WIDE) == whole
    assert read(path, start=123, **WIDE) == (whole[0][123:], [], [])
    narrow = list(partition.chunks(7))
    assert {len(chunk.offsets) for chunk in narrow} <= set(range(1, 8))
    monkeypatch.setattr(columnar_files, "CHUNK_BYTES", 1)
    assert read(path, **WIDE) == whole  # a row at a time


def test_wide_rows_of_parquet_are_never_read_all_at_once(tmp_path):
    """Not read and then cut: the file says how wide its columns are."""
    write_parquet(wide_table(), tmp_path / "a.parquet")
    found = pq.ParquetFile(tmp_path / "a.parquet").metadata
    assert columnar_files._rows_within(1 << 16, 400, found, ["vs", "s"]) in range(40, 80)
    assert columnar_files._rows_within(1 << 16, 400, found, ["vs", "l"]) in range(40, 80)
    assert columnar_files._rows_within(1 << 16, 400, found, ["vs", "v"]) == 400
    assert columnar_files._rows_within(1 << 30, 400, found, list(WIDE)) == 400


def test_arrow_streams_are_read_too(tmp_path):
    with pa.ipc.new_stream(tmp_path / "a.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert len(read(tmp_path / "a.arrow", vs=BIGINT)[0]) == 5


NESTED_TIMES = {
    "l": pa.list_(TIMESTAMP),
    "r": pa.struct([("t", TIMESTAMP), ("f", pa.list_(DOUBLE))]),
}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_times_within_lists_and_structs_are_cut_like_others(tmp_path, kind):
    nested = {
        "l": pa.array([[-1, None], None, [], [1999]], pa.list_(pa.timestamp("ns"))),
        "r": pa.array(
            [{"t": -1, "f": [2**53 + 1]}, {"t": None, "f": None}, None, {"t": 2, "f": []}],
            pa.struct([("t", pa.timestamp("ns", "UTC")), ("f", pa.list_(pa.int64()))]),
        ),
    }
    rows, bad, _ = read(columnar(tmp_path, pa.table(nested), kind), **NESTED_TIMES)
    before, after = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=i) for i in (-1, 1))
    zero = datetime(1970, 1, 1, tzinfo=UTC)
    assert not bad
    assert [row for _, _, row in rows] == [
        {"l": [before, None], "r": {"t": before, "f": [2.0**53]}},
        {"l": None, "r": {"t": None, "f": None}},
        {"l": [], "r": None},
        {"l": [after], "r": {"t": zero, "f": []}},
    ]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_nulls_alone_have_every_type(tmp_path, kind):
    nulls = {name: pa.nulls(1) for name in ALL_TYPES}
    nested = {"l": pa.array([[None]]), "r": pa.array([{"t": None, "f": None}])}
    for table, columns in ((nulls, ALL_TYPES), (nested, NESTED_TIMES)):
        [(_, _, row)], bad, _ = read(columnar(tmp_path, pa.table(table), kind), **columns)
        assert not bad
        assert row == {name: column[0].as_py() for name, column in table.items()}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_garbage_is_an_input_error(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(b"garbage, not a file of this format")
    with pytest.raises(InputError, match="not a readable file"):
        read(path, vs=BIGINT)


# --- needed columns ------------------------------------------------------------------------

MIXED = {"vs": BIGINT, "s": STRING, "t": TIMESTAMP, "f": DOUBLE}


def write_mixed(tmp_path, kind):
    if kind in ("parquet", "arrow"):
        # Beyond all times: the second row is bad, whoever reads `t`.
        times = pa.array([1000, 2**60, 3000], pa.timestamp("ms"))
        table = pa.table({"f": [0.5, 1.5, 2.5], "s": ["a", "b", "c"], "t": times, "vs": [1, 2, 3]})
        return columnar(tmp_path, table, kind)
    path = tmp_path / f"a.{kind}"
    times = ["1970-01-01T00:00:00.000001Z", "noon", "1970-01-01T00:00:00.000003Z"]
    rows = [{"vs": i + 1, "s": "abc"[i], "t": times[i], "f": i + 0.5} for i in range(3)]
    if kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        path.write_text("vs,s,t,f\n" + "\n".join(",".join(map(str, r.values())) for r in rows))
    return path


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("needed", [("vs",), ("s", "vs"), ("t", "vs"), ("vs", "f")])
def test_only_needed_columns_come_but_the_same_rows_are_bad(tmp_path, kind, needed):
    path = write_mixed(tmp_path, kind)
    whole, [was_bad], _ = read(path, **MIXED)
    [partition] = open_source(source(path, **MIXED), needed=needed)
    [*chunks] = partition.chunks()
    rows = [row for chunk in chunks for row in chunk.rows.to_pylist()]
    assert rows == [{n: row[n] for n in MIXED if n in needed} for _, _, row in whole]
    [bad] = [bad for chunk in chunks for bad in chunk.bad]
    assert (bad.offset, bad.column, bad.reason) == (1, "t", was_bad.reason)
    assert chunks[-1].read == partition.size


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_that_always_fit_are_not_looked_at(tmp_path, kind, monkeypatch):
    looked_at = set()

    def cast(column, dtype):
        looked_at.add(dtype)
        return column.cast(dtype)

    monkeypatch.setattr("weir.files.columnar._cast", cast)
    path = columnar(tmp_path, TABLE, kind)
    [partition] = open_source(source(path, vs=BIGINT, s=STRING, f=DOUBLE), needed=("vs",))
    assert sum(len(chunk.offsets) for chunk in partition.chunks()) == 5
    assert looked_at == {BIGINT}


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_that_nobody_needs_must_still_be_there(tmp_path, kind):
    path = columnar(tmp_path, TABLE, kind)
    [partition] = open_source(source(path, vs=BIGINT, missing=BIGINT), needed=("vs",))
    with pytest.raises(InputError, match="missing"):
        list(partition.chunks())


def test_a_large_row_group_is_read_in_pieces(tmp_path):
    rows = 1_000_000
    vs = np.arange(rows)
    table = pa.table({"vs": vs, "v": vs * vs % 1_000_003})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=rows)
    [partition] = open_source(source(tmp_path / "a.parquet"))
    held, reads = pa.total_allocated_bytes(), []
    for chunk in partition.chunks(10_000):
        assert pa.total_allocated_bytes() - held < table.nbytes / 2
        reads.append(chunk.read)
    assert reads == sorted(reads) and reads[-1] == partition.size
    assert len(set(reads)) == 100


# --- which files ---------------------------------------------------------------------------


def test_globs_are_partitions_in_the_order_of_names(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "B.jsonl", "a10.jsonl", "a9.jsonl", "c.txt"):
        (tmp_path / name).write_text('{"vs": 1}\n')
    (tmp_path / "d.jsonl").mkdir()
    partitions = open_source(source("*.jsonl"), tmp_path)
    names = [p.name.rsplit("/", 1)[1] for p in partitions]
    assert names == ["B.jsonl", "a.jsonl", "a10.jsonl", "a9.jsonl", "b.jsonl"]
    assert len(open_source(source(tmp_path / "a.jsonl"), "elsewhere")) == 1


def test_a_name_with_glob_characters_is_a_file_first(tmp_path):
    (tmp_path / "a[1].jsonl").write_text("")
    assert len(open_source(source("a[1].jsonl"), tmp_path)) == 1


def test_no_file_and_unknown_formats_are_errors(tmp_path):
    with pytest.raises(InputError, match="no file matches"):
        open_source(source("*.jsonl"), tmp_path)
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(InputError, match="unknown format"):
        open_source(source("a.txt"), tmp_path)


@pytest.mark.parametrize("path", ["*.jsonl", "b.jsonl", "**/b.jsonl"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_matches_and_is_no_file_is_refused(tmp_path, kind, path):
    (tmp_path / "a.jsonl").write_text('{"vs": 1}\n')
    if kind == "link":
        (tmp_path / "b.jsonl").symlink_to("nowhere.jsonl")
    else:
        os.mkfifo(tmp_path / "b.jsonl")
    with pytest.raises(InputError, match=r"b\.jsonl: not a file"):
        open_source(source(path), tmp_path)


def test_a_link_to_a_file_is_a_file(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"vs": 1}\n')
    (tmp_path / "b.jsonl").symlink_to("a.jsonl")
    assert len(open_source(source("*.jsonl"), tmp_path)) == 2


@pytest.mark.parametrize("path", ["in/*.jsonl", "in/", "tail://b.jsonl"])
def test_a_name_that_is_no_utf_8_is_refused(tmp_path, path):
    folder = tmp_path / os.fsdecode(b"\xff")
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.jsonl").write_text('{"vs": 1}\n')
    with pytest.raises(InputError, match=r"\\xff.*: its name is not UTF-8; rename it"):
        open_any(source(path), folder)
