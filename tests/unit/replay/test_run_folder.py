"""The `.replay` folder: what is finished stays, what has changed is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import PlanError, RunError
from weir.replay import run_folder
from weir.replay.finished_replay import FinishedReplay
from weir.replay.reports import ReplayReport
from weir.replay.run_folder import EMITTED, STATE, FinishedBatch, MadeFile, opened_folder

PARTS = {"app.py": "1", "log message": "2", "--batch": "7"}
MADE = FinishedBatch(3, {"spam": MadeFile("emitted/0.arrow", 1, "d")}, {})


def test_what_has_changed_is_refused_by_name(tmp_path: Path) -> None:
    with opened_folder(tmp_path / "out") as folder:
        folder.begin({"app.py": "0"})
        folder.begin(PARTS)  # nothing of the other one was finished
        folder.new_batch(0)
        folder.finish_batch(0, MADE)
        folder.begin(PARTS)
        with pytest.raises(PlanError) as caught:
            folder.begin({"app.py": "1", "log message": "3", "--to": "9"})
    assert str(caught.value) == (
        f"'{tmp_path}/out/.replay' holds another replay: --batch is gone, --to is new, "
        "log message changed; choose another --out, or delete that folder with --fresh"
    )


def test_a_batch_is_finished_as_a_whole(tmp_path: Path) -> None:
    with opened_folder(tmp_path) as folder:
        for number in range(2):
            part = folder.new_batch(number)
            (part / STATE / "n.parquet").write_bytes(b"x")
            assert folder.finished(number) is None
            folder.finish_batch(number, MADE)
            assert folder.finished(number) == MADE
        assert not (folder.batch(0) / STATE).exists()
        assert (folder.batch(1) / STATE / "n.parquet").exists()
        part = folder.new_batch(2)
        (part / EMITTED / "left").touch()
    with opened_folder(tmp_path) as folder:
        assert folder.finished(1) == MADE
        assert folder.finished(2) is None
        assert not (folder.new_batch(2) / EMITTED / "left").exists()
        done = FinishedReplay(ReplayReport("a", 6, 2, None, None, (), ()), {"": "mark"})
        folder.finish(done)
        assert folder.report == done
        assert not folder.batch(0).exists()


def test_batches_are_removed_the_last_one_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By number: beyond 99 999 their names are longer."""
    removed: list[str] = []
    monkeypatch.setattr(run_folder, "remove_folder", lambda path: removed.append(path.name))
    with opened_folder(tmp_path) as folder:
        for number in (99_999, 100_000, 9):
            folder.batch(number).mkdir()
        folder.forget()
    assert removed[:3] == ["100000", "99999", "00009"]


def test_fresh_forgets_all(tmp_path: Path) -> None:
    with opened_folder(tmp_path) as folder:
        folder.begin(PARTS)
        folder.new_batch(0)
        folder.finish_batch(0, MADE)
    with opened_folder(tmp_path, fresh=True) as folder:
        folder.begin({"other": "1"})
        assert folder.finished(0) is None


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        opened_folder(tmp_path),
        pytest.raises(RunError, match="another process is replaying into"),
        opened_folder(tmp_path),
    ):
        pass


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    with opened_folder(tmp_path) as folder:
        folder.begin(PARTS)
        (folder.path / "run.json").write_bytes(b"{")
        with pytest.raises(RunError, match=r"run\.json' cannot be read: .*; delete '.*\.replay'"):
            folder.begin(PARTS)
        (folder.path / "report.json").write_bytes(b'{"report":')
        with pytest.raises(
            RunError, match=r"report\.json' cannot be read: .*; delete '.*\.replay'"
        ):
            _ = folder.report
