"""A live job goes on with the user's code that it was begun with, or says what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import PlanError
from weir.files.object_store import ObjectStore
from weir.job.job_identity import read_job
from weir.reliable.object_names import record_key
from weir.script import parse_program
from weir.spark.live.job_setup import prepare_live
from weir.spark.live.live_run import LiveRun

RULES = "import weir\n@weir.udf\ndef f(v: int) -> int:\n    return v + {}\n"
TEXT = """IMPORT 'rules.py'; STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
    B = SELECT f(v) AS w FROM A; OUTPUT B TO 'b.csv';"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text('{"vs": 1, "v": 1}\n', encoding="utf-8")
    return tmp_path


def prepared(folder: Path, rules: str, **how: bool) -> LiveRun:
    (folder / "rules.py").write_text(rules, encoding="utf-8")
    program = parse_program(TEXT, directory=folder)
    return prepare_live(program, str(folder / "store"), directory=folder, **how)


def test_changed_code_is_refused_with_what_changed(folder: Path) -> None:
    prepared(folder, RULES.format(1))
    assert prepared(folder, "# mine\n" + RULES.format(1), resume=True).notes == ()
    with pytest.raises(PlanError, match=r"ran with: rules\.py changed; .*--accept-code-changes"):
        prepared(folder, RULES.format(2), resume=True)


def test_what_is_accepted_is_what_the_job_has_from_then_on(folder: Path) -> None:
    prepared(folder, RULES.format(1))
    before = read_job(ObjectStore(str(folder / "store")))
    live = prepared(folder, RULES.format(2), resume=True, accept_code_changes=True)
    assert live.notes == ("goes on with other code: rules.py changed",)
    assert read_job(live.objects) == before  # what was made once stays
    live.ledger.number = 0  # as its manager does before it orders anything
    live.objects.put(record_key(0), live.ledger.encode(), new=True)
    assert prepared(folder, RULES.format(2), resume=True).notes == ()
    with pytest.raises(PlanError, match=r"rules\.py changed"):
        prepared(folder, RULES.format(1), resume=True)
    again = prepared(folder, RULES.format(3), resume=True, accept_code_changes=True)
    assert again.notes and again.ledger.code != live.ledger.code
