"""How long the chains of dependent events are: the critical path of the ReStream paper (§5.4).

An event depends on the last event before it, within its batch, that wrote a cell which it reads
or merges into. For a message these are the last message of its sender, the last from its IP
address, and the last friendship of the pair. The critical path of a batch is the longest chain of
such steps; what lies on it must be worked off one after the other, however many hosts there are.
"""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from replay_peers import parts


def accesses(data: Path) -> tuple[np.ndarray, int]:
    """The cells of every event in log order, as numbers (−1: none), and how many cells there are.

    Columns: the pair of users, the sender's counts, the IP address's counts. A pair is written by
    friendships and only read by messages; `sender` is −1 for a friendship.
    """
    friendship = pa.concat_tables(pq.read_table(p) for p in parts(data, "friendship"))
    columns = ["sender", "recipient", "ip", "ts"]
    message = pa.concat_tables(pq.read_table(p, columns=columns) for p in parts(data, "message"))
    ip = message.column("ip").combine_chunks().dictionary_encode().indices.to_numpy()
    a, b, at = (friendship.column(n).to_numpy() for n in ("a", "b", "ts"))
    sender, recipient, ts = (message.column(n).to_numpy() for n in columns[:2] + columns[3:])
    pair = np.concatenate(((a << 32) | b, (sender << 32) | recipient))
    _, pair = np.unique(pair, return_inverse=True)
    nothing = np.full(len(a), -1)
    cells = np.column_stack(
        (pair, np.concatenate((nothing, sender)), np.concatenate((nothing, ip)))
    )
    order = np.argsort(np.concatenate((at, ts)), kind="stable")  # friendships first, if equal
    return cells[order].astype(np.int64), int(cells.max()) + 1


@numba.njit(cache=True)
def _longest(cells, batch, count):  # type: ignore[no-untyped-def]
    """The longest chain of each batch of so many events."""
    batches = (len(cells) + batch - 1) // batch
    longest = np.zeros(batches, np.int64)
    depth = np.zeros((3, count), np.int64)  # of the last write of each cell
    stamp = np.full((3, count), -1, np.int64)  # the batch that it was in
    for n in range(len(cells)):
        now = n // batch
        deepest = 0
        for kind in range(3):
            cell = cells[n, kind]
            if cell >= 0 and stamp[kind, cell] == now:
                deepest = max(deepest, depth[kind, cell])
        deepest += 1
        longest[now] = max(longest[now], deepest)
        if cells[n, 1] < 0:
            depth[0, cells[n, 0]] = deepest
            stamp[0, cells[n, 0]] = now
        else:
            for kind in (1, 2):
                depth[kind, cells[n, kind]] = deepest
                stamp[kind, cells[n, kind]] = now
    return longest


def critical_path(data: Path, batch: int) -> float:
    """The mean over whole batches of their longest chains."""
    cells, count = accesses(data)
    longest = _longest(cells, batch, count)
    whole = longest[: max(len(cells) // batch, 1)]
    return float(whole.mean())


# --- Equation 1 ----------------------------------------------------------------------------


def modelled(hosts: np.ndarray, paths: np.ndarray, batch: int, a: float) -> np.ndarray:
    """Equation 1 up to its factor: h / ((h − 1) / h · max(c / b, a)); hosts are two or more."""
    return hosts / ((hosts - 1) / hosts * np.maximum(paths / batch, a))


def fitted(
    hosts: np.ndarray, paths: np.ndarray, batch: int, throughput: np.ndarray
) -> tuple[float, float, float]:
    """`a`, the factor and R² of Equation 1, by least squares over a grid of `a`."""
    best = (np.inf, 0.0, 0.0)
    for a in np.geomspace(0.001, 10, 2000):
        shape = modelled(hosts, paths, batch, a)
        factor = float(shape @ throughput / (shape @ shape))
        error = float(((throughput - factor * shape) ** 2).sum())
        if error < best[0]:
            best = (error, float(a), factor)
    spread = float(((throughput - throughput.mean()) ** 2).sum())
    return best[1], best[2], 1 - best[0] / spread if spread else 1.0
