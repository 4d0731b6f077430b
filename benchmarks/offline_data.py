"""The inputs of the offline benchmarks, as Parquet files of one time range each.

Each is so large that what a Spark job costs before its first row (a few tenths of a second, of
Weir as of Spark SQL) does not decide: a backtest reads more than a few seconds' worth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FILES = 8
Make = Callable[[np.random.Generator, int, int], pa.Table]
"""From a generator, a number of rows and the number of the file."""


def write_all(folder: Path, scale: float, names: Sequence[str] = (), *, files: int = FILES) -> None:
    """Every data set, or those of these names, unless it is there already."""
    for name, (_, make) in _DATA.items():
        if (not names or name in names) and not (folder / name).is_dir():
            _write(folder / name, events_of(name, scale), make, files)


def events_of(name: str, scale: float) -> int:
    return FILES * (int(_DATA[name][0] * scale) // FILES)


def _write(folder: Path, events: int, make: Make, files: int) -> None:
    partial = folder.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    count = events // files
    # A thousandth of a second from event to event, whatever the scale.
    for number in range(files):
        table = make(rng, count, number)
        start = number * count * 1_000
        vs = pa.array(start + np.arange(count, dtype=np.int64) * 1_000)
        path = partial / f"part-{number:02}.parquet"
        pq.write_table(table.add_column(0, "t", vs), path, compression="snappy")
    partial.rename(folder)


def random_lines(rng: np.random.Generator, count: int, width: int) -> pa.Array:
    """Lines of this many letters and blanks; one in a hundred begins with `error`."""
    letters = rng.integers(97, 123, (count, width), dtype=np.uint8)
    letters[:, 9::12] = 32
    kinds = np.where(rng.random(count) < 0.01, "error", "infos").astype("S5")
    letters[:, :5] = kinds.view(np.uint8).reshape(count, 5)
    offsets = np.arange(count + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def _lines(rng: np.random.Generator, count: int, number: int) -> pa.Table:
    """100 bytes a line."""
    return pa.table({"line": random_lines(rng, count, 100)})


def _words(rng: np.random.Generator, count: int, number: int) -> pa.Table:
    """Ten words a line, of 20 000, some much more frequent than others."""
    ranks = np.minimum(rng.zipf(1.3, (count, 10)), 20_000)
    words = pa.array([f"word{n}" for n in range(20_001)]).take(pa.array(ranks.ravel()))
    lines = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * 10), words)
    return pa.table({"line": pc.binary_join(lines, " ")})


def _keyed(rng: np.random.Generator, count: int, number: int) -> pa.Table:
    """Each key once, in both data sets at one time: a left and a right event meet once."""
    keys = number * count + rng.permutation(count)
    return pa.table({"k": keys, "v": rng.integers(0, 1_000_000, count)})


def _clicks(rng: np.random.Generator, count: int, number: int) -> pa.Table:
    urls = np.minimum(rng.zipf(1.2, count), 1_000_000)
    return pa.table({"url": pa.array(urls.astype(np.int64))})


def _skewed(rng: np.random.Generator, count: int, number: int) -> pa.Table:
    """Half of all rows have one key."""
    keys = np.where(rng.random(count) < 0.5, 0, rng.integers(0, 100_000, count))
    return pa.table({"k": keys, "v": rng.random(count)})


def _uniform(rng: np.random.Generator, count: int, number: int) -> pa.Table:
    return pa.table({"k": rng.integers(0, 100_000, count), "v": rng.random(count)})


_DATA: dict[str, tuple[int, Make]] = {
    "lines": (8_000_000, _lines),
    "words": (6_400_000, _words),
    "left": (2_000_000, _keyed),
    "right": (2_000_000, _keyed),
    "clicks": (4_000_000, _clicks),
    "skewed": (8_000_000, _skewed),
    "uniform": (8_000_000, _uniform),
}
