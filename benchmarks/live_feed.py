"""What the latency benchmarks send, from a second process, and what they make of the answers."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import numpy as np

RATES = {"grep": 10_000, "wordcount": 1_000}
WARM_UP = 5.0
"""Seconds at the beginning of a round that are not counted, while workers warm up."""
_STEP = 0.001
"""Seconds between two bursts of events."""
_WORDS = np.array([f"word{i}" for i in range(1000)])


def lines(rate: int, seconds: float, bursts: int = 1) -> Iterator[bytes]:
    """As time goes, a burst of events each millisecond: ten words each, and the time when it was
    made. So many bursts are sent together."""
    rng = np.random.default_rng(1)
    began, made, waiting = time.time(), 0, []
    while (passed := time.time() - began) < seconds:
        due = int(passed * rate)
        if due > made:
            now = int(time.time() * 1e6)
            words = _WORDS[rng.integers(0, len(_WORDS), (due - made, 10))].tolist()
            waiting.append("".join(f'{{"t":{now},"line":"{" ".join(w)} error"}}\n' for w in words))
            made = due
        if len(waiting) >= bursts:
            yield "".join(waiting).encode()
            waiting = []
        time.sleep(_STEP)


def write_file(path: str, rate: int, seconds: float, bursts: int = 1) -> None:
    with open(path, "ab", buffering=0) as file:
        for data in lines(rate, seconds, bursts):
            file.write(data)


def write_socket(port: int, rate: int, seconds: float, bursts: int = 1) -> None:
    with socket.create_server(("127.0.0.1", port)) as server:
        connection, _ = server.accept()
        with connection:
            for data in lines(rate, seconds, bursts):
                connection.sendall(data)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def percentiles(pairs: np.ndarray, warm_up: float = WARM_UP) -> tuple[float, float]:  # type: ignore[type-arg]
    """p50 and p99 in ms, without the first seconds."""
    pairs = pairs[pairs[:, 1] > pairs[0, 1] + warm_up * 1e6]
    late = (pairs[:, 0] - pairs[:, 1]) / 1e3
    return float(np.percentile(late, 50)), float(np.percentile(late, 99))
