"""The workloads that the simulator runs: every operator, and shapes that are hard to recover.

A workload is a script or an app, and rows that its seed draws: equal times, NULLs, silent
stretches, late and bad rows where the input allows them, in one to three partitions, of which some
are empty. `choose` depends on the seed and the names alone, so a new workload takes over some
seeds, and the others keep theirs.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from weir.files.chunks import SourcePartition
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app
from weir.ingress.memory_partitions import CTI_KEY, MemoryPartition
from weir.plan.operators import Source
from weir.plan.program import Program
from weir.runtime.partitions import Partitions
from weir.runtime.programs import program_of
from weir.script.program import parse_program
from weir.simulator.feeds import Feed
from weir.simulator.followed_workloads import PROGRAMS as FOLLOWED
from weir.simulator.followed_workloads import followed_program, make_feeds

MOST_ROWS = 60
KEYS = (None, "a", "b", "c", "d", "e")

_INPUTS = """
IMPORT 'workload_operators.py';
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT, f DOUBLE, tags LIST(STRING)) FROM 'a.jsonl';
STREAM B (vs BIGINT, ve BIGINT, k STRING, w BIGINT) FROM 'b.jsonl';
STREAM U (vs BIGINT, k STRING, v BIGINT) FROM 'u.jsonl'
  WITH (lifetime = 6, delay = 2, late = 'drop', bad = 'skip');
STREAM J (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'j.jsonl' WITH (late = 'adjust');
"""

_QUERIES = {
    "select": "SELECT k, v + 1 AS v, f / 2 AS f FROM A WHERE v > 3",
    "explode": "SELECT k, EXPLODE(tags) AS tag FROM A",
    "tumbling": "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5)",
    "partitioned": "SELECT k, COUNT(*) AS n FROM A PARTITION BY k INTO 3 AS 'by_key' GROUP BY k"
    " WITH TUMBLING(5)",
    "hopping": "SELECT k, MIN(v) AS lo, MAX(v) AS hi, COUNT(DISTINCT v) AS d FROM A GROUP BY k"
    " HAVING COUNT(*) > 1 WITH HOPPING(6, 2)",
    "session": "SELECT k, COUNT(*) AS n, LAST(v) AS l FROM A GROUP BY k WITH SESSION(3)",
    "snapshot": "SELECT k, SUM(v) AS s, AVG(f) AS m FROM A GROUP BY k WITH SNAPSHOT",
    "instants": "SELECT COUNT(*) AS n, SUM(v) FILTER (WHERE k = 'a') AS x FROM A",
    "count_window": "SELECT k, COLLECT(v) AS c FROM A GROUP BY k WITH COUNT(3, 2)",
    "quantiles": "SELECT MEDIAN(v) AS m, QUANTILE_DISC(v, 0.9) AS q, STDDEV(f) AS d FROM A"
    " WITH TUMBLING(7)",
    "user_aggregate": "SELECT k, Widest(v) AS w, Turns(v) AS t FROM A GROUP BY k WITH TUMBLING(5)",
    "inner_join": "SELECT A.k AS k, A.v AS v, B.w AS w FROM A INNER JOIN B ON A.k = B.k",
    "condition_join": "SELECT A.v AS v, B.w AS w FROM A INNER JOIN B ON A.k = B.k AND A.v > B.w",
    "left_join": "SELECT A.k AS k, A.v AS v, B.w AS w FROM A LEFT OUTER JOIN B ON A.k = B.k",
    "right_join": "SELECT A.k AS k, A.v AS v, B.w AS w FROM A RIGHT OUTER JOIN B ON A.k = B.k",
    "full_join": "SELECT A.k AS k, A.v AS v, B.w AS w FROM A FULL OUTER JOIN B ON A.k = B.k",
    "semi_join": "SELECT A.k AS k, A.v AS v FROM A LEFT SEMI JOIN B ON A.k = B.k",
    "anti_join": "SELECT A.k AS k, A.v AS v FROM A LEFT ANTI JOIN B ON A.k = B.k",
    "clip_join": "SELECT A.k AS k, A.v AS v FROM A CLIP JOIN B ON A.k = B.k",
    "asof_join": "SELECT A.v AS v, B.w AS w FROM A ASOF JOIN B ON A.k = B.k",
    "left_asof_join": "SELECT A.v AS v, B.w AS w FROM A LEFT ASOF JOIN B ON A.k = B.k",
    "cross_join": "SELECT A.v AS v, B.w AS w FROM A CROSS JOIN B WHERE B.w < 20",
    "union": "SELECT k, v AS n FROM A UNION ALL SELECT k, w AS n FROM B",
    "distinct": "SELECT DISTINCT k FROM A",
    "top": "SELECT k, v FROM A ORDER BY v DESC, k LIMIT 2",
    "top_window": "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(8)"
    " ORDER BY n DESC LIMIT 2 WITH TIES",
    "stitch": "SELECT k FROM A WITH STITCH",
    "chop": "SELECT k, v FROM A WITH CHOP(4, 1)",
    "lifetime": "SELECT k, v FROM A WITH LIFETIME(vs + 2, ve + 3)",
    "quantize": "SELECT k, v FROM A WITH QUANTIZE(6, 3)",
    "clip_duration": "SELECT k, v FROM A WITH CLIP_DURATION(3)",
    "end_points": "SELECT k, v FROM A WITH POINT_AT_END",
    "adjusted": "SELECT k, SUM(v) AS s FROM J GROUP BY k WITH TUMBLING(4)",
}

_PROGRAMS = {
    "figure1": """
        Joined = SELECT U.v AS name, A.k AS user FROM A INNER JOIN U ON A.k = U.k;
        Out = SELECT user, COUNT(*) AS alerts FROM Joined GROUP BY user WITH HOPPING(5, 5);
        OUTPUT Out TO 'out.jsonl';
        OUTPUT LATE OF U TO 'late.jsonl';
    """,
    "diamond": """
        Base = SELECT k, v, v % 4 AS g FROM A WHERE v IS NOT NULL;
        ByKey = SELECT k, COUNT(*) AS n FROM Base GROUP BY k WITH TUMBLING(4);
        ByRest = SELECT g, SUM(v) AS s FROM Base GROUP BY g WITH TUMBLING(4);
        Out = SELECT L.k AS k, L.n AS n, R.s AS s
          FROM ByKey AS L INNER JOIN ByRest AS R ON L.n = R.g;
        OUTPUT Out TO 'out.jsonl';
    """,
    "same_input_twice": """
        Sums = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(6);
        Out = SELECT X.k AS k, X.v AS v, Y.s AS s
          FROM A AS X LEFT OUTER JOIN Sums AS Y ON X.k = Y.k;
        OUTPUT Out TO 'out.jsonl';
        OUTPUT Sums TO 'sums.jsonl';
    """,
    "with_its_own_windows": """
        Counts = SELECT v, MAX(k) AS k, COUNT(*) AS n FROM A GROUP BY v WITH TUMBLING(15);
        Out = COMBINE A WITH Counts ON k USING Numbered();
        OUTPUT Out TO 'out.jsonl';
    """,
    "several_outputs": """
        Wide = SELECT k, v FROM A WITH DURATION(5);
        Counts = SELECT k, COUNT(*) AS n FROM Wide GROUP BY k;
        Names = SELECT DISTINCT k FROM Wide;
        OUTPUT Wide TO 'wide.jsonl';
        OUTPUT Counts TO 'counts.jsonl';
        OUTPUT Names TO 'names.jsonl';
        OUTPUT A TO 'a_again.jsonl';
    """,
    "turned_away": """
        Out = SELECT k, COUNT(*) AS n FROM U GROUP BY k WITH TUMBLING(3);
        OUTPUT Out TO 'out.jsonl';
        OUTPUT LATE OF U TO 'late.jsonl';
        OUTPUT BAD OF U TO 'bad.jsonl';
    """,
    "moved_lifetimes": """
        Later = SELECT k, v FROM A WITH SHIFT(3);
        Longer = SELECT k, v FROM Later WITH EXTEND(2);
        Starts = SELECT k, v FROM Longer WHERE v > 1 WITH POINT;
        Hops = SELECT k, v FROM Starts WITH HOP_LIFETIME(6, 2);
        Counts = SELECT k, COUNT(*) AS n FROM Hops GROUP BY k;
        OUTPUT Longer TO 'longer.jsonl';
        OUTPUT Counts TO 'counts.jsonl';
    """,
    "user_operator": """
        Out = REDUCE A ON k USING Bursts(3);
        OUTPUT Out TO 'out.jsonl';
    """,
    "user_operator_over_all": """
        Out = PROCESS A USING Bursts(2);
        OUTPUT Out TO 'out.jsonl';
    """,
    "pipeline": """
        P1 = SELECT k, SUM(v) AS s, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(2);
        P2 = SELECT s % 5 AS g, MAX(s) AS s, COUNT(*) AS n FROM P1 GROUP BY s % 5 WITH TUMBLING(2);
        P3 = SELECT n % 3 AS g, SUM(s) AS s, COUNT(*) AS n FROM P2 GROUP BY n % 3 WITH TUMBLING(2);
        P4 = SELECT s % 4 AS g, MIN(s) AS s, SUM(n) AS n FROM P3 GROUP BY s % 4 WITH TUMBLING(4);
        P5 = SELECT n % 2 AS g, SUM(s) AS s, COUNT(*) AS n FROM P4 GROUP BY n % 2 WITH TUMBLING(4);
        P6 = SELECT s % 3 AS g, MAX(s) AS s, SUM(n) AS n FROM P5 GROUP BY s % 3 WITH TUMBLING(4);
        P7 = SELECT n % 3 AS g, SUM(s) AS s, COUNT(*) AS n FROM P6 GROUP BY n % 3 WITH TUMBLING(8);
        P8 = SELECT s % 2 AS g, SUM(s) AS s, SUM(n) AS n FROM P7 GROUP BY s % 2 WITH TUMBLING(8);
        P9 = SELECT n % 2 AS g, MAX(s) AS s, COUNT(*) AS n FROM P8 GROUP BY n % 2 WITH TUMBLING(8);
        Out = SELECT s % 3 AS g, SUM(s) AS s, SUM(n) AS n FROM P9 GROUP BY s % 3 WITH TUMBLING(8);
        OUTPUT Out TO 'out.jsonl';
    """,
}


_APPS = {"app": "workload", "app_over_a_query": "over_a_query"}
"""Apps of `workload_app.py`: all that they emit, and their final states."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A program with its data: in memory, or brought by feeds while it runs."""

    name: str
    program: Program
    partitions: Partitions
    feeds: Mapping[str, Sequence[Feed]] | None = None


def workload_names() -> tuple[str, ...]:
    return (*_PROGRAMS, *_QUERIES, *_APPS, *FOLLOWED)


def choose(seed: int, names: Iterable[str]) -> str:
    """Choose the name of a seed's workload.

    >>> choose(7, ["a", "b"]) == choose(7, ["b", "a"])
    True
    """

    def weight(name: str) -> bytes:
        return hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()

    return max(names, key=weight)


def make_workload(name: str, seed: int, most_rows: int = MOST_ROWS) -> Workload:
    """Make a workload with the rows of a seed."""
    rng = np.random.default_rng([seed, 1])
    if name in FOLLOWED:
        program = followed_program(name)
        return Workload(name, program, {}, make_feeds(program, rng, most_rows))
    program = _program(name)
    partitions: dict[str, Sequence[SourcePartition]] = {}
    for source in program.sources:
        count = int(rng.integers(1, 4))
        partitions[source.name] = [
            MemoryPartition(f"{source.name}[{i}]", _rows(source, rng, most_rows), source.declared)
            for i in range(count)
        ]
    return Workload(name, program, partitions)


@cache
def _program(name: str) -> Program:
    if name in _APPS:
        return _app_program(_APPS[name])
    text = _PROGRAMS.get(name) or f"Out = {_QUERIES[name]};\nOUTPUT Out TO 'out.jsonl';"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a join that compares every pair is meant here
        return parse_program(_INPUTS + text, directory=Path(__file__).parent)


def _app_program(name: str) -> Program:
    compiled = compile_app(load_app(Path(__file__).with_name("workload_app.py"), name), final=True)
    emitted = [s.to(f"{n}.jsonl", name=n) for n, s in compiled.emitted.items()]
    states = [s.to(f"{n}.state.jsonl", name=f"{n}.state") for n, s in compiled.final.items()]
    return program_of([*emitted, *states])


def _rows(source: Source, rng: np.random.Generator, most: int) -> list[dict[str, object]]:
    names = [name for name, _ in source.declared]
    rows: list[dict[str, object]] = []
    now = 0
    for _ in range(int(rng.integers(0, most))):
        # Many rows at one time, sometimes a long silence.
        now += int(rng.choice([0, 0, 1, 1, 2, 15], p=[0.25, 0.2, 0.25, 0.15, 0.13, 0.02]))
        if rng.random() < 0.05:
            rows.append({CTI_KEY: now})
        rows.append(_row(names, now + _lag(source, rng), rng))
    return rows


def _lag(source: Source, rng: np.random.Generator) -> int:
    """Draw how far a row is behind, if the input allows late rows."""
    return -int(rng.integers(0, 6)) if source.name in ("U", "J") and rng.random() < 0.3 else 0


def _row(names: Sequence[str], now: int, rng: np.random.Generator) -> dict[str, object]:
    value = int(rng.integers(0, 12))
    drawn: dict[str, object] = {
        "vs": now,
        # Windows refuse events without an end; B is only joined.
        "ve": None if "w" in names and rng.random() < 0.05 else now + int(rng.integers(1, 9)),
        "k": KEYS[int(rng.integers(len(KEYS)))],
        "v": None if rng.random() < 0.05 else value,
        "w": int(rng.integers(0, 30)),
        "f": [None, 0.5, -0.0, 1e300, float("nan")][int(rng.integers(5))],
        "tags": [["x"], [], None, ["y", "z"]][int(rng.integers(4))],
    }
    if "ve" not in names and rng.random() < 0.05:
        drawn["vs"] = None  # only U has no ends: it skips rows that are bad
    return {name: drawn[name] for name in names}
