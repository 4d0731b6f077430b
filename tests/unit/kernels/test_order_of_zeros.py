"""−0.0 and 0.0 are equal but not identical: how often a stage is split must not pick one."""

from __future__ import annotations

from weir.testing import run

SCRIPT = """
STREAM A (vs BIGINT, ve BIGINT, k STRING) FROM 'a.jsonl';
STREAM B (vs BIGINT, ve BIGINT, k STRING, x DOUBLE) FROM 'b.jsonl';
J = SELECT B.x AS x FROM A JOIN B ON A.k = B.k;
Out = SELECT FIRST(x) AS x, 1 / FIRST(x) AS one_by_x FROM J;
"""
ZEROS = [("a", 0.0), ("b", -0.0), ("c", -0.0), ("a", -0.0), ("d", 0.0), ("e", -0.0), ("f", 0.0)]
INPUTS = {
    "A": [{"vs": 1, "ve": 9, "k": k} for k in "abcdef"],
    "B": [{"vs": 1, "ve": 9, "k": k, "x": x} for k, x in ZEROS],
}


def test_parallelism_does_not_choose_among_zeros() -> None:
    answers = {p: repr(run(SCRIPT, INPUTS, parallelism=p).rows) for p in (1, 2, 3, 5)}
    assert set(answers.values()) == {answers[1]}, answers
    assert "'x': -0.0" in answers[1], "−0 comes first"
