"""Logs are cut anywhere in their order, and the slices of all batches together are the logs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.errors import InputError
from weir.files.readers import open_partition
from weir.ingress.ingress import Ingress
from weir.plan.operators import Source, SourceOptions
from weir.replay.batch_cuts import LogCuts, RankedLog, cut_logs
from weir.replay.slices import slices_of

BIGINT = pa.int64()
COLUMNS = (("t", BIGINT), ("v", BIGINT))


def written(path: Path, rows: list[int]) -> Path:
    """A log whose rows start at these times; the value is the row's number."""
    table = pa.table({"t": pa.array(rows, BIGINT), "v": pa.array(range(len(rows)), BIGINT)})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=5 if len(rows) < 100 else 50_000)
    elif path.suffix == ".csv":
        path.write_text("t,v\n" + "".join(f"{t},{v}\n" for v, t in enumerate(rows)), "utf-8")
    else:
        lines = [json.dumps({"t": t, "v": v}) for v, t in enumerate(rows)]
        path.write_text("\n\n".join(lines) + "\n", "utf-8")
    return path


def ranked(path: Path, index: int = 0, number: int = 0, **options: object) -> RankedLog:
    source = Source(f"log{index}", COLUMNS, str(path), SourceOptions("t", **options), index)
    return RankedLog(source, number, open_partition(source, str(path)))


def events_of(logs: list[RankedLog], cuts: LogCuts, size: int) -> list[list[tuple[int, ...]]]:
    """The events of each batch, as (vs, ve, rank, offset, v), in the order of all logs."""
    found = []
    for batch in cuts.batches:
        rows = []
        for part in slices_of(batch, logs):
            ingress = Ingress(part.source, part.number, part.name)
            for chunk in part.chunks(size):
                events = ingress.feed(chunk).batch
                columns = (events.vs, events.ve, np.full(len(events), part.rank), events.origin[1])
                values = events.columns[1].to_pylist()
                rows += zip(*(c.tolist() for c in columns), values, strict=True)
        found.append(sorted(rows, key=lambda row: (row[0], row[2], row[3])))
    return found


def whole(logs: list[RankedLog]) -> list[tuple[int, ...]]:
    rows = []
    for rank, log in enumerate(logs):
        ingress = Ingress(log.source, log.number, log.partition.name)
        for chunk in log.partition.chunks():
            events = ingress.feed(chunk).batch
            columns = (events.vs, events.ve, np.full(len(events), rank), events.origin[1])
            rows += zip(*(c.tolist() for c in columns), events.columns[1].to_pylist(), strict=True)
    return sorted(rows, key=lambda row: (row[0], row[2], row[3]))


def check(logs: list[RankedLog], number: int | None, size: int = 1 << 30) -> LogCuts:
    cuts = cut_logs(logs, events=number, size=size)
    found = events_of(logs, cuts, 3 if len(whole(logs)) < 200 else 65_536)
    assert [row for rows in found for row in rows] == whole(logs)
    assert [len(rows) for rows in found] == [batch.events for batch in cuts.batches]
    if number is not None:
        assert all(batch.events == number for batch in cuts.batches[:-1])
        assert cuts.batches[-1].events <= number
    assert sum(total.events for total in cuts.totals) == len(whole(logs))
    return cuts


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("number", [1, 2, 7, 100])
def test_cuts_between_equal_times(tmp_path: Path, ending: str, number: int) -> None:
    one = written(tmp_path / f"one{ending}", [1, 1, 1, 2, 5, 5, 5, 9])
    other = written(tmp_path / f"other{ending}", [1, 2, 2, 5, 5, 8])
    check([ranked(one), ranked(other, 1)], number)


@settings(max_examples=40, deadline=None)
@given(
    logs=st.lists(st.lists(st.integers(0, 12), max_size=30), min_size=1, max_size=3),
    number=st.integers(1, 9),
    delay=st.integers(0, 6),
    late=st.sampled_from(["drop", "adjust"]),
    lifetime=st.sampled_from([None, 4]),
    ending=st.sampled_from([".jsonl", ".csv", ".parquet"]),
)
def test_any_logs(
    tmp_path_factory: pytest.TempPathFactory,
    logs: list[list[int]],
    number: int,
    delay: int,
    late: str,
    lifetime: int | None,
    ending: str,
) -> None:
    """Rows out of order, late ones too, which are dropped or adjusted."""
    folder = tmp_path_factory.mktemp("logs")
    ranks = [
        ranked(written(folder / f"{i}{ending}", rows), i, delay=delay, late=late, lifetime=lifetime)
        for i, rows in enumerate(logs)
    ]
    check(ranks, number)


def test_a_later_batch_does_not_read_from_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ranked(written(tmp_path / "a.jsonl", list(range(5000))))
    cuts = check([log], 1500)
    assert [b.parts[0].begin.offset for b in cuts.batches] == [0, 1500, 3000, 4500]
    last = slices_of(cuts.batches[-1], [log])[0]
    text = Path(log.partition.name)
    text.write_bytes(b"x" * cuts.batches[-1].parts[0].begin.position + b'{"t": 9999, "v": 1}\n')
    assert [chunk.rows.to_pylist() for chunk in last.chunks()] == [[{"t": 9999, "v": 1}]]


def test_cuts_by_size(tmp_path: Path) -> None:
    log = ranked(written(tmp_path / "a.parquet", list(range(200_000))))
    size = log.partition.size
    assert len(check([log], None, size=size // 3).batches) >= 3
    assert len(check([log], None).batches) == 1


@pytest.mark.parametrize("number", [1, 4, 100])
def test_only_some_times(tmp_path: Path, number: int) -> None:
    """What is before or behind them is not even read."""
    path = written(tmp_path / "a.jsonl", [*range(3000), 3000, 3000, 3001, 3002, *range(3003, 9000)])
    log = ranked(path)
    cuts = cut_logs([log], events=number, start=2999, end=3002)
    found = events_of([log], cuts, 65_536)
    assert [row[0] for rows in found for row in rows] == [2999, 3000, 3000, 3001]
    assert [len(rows) for rows in found] == [b.events for b in cuts.batches]
    assert 1000 < cuts.batches[0].parts[0].begin.offset <= 2999
    assert cuts.totals[0].events == 4


def test_empty_logs_are_one_batch(tmp_path: Path) -> None:
    cuts = check([ranked(written(tmp_path / "a.jsonl", []))], 5)
    assert (cuts.first, len(cuts.batches), cuts.batches[0].events) == (None, 1, 0)


def test_a_log_out_of_order_is_refused_before_anything_runs(tmp_path: Path) -> None:
    log = ranked(written(tmp_path / "a.jsonl", [3, 1]))
    with pytest.raises(InputError, match="late: the event's start 1 is before 3"):
        cut_logs([log], events=1)


def test_late_and_bad_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": 3, "v": 1}\n{"t": 1, "v": 2}\nno row\n{"t": 4, "v": 3}\n', "utf-8")
    log = ranked(path, late="drop", bad="skip")
    cuts = check([log], 1)
    assert (cuts.totals[0].events, cuts.totals[0].late, cuts.totals[0].bad) == (2, 1, 1)
