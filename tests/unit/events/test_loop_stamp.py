"""Whether code on disk is still right: by the text of loops, and of where they take constants."""

from pathlib import Path

import pytest

from weir.loops.code_cache import FROZEN, stamp

PACKAGE = Path(__file__).parents[3] / "src" / "weir"
LOOPS = "kernels/operators/joins_loops.py"


def copied(to: Path) -> Path:
    for path in (*FROZEN, LOOPS, "kernels/operators/joins.py"):
        target = to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((PACKAGE / path).read_bytes())
    return to


def test_the_same_text_has_the_same_stamp_wherever_and_whenever_it_was_written(
    tmp_path: Path,
) -> None:
    assert stamp(copied(tmp_path / "one")) == stamp(copied(tmp_path / "other"))


@pytest.mark.parametrize("changed", [LOOPS, *FROZEN])
def test_a_change_of_a_loop_or_of_a_constant_shows(tmp_path: Path, changed: str) -> None:
    before, package = copied(tmp_path / "before"), copied(tmp_path / "after")
    text = (package / changed).read_text(encoding="utf-8")
    (package / changed).write_text(text.replace("a", "b", 1), encoding="utf-8")
    assert stamp(package) != stamp(before)


def test_a_new_file_of_loops_shows(tmp_path: Path) -> None:
    before, package = copied(tmp_path / "before"), copied(tmp_path / "after")
    (package / "events" / "more_loops.py").write_text("", encoding="utf-8")
    assert stamp(package) != stamp(before)


def test_other_files_cost_no_compiling(tmp_path: Path) -> None:
    before, package = copied(tmp_path / "before"), copied(tmp_path / "after")
    (package / "kernels" / "operators" / "joins.py").write_text("", encoding="utf-8")
    assert stamp(package) == stamp(before)
