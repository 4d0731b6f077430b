"""Outputs and runs compared, from programs that ran."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from weir.conform.verify import diff, verify
from weir.errors import InputError
from weir.files import output_diff as io_diff
from weir.files import sorted_runs as runs
from weir.local.file_run import run_files
from weir.runtime.reports import OutputReport, RunReport
from weir.script.program import parse_program

PROGRAM = """
STREAM A (vs BIGINT, k BIGINT, v BIGINT) FROM 'a.jsonl' WITH (late = 'drop', bad = 'skip');
PerKey = SELECT k, SUM(v) AS s FROM A GROUP BY k WITH HOPPING(20, 10);
OUTPUT PerKey TO '{name}.parquet';
OUTPUT PerKey TO '{name}/';
OUTPUT A TO '{name}.csv';
OUTPUT LATE OF A TO '{name}.late.jsonl';
OUTPUT BAD OF A TO '{name}.bad.jsonl';
"""
OUTPUTS = (".parquet", "", ".csv", ".late.jsonl", ".bad.jsonl")


def untold(rows: int) -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"vs": i, "k": i % 7, "v": i * i % 11} for i in range(400)]
    texts = [json.dumps(row) for row in (*rows, {"vs": 3, "k": 1, "v": 1}, {"vs": "x"})]
    Path("a.jsonl").write_text("\n".join(texts), encoding="utf-8")
    return tmp_path


def run(name: str, cut: int | None = None, parallelism: int = 1) -> RunReport:
    return run_files(parse_program(PROGRAM.format(name=name)), cut=cut, parallelism=parallelism)


def save(name: str, report: RunReport) -> str:
    Path(name).write_text(json.dumps({**asdict(report), "seconds": 0.1}), encoding="utf-8")
    return name


def verdicts(*paths: str, full: bool = False) -> list[str]:
    return [str(v) for v in verify(paths, untold, full=full)]


def equal(output: OutputReport) -> str:
    return f"equal: {output.rows} row{'s'[: output.rows > 1]}, digest {output.digest}"


def test_two_cuts_give_equal_outputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With blocks of a few rows, as if there were far more of them than memory."""
    one, two = run("one", cut=7), run("two", cut=64, parallelism=3)
    for module in (runs, io_diff):
        monkeypatch.setattr(module, "BLOCK_ROWS", 8)
    for ending, output in zip(OUTPUTS, one.outputs, strict=True):
        assert output.rows
        assert verdicts(f"one{ending}", f"two{ending}") == [equal(output)]
        assert verdicts(f"two{ending}") == [equal(output)]
        in_full = verdicts(f"one{ending}", f"two{ending}", full=True)
        assert in_full == [equal(output).replace("equal:", "equal row by row:")]
        assert str(diff(f"one{ending}", f"two{ending}", untold)) == "no difference"
    assert verdicts("one", "two.parquet")[0].startswith("equal: ")
    assert verdicts(save("one.json", one), save("two.json", two)) == [
        f"{output.title}: {equal(output)}"
        for output in one.outputs[1:]  # PerKey went to two places
    ]


def test_runs_that_differ(folder: Path) -> None:
    save("one.json", run("one"))
    text = Path("a.jsonl").read_text(encoding="utf-8").replace('"v": 9', '"v": 8')
    Path("a.jsonl").write_text(text, encoding="utf-8")
    save("two.json", run("two"))
    per_key, a, late, bad = verdicts("one.json", "two.json")
    assert per_key.startswith("PerKey: different: one.json has ")
    assert "; two.json has " in per_key
    assert a.startswith("A: different: ")
    assert late.startswith("late rows of A: equal: 1 row, digest ")
    assert bad.startswith("bad rows of A: equal: 1 row, digest ")
    report = json.loads(Path("two.json").read_text(encoding="utf-8"))
    report["outputs"] = [o for o in report["outputs"] if o["kind"] != "late"]
    Path("two.json").write_text(json.dumps(report), encoding="utf-8")
    assert "late rows of A: different: only one.json has it" in verdicts("one.json", "two.json")


@pytest.mark.parametrize(
    ("declared", "column"),
    [
        ('STRUCT("x y" BIGINT, "a)" LIST(STRUCT("1" BIGINT)))', "s"),
        ("BIGINT", "[NULL] AS s"),
        ("BIGINT", "[[]] AS s"),
        ("BIGINT", "NULL AS s"),
    ],
)
@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv", ".jsonl"])
def test_types_of_any_fields_and_of_nulls(
    declared: str, column: str, ending: str, folder: Path
) -> None:
    Path("s.jsonl").write_text('{"vs": 1, "k": 2}\n{"vs": 2, "k": 2}\n', encoding="utf-8")
    text = f"""
        STREAM A (vs BIGINT, k BIGINT, s {declared}) FROM 's.jsonl';
        Out = SELECT {column} FROM A;
        OUTPUT Out TO 'out{ending}';
    """
    (output,) = run_files(parse_program(text)).outputs
    assert verdicts(f"out{ending}") == [equal(output)]
    in_full = verdicts(f"out{ending}", f"out{ending}", full=True)
    assert in_full == [equal(output).replace("equal:", "equal row by row:")]


def test_an_output_that_is_not_what_it_carries_is_corrupt(folder: Path) -> None:
    report = run("one")
    csv = report.outputs[2]
    run("two")
    lines = Path("one.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("one.csv").write_text("".join(lines[:-1]), encoding="utf-8")
    corrupt, *rest = verdicts("one.csv")
    assert not rest
    assert corrupt.startswith("corrupt: one.csv has 399 rows, digest ")
    assert corrupt.endswith(f"; it carries the digest of 400 rows, digest {csv.digest}")
    again, different = verdicts("one.csv", "two.csv")
    assert again == corrupt
    assert different.startswith("different: one.csv has 399 rows")
    text = str(diff("one.csv", "two.csv", untold))
    assert text == 'first difference at 399\n+ {"vs":399,"ve":400,"k":0,"v":9}'
    # Two that are equal but not what they should be are not fine.
    Path("two.csv").write_bytes(Path("one.csv").read_bytes())
    for full in (False, True):
        statuses = [v.status for v in verify(["one.csv", "two.csv"], untold, full=full)]
        assert statuses == ["corrupt", "corrupt", "equal"]
    # Nor is one with another column.
    Path("two.csv").write_text("vs,ve,k,v,w\n", encoding="utf-8")
    assert verdicts("two.csv") == ["corrupt: columns: w STRING is in two.csv only"]


def test_damage_that_the_format_does_not_notice(folder: Path) -> None:
    run("one")
    path = Path("one.csv")
    path.write_text(path.read_text(encoding="utf-8").replace("9,10,2", "9,10,3"), encoding="utf-8")
    assert verdicts("one.csv")[0].startswith("corrupt: ")


def test_different_columns_are_told(folder: Path) -> None:
    run("one")
    columns = "s BIGINT is in one.parquet only; v BIGINT is in one.csv only"
    assert verdicts("one.parquet", "one.csv") == [f"different: columns: {columns}"]
    assert str(diff("one.parquet", "one.csv", untold)) == f"different columns: {columns}"
    Path("o.csv").write_text("vs,ve,v\n", encoding="utf-8")
    for full in (False, True):
        found = verdicts("one.csv", "o.csv", full=full)
        assert found == ["different: columns: k BIGINT is in one.csv only"]


TEXTS = """
STREAM T (vs BIGINT, s STRING, t STRING) FROM '{name}.jsonl';
Out = SELECT s, t FROM T;
OUTPUT Out TO '{name}.out.jsonl';
OUTPUT Out TO '{name}.parquet';
"""


def test_rows_of_one_digest_are_told_apart_in_full(folder: Path) -> None:
    """The words that are hashed do not tell where a text ends: whoever chooses rows can have
    others with the same digest. It is a format, so it stays."""
    rows = {"one": ("", "\0" * 8), "two": ("\0" * 8, "")}
    for name, (s, t) in rows.items():
        lines = [{"vs": 1, "s": s, "t": t}, {"vs": 2, "s": "same", "t": "same"}]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        Path(f"{name}.jsonl").write_text(text, encoding="utf-8")
        run_files(parse_program(TEXTS.format(name=name)))
    for a, b in (("one.parquet", "two.parquet"), ("one.out.jsonl", "two.parquet")):
        (trusting,) = verify([a, b], untold)
        assert trusting.status == "equal"
        (in_full,) = verify([a, b], untold, full=True)
        assert in_full.status == "different"
        assert in_full.alone == (1, 1)
        assert len({side.digest for side in in_full.sides}) == 1
        assert str(in_full).endswith(f"; 1 row in {a} alone; 1 row in {b} alone")
        first = diff(a, b, untold).first
        assert first is not None
        assert (first.only_a.rows[0]["t"], first.only_b.rows[0]["s"]) == ("\0" * 8, "\0" * 8)
    assert verdicts("one.parquet", "one.out.jsonl", full=True)[0].startswith("equal row by row: ")


def test_more_rows_than_are_shown(folder: Path) -> None:
    text = "vs,ve,k\n" + "".join(f"1,2,{i}\n" for i in range(25))
    Path("b.csv").write_text(text, encoding="utf-8")
    run_files(
        parse_program(
            "STREAM B (vs BIGINT, ve BIGINT, k BIGINT) FROM 'b.csv';"
            "C = SELECT k FROM B WHERE k < 0; OUTPUT C TO 'c.csv';"
        )
    )
    shown = str(diff("c.csv", "b.csv", untold)).splitlines()
    assert shown[0] == "first difference at 1"
    assert shown[1] == '+ {"vs":1,"ve":2,"k":0}'
    assert len(shown) == 22
    assert shown[-1] == "+ … 5 more"


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["one.json", "one.csv"], "one.json: a run can only be compared with another run"),
        (["one.csv", "one.json"], "one.json: a run can only be compared with another run"),
        (["one.json"], "one.json: a run can only be compared with another run"),
        (["one.json", "no.json"], "no.json: No such file"),
        (["one.json", "a.json"], "a.json: not what `weir run --json` prints"),
        (["plain.parquet"], "plain.parquet: has no digest file"),
        (["plain.csv"], "plain.csv: the types of its columns are not known"),
        (["one.csv", "broken.csv"], "broken.csv.digest: not a digest file"),
    ],
)
def test_what_cannot_be_compared(folder: Path, paths: list[str], message: str) -> None:
    save("one.json", run("one"))
    for ending in (".csv", ".parquet"):
        Path(f"plain{ending}").write_bytes(Path(f"one{ending}").read_bytes())
    Path("broken.csv").write_bytes(Path("one.csv").read_bytes())
    Path("broken.csv.digest").write_text("{", encoding="utf-8")
    Path("a.json").write_text("[]", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        verify(paths, untold)
    assert message in str(raised.value)


def test_diff_takes_no_runs(folder: Path) -> None:
    run("one")
    with pytest.raises(InputError, match=r"x\.json: a run has no rows"):
        diff("one.csv", "x.json", untold)
