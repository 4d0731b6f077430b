"""The local runner: which source goes first, several outputs, errors, and invariance."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Sequence

import pytest

from weir.errors import RunError
from weir.events.batch import OPEN, Batch
from weir.ingress.memory_partitions import MemoryPartition
from weir.local.runner import LocalRun
from weir.runtime.outputs import output_schema
from weir.runtime.reports import Progress
from weir.script import parse_program
from weir.testing import batch_rows, run

Row = dict[str, object]
INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'a.jsonl';
STREAM B (vs BIGINT, ve BIGINT, k STRING, w BIGINT) FROM 'b.jsonl';
"""


class Scene:
    """A run whose outputs are kept by name."""

    def __init__(self, text: str, inputs: dict[str, Sequence[list[Row]]], **how: object) -> None:
        program = parse_program(text)
        partitions = {
            s.name: [
                MemoryPartition(f"{s.name}[{i}]", rows, s.declared)
                for i, rows in enumerate(inputs[s.name])
            ]
            for s in program.sources
        }
        self.rows: dict[str, list[Row]] = {o.path: [] for o in program.outputs}

        def emit_to(path: str, shape: object):  # type: ignore[no-untyped-def]
            def emit(vertex: int, batch: Batch) -> None:
                self.rows[path] += batch_rows(batch, shape)  # type: ignore[arg-type]

            return emit

        emits = [emit_to(o.path, output_schema(o)) for o in program.outputs]
        self.run = LocalRun(program, partitions, emits, **how)  # type: ignore[arg-type]


def _a(*times: int, k: str = "x") -> list[Row]:
    return [{"vs": t, "ve": t + 3, "k": k, "v": t} for t in times]


def _b(*times: int, k: str = "x") -> list[Row]:
    return [{"vs": t, "ve": t + 2, "k": k, "w": t} for t in times]


# --- memory --------------------------------------------------------------------------------


def test_the_state_of_a_run_is_gone_with_it() -> None:
    """A replay is a run after the other; the collector does not know how much each has kept."""
    text = f"""{INPUTS} S = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(5);
               Out = SELECT S.s AS s, B.w AS w FROM S INNER JOIN B ON S.k == B.k;
               OUTPUT S TO 's.jsonl'; OUTPUT Out TO 'o.jsonl';"""
    scene = Scene(text, {"A": [_a(*range(30))], "B": [_b(*range(30))]}, parallelism=2)
    scene.run.run()
    kept = [*scene.run.vertices.values(), *scene.run.streams.values(), *scene.run.egress]
    known = [weakref.ref(part) for part in kept]
    gc.disable()
    try:
        del scene.run, kept
        assert [ref() for ref in known if ref() is not None] == []
    finally:
        gc.enable()


# --- order of work -------------------------------------------------------------------------


def test_the_source_that_is_furthest_behind_goes_first() -> None:
    text = f"{INPUTS} Out = SELECT A.v AS v, B.w AS w FROM A INNER JOIN B ON A.k == B.k;"
    inputs = {"A": [_a(*range(0, 100, 10))], "B": [_b(*range(100)), _b(*range(50, 60))]}
    scene = Scene(f"{text} OUTPUT Out TO 'o.jsonl';", inputs, cut=1)
    sources = scene.run.sources
    most, working = 0, True
    while working:
        before = [(s.finished, s.vertex.now) for s in sources]
        working = scene.run.step()
        moved = [i for i, s in enumerate(sources) if (s.finished, s.vertex.now) != before[i]]
        waiting = [now for finished, now in before if not finished]
        assert all(before[i][1] == min(waiting) for i in moved)
        most = max(most, scene.run.state_rows)
    # What the dense source has read too much waits for the sparse one, and no more.
    assert 0 < most < 30 and scene.run.state_rows == 0


def test_progress() -> None:
    scene = Scene(f"{INPUTS} OUTPUT A TO 'o.jsonl';", {"A": [_a(1, 2, 3)], "B": [[]]}, cut=2)
    seen: list[Progress] = []
    scene.run.run(seen.append)
    assert [p.events for p in seen] == sorted(p.events for p in seen)
    assert seen[-1] == Progress(3, OPEN, read=3, size=3)
    assert scene.rows["o.jsonl"] == _a(1, 2, 3)


def test_a_source_without_rows_or_partitions() -> None:
    text = f"{INPUTS} Out = SELECT k FROM A UNION ALL SELECT k FROM B; OUTPUT Out TO 'o.jsonl';"
    scene = Scene(text, {"A": [_a(1)], "B": [[]]})
    scene.run.run()
    assert len(scene.rows["o.jsonl"]) == 1
    assert not scene.run.step(), "all sources are at their end"


# --- outputs -------------------------------------------------------------------------------


def test_several_outputs_of_shared_streams() -> None:
    text = f"""{INPUTS}
      S = SELECT k, v FROM A WHERE v > 1;
      N = SELECT k, COUNT(*) AS n FROM S GROUP BY k WITH TUMBLING(10);
      OUTPUT S TO 's'; OUTPUT N TO 'n'; OUTPUT A TO 'a'; OUTPUT S TO 's again';"""
    scene = Scene(text, {"A": [_a(1, 2, 3)], "B": [[]]})
    scene.run.run()
    kept = [{"vs": t, "ve": t + 3, "k": "x", "v": t} for t in (2, 3)]
    assert scene.rows["s"] == scene.rows["s again"] == kept
    assert scene.rows["a"] == _a(1, 2, 3)
    assert scene.rows["n"] == [{"vs": 0, "ve": 10, "k": "x", "n": 2}]
    digests = {e.output.path: str(e.digest) for e in scene.run.egress}
    assert digests["s"] == digests["s again"] != digests["a"]
    assert digests["s"].endswith("-2")


def test_late_and_bad_rows_are_outputs() -> None:
    text = """STREAM U (vs BIGINT, v BIGINT) FROM 'u' WITH (late = 'drop', bad = 'skip');
      OUTPUT U TO 'u'; OUTPUT LATE OF U TO 'late'; OUTPUT BAD OF U TO 'bad';"""
    rows: list[Row] = [{"vs": t, "v": i} for i, t in enumerate([5, 3, None, 6])]  # type: ignore[misc]
    for cut in (1, None):
        scene = Scene(text, {"U": [rows]}, cut=cut)
        scene.run.run()
        assert [r["v"] for r in scene.rows["u"]] == [0, 3]
        assert [(r["vs"], r["v"]) for r in scene.rows["late"]] == [(3, 1)]
        assert len(scene.rows["bad"]) == 1


def test_late_rows_of_one_source_are_not_those_of_another() -> None:
    text = """STREAM U (vs BIGINT) FROM 'u' WITH (late = 'drop');
      STREAM W (vs BIGINT) FROM 'w' WITH (late = 'drop');
      OUTPUT LATE OF U TO 'u'; OUTPUT LATE OF W TO 'w'; OUTPUT U TO 'rows';"""
    scene = Scene(text, {"U": [[{"vs": 5}, {"vs": 1}]], "W": [[{"vs": 5}, {"vs": 2}]]})
    scene.run.run()
    assert [r["vs"] for r in scene.rows["u"]] == [1]
    assert [r["vs"] for r in scene.rows["w"]] == [2]


def test_a_source_used_twice_is_read_once() -> None:
    text = f"""{INPUTS}
      Out = SELECT x.v AS v, y.v AS w FROM A AS x INNER JOIN A AS y ON x.k == y.k;
      OUTPUT Out TO 'o';"""
    scene = Scene(text, {"A": [_a(1, 2)], "B": [[]]})
    scene.run.run()
    assert scene.run.events == 2
    pairs = {(r["v"], r["w"]) for r in scene.rows["o"]}
    assert pairs == set(itertools.product((1, 2), (1, 2)))


# --- errors --------------------------------------------------------------------------------


def _fails(query: str, rows: list[Row]) -> str:
    text = f"{INPUTS} Out = {query}; OUTPUT Out TO 'o';"
    messages = set()
    for cut, parallelism in ((None, 1), (1, 3)):
        scene = Scene(text, {"A": [rows], "B": [[]]}, cut=cut, parallelism=parallelism)
        with pytest.raises(RunError) as caught:
            scene.run.run()
        messages.add(str(caught.value))
    assert len(messages) == 1, "the message depends on how it was run"
    return messages.pop()


def test_an_open_event_in_a_hopping_window_fails_at_the_end() -> None:
    rows: list[Row] = [{"vs": 1, "ve": None, "k": "x", "v": 1}]
    for window in ("TUMBLING(10)", "HOPPING(10, 2)"):
        message = _fails(f"SELECT COUNT(*) AS n FROM A WITH {window}", rows)
        assert "open event" in message and "clip it first" in message


def test_an_open_event_in_a_chop_fails_at_the_end() -> None:
    rows: list[Row] = [{"vs": 1, "ve": None, "k": "x", "v": 1}]
    assert "clip it first" in _fails("SELECT * FROM A WITH CHOP(5)", rows)


def test_a_sum_beyond_bigint_fails() -> None:
    rows: list[Row] = [{"vs": t, "ve": 9, "k": "x", "v": 2**62} for t in (1, 2)]
    message = _fails("SELECT SUM(v) AS s FROM A WITH TUMBLING(10)", rows)
    assert "overflow" in message and "BIGINT" in message


def test_a_sum_that_comes_back_into_range_does_not_fail() -> None:
    rows: list[Row] = [{"vs": 1, "ve": 9, "k": "x", "v": v} for v in (2**62, 2**62, -(2**62))]
    text = f"{INPUTS} Out = SELECT SUM(v) AS s FROM A WITH TUMBLING(10);"
    assert [r["s"] for r in run(text, {"A": [rows], "B": [[]]}).rows] == [2**62]


def test_integer_division_by_zero_names_the_event() -> None:
    message = _fails("SELECT v // (v - 2) AS q FROM A", _a(1, 2, 3))
    assert "'v': 2" in message or "v=2" in message


# --- invariance ----------------------------------------------------------------------------

COMPOSITE = f"""{INPUTS}
  Both = SELECT k, v FROM A WHERE v % 7 != 3
         UNION ALL SELECT k, w AS v FROM B WITH CLIP_DURATION(5);
  Counts = SELECT k, COUNT(*) AS n, SUM(v) AS t, LAST(v) AS l FROM Both
           GROUP BY k WITH HOPPING(12, 4);
  Joined = SELECT Counts.k AS k, Counts.n AS n, A.v AS v
           FROM Counts LEFT OUTER JOIN A ON Counts.k == A.k AND Counts.t > A.v;
  Tops = SELECT k, n, v FROM Joined ORDER BY n DESC, v LIMIT 4;
  Out = SELECT n, COUNT(DISTINCT k) AS ks, MAX(v) AS m FROM Tops GROUP BY n WITH SNAPSHOT;
"""


def _partitions(make, count: int, seed: int) -> list[list[Row]]:  # type: ignore[no-untyped-def]
    return [
        [
            row
            for t in range(60)
            for row in make(t, k="xyzw"[(t * 7 + part * 3 + seed) % 4])
            if (t * 31 + part * 17 + seed) % 5 < 3
        ]
        for part in range(count)
    ]


@pytest.fixture(scope="module")
def composite_inputs() -> dict[str, list[list[Row]]]:
    return {"A": _partitions(_a, 3, 1), "B": _partitions(_b, 2, 2)}


@pytest.fixture(scope="module")
def straight(composite_inputs: dict[str, list[list[Row]]]):  # type: ignore[no-untyped-def]
    result = run(COMPOSITE, composite_inputs)
    assert len(result.rows) > 30
    return result


@pytest.mark.parametrize("parallelism", [1, 2, 5])
@pytest.mark.parametrize("cut", [1, 3, 20, None])
def test_cut_and_parallelism_change_nothing(
    composite_inputs: dict[str, list[list[Row]]],
    straight,  # type: ignore[no-untyped-def]
    cut: int | None,
    parallelism: int,
) -> None:
    result = run(COMPOSITE, composite_inputs, cut=cut, parallelism=parallelism)
    assert result.digest == straight.digest
    if parallelism == 1:
        assert result.checksums == straight.checksums


@pytest.mark.parametrize("parallelism", [1, 3])
def test_restarts_change_nothing(
    composite_inputs: dict[str, list[list[Row]]],
    straight,  # type: ignore[no-untyped-def]
    parallelism: int,
) -> None:
    whole = run(COMPOSITE, composite_inputs, cut=10, parallelism=parallelism)
    assert whole.digest == straight.digest
    for step in range(0, 24, 3):
        again = run(COMPOSITE, composite_inputs, cut=10, parallelism=parallelism, snapshot_at=step)
        assert (again.digest, again.checksums) == (whole.digest, whole.checksums)


@pytest.mark.parametrize("seed", range(2))
def test_rows_written_again_change_nothing(
    composite_inputs: dict[str, list[list[Row]]],
    straight,  # type: ignore[no-untyped-def]
    seed: int,
) -> None:
    result = run(COMPOSITE, composite_inputs, cut=20, parallelism=2, duplicate_writes=seed)
    assert result.digest == straight.digest


def test_rewrites_change_nothing(
    composite_inputs: dict[str, list[list[Row]]],
    straight,  # type: ignore[no-untyped-def]
) -> None:
    assert run(COMPOSITE, composite_inputs, optimise=False).digest == straight.digest


def test_streams_are_collected_unless_they_are_to_be_kept() -> None:
    text = f"{INPUTS} OUTPUT A TO 'a';"
    for keep, held in ((False, 0), (True, 50)):
        scene = Scene(text, {"A": [_a(*range(50))], "B": [[]]}, cut=5, keep=keep)
        scene.run.run()
        assert sum(len(e.rows) for s in scene.run.streams.values() for e in s.entries) == held
