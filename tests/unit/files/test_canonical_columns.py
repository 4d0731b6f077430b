"""Files of equal rows are the same bytes, whatever memory holds under NULLs and in NaNs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weir
from weir.files.sinks import SINKS, canonical_column

VALUES: dict[pa.DataType, list[object]] = {
    pa.int64(): [1, None, -3, None],
    pa.int32(): [1, None, -3, None],
    pa.float64(): [1.5, None, float("nan"), -0.0],
    pa.bool_(): [True, None, False, None],
    pa.string(): ["x", None, "", "ä"],
    pa.binary(): [b"x", None, b"", b"\x00"],
    pa.date32(): [date(2024, 2, 29), None, None, date(1969, 1, 1)],
    pa.timestamp("us", "UTC"): [1, None, -1, None],
    pa.decimal128(38, 2): [Decimal("1.25"), None, Decimal("-3"), None],
    pa.list_(pa.float64()): [[1.5, None], None, [], [float("nan")]],
    pa.struct([("a", pa.string()), ("b", pa.list_(pa.int64()))]): [
        {"a": "x", "b": [1]},
        None,
        {"a": None, "b": None},
        {"a": "y", "b": []},
    ],
    pa.null(): [None, None, None, None],
}


def _other_memory(column: pa.Array) -> pa.Array:
    """Return an equal column with other bytes under its NULLs, and other NaNs."""
    dtype = column.type
    if pa.types.is_list(dtype):
        held = [[7.0] if v is None else v for v in column.to_pylist()]
        offsets = pa.array(np.cumsum([0, *map(len, held)]), pa.int32())
        elements = _other_memory(pa.array([e for row in held for e in row], dtype.value_type))
        return pa.ListArray.from_arrays(offsets, elements, type=dtype, mask=column.is_null())
    if pa.types.is_struct(dtype):
        first = pc.if_else(column.is_null(), "under", column.field(0))
        fields = [first, column.field(1)]
        return pa.StructArray.from_arrays(fields, fields=list(dtype), mask=column.is_null())
    if dtype in (pa.string(), pa.binary()):
        filled = pc.fill_null(column, "under" if dtype == pa.string() else b"under")
    elif dtype == pa.bool_():
        filled = pc.fill_null(column, True)
    elif dtype == pa.null():
        return column
    else:
        raw = np.frombuffer(column.buffers()[1], np.uint8).copy().reshape(-1, dtype.bit_width // 8)
        raw[: len(column)][np.asarray(column.is_null())] = 77
        if dtype == pa.float64():
            values = raw.view(np.float64)
            values[np.isnan(values)] = -np.nan
        filled = pa.Array.from_buffers(dtype, len(column), [None, pa.py_buffer(raw)])
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.Array.from_buffers(dtype, len(column), [valid, *filled.buffers()[1:]])


def _written(column: pa.Array, path: Path, ending: str) -> bytes:
    sink = SINKS[ending](str(path), pa.schema([("c", column.type)]))
    sink.write(pa.RecordBatch.from_arrays([column], names=["c"]))
    sink.close()
    return path.read_bytes()


@pytest.mark.parametrize("dtype", VALUES, ids=str)
@pytest.mark.parametrize("ending", [".arrow", ".parquet"])
def test_equal_columns_are_the_same_bytes(dtype: pa.DataType, ending: str, tmp_path: Path) -> None:
    column = pa.array(VALUES[dtype], dtype)
    cuts: list[Callable[[pa.Array], pa.Array]] = [
        lambda c: c,
        _other_memory,
        lambda c: pa.concat_arrays([c.slice(2), c, c.slice(1)]).slice(2, 4),
    ]
    files = {_written(cut(column), tmp_path / f"f{i}", ending) for i, cut in enumerate(cuts)}
    assert len(files) == 1


@pytest.mark.parametrize("dtype", VALUES, ids=str)
def test_values_stay(dtype: pa.DataType) -> None:
    column = pa.array(VALUES[dtype], dtype)
    for part in (column, column.slice(1), column.slice(1, 2), column.slice(4)):
        canonical = canonical_column(part)
        canonical.validate(full=True)
        assert canonical.type == dtype
        assert list(map(repr, canonical.to_pylist())) == list(map(repr, part.to_pylist()))


@pytest.mark.parametrize("dtype", VALUES, ids=str)
def test_columns_that_are_all_null(dtype: pa.DataType) -> None:
    for nulls in (pa.nulls(3, dtype), pa.nulls(3, pa.list_(dtype)), pa.nulls(0, dtype)):
        canonical = canonical_column(nulls)
        canonical.validate(full=True)
        assert canonical.equals(nulls)


def test_outputs_do_not_show_where_the_input_was_cut(tmp_path: Path) -> None:
    rows = [{"vs": i, "v": 5, "x": None if i % 3 else i} for i in range(20)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    text = """
        STREAM A (vs BIGINT, v BIGINT, x DOUBLE) FROM 'a.jsonl';
        Out = SELECT v + x AS sum, ((x + x / 0) - x / 0) + CAST('NaN' AS DOUBLE) AS nan FROM A;
        Same = SELECT * FROM Out;
        OUTPUT Out TO 'out.arrow';
        OUTPUT Same TO 'out.parquet';
    """
    written = []
    for cut in (None, 1, 7):
        weir.run(text, directory=tmp_path, cut=cut)
        written.append([(tmp_path / f"out.{e}").read_bytes() for e in ("arrow", "parquet")])
    assert written[0] == written[1] == written[2]
