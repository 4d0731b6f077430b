"""What the logs of a live job hold now is read as it stands, and nothing is logged for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weir.files.chunks import SourcePartition
from weir.handlers.api.app import App
from weir.ingress.connectors.registry import open_any, open_connector
from weir.ingress.source_signals import IngressRecord
from weir.plan.operators import Source
from weir.shadow.log_heads import HeldChunks, is_only_logged, logged_rows, standing_rows


def source(path: str) -> Source:
    node = App("a").events("e", "value BIGINT, at BIGINT", vs="at", path=path).stream.node
    assert isinstance(node, Source)
    return node


def lines(*values: int) -> str:
    return "".join(json.dumps({"value": v, "at": v}) + "\n" for v in values)


def opened(path: str, folder: Path) -> SourcePartition:
    (part,) = open_any(source(path), str(folder))
    return part


def values(held: HeldChunks) -> list[int]:
    return [v for chunk in held.chunks() for v in chunk.rows.column("value").to_pylist()]


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(lines(1, 2, 3))
    part = opened("e.jsonl", tmp_path)
    assert values(standing_rows(part, 100)) == [1, 2, 3]
    assert values(standing_rows(part, 2)) == [1, 2]


def test_a_file_that_grows(tmp_path: Path) -> None:
    part = opened("tail://e.jsonl", tmp_path)
    assert values(standing_rows(part, 100)) == []
    (tmp_path / "e.jsonl").write_text(lines(1, 2) + '{"value": 3, ')  # somebody writes it still
    assert values(standing_rows(part, 100)) == [1, 2]
    (tmp_path / "e.jsonl").write_text(lines(1, 2, 3))
    assert values(standing_rows(part, 100)) == [1, 2, 3]
    (tmp_path / "e.jsonl.end").write_text("")
    assert values(standing_rows(part, 100)) == [1, 2, 3]


def test_a_folder_that_grows(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    part = opened("in/", tmp_path)
    assert values(standing_rows(part, 100)) == []
    (tmp_path / "in" / "b.jsonl").write_text(lines(3, 4))
    (tmp_path / "in" / "a.jsonl").write_text(lines(1, 2))
    assert values(standing_rows(part, 100)) == [1, 2, 3, 4]
    assert values(standing_rows(part, 3)) == [1, 2, 3, 4]  # whole chunks: about as many
    (tmp_path / "in" / ".end").write_text("")
    assert values(standing_rows(part, 100)) == [1, 2, 3, 4]


def test_generated_rows(tmp_path: Path) -> None:
    part = opened("rate://10?rows=25", tmp_path)
    assert values(standing_rows(part, 100)) == list(range(25))
    endless = opened("rate://10", tmp_path)
    assert values(standing_rows(endless, 20))[:20] == list(range(20))


def test_rows_of_a_socket_are_taken_from_the_log(tmp_path: Path) -> None:
    part = open_connector(source("tcp://localhost:1?acks=yes"), "")
    assert part is not None and is_only_logged(part)
    records = [
        IngressRecord(0, lines=lines(1, 2).encode()),
        IngressRecord(2, claim=7),
        IngressRecord(2, lines=lines(3).encode()),
    ]
    assert values(logged_rows(part, records, 100)) == [1, 2, 3]
    assert values(logged_rows(part, records, 2)) == [1, 2]


@pytest.mark.parametrize("path", ["e.jsonl", "tail://e.jsonl", "in/", "rate://10"])
def test_all_else_can_be_read_by_anybody(tmp_path: Path, path: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "e.jsonl").write_text("")
    assert not is_only_logged(opened(path, tmp_path))
