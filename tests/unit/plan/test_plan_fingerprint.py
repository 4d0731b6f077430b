"""Fingerprints of staged plans: what counts, what does not, and what is said of a difference."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from weir.plan import plan_fingerprint as module
from weir.plan.fluent.stream import Stream
from weir.plan.plan_fingerprint import FORMAT, PlanFingerprint, plan_difference, plan_fingerprint
from weir.plan.program import Output, Program
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import cut_stages
from weir.script.program import parse_program

TEXT = """
STREAM A (At TIMESTAMP, k STRING, v BIGINT, x DECIMAL(9, 2)) FROM 'a.jsonl'
  WITH (vs = At, delay = 5s);
STREAM B (At TIMESTAMP, k STRING, w DOUBLE) FROM 'b.csv' WITH (vs = At, lifetime = 1m);
Big = SELECT k, v, x FROM A WHERE v > 10 AND k IN ('ä', 'b') AND x > 1.50;
Sums = SELECT k, SUM(v) AS s, COUNT(*) AS n FROM Big GROUP BY k WITH HOPPING(1m, 10s);
Both = SELECT L.k AS k, CASE WHEN v > 3 THEN w ELSE 0.5 END AS w
  FROM Big AS L INNER JOIN B ON L.k == B.k;
OUTPUT Sums TO 'sums.csv';
OUTPUT Both TO 'both.csv';
OUTPUT LATE OF A TO 'late.csv';
"""


def printed(
    text: str = TEXT, parallelism: int = 2, directory: Path | None = None
) -> PlanFingerprint:
    program = parse_program(text, directory=directory)
    return plan_fingerprint(cut_stages(rewrite(program), parallelism))


def difference(changed: str, by: str) -> str:
    assert changed in TEXT
    return plan_difference(printed(), printed(TEXT.replace(changed, by)))


def test_the_same_text_has_the_same_plan() -> None:
    assert plan_difference(printed(), printed()) is None


def test_the_encoding_is_that_of_its_format() -> None:
    """Jobs in stores have fingerprints: where this changes, `FORMAT` has to be raised."""
    hashes = "".join(part.hash for part in printed().parts)
    known = {1: "88faf03ca187eda51c009e596418b66e"}
    assert known[FORMAT] == hashlib.sha256(hashes.encode()).hexdigest()[:32]


@pytest.mark.parametrize(
    ("changed", "by"),
    [
        ("Big", "Large"),
        ("FROM A WHERE", "\n FROM A -- all of them\n WHERE"),
        ("STREAM A", "SET strategy = 'replicate(2)'; STREAM A"),
        ("STREAM A", "SET flush_interval = '2s'; STREAM A"),
    ],
)
def test_what_does_not_count(changed: str, by: str) -> None:
    assert difference(changed, by) is None


@pytest.mark.parametrize(
    ("changed", "by", "told"),
    [
        ("v > 10", "v > 11", r"stage 0, operator \d was Filter .*v > 10.* and is .*v > 11"),
        ("HOPPING(1m, 10s)", "HOPPING(1m, 20s)", r"stage \d, operator \d was .*10s.* and is .*20s"),
        ("delay = 5s", "delay = 6s", "stage 0, operator 0 was Source A.* and is Source A"),
        ("INNER JOIN", "LEFT JOIN", r"stage \d.* was .*"),
        ("'both.csv'", "'other.csv'", "output 1 was Both to 'both.csv' and is Both to 'other.csv'"),
        ("OUTPUT LATE OF A TO 'late.csv';", "", "output 2, late rows of A to 'late.csv', is gone"),
        (
            "OUTPUT Both",
            "OUTPUT Big TO 'big.csv'; OUTPUT Both",
            "stage 0, operator 3, Project k, v, is gone",
        ),
    ],
)
def test_what_counts_and_how_it_is_told(changed: str, by: str, told: str) -> None:
    assert re.search(told, difference(changed, by))


def test_parallelism_counts() -> None:
    told = plan_difference(printed(), printed(parallelism=3))
    assert "was 2 vertices" in told and "is 3 vertices" in told


def test_words_are_never_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    before = printed()
    monkeypatch.setattr(module, "operator_text", lambda operator: "something")
    now = printed()
    assert now != before and plan_difference(before, now) is None
    told = plan_difference(before, printed(TEXT.replace("v > 10", "v > 11")))
    assert told.endswith("and is something")


def _counts(strategy: str = "") -> Stream:
    source = weir.stream("P", {"At": "TIMESTAMP", "k": "STRING"}, "p.jsonl", vs="At")
    counts = source.group_by("k").window(weir.tumbling("1h")).agg(n=weir.count())
    return counts.with_strategy(strategy) if strategy else counts


def _of(stream: Stream) -> PlanFingerprint:
    source = weir.stream("P", {"At": "TIMESTAMP", "k": "STRING"}, "p.jsonl", vs="At").node
    program = Program((source,), (), (Output("Out", stream.node, ""),))  # type: ignore[arg-type]
    return plan_fingerprint(cut_stages(rewrite(program), 2))


def test_how_a_stage_recovers_does_not_count() -> None:
    plain = _of(_counts())
    for strategy in ("replay", "checkpoint(3s)", "replicate(2)"):
        assert plan_difference(plain, _of(_counts(strategy))) is None
        above = _counts(strategy).where(weir.col("n") > 1)
        assert plan_difference(_of(_counts().where(weir.col("n") > 1)), _of(above)) is None


STATED = """import weir
@weir.aggregate({})
class Turns:
    def zero(self): return 0
    def add(self, state, v: int): return state + 1
    def result(self, state) -> int: return state
"""


def test_the_declared_state_of_an_aggregate_counts(tmp_path: Path) -> None:
    def using(state: str) -> PlanFingerprint:
        (tmp_path / "rules.py").write_text(STATED.format(state), encoding="utf-8")
        text = """IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
            B = SELECT Turns(v) AS w FROM A WITH TUMBLING(5); OUTPUT B TO 'b.csv';"""
        return printed(text, directory=tmp_path)

    declared = [using(s) for s in ("", "state='BIGINT'", "state='INT'", "state={'n': 'INT'}")]
    for number, one in enumerate(declared):
        for other in declared[number + 1 :]:
            assert "Turns" in plan_difference(one, other)


RULES = "import weir\n@weir.udf\ndef f(v: int) -> {}:\n    return {}\n"


def test_of_user_code_names_and_types_count(tmp_path: Path) -> None:
    def using(result: str, body: str) -> PlanFingerprint:
        (tmp_path / "rules.py").write_text(RULES.format(result, body), encoding="utf-8")
        text = """IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
            B = SELECT f(v) AS w FROM A; OUTPUT B TO 'b.csv';"""
        return printed(text, directory=tmp_path)

    before = using("int", "v + 1")
    assert plan_difference(before, using("int", "v + 2")) is None
    assert plan_difference(before, using("float", "v + 1.0"))


def test_constants_of_operators_count() -> None:
    class Odd:
        def __init__(self, n: int) -> None:
            self.n = n

    @weir.operator(columns={"n": "BIGINT"})
    class Op:
        def __init__(self, given: object) -> None:
            self.given = given

        def on_event(self, event: object, ctx: object) -> None: ...

    source = weir.stream("P", {"At": "TIMESTAMP", "k": "STRING"}, "p.jsonl", vs="At")
    prints = [_of(source.reduce("k", using=Op(given))) for given in (1, 2, Odd(1), Odd(2))]
    assert all(plan_difference(a, b) for i, a in enumerate(prints) for b in prints[:i])
    assert not plan_difference(prints[2], _of(source.reduce("k", using=Op(Odd(1)))))


def test_another_process_has_the_same() -> None:
    code = (
        "import sys\n"
        "from weir.plan.plan_fingerprint import plan_fingerprint\n"
        "from weir.plan.rewrites.rewrite import rewrite\n"
        "from weir.plan.stages import cut_stages\n"
        "from weir.script.program import parse_program\n"
        "plan = cut_stages(rewrite(parse_program(sys.stdin.read())), 2)\n"
        "print('\\n'.join(p.hash for p in plan_fingerprint(plan).parts))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", code],
        input=TEXT,
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    ).stdout
    assert told.split() == [part.hash for part in printed().parts]
