"""Tests of programs: `run` returns the rows of a stream, `check` asserts that there is one answer.

>>> text = '''
...     STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
...     Out = SELECT SUM(v) AS total FROM A WITH TUMBLING(10);
... '''
>>> run(text, {"A": [{"vs": 1, "v": 2}, {"vs": 4, "v": 5}]}).rows
[{'vs': 0, 've': 10, 'total': 7}]
"""

from __future__ import annotations

from weir.testing.answer_check import Checked, check
from weir.testing.counterexamples import AnswersDiffer
from weir.testing.memory_runs import (
    Result,
    batch_rows,
    restart_vertices,
    run,
    run_program,
    write_again,
)
from weir.testing.trial_inputs import with_output

__all__ = [
    "AnswersDiffer",
    "Checked",
    "Result",
    "batch_rows",
    "check",
    "restart_vertices",
    "run",
    "run_program",
    "with_output",
    "write_again",
]
