"""State is bounded by what is live: a million events through every operator.

Keys are ever new and lifetimes short, so what is live at once is about a thousand rows. After
every few steps all that a chain holds is measured: the rows that it says it holds, and the length
of every array, list and dict in it, spare room included. Something that is never given back
shows within the first tenth of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weir.events.batch import OPEN, START, Batch, empty_batch
from weir.plan.operators import schema
from weir.plan.program import Program
from weir.reliable.chain import Chain
from weir.runtime.program_plan import plan_program
from weir.script import parse_program
from weir.testing import with_output

EVENTS = 1_000_000
STEP = 2_048  # rows handed over at a time
A_TICK = 16  # rows with the same vs
KEY_TICKS = 8  # a key appears in this many ticks, then never again
LONGEST = 12  # ticks that an event is valid

MOST_ROWS = 4 * STEP
"""One step's rows and the few hundred that were live before it, with some air."""
MOST_LENGTH = 16 * STEP
"""In one array: doubling, and an index that is at most half full, on top of that."""

RULES = """
from typing import Any
import weir

@weir.aggregate
class Total:
    def zero(self) -> int: return 0
    def add(self, state: int, value: int) -> int: return state + value
    def result(self, state: int) -> int: return state

@weir.aggregate(state={"n": "BIGINT"})
class Folded:
    def zero(self) -> dict: return {"n": 0}
    def add(self, state: dict, value: int) -> dict: return {"n": state["n"] + value}
    def result(self, state: dict) -> int: return state["n"]

@weir.operator(columns={"n": "BIGINT"})
class Waits:
    n: int = 0
    def on_event(self, event: Any, ctx: Any) -> None:
        self.n += 1
        ctx.set_timer(event.vs + 3)
    def on_time(self, time: int, ctx: Any) -> None:
        ctx.emit(n=self.n)
"""


class Pipeline:
    """The stages of a program in one chain of vertices, without streams in between."""

    def __init__(self, program: Program) -> None:
        self._plan = plan_program(program).stages
        self.chains: list[Chain] = []
        self._readers: dict[int, list[tuple[int, int]]] = {}
        for stage in self._plan.stages:
            ports = [i for i, port in enumerate(stage.ports) for _ in port.links]
            self.chains.append(Chain(stage, self._plan.origins, ports or [0]))
            links = [link for port in stage.ports for link in port.links]
            for index, link in enumerate(links):
                self._readers.setdefault(link.stage, []).append((stage.number, index))
        self._sources = {
            stage.operators[0].name: stage.number  # type: ignore[union-attr]
            for stage in self._plan.stages
            if not stage.ports
        }
        self._types = {s.name: schema(s).types for s in program.sources}
        self.rows = 0

    def feed(self, source: str, batch: Batch | None, cti: int) -> None:
        batch = empty_batch(self._types[source]) if batch is None else batch
        self._push(self._sources[source], 0, batch, cti)

    def _push(self, stage: int, stream: int, batch: Batch, cti: int) -> None:
        chain = self.chains[stage]
        chain.push(stream, batch, cti)
        rows, out = chain.pull()
        if stage not in self._readers:
            self.rows += 0 if rows is None else len(rows)
        for reader, index in self._readers.get(stage, []):
            self._push(reader, index, chain.empty() if rows is None else rows, out)

    @property
    def state_rows(self) -> int:
        return sum(chain.state_rows for chain in self.chains)


# --- measuring -----------------------------------------------------------------------------


def lengths(thing: object, path: str = "") -> Iterator[tuple[str, int]]:
    """Every container that an object of Weir reaches, by path; text counts in words of 8 bytes."""
    seen: set[int] = set()
    waiting = [(path, thing)]
    while waiting:
        at, current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, np.ndarray):
            # A view keeps all of its base alive.
            base = current.base if isinstance(current.base, np.ndarray) else current
            yield at, base.nbytes // (8 * max(1, int(np.prod(base.shape[1:]))))
        elif isinstance(current, pa.Array):
            yield at, len(current)
        elif isinstance(current, list | tuple | set | dict):
            yield at, len(current)
            items = current.items() if isinstance(current, dict) else enumerate(current)
            waiting += [(f"{at}[{n if i < 8 else '…'}]", x) for i, (n, x) in enumerate(items)]
        elif type(current).__module__.startswith("weir.") and _holds_state(current):
            fields = getattr(current, "__dict__", None) or {
                n: getattr(current, n) for n in getattr(current, "__slots__", ())
            }
            waiting += [(f"{at}.{n}", x) for n, x in fields.items()]


def _holds_state(thing: object) -> bool:
    return not type(thing).__module__.startswith("weir.plan.")


@dataclass
class Peak:
    """The most that was ever held, and where."""

    rows: int = 0
    length: int = 0
    where: str = ""
    sampled: int = field(default=0, repr=False)

    def look_at(self, pipeline: Pipeline) -> None:
        self.sampled += 1
        self.rows = max(self.rows, pipeline.state_rows)
        for path, length in lengths(pipeline.chains):
            if length > self.length:
                self.length, self.where = length, path


def test_the_measure_sees_what_a_chain_holds() -> None:
    pipeline = Pipeline(_program("Out = SELECT k, s, COUNT(*) AS n FROM A GROUP BY k, s;"))
    before = dict(lengths(pipeline.chains))
    pipeline.feed("A", _rows(0, 3 * STEP), START + 1)
    after = dict(lengths(pipeline.chains))
    assert pipeline.state_rows == 3 * STEP  # all waiting in the merge
    assert max(after.values()) == 3 * STEP > max(before.values())
    pipeline.feed("A", None, 3 * STEP // A_TICK)
    assert any(".buffer" in path for path in dict(lengths(pipeline.chains)))


# --- events --------------------------------------------------------------------------------


def _rows(start: int, stop: int, keys: int | None = None, shift: int = 0) -> Batch:
    """Events number start … stop − 1."""
    number = np.arange(start, stop, dtype=np.int64)
    vs = number // A_TICK
    key = vs // KEY_TICKS * A_TICK + number % A_TICK
    if keys is not None:
        key = key % keys
    # A cheap hash of the number: like chance, but the same whatever the cut.
    noise = (number * 2_654_435_761 + shift) >> 7
    value = pa.array(noise % 1000)
    columns = (
        pa.array(key),
        value,
        pa.array(noise % 997 / 7.0),
        pa.array(key).cast(pa.string()),
    )
    return Batch(vs, vs + 1 + noise % LONGEST, columns)


@cache
def _batches(events: int, keys: int | None, shift: int) -> tuple[Batch, ...]:
    cuts = [*range(0, events, STEP), events]
    return tuple(_rows(a, b, keys, shift) for a, b in pairwise(cuts))


INPUTS = "".join(
    f"STREAM {name} (vs BIGINT, ve BIGINT, k BIGINT, v BIGINT, f DOUBLE, s STRING)"
    f" FROM '{name}.arrow';"
    for name in "AB"
)


def _program(text: str, directory: Path | None = None) -> Program:
    whole = parse_program(f"{INPUTS}\n{text}", **({"directory": directory} if directory else {}))
    return with_output(whole, "Out")


def _drive(pipeline: Pipeline, streams: Mapping[str, tuple[Batch, ...]]) -> Peak:
    peak = Peak()
    count = max(len(batches) for batches in streams.values())
    for i in range(count):
        for name, batches in streams.items():
            following = int(batches[i + 1].vs[0]) if i + 1 < len(batches) else OPEN
            pipeline.feed(name, batches[i], following)
        if i % 16 == 0 or i >= count - 2:
            peak.look_at(pipeline)
    return peak


def _check(peak: Peak, pipeline: Pipeline, *, rows: int = MOST_ROWS) -> None:
    assert pipeline.rows > 0, "nothing came out: this run shows nothing"
    assert peak.rows <= rows
    assert peak.length <= MOST_LENGTH, peak.where
    assert pipeline.state_rows == 0, "something is held behind the end of the input"


# --- one input -----------------------------------------------------------------------------

WINDOWS = {
    "tumbling": "TUMBLING(4)",
    "hopping": "HOPPING(16, 2)",
    "hopping_with_gaps": "HOPPING(3, 7)",
    "session": "SESSION(4)",
    "snapshot": "SNAPSHOT",
}
AGGREGATES = {
    "exact_sums": "AVG(f)",
    "count_distinct": "COUNT(DISTINCT v)",
    "count_distinct_text": "COUNT(DISTINCT s)",
    "min_max": "MIN(v) AS a, MAX(f)",
    "min_max_text": "MIN(s) AS a, MAX(s)",
    "quantile_disc": "QUANTILE_DISC(v, 0.9)",
    "first_last": "FIRST(s) AS a, LAST(v)",
    "collect": "COLLECT(v)",
}
ONE_INPUT = {
    **{
        f"window_{name}": f"SELECT k, s, COUNT(*) AS n, SUM(v) AS t FROM A GROUP BY k, s WITH {w}"
        for name, w in WINDOWS.items()
    },
    **{
        f"aggregate_{name}": f"SELECT k, {a} AS x FROM A GROUP BY k WITH HOPPING(8, 4)"
        for name, a in AGGREGATES.items()
    },
    "aggregate_without_keys": "SELECT SUM(v) AS x, MIN(v) AS y FROM A WITH SNAPSHOT",
    "min_of_snapshots": "SELECT k, MIN(s) AS x FROM A GROUP BY k WITH SNAPSHOT",
    "distinct_of_sessions": "SELECT k, COUNT(DISTINCT v) AS x FROM A GROUP BY k WITH SESSION(4)",
    "distinct": "SELECT DISTINCT k, s FROM A",
    "stitch": "SELECT k, s FROM (SELECT * FROM A WITH DURATION(1)) AS one WITH STITCH",
    "stitch_of_overlaps": "SELECT k, v FROM A WITH STITCH",
    "chop": "SELECT * FROM A WITH CHOP(4)",
    "top_of_windows": (
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(4) ORDER BY n DESC, k LIMIT 3"
    ),
    "top_of_instants": "SELECT k, s, v FROM A ORDER BY v DESC, s LIMIT 3",
    "top_with_ties": "SELECT k, v FROM A WITH POINT ORDER BY v LIMIT 2 WITH TIES",
    "union": "SELECT k, v FROM A UNION ALL SELECT v, k FROM A",
}


@pytest.mark.parametrize("name", ONE_INPUT)
def test_one_input(name: str) -> None:
    pipeline = Pipeline(_program(f"Out = {ONE_INPUT[name]};"))
    peak = _drive(pipeline, {"A": _batches(EVENTS, None, 0)})
    _check(peak, pipeline)


STATELESS = {
    "where": "SELECT k, v + 1 AS w FROM A WHERE v > 500",
    "duration": "SELECT * FROM A WITH DURATION(3)",
    "lifetime": "SELECT * FROM A WITH LIFETIME(vs + 1, ve + v)",
    "shift": "SELECT * FROM A WITH SHIFT(3)",
    "extend": "SELECT * FROM A WITH EXTEND(3)",
    "clip_duration": "SELECT * FROM A WITH CLIP_DURATION(3)",
    "point": "SELECT * FROM A WITH POINT",
    "point_at_end": "SELECT * FROM A WITH POINT_AT_END",
    "quantize": "SELECT * FROM A WITH QUANTIZE(4, 2)",
    "hop_lifetime": "SELECT * FROM A WITH HOP_LIFETIME(4, 2)",
    "explode": "SELECT EXPLODE(SPLIT(s, '1')) AS part FROM A",
}


@pytest.mark.parametrize("name", STATELESS)
def test_stateless(name: str) -> None:
    """Nothing is ever held; a tenth of the events, since no state could grow in the rest."""
    pipeline = Pipeline(_program(f"Out = {STATELESS[name]};"))
    peak = _drive(pipeline, {"A": _batches(EVENTS // 10, None, 0)})
    _check(peak, pipeline, rows=0)


# --- two inputs ----------------------------------------------------------------------------

ON_KEY = "A.k == B.k"
TWO_INPUTS = {
    "inner": f"SELECT A.v AS v, B.v AS w FROM A INNER JOIN B ON {ON_KEY}",
    "inner_text": "SELECT A.v AS v, B.s AS w FROM A INNER JOIN B ON A.s == B.s",
    "inner_condition": f"SELECT A.v AS v FROM A INNER JOIN B ON {ON_KEY} AND A.v < B.v",
    "left": f"SELECT A.v AS v, B.v AS w FROM A LEFT OUTER JOIN B ON {ON_KEY}",
    "right": f"SELECT A.v AS v, B.v AS w FROM A RIGHT OUTER JOIN B ON {ON_KEY} AND A.v < B.v",
    "full": f"SELECT A.v AS v, B.v AS w FROM A FULL OUTER JOIN B ON {ON_KEY} AND A.v < B.v",
    "semi": f"SELECT * FROM A LEFT SEMI JOIN B ON {ON_KEY}",
    "semi_condition": f"SELECT * FROM A LEFT SEMI JOIN B ON {ON_KEY} AND A.v < B.v",
    "anti": "SELECT * FROM A LEFT ANTI JOIN B ON A.v == B.v",
    "anti_condition": f"SELECT * FROM A LEFT ANTI JOIN B ON {ON_KEY} AND A.v < B.v",
    "clip": f"SELECT * FROM A CLIP JOIN B ON {ON_KEY}",
    "clip_condition": f"SELECT * FROM A CLIP JOIN B ON {ON_KEY} AND A.v < B.v",
}


@pytest.mark.parametrize("name", TWO_INPUTS)
def test_two_inputs(name: str) -> None:
    pipeline = Pipeline(_program(f"Out = {TWO_INPUTS[name]};"))
    streams = {n: _batches(EVENTS // 2, None, i) for i, n in enumerate("AB")}
    _check(_drive(pipeline, streams), pipeline, rows=2 * MOST_ROWS)


def test_cross_join() -> None:
    """Every pair is a row: the left side has one event a tick."""
    text = "Few = SELECT v FROM A WHERE k % 16 == 0 WITH POINT;"
    text += "Out = SELECT Few.v AS v, B.v AS w FROM Few CROSS JOIN B;"
    pipeline = Pipeline(_program(text))
    streams = {n: _batches(EVENTS // 2, None, i) for i, n in enumerate("AB")}
    _check(_drive(pipeline, streams), pipeline, rows=2 * MOST_ROWS)


# --- operators that remember every key, by their meaning -----------------------------------

KEYS = 1_000
EVERY_KEY = {
    # The next window of a key begins where its last one ended, however long ago.
    "count_window": "SELECT k, SUM(v) AS t, MIN(s) AS m FROM A GROUP BY k WITH COUNT(4, 2)",
    "count_with_gaps": "SELECT k, SUM(v) AS t FROM A GROUP BY k WITH COUNT(2, 5)",
}


@pytest.mark.parametrize("name", EVERY_KEY)
def test_count_windows_hold_a_row_for_every_key(name: str) -> None:
    pipeline = Pipeline(_program(f"Out = {EVERY_KEY[name]};"))
    peak = _drive(pipeline, {"A": _batches(EVENTS, KEYS, 0)})
    assert pipeline.rows > EVENTS // 10
    assert peak.rows <= MOST_ROWS and peak.length <= MOST_LENGTH, peak
    assert pipeline.state_rows <= 8 * KEYS


@pytest.mark.parametrize("kind", ["ASOF JOIN", "LEFT ASOF JOIN"])
def test_asof_joins_hold_one_row_for_every_key_of_the_right(kind: str) -> None:
    query = f"SELECT A.v AS v, B.s AS w FROM A {kind} B ON {ON_KEY}"
    pipeline = Pipeline(_program(f"Out = {query};"))
    # Ever new keys on the left leave nothing behind.
    streams = {"A": _batches(EVENTS // 2, None, 0), "B": _batches(EVENTS // 2, KEYS, 1)}
    peak = _drive(pipeline, streams)
    assert pipeline.rows > 0
    assert peak.rows <= 2 * MOST_ROWS and peak.length <= MOST_LENGTH, peak
    assert pipeline.state_rows == len(set(_rows(0, KEYS * KEY_TICKS, KEYS).columns[0].to_pylist()))


# --- the user's own code -------------------------------------------------------------------

USER = {
    "aggregate": "SELECT k, Total(v) AS x FROM A GROUP BY k WITH HOPPING(8, 4)",
    "folded aggregate": "SELECT k, Folded(v) AS x FROM A GROUP BY k WITH HOPPING(8, 4)",
    "folded cells": "SELECT k, Folded(v) AS x FROM A GROUP BY k WITH SNAPSHOT",
    "folded sessions": "SELECT k, Folded(v) AS x FROM A GROUP BY k WITH SESSION(3)",
    "reduce": "REDUCE A ON k USING Waits()",
    "process": "PROCESS A USING Waits()",
    "combine": "COMBINE A WITH B ON k USING Waits()",
}


@pytest.mark.parametrize("name", USER)
def test_user_code(name: str, tmp_path: Path) -> None:
    """A tenth of the events, since every one is a call of Python (about 10 µs); and for user
    operators a thousand keys, since an operator's state of a key is the user's, for good."""
    (tmp_path / "rules.py").write_text(RULES)
    pipeline = Pipeline(_program(f"IMPORT 'rules.py'; Out = {USER[name]};", tmp_path))
    keys = None if "(v)" in USER[name] else KEYS
    names = "AB" if name == "combine" else "A"
    events = EVENTS // 10 // len(names)
    peak = _drive(pipeline, {n: _batches(events, keys, i) for i, n in enumerate(names)})
    assert pipeline.rows > 0
    assert peak.rows <= 2 * MOST_ROWS and peak.length <= MOST_LENGTH, peak
    assert pipeline.state_rows <= (0 if keys is None else KEYS)


# --- few rows that live long ---------------------------------------------------------------
# What is live stays the same handful of rows while thousands of others touch them: whatever a
# touch leaves behind adds up.

TOUCHES = 1_500
FEW = 400
"""Well below one element for each touch."""


def _long_lived(ve: int, vs: int = 0) -> Batch:
    rows = _rows(0, 1)
    return Batch(np.array([vs]), np.array([ve]), rows.columns)


def _touch(pipeline: Pipeline, source: str, *, every: int, ve: Any, idle: str = "") -> Peak:
    """One row of key 0 in every step, valid until `ve(vs)`."""
    columns = _rows(0, 1).columns
    peak = Peak()
    for i in range(1, TOUCHES // every):
        vs = i * every
        pipeline.feed(source, Batch(np.array([vs]), np.array([ve(vs)]), columns), vs + 1)
        if idle:
            pipeline.feed(idle, None, vs + 1)
        if i % 50 == 0:
            peak.look_at(pipeline)
    return peak


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH SESSION(10)",
        "SELECT k, MAX(v) AS n, COUNT(DISTINCT v) AS m FROM A GROUP BY k WITH SESSION(10)",
    ],
)
def test_a_session_that_never_ends(query: str) -> None:
    pipeline = Pipeline(_program(f"Out = {query};"))
    peak = _touch(pipeline, "A", every=1, ve=lambda vs: vs + 1)
    assert pipeline.rows == 0 and peak.sampled > 20
    assert peak.length <= FEW, peak


@pytest.mark.parametrize("end", [OPEN, 10**12])
def test_a_payload_that_stays_live_for_good(end: int) -> None:
    pipeline = Pipeline(_program("Out = SELECT DISTINCT k FROM A;"))
    pipeline.feed("A", _long_lived(end), 1)
    peak = _touch(pipeline, "A", every=1, ve=lambda vs: vs + 1)
    assert pipeline.state_rows == 1
    assert peak.length <= FEW, peak


@pytest.mark.parametrize("end", [OPEN, 10**12])
@pytest.mark.parametrize("kind", ["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
@pytest.mark.parametrize("until", ["touching", "apart", "end"])
@pytest.mark.parametrize("condition", ["", " AND A.v <= B.v"])
def test_a_left_row_that_is_matched_again_and_again(
    kind: str, end: int, until: str, condition: str
) -> None:
    query = f"SELECT A.k AS k FROM A {kind} B ON A.k == B.k{condition}"
    pipeline = Pipeline(_program(f"Out = {query};"))
    pipeline.feed("A", _long_lived(end), 1)
    ends = {"touching": lambda vs: vs + 2, "apart": lambda vs: vs + 1, "end": lambda vs: end}
    if until == "end" and condition:
        # The matches live on too, so each is a row that is held, but what they touch is one.
        _touch(pipeline, "B", every=1, ve=ends[until], idle="A")
        assert pipeline.state_rows == TOUCHES
        holds = [n for path, n in lengths(pipeline.chains) if "cover" in path and "holds" in path]
        timers = [n for path, n in lengths(pipeline.chains) if "cover" in path and "timers" in path]
        assert max(holds) <= FEW and max(timers, default=0) <= FEW
        return
    peak = _touch(pipeline, "B", every=2, ve=ends[until], idle="A")
    assert pipeline.state_rows <= 3
    assert peak.length <= FEW, peak


def test_matches_inside_a_longer_match() -> None:
    """They change nothing of the left row, so they must leave nothing behind."""
    query = "SELECT A.k AS k FROM A LEFT SEMI JOIN B ON A.k == B.k AND A.v <= B.v"
    pipeline = Pipeline(_program(f"Out = {query};"))
    pipeline.feed("A", _long_lived(OPEN), 1)
    pipeline.feed("B", _long_lived(10**12), 1)
    peak = _touch(pipeline, "B", every=1, ve=lambda vs: vs + 1, idle="A")
    assert pipeline.state_rows <= 3
    assert peak.length <= FEW, peak


@pytest.mark.parametrize("life", [None, 10**9])
@pytest.mark.parametrize("condition", ["", " AND A.v <= B.v"])
def test_left_rows_that_are_clipped_long_before_their_end(life: int | None, condition: str) -> None:
    pipeline = Pipeline(_program(f"Out = SELECT * FROM A CLIP JOIN B ON A.k == B.k{condition};"))
    columns = _rows(0, 1).columns
    peak = Peak()
    for i in range(0, TOUCHES, 2):
        end = OPEN if life is None else i + life
        pipeline.feed("A", Batch(np.array([i]), np.array([end]), columns), i + 1)
        pipeline.feed("B", Batch(np.array([i + 1]), np.array([i + 2]), columns), i + 2)
        if i % 100 == 0:
            peak.look_at(pipeline)
    assert pipeline.rows > TOUCHES // 2 - 3
    assert pipeline.state_rows <= 2
    assert peak.length <= FEW, peak


def test_matches_that_reach_the_end_of_many_left_rows() -> None:
    """Each left row's match covers it whole; nothing of it stays once both have ended."""
    pipeline = Pipeline(_program(f"Out = SELECT * FROM A LEFT SEMI JOIN B ON {ON_KEY};"))
    columns = _rows(0, 1).columns
    peak = Peak()
    for i in range(TOUCHES):
        life = Batch(np.array([i]), np.array([i + 1]), columns)
        pipeline.feed("A", life, i + 1)
        pipeline.feed("B", life, i + 1)
        if i % 100 == 0:
            peak.look_at(pipeline)
    assert pipeline.rows >= TOUCHES - 2
    assert peak.length <= FEW, peak


def test_a_snapshot_cell_that_changes_for_good() -> None:
    query = "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM A GROUP BY k WITH SNAPSHOT"
    pipeline = Pipeline(_program(f"Out = {query};"))
    pipeline.feed("A", _long_lived(OPEN), 1)
    peak = _touch(pipeline, "A", every=2, ve=lambda vs: vs + 1)
    assert pipeline.rows > TOUCHES // 2
    assert peak.length <= FEW, peak
