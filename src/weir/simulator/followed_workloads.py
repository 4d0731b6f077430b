"""Workloads over sources without an end: growing files, folders, sockets, queues.

Rows come as simulated time passes, and their event times are about when they come; `idle` claims
by the simulated clock make some of them late. The log of a source says which: so a run is compared
with a run without faults over the log that it has written (`logged_truth.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from weir.plan.operators import Source
from weir.plan.program import Program
from weir.plan.traversal import ordered_nodes
from weir.script.program import parse_program
from weir.simulator.feeds import FedRow, Feed, FolderFeed, QueueFeed, SocketFeed, TailFeed

_WITH = "WITH (lifetime = 150000, delay = 40000, late = 'drop', bad = 'skip', idle = 250ms)"
_INPUTS = f"""
STREAM T (vs BIGINT, k STRING, v BIGINT) FROM 'tail://t.jsonl' {_WITH};
STREAM F (vs BIGINT, k STRING, v BIGINT) FROM 'f/' {_WITH};
STREAM S (vs BIGINT, k STRING, v BIGINT) FROM 'tcp://simulated:1' {_WITH};
STREAM Q (vs BIGINT, k STRING, v BIGINT) FROM 'tail://q.jsonl' {_WITH};
STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'tail://a.jsonl'
  WITH (lifetime = 90000, late = 'adjust', bad = 'skip', idle = 100ms);
STREAM N (vs BIGINT, k STRING, v BIGINT) FROM 'tail://n.jsonl'
  WITH (lifetime = 90000, delay = 200000, late = 'drop', bad = 'skip');
"""

_COUNTS = """
Out = SELECT k, COUNT(*) AS n, SUM(v) AS s FROM {0} GROUP BY k WITH TUMBLING(200000);
OUTPUT Out TO 'out.jsonl';
OUTPUT LATE OF {0} TO 'late.jsonl';
OUTPUT BAD OF {0} TO 'bad.jsonl';
"""

PROGRAMS: Mapping[str, str] = {
    "followed_tail": _COUNTS.format("T"),
    "followed_folder": _COUNTS.format("F"),
    "followed_socket": _COUNTS.format("S"),
    "followed_queue": _COUNTS.format("Q"),
    "followed_adjusted": """
        Out = SELECT k, MAX(v) AS m, COUNT(*) AS n FROM A GROUP BY k WITH HOPPING(300000, 100000);
        OUTPUT Out TO 'out.jsonl';
        OUTPUT A TO 'again.jsonl';
    """,
    "followed_join": """
        Out = SELECT T.k AS k, T.v AS v, S.v AS w FROM T INNER JOIN S ON T.k = S.k;
        OUTPUT Out TO 'out.jsonl';
        OUTPUT LATE OF T TO 'late.jsonl';
    """,
    "followed_union": """
        Both = SELECT k, v FROM F UNION ALL SELECT k, v FROM Q;
        Out = SELECT k, SUM(v) AS s FROM Both GROUP BY k WITH TUMBLING(300000);
        OUTPUT Out TO 'out.jsonl';
        OUTPUT LATE OF Q TO 'late.jsonl';
    """,
    "followed_without_claims": """
        Out = SELECT N.k AS k, N.v AS v, T.v AS w FROM N LEFT OUTER JOIN T ON N.k = T.k;
        OUTPUT Out TO 'out.jsonl';
    """,
}


@cache
def followed_program(name: str) -> Program:
    return parse_program(_INPUTS + PROGRAMS[name])


def make_feeds(program: Program, rng: np.random.Generator, most_rows: int) -> dict[str, list[Feed]]:
    """Draw the feeds of every source's partitions; some appear late, some bring nothing."""
    nodes = ordered_nodes(output.node for output in program.outputs)
    sources = dict.fromkeys(node for node in nodes if isinstance(node, Source))
    lasts = float(rng.choice([0.5, 1.5, 4.0]))
    return {
        source.name: [
            _feed(
                kind=source.name,
                number=number,
                rows=_rows(rng, lasts, most_rows),
                ends=lasts + 0.1,
                rng=rng,
            )
            for number in range(int(rng.integers(1, 4)))
        ]
        for source in sources
    }


def _feed(
    kind: str, number: int, rows: Sequence[FedRow], ends: float, rng: np.random.Generator
) -> Feed:
    match kind:
        case "F":
            return FolderFeed(f"f{number}/", rows, ends, rng)
        case "S":
            return SocketFeed(number, rows, ends, rng)
        case "Q":
            return QueueFeed(f"q{number}", rows, ends, rng)
        case "T" | "A" | "N":
            return TailFeed(f"{kind.lower()}{number}.jsonl", rows, ends, rng)
        case _:
            raise ValueError(f"nothing feeds the stream {kind}")


def _rows(rng: np.random.Generator, lasts: float, most: int) -> list[FedRow]:
    """Draw rows in bursts with silences between them; about a third of the partitions appear
    late."""
    begins = float(rng.random()) * lasts if rng.random() < 0.3 else 0.0
    times = begins + np.sort(rng.random(int(rng.integers(0, most)))) * (lasts - begins)
    bursts = float(rng.choice([0.0, 0.3, 1.0]))
    if bursts:
        times = np.floor(times / bursts) * bursts + (times % bursts) / 10
    return [FedRow(float(at), _text(number, float(at), rng)) for number, at in enumerate(times)]


def _text(number: int, at: float, rng: np.random.Generator) -> bytes:
    lag = int(rng.choice([0, 0, 10_000, 300_000]))
    row = {
        "vs": None if rng.random() < 0.03 else int(at * 1e6) - lag,
        "k": str(rng.choice(["a", "b", "c"])),
        "v": number,
    }
    return json.dumps(row).encode() + b"\n"
