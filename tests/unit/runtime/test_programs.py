"""Streams with where they go are programs like others."""

from pathlib import Path

import pytest

import weir
from weir.runtime.programs import as_program
from weir.runtime.reports import Progress

COLUMNS = {"t": "BIGINT", "k": "STRING", "v": "BIGINT"}
SCRIPT = """
STREAM A (t BIGINT, k STRING, v BIGINT) FROM 'a.jsonl' WITH (vs = t, bad = 'skip');
Sums = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH TUMBLING(10);
OUTPUT Sums TO 'sums.csv';
OUTPUT BAD OF A TO 'bad.jsonl';
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f'{{"t": {t}, "k": "{"ab"[t % 2]}", "v": {t}}}\n' for t in range(30)]
    (tmp_path / "a.jsonl").write_text("".join(lines) + "nonsense\n", "utf-8")
    return tmp_path


def test_streams_with_where_they_go_write_what_the_script_writes(folder: Path) -> None:
    wanted = weir.run(SCRIPT, directory=folder)
    files = {o.path: Path(o.path).read_bytes() for o in wanted.outputs}
    a = weir.stream("A", COLUMNS, "a.jsonl", vs="t", bad="skip")
    sums = a.group_by("k").window(weir.tumbling(10)).agg(s=weir.col("v").sum())
    seen: list[Progress] = []
    came = weir.run(
        [sums.to("sums.csv", name="Sums"), a.bad_to(Path("bad.jsonl"))],
        directory=folder,
        progress=seen.append,
    )
    assert came == wanted
    assert {path: Path(path).read_bytes() for path in files} == files
    assert seen[-1].events == 30


def test_one_output_needs_no_list(folder: Path) -> None:
    a = weir.stream("A", COLUMNS, "a.jsonl", vs="t", bad="skip")
    report = weir.run(a.to(folder / "all.parquet"), directory=folder)
    assert (report.outputs[0].name, report.outputs[0].rows) == ("A", 30)


def test_two_streams_are_not_written_under_one_name() -> None:
    a = weir.stream("A", COLUMNS, "a.jsonl", vs="t")
    some = a.where(weir.col("v") > 3)
    with pytest.raises(weir.PlanError, match=r"called A: 'x\.jsonl' and 'y\.csv'.*name="):
        as_program([a.to("x.jsonl"), some.to("y.csv")])
    outputs = as_program([a.to("x.jsonl"), some.to("y.csv", name="Some"), a.to("z.csv")]).outputs
    assert [o.name for o in outputs] == ["A", "Some", "A"]
    assert as_program([a.to("x.jsonl"), a.bad_to("bad.csv"), a.late_to("late.csv")])


def test_a_byte_order_mark_is_no_part_of_a_program(tmp_path: Path) -> None:
    text = "STREAM A (vs BIGINT) FROM 'a.jsonl'; OUTPUT A TO 'b.csv';"
    (tmp_path / "p.weir").write_text(text, encoding="utf-8-sig")
    assert as_program(tmp_path / "p.weir").outputs == as_program(f"\ufeff{text}").outputs
    assert as_program(text) == as_program(f"\ufeff{text}")


def test_a_program_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(weir.PlanError, match=r"cannot read the program .*nowhere\.weir: No such"):
        weir.run(tmp_path / "nowhere.weir")
    (tmp_path / "latin.weir").write_bytes(b"-- caf\xe9\n")
    with pytest.raises(weir.PlanError, match=r"latin\.weir: it is not UTF-8 text"):
        weir.run(tmp_path / "latin.weir")


def test_a_path_that_is_given_as_a_text_is_told(folder: Path) -> None:
    for text in ("orders.weir", str(folder / "a.jsonl")):
        with pytest.raises(weir.ScriptError, match="is this a file") as told:
            weir.run(text)
        assert told.value.hint == f"is this a file? write Path({text!r})"
    with pytest.raises(weir.ScriptError) as told:
        weir.run("orders")
    assert "is this a file" not in str(told.value)


def test_what_cannot_be_run_says_what_can() -> None:
    a = weir.stream("A", COLUMNS, "a.jsonl", vs="t")
    with pytest.raises(weir.PlanError, match=r"a stream needs a path to write to; stream\.to"):
        as_program([a])  # type: ignore[list-item]
    with pytest.raises(weir.PlanError, match="override the DECLAREs of a text"):
        as_program(a.to("a.csv"), params={"x": "1"})
    with pytest.raises(weir.PlanError, match="only an input has late rows"):
        a.where(weir.col("v") > 1).late_to("late.jsonl")


def test_names_that_late_rows_need_are_free_in_their_input() -> None:
    columns = {"t": "BIGINT", "file": "STRING", "column": "STRING"}
    a = weir.stream("A", columns, "a.jsonl", vs="t")
    with pytest.raises(weir.PlanError, match="LATE rows of A have a column `file`"):
        a.late_to("late.jsonl")
    assert as_program([a.to("a.csv"), a.bad_to("bad.csv")]).outputs
