"""Makes impressions of advertisements and the clicks that some of them lead to, as Parquet.

    python generate.py DIR [--impressions 20_000] [--seed 1]

Users like to click more or less, ads are better or worse: that is all there is to learn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECOND = 1_000_000


def generate(folder: Path, impressions: int = 20_000, *, seed: int = 1) -> None:
    """Write `impression.parquet` and `click.parquet`; a click comes within ten minutes."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    users, ads = max(impressions // 8, 1), max(impressions // 200, 1)
    user, ad = rng.integers(0, users, impressions), rng.integers(0, ads, impressions)
    eager, good = rng.normal(0, 1.2, users), rng.normal(0, 0.8, ads)
    likely = 1 / (1 + np.exp(0.6 - eager[user] - good[ad]))
    clicks = rng.random(impressions) < likely
    ts = np.cumsum(rng.integers(0, 60, impressions)) * SECOND
    ids = np.arange(impressions)
    pq.write_table(
        pa.table({"id": ids, "user": user, "ad": ad, "ts": ts}), folder / "impression.parquet"
    )
    late = ts[clicks] + rng.integers(1, 600, clicks.sum()) * SECOND
    order = np.argsort(late, kind="stable")
    click = {"impression": ids[clicks], "user": user[clicks], "ad": ad[clicks], "ts": late}
    pq.write_table(pa.table({n: v[order] for n, v in click.items()}), folder / "click.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--impressions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    generate(given.folder, given.impressions, seed=given.seed)


if __name__ == "__main__":
    main()
