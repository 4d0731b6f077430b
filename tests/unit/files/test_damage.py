"""Parquet and Arrow files that are not what they say: an InputError with the file's name."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir.errors import InputError
from weir.events.arrow_streams import check_intact
from weir.events.types import BIGINT, STRING
from weir.files.columnar import ArrowFile, ParquetFile, stored_schema
from weir.files.sinks import ParquetSink

COLUMNS = (("vs", BIGINT), ("s", STRING))
TABLE = pa.table({"vs": list(range(1000)), "s": [f"text {i}" for i in range(1000)]})


def write_arrow(path: Path, table: pa.Table = TABLE, stream: bool = False) -> None:
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def crafted(path: Path, offset: int, stream: bool = False) -> None:
    """An Arrow file with one offset of a text that points elsewhere."""
    write_arrow(path, stream=stream)
    data = bytearray(path.read_bytes())
    offsets = np.cumsum([0, *(len(f"text {i}") for i in range(100))]).astype("<i4").tobytes()
    at = data.index(offsets)
    data[at + 40 : at + 44] = struct.pack("<i", offset)
    path.write_bytes(data)


def rows(kind: type[ParquetFile | ArrowFile], path: Path) -> int:
    return sum(chunk.rows.num_rows for chunk in kind(str(path), COLUMNS).chunks())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("offset", [2**31 - 1, -1, -(2**31), 5])
def test_offsets_that_point_elsewhere(tmp_path: Path, offset: int, stream: bool) -> None:
    crafted(tmp_path / "a.arrow", offset, stream)
    with pytest.raises(InputError, match=r"a\.arrow: not a readable file: .*[oO]ffset"):
        rows(ArrowFile, tmp_path / "a.arrow")


def test_a_file_that_is_cut_while_it_is_read_does_not_end_the_process(tmp_path: Path) -> None:
    """In a process of its own: mapped memory behind the end of a file would kill it."""
    script = f"""
import os
from weir.errors import InputError
from weir.events.types import BIGINT, STRING
from weir.files.columnar import ArrowFile
chunks = ArrowFile({str(tmp_path / "a.arrow")!r}, (("vs", BIGINT), ("s", STRING))).chunks(10)
held = next(chunks)
os.truncate({str(tmp_path / "a.arrow")!r}, 900)
assert held.rows.column("s").to_pylist()[9] == "text 9"
try:
    print(sum(chunk.rows.num_rows for chunk in chunks))
except InputError as error:
    print(error)
"""
    write_arrow(tmp_path / "a.arrow")
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == 0, done.stderr
    assert "a.arrow: not a readable file" in done.stdout


def test_a_scale_that_no_decimal_has(tmp_path: Path) -> None:
    """Arrow's cast of it ends the process."""
    table = pa.table({"vs": [1], "n": pa.array([1], pa.decimal128(9, 2))})
    write_arrow(tmp_path / "a.arrow", table)
    data = (tmp_path / "a.arrow").read_bytes()
    found = struct.pack("<ii", 9, 2)
    assert data.count(found) or data.count(struct.pack("<ii", 2, 9))
    for order in (found, struct.pack("<ii", 2, 9)):
        wrong = order.replace(struct.pack("<i", 2), struct.pack("<i", -922_746_878))
        data = data.replace(order, wrong)
    (tmp_path / "a.arrow").write_bytes(data)
    columns = (("vs", BIGINT), ("n", pa.decimal128(9, 2)))
    with pytest.raises(InputError, match=r"a\.arrow"):
        list(ArrowFile(str(tmp_path / "a.arrow"), columns).chunks())


def test_a_page_that_is_not_what_was_written(tmp_path: Path) -> None:
    """Weir's own files have checksums; without them this would be another row, and nothing said."""
    path = tmp_path / "a.parquet"
    plain = pa.table({"vs": TABLE["vs"], "s": TABLE["s"]})
    sink = ParquetSink(str(path), plain.schema)
    sink.write(plain.combine_chunks().to_batches()[0])
    sink.close()
    whole = path.read_bytes()
    footer = 8 + struct.unpack("<i", whole[-8:-4])[0]
    seen = 0
    for at in range(len(b"PAR1"), len(whole) - footer, 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            chunks = list(ParquetFile(str(path), COLUMNS).chunks())
        except InputError as error:
            assert str(error).startswith(f"{path}: not a readable file: ")
            seen += 1
        else:  # in the statistics of a page, which nobody reads
            assert [row for c in chunks for row in c.rows.to_pylist()] == plain.to_pylist()
    assert seen > 50


@pytest.mark.parametrize("more", [1, -1, 10**12])
def test_a_file_that_counts_other_rows_than_it_has(tmp_path: Path, more: int) -> None:
    """What a footer says of rows is held against those that come."""
    pq.write_table(TABLE, tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    size = struct.unpack("<i", data[-8:-4])[0]
    footer, count = data[-8 - size : -8], b"\x16" + _varint(1000)
    footer = footer.replace(count, b"\x16" + _varint(1000 + more), 1)
    (tmp_path / "a.parquet").write_bytes(
        data[: -8 - size] + footer + struct.pack("<i", len(footer)) + b"PAR1"
    )
    assert pq.read_metadata(tmp_path / "a.parquet").num_rows == 1000 + more
    with pytest.raises(InputError, match=rf"a\.parquet: .*{1000 + more} rows, and 1000 are there"):
        rows(ParquetFile, tmp_path / "a.parquet")


def _varint(value: int) -> bytes:
    """A number as Thrift's compact protocol writes it."""
    value, out = value << 1, b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


@pytest.mark.parametrize("size", [0, 3, 8, 100])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_is_cut_short(tmp_path: Path, ending: str, size: int) -> None:
    path = tmp_path / f"a.{ending}"
    pq.write_table(TABLE, path) if ending == "parquet" else write_arrow(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match=rf"a\.{ending}: not a readable file"):
        rows(ParquetFile if ending == "parquet" else ArrowFile, path)
    with pytest.raises(InputError, match=rf"a\.{ending}: not a readable file"):
        stored_schema(str(path))


def test_a_batch_with_indices_that_are_not_there() -> None:
    indices = pa.array([0, 9], pa.int32())
    made = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    with pytest.raises(pa.ArrowInvalid):
        check_intact(pa.RecordBatch.from_arrays([made], names=["k"]))
