"""Damaged Parquet and Arrow files through the readers, in this process, which may die of it.

    python -m property.native_fuzz parquet|arrow FIRST COUNT FOLDER

The number of the file that is being read stands in FOLDER/current; a file that does harm can be
made again from it. Exit code 1 for an outcome that is neither rows nor an InputError with the
file's name.
"""

from __future__ import annotations

import io
import random
import resource
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from property.mutations import damaged
from weir.errors import InputError
from weir.events.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP
from weir.files.columnar import ArrowFile, ParquetFile
from weir.ingress.ingress import Ingress
from weir.plan.operators import Source, SourceOptions
from weir.reliable.digest import digest

COLUMNS = (
    ("vs", BIGINT),
    ("i", INT),
    ("x", DOUBLE),
    ("s", STRING),
    ("k", STRING),
    ("t", TIMESTAMP),
    ("l", pa.list_(STRING)),
    ("r", pa.struct([("a", BIGINT), ("b", STRING)])),
    ("n", pa.decimal128(9, 2)),
    ("b", pa.binary()),
)
SOURCE = Source("A", COLUMNS, "a", SourceOptions(vs="vs", late="drop", bad="skip"), 0)
GROWTH = 3 << 30
SECONDS = 20


def table(rows: int) -> pa.Table:
    numbers = list(range(rows))
    columns = [
        pa.array(numbers, BIGINT),
        pa.array([None if i % 3 else i for i in numbers], INT),
        pa.array([i / 3 for i in numbers], DOUBLE),
        pa.array([f"text {i}" * (i % 4) for i in numbers], STRING),
        pa.array([f"key {i % 3}" for i in numbers], STRING).dictionary_encode(),
        pa.array(numbers, TIMESTAMP),
        pa.array([[f"{j}" for j in range(i % 3)] for i in numbers], pa.list_(STRING)),
        pa.array([{"a": i, "b": None if i % 2 else "é"} for i in numbers], COLUMNS[7][1]),
        pa.array(numbers, pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(9, 2)),
        pa.array([bytes([i % 256]) * (i % 5) for i in numbers], pa.binary()),
    ]
    return pa.Table.from_arrays(columns, names=[n for n, _ in COLUMNS])


def parquet_corpus() -> list[bytes]:
    made = []
    for options in (
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "snappy", "write_page_checksum": True, "data_page_size": 100},
        {"compression": "none", "row_group_size": 9, "write_statistics": False},
    ):
        out = io.BytesIO()
        pq.write_table(table(30), out, **options)
        made.append(out.getvalue())
    return made


def arrow_corpus() -> list[bytes]:
    made = []
    for opened in (pa.ipc.new_file, pa.ipc.new_stream):
        for codec in (None, "lz4", "zstd"):
            out = io.BytesIO()
            options = pa.ipc.IpcWriteOptions(compression=codec)
            with opened(out, table(1).schema, options=options) as writer:
                for batch in table(30).unify_dictionaries().to_batches(11):
                    writer.write_batch(batch)
            made.append(out.getvalue())
    return made


KINDS = {"parquet": (parquet_corpus, ParquetFile), "arrow": (arrow_corpus, ArrowFile)}


def outcome(kind: type[ParquetFile | ArrowFile], path: str, needed: tuple[str, ...] | None) -> str:
    try:
        ingress = Ingress(SOURCE, 0, path)
        for chunk in kind(path, COLUMNS, needed).chunks(7):
            admitted = ingress.feed(chunk)
            for batch in (admitted.batch, admitted.late, admitted.bad):
                digest(batch)
    except InputError as error:
        assert error.file == path, error
        assert "\n" not in str(error) and len(str(error)) < 1_000, error
        return "refused"
    return "rows"


def main(name: str, first: int, count: int, folder: Path) -> int:
    corpus, kind = KINDS[name][0](), KINDS[name][1]
    path, current = folder / f"a.{name}", folder / "current"
    resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))
    counts: Counter[str] = Counter()
    # What only a hang or a crash would leave unsaid: a signal kills the process.
    for seed in range(first, first + count):
        rng = random.Random(seed)
        path.write_bytes(damaged(rng, corpus))
        current.write_text(str(seed))
        signal.alarm(SECONDS)
        try:
            counts[outcome(kind, str(path), rng.choice((None, ("vs",), ("vs", "s", "l"))))] += 1
        except BaseException:
            traceback.print_exc()
            sys.stdout.write(f"seed {seed} of {name}\n")
            counts["FAILED"] += 1
    signal.alarm(0)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    sys.stdout.write(f"{name} {dict(counts)} {grown >> 20} MB at most\n")
    return 1 if counts["FAILED"] or grown > GROWTH or not counts["rows"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
