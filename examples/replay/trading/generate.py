"""Makes some days of trades of a few symbols, as random walks, in a CSV file.

python generate.py DIR [--trades 4000] [--seed 1]
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

START = datetime(2026, 2, 2, 14, 30, tzinfo=UTC)
SYMBOLS = ("ALFA", "BETA", "GAMA", "DLTA", "EPSI")


def generate(folder: Path, trades: int = 4000, *, seed: int = 1) -> None:
    """Write `trade.csv`, with several trades in some of its seconds."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    symbols = rng.integers(0, len(SYMBOLS), trades)
    seconds = np.cumsum(rng.integers(0, 8, trades))
    sizes = np.maximum(rng.pareto(1.5, trades) * 100, 1).astype(np.int64)
    lines = ["symbol,price,size,at"]
    prices = np.full(len(SYMBOLS), 100.0)
    trend = np.zeros(len(SYMBOLS))
    for n in range(trades):
        of = symbols[n]
        trend[of] = 0.97 * trend[of] + rng.normal(0, 0.0002)
        prices[of] *= 1 + trend[of] + rng.normal(0, 0.0006)
        at = (START + timedelta(seconds=int(seconds[n]))).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines.append(f"{SYMBOLS[of]},{prices[of]:.2f},{sizes[n]},{at}")
    (folder / "trade.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trades", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    generate(given.folder, given.trades, seed=given.seed)


if __name__ == "__main__":
    main()
