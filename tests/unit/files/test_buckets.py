"""Objects in buckets as inputs and outputs of runs in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import weir
from buckets import Bucket, new_bucket


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with new_bucket(monkeypatch) as made:
        yield made


ROWS = "".join(f'{{"vs": {i}, "k": "{"ab"[i % 2]}", "v": {i * i}}}\n' for i in range(100))
PROGRAM = """
    STREAM A (vs BIGINT, k STRING, v BIGINT) FROM '{source}';
    Sums = SELECT k, SUM(v) AS total FROM A GROUP BY k WITH TUMBLING(10);
    OUTPUT Sums TO '{output}';
"""


def test_an_object_to_an_object(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(ROWS)
    here = weir.run(PROGRAM.format(source="a.jsonl", output="out.parquet"), directory=tmp_path)
    source, output = bucket.put("in/a.jsonl", ROWS), f"{bucket.url}/out.parquet"
    there = weir.run(PROGRAM.format(source=source, output=output), directory=tmp_path)
    assert there.outputs[0].digest == here.outputs[0].digest
    assert there.outputs[0].path == output
    assert bucket.get("out.parquet") == (tmp_path / "out.parquet").read_bytes()
    assert bucket.get("out.parquet.digest") == (tmp_path / "out.parquet.digest").read_bytes()
    assert bucket.keys() == ["in/a.jsonl", "out.parquet", "out.parquet.digest"]
