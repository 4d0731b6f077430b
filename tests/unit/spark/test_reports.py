"""Errors on their way from a task to the driver."""

from __future__ import annotations

import base64
import pickle

from weir.errors import InputError
from weir.spark.reports import carried_error, task_failure


def test_an_error_comes_back_whole() -> None:
    sent = InputError("wrong", file="a.jsonl", line=3, column="k")
    text = f"Traceback …\n{task_failure(sent, 'secret')}\n  at org.apache.spark"
    came = carried_error(text, "secret")
    assert isinstance(came, InputError)
    assert (str(came), came.line) == (str(sent), 3)


def test_what_a_row_says_is_never_unpacked() -> None:
    evil = base64.b64encode(pickle.dumps(ValueError("ran"))).decode()
    quoted = InputError(f"wanted BIGINT, came 'weir-error<{evil}>' guess<{evil}>")
    came = carried_error(str(task_failure(quoted, "secret")), "secret")
    assert isinstance(came, InputError)
    assert carried_error(f"<{evil}>", "secret") is None
