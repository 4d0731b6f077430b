"""Programs from files to files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from weir.errors import DeterminismViolation, InputError, OperatorFailed, PlanError
from weir.files.sidecar import read_sidecar
from weir.files.writers import OutputWriter, Staging
from weir.local.file_run import run_files
from weir.reliable.digest import Digest
from weir.runtime.partitions import open_partitions
from weir.runtime.reports import InputReport, Progress
from weir.script.program import parse_program

FIGURE_1 = Path(__file__).parents[3] / "examples" / "figure1"
ROWS = [{"vs": 5, "v": 1}, {"vs": 3, "v": 2}, {"vs": 7, "v": 3}, {"vs": 8, "v": "x"}]
STREAM = "STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl' WITH (late = 'drop', bad = 'skip');"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


def lines(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("cut", [None, 1, 7])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_figure_1(cut: int | None, parallelism: int, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(FIGURE_1 / "data")
    text = (FIGURE_1 / "figure1.weir").read_text(encoding="utf-8")
    program = parse_program(text)
    report = run_files(program, directory=tmp_path, cut=cut, parallelism=parallelism)
    assert (tmp_path / "out/counts.jsonl").read_bytes() == (
        FIGURE_1 / "expected.jsonl"
    ).read_bytes()
    assert [(o.kind, o.rows) for o in report.outputs] == [("rows", 12), ("late", 1)]


def test_what_a_run_reports(folder: Path) -> None:
    outputs = "OUTPUT A TO 'a.parquet'; OUTPUT LATE OF A TO 'l.csv'; OUTPUT BAD OF A TO 'b.jsonl';"
    seen: list[Progress] = []
    report = run_files(parse_program(STREAM + outputs), directory=folder, progress=seen.append)
    assert report.inputs == (InputReport("A", 1, 1, 1),)
    assert [o.rows for o in report.outputs] == [2, 1, 1]
    assert report.outputs[0].path == str(folder / "a.parquet")
    assert report.outputs[0].digest.endswith("-2")
    for output in report.outputs:
        sidecar = read_sidecar(output.path)
        assert sidecar is not None
        assert (sidecar.digest, sidecar.rows) == (output.digest, output.rows)
        assert sidecar.lifetime == (output.kind != "bad")
    assert report.events == seen[-1].events == 2
    assert pq.read_table(folder / "a.parquet").column_names == ["vs", "ve", "v"]
    (bad,) = lines(folder / "b.jsonl")
    assert list(bad) == ["file", "offset", "line", "column", "row", "reason"]


def test_a_folder_of_parts(folder: Path) -> None:
    run_files(parse_program(STREAM + "OUTPUT A TO 'parts/';"), directory=folder)
    names = sorted(p.name for p in (folder / "parts").iterdir())
    assert names == ["_digest", "part-00000.parquet"]


def test_a_failed_run_leaves_what_was_there(folder: Path) -> None:
    (folder / "out.jsonl").write_text("before", encoding="utf-8")
    text = (
        STREAM
        + "B = SELECT v // (v - 3) AS w FROM A; OUTPUT A TO 'a.csv'; OUTPUT B TO 'out.jsonl';"
    )
    with pytest.raises(weir.RunError, match="zero"):
        run_files(parse_program(text), directory=folder, cut=1)
    assert sorted(p.name for p in folder.iterdir()) == ["a.jsonl", "out.jsonl"]
    assert (folder / "out.jsonl").read_text(encoding="utf-8") == "before"


def test_a_writer_that_fails_takes_nothing_along(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = OutputWriter.finish
    finished: list[OutputWriter] = []

    def fail_third(self: OutputWriter, digest: Digest) -> Staging:
        finished.append(self)
        if len(finished) == 3:
            raise OSError("disk full")
        return finish(self, digest)

    monkeypatch.setattr(OutputWriter, "finish", fail_third)
    text = STREAM + "OUTPUT A TO 'x.csv'; OUTPUT A TO 'y/'; OUTPUT A TO 'z.csv';"
    with pytest.raises(OSError, match="disk full"):
        run_files(parse_program(text), directory=folder)
    assert sorted(p.name for p in folder.iterdir()) == ["a.jsonl"]


def test_a_rename_that_fails_says_what_is_in_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "x.csv").write_text("before", encoding="utf-8")
    (folder / "z.csv").write_text("before", encoding="utf-8")
    rename = os.replace

    def fail_for_z(source: str, target: str) -> None:
        if str(target).endswith("z.csv"):
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "replace", fail_for_z)
    text = STREAM + "OUTPUT A TO 'x.csv'; OUTPUT A TO 'y/'; OUTPUT A TO 'z.csv';"
    with pytest.raises(weir.RunError) as raised:
        run_files(parse_program(text), directory=folder)
    assert str(raised.value) == (
        f"cannot write '{folder}/z.csv': Input/output error; "
        f"of this run's outputs '{folder}/x.csv', '{folder}/y/' are in place"
    )
    names = sorted(p.name for p in folder.iterdir())
    assert names == ["a.jsonl", "x.csv", "x.csv.digest", "y", "z.csv"]
    assert (folder / "z.csv").read_text(encoding="utf-8") == "before"
    assert (folder / "x.csv").read_text(encoding="utf-8") != "before"


def test_places_are_looked_at_again_before_any_is_taken(folder: Path) -> None:
    (folder / "x.csv").write_text("before", encoding="utf-8")

    def meanwhile(progress: Progress) -> None:
        (folder / "z.csv").mkdir(exist_ok=True)

    text = STREAM + "OUTPUT A TO 'x.csv'; OUTPUT A TO 'z.csv';"
    with pytest.raises(weir.RunError, match=r"z\.csv': it is a folder"):
        run_files(parse_program(text), directory=folder, progress=meanwhile)
    assert (folder / "x.csv").read_text(encoding="utf-8") == "before"
    assert sorted(p.name for p in folder.iterdir()) == ["a.jsonl", "x.csv", "z.csv"]


def test_outputs_are_checked_first(folder: Path) -> None:
    with pytest.raises(PlanError, match="no OUTPUT"):
        run_files(parse_program(STREAM), directory=folder)
    with pytest.raises(PlanError, match="unknown output format"):
        run_files(parse_program(STREAM + "OUTPUT A TO 'x.xls';"), directory=folder)


def test_an_input_is_not_written_over(folder: Path) -> None:
    before = (folder / "a.jsonl").read_bytes()
    for path in ("a.jsonl", f"../{folder.name}/a.jsonl"):
        with pytest.raises(PlanError, match="which STREAM A reads"):
            run_files(parse_program(f"{STREAM} OUTPUT A TO '{path}';"), directory=folder)
    assert (folder / "a.jsonl").read_bytes() == before


def test_urls_are_refused(folder: Path) -> None:
    with pytest.raises(PlanError, match="kafka:// URLs"):
        run_files(parse_program(STREAM + "OUTPUT A TO 'kafka://b/a.jsonl';"), directory=folder)
    text = STREAM.replace("a.jsonl", "nats://a.jsonl") + "OUTPUT A TO 'b.csv';"
    with pytest.raises(PlanError, match="nats:// URLs"):
        run_files(parse_program(text), directory=folder)
    assert [p.name for p in folder.iterdir()] == ["a.jsonl"]


def test_inputs_that_nobody_needs_are_not_opened(folder: Path) -> None:
    other = "STREAM B (vs BIGINT) FROM 'nowhere.jsonl';"
    run_files(parse_program(STREAM + other + "OUTPUT A TO 'x.csv';"), directory=folder)
    with pytest.raises(InputError, match="nowhere"):
        run_files(parse_program(STREAM + other + "OUTPUT B TO 'x.csv';"), directory=folder)


RANDOM = """
import weir
calls = []

@weir.udf
def unsteady(v: int) -> int:
    calls.append(v)
    return len(calls)

@weir.udf
def steady(v: int) -> int:
    return v + 1

@weir.udf
def broken(v: int) -> int:
    raise ValueError("no luck")
"""


@pytest.fixture
def rules(folder: Path) -> Path:
    (folder / "rules.py").write_text(RANDOM, encoding="utf-8")
    return folder


def program_with(function: str, folder: Path) -> weir.plan.program.Program:
    text = f"{STREAM} IMPORT 'rules.py'; B = SELECT {function}(v) AS w FROM A; OUTPUT B TO 'b.csv';"
    return parse_program(text, directory=folder)


def test_check_finds_user_code_that_is_not_deterministic(rules: Path) -> None:
    told = r"stream 0\.0/0, written by vertex 0\.0 \(.*unsteady.*\): row 0 was .* second run"
    with pytest.raises(DeterminismViolation, match=told):
        run_files(program_with("unsteady", rules), directory=rules, check=True)
    assert not (rules / "b.csv").exists()
    run_files(program_with("steady", rules), directory=rules, check=True)
    assert (rules / "b.csv").exists()


def test_failing_user_code_is_named(rules: Path) -> None:
    with pytest.raises(OperatorFailed, match=r"broken.*no luck"):
        run_files(program_with("broken", rules), directory=rules)


# --- from Python -----------------------------------------------------------------------------


def test_run_takes_texts_paths_and_programs(folder: Path) -> None:
    text = (
        STREAM
        + "DECLARE @least BIGINT = 2; B = SELECT v FROM A WHERE v > @least; OUTPUT B TO 'b.jsonl';"
    )
    path = folder / "p.weir"
    path.write_text(text, encoding="utf-8")
    for program in (text, path, parse_program(text)):
        assert weir.run(program, directory=folder).outputs[0].rows == 1
    report = weir.run(path, params={"least": "0"}, directory=folder, check=True)
    assert report.outputs[0].rows == 2
    assert lines(folder / "b.jsonl") == [{"vs": 5, "ve": 6, "v": 1}, {"vs": 7, "ve": 8, "v": 3}]


def stream(name: str, index: int = 0) -> weir.Stream:
    columns = {"vs": "BIGINT", "v": "BIGINT"}
    return weir.stream(name, columns, "a.jsonl", vs="vs", late="drop", bad="skip", index=index)


def test_collect_from_files_and_from_memory(folder: Path) -> None:
    doubled = stream("A").select((weir.col("v") * 2).as_("w"))
    wanted = [{"vs": 5, "ve": 6, "w": 2}, {"vs": 7, "ve": 8, "w": 6}]
    assert weir.collect(doubled, directory=folder, check=True).to_pylist() == wanted
    given = {"A": [{"vs": 7, "v": 3}, {"vs": 5, "v": 1}, {"$cti": 9}, {"vs": 9, "v": None}]}
    delayed = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "", vs="vs", delay=5)
    table = weir.collect(delayed.select((weir.col("v") * 2).as_("w")), inputs=given, cut=1)
    assert table.to_pylist() == [*wanted, {"vs": 9, "ve": 10, "w": None}]


def test_collect_needs_rows_of_each_input() -> None:
    table = weir.collect(stream("A").union(stream("B")), inputs={"A": [], "B": []})
    assert table.num_rows == 0 and table.column_names == ["vs", "ve", "v"]
    with pytest.raises(PlanError, match="no rows for B"):
        weir.collect(stream("A").union(stream("B", 1)), inputs={"A": []})


NEEDS = """
STREAM A (vs BIGINT, k BIGINT, s STRING, v BIGINT) FROM 'a.parquet' WITH (vs = vs, late = 'drop');
Out = SELECT k, COUNT(*) AS n FROM A WHERE v > 1 GROUP BY k WITH TUMBLING(10);
OUTPUT Out TO 'out.jsonl';
"""


def test_columns_that_no_output_needs_are_not_read(tmp_path: Path) -> None:
    rows = {"vs": [1, 5, 2, 12], "k": [1, 1, 1, 2], "s": ["a", "b", "c", "d"], "v": [2, 3, 4, 5]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    program = parse_program(NEEDS)
    [partition] = open_partitions(program, tmp_path)["A"]
    [chunk] = partition.chunks()
    assert chunk.rows.schema.names == ["vs", "k", "v"]
    run_files(program, directory=tmp_path)
    assert lines(tmp_path / "out.jsonl") == [
        {"vs": 0, "ve": 10, "k": 1, "n": 2},
        {"vs": 10, "ve": 20, "k": 2, "n": 1},
    ]
    late = parse_program(NEEDS + "OUTPUT LATE OF A TO 'late.jsonl';")
    run_files(late, directory=tmp_path)
    [row] = lines(tmp_path / "late.jsonl")
    assert isinstance(row, dict) and row["s"] == "c"
