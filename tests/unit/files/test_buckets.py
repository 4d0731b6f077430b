"""Objects in buckets as inputs and outputs of runs in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import weir
from buckets import SECRET, Answer, Bucket, new_bucket, refusing, scripted_server
from weir import cli
from weir.errors import InputError, PlanError, RunError, WeirError
from weir.files import buckets, object_file
from weir.files.aws_profile import profile_keys, profile_settings
from weir.files.bucket_staging import BucketStaging
from weir.files.buckets import ObjectVersion, find_object, list_objects, read_range
from weir.files.chunks import object_version
from weir.files.columnar import ParquetFile
from weir.files.jsonl import JsonLines
from weir.files.object_file import ObjectFile
from weir.files.readers import source_files, source_objects
from weir.files.sidecar import Sidecar
from weir.files.writers import OutputWriter
from weir.ingress.connectors.whole import WholeReading
from weir.ingress.source_signals import Rows


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with new_bucket(monkeypatch) as made:
        yield made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges that are asked for, as they are."""
    ranges: list[tuple[int, int]] = []

    def noting(url: str, version: ObjectVersion, start: int, end: int) -> bytes:
        ranges.append((start, end))
        return read_range(url, version, start, end)

    monkeypatch.setattr(object_file, "read_range", noting)
    return ranges


COLUMNS = [("vs", pa.int64()), ("k", pa.string()), ("v", pa.int64())]
ROWS = "".join(f'{{"vs": {i}, "k": "{"ab"[i % 2]}", "v": {i * i}}}\n' for i in range(100))
PROGRAM = """
    STREAM A (vs BIGINT, k STRING, v BIGINT) FROM '{source}';
    Sums = SELECT k, SUM(v) AS total FROM A GROUP BY k WITH TUMBLING(10);
    OUTPUT Sums TO '{output}';
"""


def program(source: str, output: str) -> str:
    return PROGRAM.format(source=source, output=output)


# --- the same answer as with files ---------------------------------------------------------------


def test_an_object_to_an_object(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROWS)
    here = weir.run(program("a.jsonl", "out.parquet"), directory=tmp_path)
    source, output = bucket.put("in/a.jsonl", ROWS), f"{bucket.url}/out.parquet"
    there = weir.run(program(source, output), directory=tmp_path)
    assert there.outputs[0].digest == here.outputs[0].digest
    assert there.outputs[0].path == output
    assert bucket.get("out.parquet") == (tmp_path / "out.parquet").read_bytes()
    assert bucket.get("out.parquet.digest") == (tmp_path / "out.parquet.digest").read_bytes()
    assert bucket.names() == ["in/a.jsonl", "out.parquet", "out.parquet.digest"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_every_format_out_and_in(ending: str, bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROWS)
    copied = (
        "STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM '{0}' WITH (ve = ve); "
        "OUTPUT A TO '{1}';"
    )
    first = "STREAM A (vs BIGINT, k STRING, v BIGINT) FROM 'a.jsonl'; OUTPUT A TO '{}';"
    there = f"{bucket.url}/x y/1%20.{ending}"
    one = weir.run(first.format(there), directory=tmp_path)
    assert bucket.get(f"x y/1%20.{ending}")
    two = weir.run(copied.format(there, f"again.{ending}"), directory=tmp_path)
    assert one.outputs[0].digest == two.outputs[0].digest
    assert bucket.get(f"x y/1%20.{ending}") == (tmp_path / f"again.{ending}").read_bytes()


def test_an_empty_object(bucket: Bucket, tmp_path: Path) -> None:
    report = weir.run(program(bucket.put("a.jsonl", ""), "out.jsonl"), directory=tmp_path)
    assert report.outputs[0].rows == 0


NAMES = [
    "in/b.jsonl",
    "in/a.jsonl",
    "in/é.jsonl",
    "in/B.jsonl",
    "in/.hidden.jsonl",
    "in/x/a.jsonl",
    "in/x/y/a.jsonl",
    "in/.x/a.jsonl",
    "in/a[1].jsonl",
    "a.jsonl",
]


@pytest.mark.parametrize(
    "pattern",
    [
        "in/*.jsonl",
        "in/**/*.jsonl",
        "in/**",
        "in/?.jsonl",
        "in/[a-b].jsonl",
        "*/a.jsonl",
        "in/a[1].jsonl",
        "*.jsonl",
        "**/a.jsonl",
        "in/.*",
    ],
)
def test_globs_match_as_those_of_files_do(pattern: str, bucket: Bucket, tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
        bucket.put(name, "x")
    here = [str(Path(f).relative_to(tmp_path)) for f in source_files(pattern, tmp_path)]
    there = [
        url.removeprefix(f"{bucket.url}/") for url, _ in source_objects(f"{bucket.url}/{pattern}")
    ]
    assert there == here


def test_a_glob_is_several_partitions(bucket: Bucket, tmp_path: Path) -> None:
    lines = ROWS.splitlines(keepends=True)
    for number in range(3):
        bucket.put(f"in/{number}.jsonl", "".join(lines[number::3]))
    (tmp_path / "a.jsonl").write_text(ROWS)
    here = weir.run(program("a.jsonl", "out.csv"), directory=tmp_path)
    there = weir.run(program(f"{bucket.url}/in/*.jsonl", "out2.csv"), directory=tmp_path)
    assert there.inputs[0].partitions == 3
    assert there.outputs[0].digest == here.outputs[0].digest


# --- ranges --------------------------------------------------------------------------------------


def test_a_text_is_read_in_pieces_ahead(
    bucket: Bucket, asked: list[tuple[int, int]], tmp_path: Path
) -> None:
    line = '{"vs": 1, "k": "%s", "v": 1}\n' % ("x" * 999)
    text = line * 9_000
    url = bucket.put("a.jsonl", text)
    data = JsonLines(url, COLUMNS, version=object_version(url))
    assert sum(len(chunk.offsets) for chunk in data.chunks()) == 9_000
    piece = object_file.PIECE_BYTES
    assert sorted(asked) == [(0, piece), (piece, 2 * piece), (2 * piece, len(text))]
    asked.clear()
    chunks = data.chunks()
    next(chunks)
    assert len(asked) == 3  # those ahead are asked for with the first
    chunks.close()


def wide_file(path: Path, rows: int, group: int) -> None:
    random = np.random.default_rng(1)
    columns = {f"c{i}": random.integers(0, 1 << 60, rows) for i in range(10)}
    table = pa.table({"vs": np.arange(rows), **columns})
    pq.write_table(table, path, row_group_size=group, compression="none", use_dictionary=False)


def test_only_needed_columns_and_row_groups_are_read(
    bucket: Bucket, asked: list[tuple[int, int]], tmp_path: Path
) -> None:
    wide_file(tmp_path / "wide.parquet", 100_000, 20_000)
    body = (tmp_path / "wide.parquet").read_bytes()
    url = bucket.put("wide.parquet", body)
    columns = [("vs", pa.int64()), *((f"c{i}", pa.int64()) for i in range(10))]
    here = ParquetFile(str(tmp_path / "wide.parquet"), columns, needed=("vs", "c7"))
    there = ParquetFile(url, columns, needed=("vs", "c7"), version=object_version(url))

    def table(file: ParquetFile, start: int) -> pa.Table:
        chunks = list(file.chunks(7_000, start))
        assert chunks[0].offsets[0] == start and chunks[-1].stop == 100_000
        return pa.Table.from_batches([chunk.rows for chunk in chunks])

    assert table(there, 0).equals(table(here, 0))
    assert sum(stop - start for start, stop in asked) < len(body) * 0.25
    asked.clear()
    assert table(there, 65_000).equals(table(here, 0).slice(65_000))
    assert sum(stop - start for start, stop in asked) < len(body) * 0.12
    assert [s for s in asked if asked.count(s) > 1] == []


def test_long_columns_are_read_once_each(
    bucket: Bucket, asked: list[tuple[int, int]], tmp_path: Path
) -> None:
    wide_file(tmp_path / "wide.parquet", 300_000, 300_000)
    url = bucket.put("wide.parquet", (tmp_path / "wide.parquet").read_bytes())
    names = ["vs", "c1", "c2", "c8"]
    file = ParquetFile(url, [(name, pa.int64()) for name in names], version=object_version(url))
    assert sum(chunk.rows.num_rows for chunk in file.chunks()) == 300_000
    assert len(asked) > 9
    assert sum(stop - start for start, stop in asked) < 4 * 300_000 * 8 * 1.1


def test_an_object_is_read_like_a_file(bucket: Bucket) -> None:
    body = bytes(np.random.default_rng(2).integers(0, 256, 10_000, dtype=np.uint8))
    url = bucket.put("x", body)
    random = np.random.default_rng(3)
    with ObjectFile(url, object_version(url)) as file:
        file.expect([(100, 3_000), (3_500, 3_600), (5_000, 10_000)], piece=700, ahead=2)
        for _ in range(100):
            at, count = int(random.integers(0, 10_500)), int(random.integers(0, 2_000))
            file.seek(at)
            assert file.read(count) == body[at : at + count]
        file.seek(-5, 2)
        assert file.read() == body[-5:]


# --- one version, or an error --------------------------------------------------------------------


FORMATS: Mapping[str, type[JsonLines | ParquetFile]] = {
    "a.jsonl": JsonLines,
    "a.parquet": ParquetFile,
}


@pytest.mark.parametrize("name", FORMATS)
def test_an_object_that_is_replaced_while_it_is_read(
    name: str, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect = ObjectFile.expect
    monkeypatch.setattr(
        ObjectFile, "expect", lambda self, spans, *_: expect(self, spans, 1 << 17, ahead=1)
    )
    rows = 60_000
    table = pa.table(
        {
            "vs": range(rows),
            "k": ["x"] * rows,
            "v": np.random.default_rng(1).integers(0, 1 << 60, rows),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000)
    lines = "".join(f'{{"vs": {i}, "k": "x", "v": 1}}\n' for i in range(rows)) * 8
    body = lines.encode() if name == "a.jsonl" else (tmp_path / "a.parquet").read_bytes()
    url = bucket.put(name, body)
    file = FORMATS[name](url, COLUMNS, version=object_version(url))
    chunks = file.chunks(100)
    next(chunks)
    changed = bytearray(body)
    changed[-9] ^= 1  # as long as before
    bucket.put(name, bytes(changed))
    with pytest.raises(InputError) as caught:
        list(chunks)
    assert str(caught.value) == f"{url}: it was replaced while it was read; run again"


def test_what_was_found_is_read_by_all(bucket: Bucket) -> None:
    """A store that takes no conditions is noticed by its answers."""
    url = bucket.put("x", "0123456789")
    version = object_version(url)
    assert read_range(url, version, 2, 5) == b"234"
    for other in (ObjectVersion(10, '"other"'), ObjectVersion(11, version.tag)):
        with pytest.raises(InputError, match="replaced while it was read"):
            read_range(url, other, 2, 5)


def test_a_live_source_goes_on_in_the_same_object_only(bucket: Bucket) -> None:
    url = bucket.put("a.jsonl", ROWS)

    def reading(state: bytes | None, start: int) -> WholeReading:
        return WholeReading(JsonLines(url, COLUMNS, version=object_version(url)), state, start)

    first = reading(None, 0).poll(40, None, 0.0)
    assert isinstance(first, Rows) and first.chunk.stop == 40
    again = reading(first.chunk.resume, 40).poll(100, None, 0.0)
    assert isinstance(again, Rows) and again.chunk.offsets.tolist() == list(range(40, 100))
    bucket.put("a.jsonl", ROWS + ROWS[-30:])
    with pytest.raises(InputError, match="it was replaced, and 40 rows of it were read"):
        reading(first.chunk.resume, 40).poll(100, None, 0.0)


# --- outputs -------------------------------------------------------------------------------------


def test_a_failed_run_changes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    weir.run(program(bucket.put("a.jsonl", ROWS), f"{bucket.url}/out.csv"))
    before = bucket.get("out.csv"), bucket.get("out.csv.digest"), bucket.names()
    bad = bucket.put("b.jsonl", f"{ROWS}nonsense\n")
    with pytest.raises(InputError, match=r"b\.jsonl, line 101"):
        weir.run(program(bad, f"{bucket.url}/out.csv"))
    with pytest.raises(InputError, match=r"b\.jsonl, line 101"):
        weir.run(program(bad, f"{bucket.url}/new.csv"))
    obstore.delete(bucket.store, "b.jsonl")
    assert (bucket.get("out.csv"), bucket.get("out.csv.digest"), bucket.names()) == before


def test_an_output_appears_whole(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one goes in parts, and an interrupted upload leaves what was there."""
    source = bucket.put("a.jsonl", ROWS)
    weir.run(program(source, f"{bucket.url}/out.csv"))
    before = bucket.get("out.csv")
    put = obstore.put

    def torn(store: object, key: str, body: object, **options: object) -> object:
        if not isinstance(body, Path):
            return put(store, key, body, **options)  # type: ignore[call-overload]

        def parts() -> Iterator[bytes]:
            yield b"x" * (6 << 20)
            raise OSError(104, "Connection reset by peer")

        return put(store, key, parts(), **options)  # type: ignore[call-overload]

    monkeypatch.setattr(buckets.obstore, "put", torn)
    with pytest.raises(RunError) as caught:
        weir.run(program(source, f"{bucket.url}/out.csv"))
    assert f"cannot write '{bucket.url}/out.csv'" in str(caught.value)
    assert bucket.get("out.csv") == before


def test_an_output_in_several_parts(bucket: Bucket, tmp_path: Path) -> None:
    body = bytes(np.random.default_rng(1).integers(0, 256, 20 << 20, dtype=np.uint8))
    (tmp_path / "x").write_bytes(body)
    url = f"{bucket.url}/x"
    buckets.upload_file(str(tmp_path / "x"), url)
    assert bucket.get("x") == body
    found = find_object(url)
    assert found is not None and found.tag.endswith('-3"')  # a tag of three parts


def test_large_objects_are_copied_through_here(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = bucket.put("x", b"0123456789" * (1 << 20))
    buckets.copy_object(source, f"{bucket.url}/y")
    monkeypatch.setattr(buckets, "COPIED_AT_ONCE", 1 << 20)
    buckets.copy_object(source, f"{bucket.url}/z")
    assert bucket.get("x") == bucket.get("y") == bucket.get("z")


def test_no_old_digest_stands_beside_a_new_output(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = bucket.put("a.jsonl", ROWS)
    weir.run(program(source, f"{bucket.url}/out.csv"))

    def fails(url: str, body: bytes) -> None:
        raise RunError("gone")

    monkeypatch.setattr("weir.files.bucket_staging.put_object", fails)
    with pytest.raises(RunError, match="gone"):
        weir.run(program(source, f"{bucket.url}/out.csv"))
    assert bucket.names() == ["a.jsonl", "out.csv"]


@pytest.mark.parametrize("succeeds", [True, False])
def test_what_tasks_made_beside_an_output_is_deleted(succeeds: bool, bucket: Bucket) -> None:
    staging = BucketStaging(f"{bucket.url}/out/x.csv")
    beside = staging.use_beside()
    buckets.put_object(f"{beside}1", b"one")
    buckets.put_object(f"{beside}2", b"two")
    assert bucket.names() == [f"{beside}{n}".removeprefix(f"{bucket.url}/") for n in "12"]
    if succeeds:
        staging.finish(f"{beside}2", Sidecar("d", 1, "BIGINT", True, ()))
        staging.put_in_place()
        assert bucket.get("out/x.csv") == b"two"
    staging.remove()
    assert bucket.names() == (["out/x.csv", "out/x.csv.digest"] if succeeds else [])


def test_which_outputs_are_in_place_is_said(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("a.jsonl", ROWS)
    text = program(f"{bucket.url}/a.jsonl", "one.csv") + f"OUTPUT A TO '{bucket.url}/two.csv';"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "weir.files.bucket_staging.upload_file",
            lambda path, url: (_ for _ in ()).throw(RunError(f"cannot write '{url}': denied")),
        )
        with pytest.raises(RunError) as caught:
            weir.run(text, directory=tmp_path)
    assert "two.csv': denied; of this run's outputs" in str(caught.value)


def test_an_output_may_not_be_what_is_read(bucket: Bucket) -> None:
    for source, output in (("a.jsonl", "a.jsonl"), ("*.jsonl", "b.jsonl"), ("**", "x/y.csv")):
        with pytest.raises(PlanError, match="would write over"):
            weir.run(program(f"{bucket.url}/{source}", f"{bucket.url}/{output}"))
    two = f"OUTPUT A TO '{bucket.url}/x.csv'; OUTPUT Sums TO '{bucket.url}/x.csv/y.csv';"
    with pytest.raises(PlanError, match="would write over each other"):
        weir.run(program("a.jsonl", f"{bucket.url}/z.csv") + two)


# --- verify, diff, read --------------------------------------------------------------------------


def command(*arguments: str) -> tuple[int, str]:
    """Run `weir`; return its exit code and what it told."""
    result = CliRunner().invoke(cli.app, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_verify_and_diff(ending: str, bucket: Bucket, tmp_path: Path) -> None:
    source = bucket.put("a.jsonl", ROWS)
    there, here = f"{bucket.url}/out.{ending}", str(tmp_path / f"out.{ending}")
    weir.run(program(source, there))
    weir.run(program(source, here))
    assert command("verify", there)[0] == 0
    assert command("verify", there, here)[0] == 0
    assert command("diff", there, here) == (0, "no difference\n")
    weir.run(program(bucket.put("b.jsonl", ROWS.replace(": 81}", ": 82}")), there))
    code, told = command("diff", there, here)
    assert code == 1 and "first difference at 0" in told
    bucket.put(f"out.{ending}", Path(here).read_bytes())
    code, told = command("verify", there)
    assert code == 1 and told.startswith(f"corrupt: {there} has")
    code, told = command("verify", f"{bucket.url}/none.{ending}")
    assert code == 2 and f"{bucket.url}/none.{ending}: there is no such object" in told


# --- secrets -------------------------------------------------------------------------------------


SECRETS = [
    "s3://key:hunter2@data/a.jsonl",
    "s3://key:hun/ter2@data/a.jsonl",
    "s3://hunter2@data/a.jsonl",
    "gs://key:hunter2@data/a.jsonl",
    "az://data/a.jsonl?sv=1&sig=hunter2",
    "s3://data/a.jsonl?X-Amz-Signature=hunter2",
    "abfss://files:hunter2@account.dfs.core.windows.net/a.jsonl",
    "tcp://user:hunter2@host:99",
]


@pytest.mark.parametrize("url", SECRETS)
def test_a_path_with_a_secret_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    for text in (program(url, "out.csv"), program("a.jsonl", url)):
        with pytest.raises(PlanError, match="credentials or parameters") as caught:
            weir.run(text, directory=tmp_path)
        assert "ter2" not in str(caught.value)
    wrong = tmp_path / "p.weir"
    wrong.write_text(program(url, "out.csv").replace("';", "' WITH (nonsense = 1);"))
    for arguments in (["explain", str(wrong)], ["verify", url]):
        code, told = command(*arguments)
        assert code != 0 and "ter2" not in told
    wrong.write_text(program("a.jsonl", url).replace(f"{url}';", f"{url}' nonsense;"))
    code, told = command("explain", str(wrong))
    assert code != 0 and "nonsense" in told and "ter2" not in told


def test_what_looks_like_a_secret_and_is_none() -> None:
    weir.stream(
        "A", {"vs": "BIGINT"}, "abfss://files@account.dfs.core.windows.net/a?.jsonl", vs="vs"
    )
    weir.stream("A", {"vs": "BIGINT"}, "s3://data/day=3/a:b@c?.jsonl", vs="vs")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("s3:///a.jsonl", "names no bucket"),
        ("s3://data", "names no object"),
        ("s3://data/a//b.jsonl", "names no object"),
        ("s3://data/../b.jsonl", "names no object"),
        ("s3://data/in/", "a folder of a bucket is not followed"),
        ("s3a://data/a.jsonl", "nothing reads or writes s3a:// URLs"),
    ],
)
def test_urls_that_name_no_object(url: str, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        weir.run(program(url, "out.csv"))
    with pytest.raises(
        PlanError,
        match=why.replace("a folder of a bucket is not followed", "an output cannot be"),
    ):
        weir.run(program("a.jsonl", url))


def test_profiles(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(
        "[profile work]\nregion = eu-west-1\n[profile by-role]\nrole_arn = arn:aws:iam::1:role/x\n"
        f"[profile here]\nendpoint_url = {bucket.environment['AWS_ENDPOINT_URL']}\n"
    )
    keys = f"aws_access_key_id = test\naws_secret_access_key = {SECRET}\n"
    (tmp_path / "credentials").write_text(f"[default]\n{keys}[work]\n{keys}[here]\n{keys}")
    files = {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }
    known = {"aws_access_key_id": "test", "aws_secret_access_key": SECRET}
    assert profile_settings(files) == known
    assert profile_settings({**files, "AWS_PROFILE": "work"}) == {**known, "region": "eu-west-1"}
    assert profile_settings({**files, "AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "x"}) == {
        "region": "eu-west-1"
    }
    assert profile_settings({"HOME": str(tmp_path / "nowhere")}) == {}
    with pytest.raises(RunError, match="there is no AWS profile 'other'"):
        profile_settings({**files, "AWS_PROFILE": "other"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="'by-role' has no keys of its own, and there is no AWS"):
        profile_keys({**files, "AWS_PROFILE": "by-role"})
    assert profile_keys({**files, "AWS_PROFILE": "work"}) is None
    url = bucket.put("a.jsonl", ROWS)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    for name, value in {**files, "AWS_PROFILE": "here"}.items():
        monkeypatch.setenv(name, value)
    assert find_object(url) is not None
    (tmp_path / "credentials").write_text(f"{SECRET} is no profile\n")
    with pytest.raises(RunError, match="not a file of AWS profiles") as caught:
        profile_settings(files)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("way", ["credential_process = {tool}", "sso_session = us"])
def test_profiles_that_get_their_keys_by_a_command(
    way: str, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is run again when the keys expire, and what it prints is not shown."""
    tool, runs = tmp_path / "aws", tmp_path / "runs"
    (tmp_path / "config").write_text(f"[profile x]\n{way.format(tool=tool)}\n")
    url = bucket.put("a.jsonl", ROWS)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "x")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def prints(what: str) -> None:
        tool.write_text(f"#!/bin/sh\necho $@ >> {runs}\n{what}\n")
        tool.chmod(0o700)

    keys = f'"AccessKeyId": "test", "SecretAccessKey": "{SECRET}", "SessionToken": "t"'
    prints(f"""echo '{{"Version": 1, {keys}, "Expiration": "2020-01-01T00:00:00Z"}}'""")
    assert find_object(url) is not None and find_object(url) is not None
    told = runs.read_text().splitlines()
    assert len(told) > 1
    exports = "configure export-credentials --profile x --format process"
    assert set(told) == {exports if "sso" in way else ""}
    for what, why in (
        (f"echo {SECRET}", "does not print keys"),
        (f"echo {SECRET} >&2; exit 3", "3"),
    ):
        prints(what)
        monkeypatch.setenv("AWS_UNUSED", what)  # so that the bucket is opened anew
        said = failure(program(url, "out.csv"))
        assert said.startswith("cannot get the keys of the AWS profile 'x': ") and why in said


# --- errors --------------------------------------------------------------------------------------


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], list[str]]]:
    """Serve s3:// by a function; what it is asked for is noted."""
    monkeypatch.setattr(buckets, "RETRIES", 2)
    monkeypatch.setattr(buckets, "PATIENCE", timedelta(seconds=2))
    with scripted_server(monkeypatch) as serve:
        yield serve


def failure(text: str) -> str:
    with pytest.raises(WeirError) as caught:
        weir.run(text)
    said = str(caught.value)
    assert SECRET not in said and "AKIA" not in said and "Debug" not in said
    return said


def test_no_bucket_and_no_key(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROWS)
    none = "s3://weir-no-such-bucket"
    said = failure(program(f"{none}/a.jsonl", str(tmp_path / "out.csv")))
    assert said == f"{none}/a.jsonl: cannot be read: there is no bucket {none}"
    said = failure(program(f"{none}/*.jsonl", str(tmp_path / "out.csv")))
    assert said == f"{none}/*.jsonl: cannot be read: there is no bucket {none}"
    said = failure(program(str(tmp_path / "a.jsonl"), f"{none}/out.csv"))
    assert said == f"cannot write '{none}/out.csv': there is no bucket {none}"
    said = failure(program(f"{bucket.url}/a.jsonl", str(tmp_path / "out.csv")))
    assert said == f"{bucket.url}/a.jsonl: there is no such object"
    said = failure(program(f"{bucket.url}/*.jsonl", str(tmp_path / "out.csv")))
    assert said == f"{bucket.url}/*.jsonl: no object matches"


def test_what_will_not_pass_is_said_at_once(
    scripted: Callable[[Answer], list[str]], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(ROWS)
    requests = scripted(refusing(403, "SignatureDoesNotMatch"))
    said = failure(program("s3://data/a.jsonl", "out.csv"))
    assert said.startswith("s3://data/a.jsonl: cannot be read: access is denied (403")
    assert len(requests) == 1
    said = failure(program(str(tmp_path / "a.jsonl"), "s3://data/out.csv"))
    assert said.startswith("cannot delete 's3://data/out.csv.digest': ")
    assert "access is denied (403 SignatureDoesNotMatch)" in said


def test_what_may_pass_is_tried_again(scripted: Callable[[Answer], list[str]]) -> None:
    body, answered = b"0123456789", []

    def answer(request: BaseHTTPRequestHandler) -> None:
        answered.append(request.command)
        if len(answered) < 3:
            refusing((503, 429)[len(answered) - 1], "SlowDown")(request)
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("ETag", '"1"')
        request.send_header("Last-Modified", "Mon, 16 Nov 2026 00:00:00 GMT")
        request.end_headers()

    scripted(answer)
    assert find_object("s3://data/x") == ObjectVersion(10, '"1"')
    requests = scripted(refusing(503, "SlowDown"))
    said = failure(program("s3://data/a.jsonl", "out.csv"))
    assert said == "s3://data/a.jsonl: cannot be read: the store answers 503"
    assert len(requests) == 3


def test_a_server_that_is_not_there(
    scripted: Callable[[Answer], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    said = failure(program("s3://data/a.jsonl", "out.csv"))
    assert said.startswith("s3://data/a.jsonl: cannot be read: the store does not answer after")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    assert "AWS_ALLOW_HTTP=true" in failure(program("s3://data/a.jsonl", "out.csv"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"user:{SECRET}@nonsense")
    assert "invalid URL in AWS_ENDPOINT_URL" in failure(program("s3://data/a.jsonl", "out.csv"))


def test_a_server_that_says_nothing(
    scripted: Callable[[Answer], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    scripted(lambda request: let_go.wait(20) and None)
    monkeypatch.setattr(buckets, "PATIENCE", timedelta(seconds=0.4))
    try:
        said = failure(program("s3://data/a.jsonl", "out.csv"))
    finally:
        let_go.set()
    assert said.startswith("s3://data/a.jsonl: cannot be read: the store does not answer")


@pytest.mark.parametrize("tag", ['"1"', '"2"'])
def test_answers_that_are_cut_or_of_another_version(
    tag: str, scripted: Callable[[Answer], list[str]]
) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        assert request.headers["If-Match"] == '"1"'
        part = b"01234" if tag == '"1"' else b"0123456789"
        request.send_response(206)
        request.send_header("Content-Length", str(len(part)))
        request.send_header("Content-Range", f"bytes 0-{len(part) - 1}/10")
        request.send_header("ETag", tag)
        request.send_header("Last-Modified", "Mon, 16 Nov 2026 00:00:00 GMT")
        request.end_headers()
        request.wfile.write(part)

    scripted(answer)
    why = "cannot be read|was cut" if tag == '"1"' else "replaced while it was read"
    with pytest.raises(InputError, match=f"s3://data/x: .*({why})"):
        read_range("s3://data/x", ObjectVersion(10, '"1"'), 0, 10)


def test_an_answer_that_is_cut(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    url = bucket.put("x", "0123456789")
    version, get = object_version(url), obstore.get

    class Cut:
        def __init__(self, *given: object, **options: object) -> None:
            self._whole = get(*given, **options)  # type: ignore[arg-type]
            self.meta = self._whole.meta

        def bytes(self) -> bytes:
            return bytes(self._whole.bytes())[:-1]

    monkeypatch.setattr(buckets.obstore, "get", Cut)
    with pytest.raises(InputError, match="the answer was cut: expected 3 bytes, got 2"):
        read_range(url, version, 2, 5)


def test_listing_gives_what_is_there(bucket: Bucket) -> None:
    bucket.put("a/b", "1")
    bucket.put("ab", "22")
    assert [url for url, _ in list_objects(f"{bucket.url}/a/")] == [f"{bucket.url}/a/b"]
    assert {found.size for _, found in list_objects(f"{bucket.url}/")} == {1, 2}


def test_what_killed_runs_left_is_swept(bucket: Bucket, tmp_path: Path) -> None:
    left = f"{bucket.url}/out/.x.csv."
    bucket.put("out/.x.csv.1.weir/a", "x")
    bucket.put("out/x.csv", "x")
    assert list(buckets.left_over_objects(left, 3600)) == []
    assert list(buckets.left_over_objects(left, -3600)) == [f"{left}1.weir/a"]


def test_a_writer_leaves_nothing(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    schema = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs").schema
    writer = OutputWriter(f"{bucket.url}/x.csv", schema)
    assert len(list(tmp_path.iterdir())) == 1
    writer.abort()
    assert list(tmp_path.iterdir()) == [] and bucket.names() == []
