"""Trains a model on the features that the replay emitted, and one on features by a naive join.

    python train.py DATA OUT

The naive table counts clicks and impressions of a user and of an ad over the whole log and joins
the rates to each impression. So a row knows its own click, and those that came later. The model
looks very good on such rows and is worse where it is used: there the future is not known yet. The
emitted features are those that were known at each impression: what is measured on them is what
comes true.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

NAMES = ("user_rate", "ad_rate", "ad_lately", "hours")
TRAINED = 0.7
"""The share of impressions, the first ones, that models learn from; the rest is to be judged."""


@dataclass(frozen=True)
class Scores:
    """The share of right predictions: as measured on the table, and live."""

    naive_offline: float
    naive_live: float
    replayed_offline: float
    replayed_live: float
    constant: float


def train(data: Path, out: Path) -> Scores:
    """Train both models on the first impressions, and judge them by the others."""
    labels = labels_of(data)
    replayed, naive = replayed_features(out), naive_features(data)
    cut = int(len(labels) * TRAINED)
    old, new = slice(None, cut), slice(cut, None)
    of_naive = Model.fitted(naive[old], labels[old])
    of_replayed = Model.fitted(replayed[old], labels[old])
    return Scores(
        naive_offline=of_naive.accuracy(naive[new], labels[new]),
        # Live, there is only what is known at the time: the features that the app emits.
        naive_live=of_naive.accuracy(replayed[new], labels[new]),
        replayed_offline=of_replayed.accuracy(replayed[old], labels[old]),
        replayed_live=of_replayed.accuracy(replayed[new], labels[new]),
        constant=float(max(labels[new].mean(), 1 - labels[new].mean())),
    )


def labels_of(data: Path) -> np.ndarray:
    """Whether each impression was clicked, in order of id."""
    labels = np.zeros(pq.read_metadata(data / "impression.parquet").num_rows)
    labels[pq.read_table(data / "click.parquet").column("impression").to_numpy()] = 1
    return labels


def replayed_features(out: Path) -> np.ndarray:
    """The rows that the app emitted, in order of id."""
    table = pq.read_table(out / "features.parquet").sort_by("impression")
    return _transformed(*(table.column(name).to_numpy().astype(np.float64) for name in NAMES))


def naive_features(data: Path) -> np.ndarray:
    """The same features as totals of the whole log, joined by user and ad."""
    shown = pq.read_table(data / "impression.parquet").to_pydict()
    clicked = pq.read_table(data / "click.parquet").to_pydict()
    user_seen, user_clicks = _counts(shown["user"]), _counts(clicked["user"])
    ad_seen, ad_clicks = _counts(shown["ad"]), _counts(clicked["ad"])
    hour = 3_600_000_000
    hours_in_all = max(shown["ts"]) / hour
    last = dict(zip(clicked["user"], clicked["ts"], strict=True))
    rows = [
        (
            (user_clicks.get(user, 0) + 1) / (user_seen[user] + 3),
            (ad_clicks.get(ad, 0) + 1) / (ad_seen[ad] + 3),
            ad_clicks.get(ad, 0) * 6 / hours_in_all,
            abs(ts - last[user]) // hour if user in last else -1,
        )
        for user, ad, ts in zip(shown["user"], shown["ad"], shown["ts"], strict=True)
    ]
    return _transformed(*np.array(rows, dtype=np.float64).T)


def _counts(values: Sequence[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return found


def _transformed(
    user: np.ndarray, ad: np.ndarray, lately: np.ndarray, hours: np.ndarray
) -> np.ndarray:
    """Rates as odds; waiting times as logarithms, with a column for "never"."""
    return np.column_stack(
        [_odds(user), _odds(ad), np.log1p(lately), np.log1p(np.maximum(hours, 0)), hours < 0]
    )


def _odds(rate: np.ndarray) -> np.ndarray:
    bounded = np.clip(rate, 0.01, 0.99)
    return np.log(bounded / (1 - bounded))


@dataclass(frozen=True)
class Model:
    """A logistic regression over standardised columns."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray

    @classmethod
    def fitted(cls, rows: np.ndarray, labels: np.ndarray) -> Model:
        """Fit by Newton's method, with a little regularisation."""
        mean, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        inputs = _with_constant((rows - mean) / scale)
        weights = np.zeros(inputs.shape[1])
        for _ in range(20):
            likely = 1 / (1 + np.exp(-inputs @ weights))
            slope = inputs.T @ (labels - likely) - weights
            curve = (inputs.T * (likely * (1 - likely))) @ inputs + np.eye(len(weights))
            weights = weights + np.linalg.solve(curve, slope)
        return cls(mean, scale, weights)

    def accuracy(self, rows: np.ndarray, labels: np.ndarray) -> float:
        found = _with_constant((rows - self.mean) / self.scale) @ self.weights > 0
        return float((found == (labels > 0)).mean())


def _with_constant(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows, np.ones(len(rows))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    scores = train(given.data, given.out)
    print("right predictions         offline   live")
    print(f"naive join                {scores.naive_offline:7.3f} {scores.naive_live:7.3f}")
    print(f"replayed                  {scores.replayed_offline:7.3f} {scores.replayed_live:7.3f}")
    print(f"always the same answer    {scores.constant:15.3f}")


if __name__ == "__main__":
    main()
