"""Errors on their way from a task to the driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import InputError, OperatorFailed
from weir.spark.offline.progress import Watch, read_news, tell_failure
from weir.spark.offline.reports import (
    ErrorReport,
    TaskReport,
    first_error,
    packed,
    read_task_report,
    report_row,
)
from weir.spark.offline.waves import make_job

SENT = InputError("wrong", file="a.jsonl", line=3, column="k")
BEHIND = OperatorFailed(function="f", file="f.py", line=1, event={}, cause="too few rows")


def test_an_error_comes_back_whole() -> None:
    row = report_row(ErrorReport(0, 0, packed(SENT)))
    came = first_error([read_task_report(row.block)])
    assert isinstance(came, InputError)
    assert (str(came), came.line) == (str(SENT), 3)


def test_of_several_errors_that_of_the_first_wave_counts() -> None:
    reports: list[TaskReport] = [ErrorReport(0, 2, packed(BEHIND)), ErrorReport(0, 1, packed(SENT))]
    assert isinstance(first_error(reports), InputError)
    assert first_error([]) is None


def test_a_failure_is_found_among_the_news(tmp_path: Path) -> None:
    watch = Watch(make_job([]), str(tmp_path), None)
    watch.look()
    tell_failure(str(tmp_path), 2, BEHIND)
    tell_failure(str(tmp_path), 1, SENT)
    assert list(read_news(str(tmp_path))) == []
    with pytest.raises(InputError, match=r"a\.jsonl, line 3"):
        watch.look()
    tell_failure(str(tmp_path / "of another machine"), 0, SENT)
    tell_failure(None, 0, SENT)
