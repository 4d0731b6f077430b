"""Which paths are refused before anything is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.errors import PlanError, ScriptError
from weir.files.paths import check_apart, check_not_read
from weir.files.readers import source_files
from weir.files.sinks import sink_format
from weir.ingress.connectors.registry import local_files
from weir.script.program import parse_program

URLS = [
    "kafka://broker/topic",
    "nats://a/b.jsonl",
    "rate://1000",
    "s3a://bucket/a.parquet",
    "x+y.z-1://a/",
]


@pytest.mark.parametrize("url", URLS)
def test_urls_are_not_files(url: str) -> None:
    scheme = url.partition("://")[0] + "://"
    for use in (source_files, sink_format):
        with pytest.raises(PlanError) as caught:
            use(url)
        assert caught.value.message == f"'{url}': nothing reads or writes {scheme} URLs"


def refused(source: str, output: str, directory: Path) -> bool:
    text = f"STREAM A (vs BIGINT) FROM '{source}'; OUTPUT A TO '{output}';"
    try:
        check_not_read(parse_program(text), directory, local_files)
    except PlanError as error:
        assert error.message == (
            f"OUTPUT A would write over '{output}', which STREAM A reads ('{source}')"
        )
        return True
    return False


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("a.jsonl", "a.jsonl"),
        ("a.jsonl", "./x/../a.jsonl"),
        ("*.jsonl", "a.jsonl"),
        ("in/?[a-c].csv", "in/xb.csv"),
        ("in/**/a.csv", "in/a.csv"),
        ("in/**/a.csv", "in/x/y/a.csv"),
        ("in/**", "in/x/y/a.csv"),
        ("*/a.csv", "in/a.csv"),
        ("a[1].csv", "a[1].csv"),
        ("out/part-00003.parquet", "out/"),
        ("out/*.parquet", "out/"),
        ("out/x/y.csv", "out/"),
        ("**/a.csv", "out/"),
        ("{here}/a.jsonl", "a.jsonl"),
        ("a.jsonl", "{here}/a.jsonl"),
        ("link/a.jsonl", "real/a.jsonl"),
        ("tail://a.jsonl", "a.jsonl"),
        ("tail://x/../a.jsonl", "./a.jsonl"),
        ("tail://{here}/a.jsonl", "a.jsonl"),
        ("tail://a.jsonl", "{here}/a.jsonl"),
        ("tail://link/a.jsonl", "real/a.jsonl"),
        ("tail://out/a.jsonl", "out/"),
        ("in/", "in/out.jsonl"),
        ("in/", "in/"),
        ("in/", "in/x/out.jsonl"),
        ("{here}/in/", "x/../in/out.jsonl"),
        ("link/", "real/out.jsonl"),
        ("out/x/", "out/"),
    ],
)
def test_an_output_over_an_input(source: str, output: str, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    named = [path.replace("{here}", str(tmp_path)) for path in (source, output)]
    assert refused(*named, tmp_path)


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("a.jsonl", "b.jsonl"),
        ("*.jsonl", "a.csv"),
        ("*.jsonl", "out/a.jsonl"),
        ("*.jsonl", ".a.jsonl"),
        ("in/*.csv", "out/"),
        ("in/**/a.csv", "in/.x/a.csv"),
        ("in/*/a.csv", "in/a.csv"),
        ("outer/a.csv", "out/"),
        ("out", "out/a.csv"),
        ("tail://a.jsonl", "b.jsonl"),
        ("tail://in/a.jsonl", "a.jsonl"),
        ("in/", "in.jsonl"),
        ("in/", "out/a.jsonl"),
        ("in/", "in/.out/a.jsonl"),
        ("rate://5", "rate:/5.jsonl"),
        ("tcp://h:1", "tcp:/h:1.jsonl"),
    ],
)
def test_an_output_beside_an_input(source: str, output: str, tmp_path: Path) -> None:
    assert not refused(source, output, tmp_path)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("a.csv", "./x/../a.csv", False),
        ("o/a.csv", "o/", False),
        ("o/", "o/x/", False),
        ("o/", "op/a.csv", True),
        ("o/a.csv", "o/b.csv", True),
    ],
)
def test_outputs_do_not_write_over_each_other(one: str, other: str, apart: bool) -> None:
    text = f"STREAM A (vs BIGINT) FROM 'in'; OUTPUT A TO '{one}'; OUTPUT A TO '{other}';"
    program = parse_program(text)
    if apart:
        check_apart(program, ".")
    else:
        with pytest.raises(PlanError, match="would write over each other"):
            check_apart(program, ".")


@pytest.mark.parametrize("path", ["", "a\0b.csv", "x/" * 300 + "a.csv"])
def test_what_is_no_path_is_refused_as_input_and_as_output(path: str) -> None:
    program = "STREAM A (vs BIGINT) FROM '{}'; OUTPUT A TO '{}';"
    for text in (program.format("a.csv", path), program.format(path, "b.csv")):
        with pytest.raises(
            (PlanError, ScriptError), match=r"invalid path|parts|has a NUL character"
        ):
            check_not_read(parse_program(text), "", local_files)
