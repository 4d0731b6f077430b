"""Seeds whose apps the engine once had wrong: they are run by every test."""

from __future__ import annotations

SEEDS = (
    1, 14, 26, 82, 85, 125, 132, 145, 191, 445, 576, 617, 1420, 1521, 1935, 2827, 3571, 3953, 10277,
    10352, 20540, 101242, 102039, 104882, 104965, 105019,
    105329, 115983, 116808, 119166,
)  # fmt: skip
