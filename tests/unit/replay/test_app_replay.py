"""Replays in batches, from saved states, of variants, and after crashes: one answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import weir
from small_app import APP, rows, spam, write
from weir.errors import DeterminismViolation, InputError, PlanError, RunError
from weir.handlers.api.app import App
from weir.handlers.api.app_file import load_app
from weir.replay import assembled_outputs as assembling
from weir.replay import batch_runs, run_folder
from weir.replay.app_replay import replay_app
from weir.replay.run_folder import FinishedBatch
from weir.runtime.reports import Progress

LOGS = {"message": "m.jsonl"}


def emitted(path: str) -> list[dict[str, object]]:
    if path.endswith(".parquet"):
        found: list[dict[str, object]] = pq.read_table(path).to_pylist()
        return found
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def in_order(found: list[dict[str, int]]) -> list[dict[str, int]]:
    return sorted(found, key=lambda row: tuple(row.values()))


# --- batches -------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [None, 7, 59, 60, 1000])
def test_batches_change_nothing(app: App, batch: int | None) -> None:
    report = replay_app(app, logs=LOGS, out="out", batch=batch, parallelism=2)
    assert emitted("out/spam.parquet") == in_order(spam(rows(60)))
    assert report.events == 60
    assert report.batches == (1 if batch is None else -(-60 // batch))
    whole = replay_app(app, logs=LOGS, out="whole")
    assert [o.digest for o in report.outputs] == [o.digest for o in whole.outputs]
    assert Path("out/spam.parquet").read_bytes() == Path("whole/spam.parquet").read_bytes()
    assert sorted(p.name for p in Path("out").iterdir()) == [
        ".replay",
        "spam.parquet",
        "spam.parquet.digest",
    ]


def test_batches_of_one_event(app: App) -> None:
    messages = write(Path("few.jsonl"), rows(12))
    report = replay_app(
        app, logs={"message": messages}, out="out", batch=1, params={"threshold": 1}
    )
    assert emitted("out/spam.parquet") == in_order(spam(rows(12), 1))
    assert report.batches == 12


def test_jsonl(app: App) -> None:
    report = app.replay(logs=LOGS, out="out", format="jsonl", batch=25)
    assert [o.path for o in report.outputs] == ["out/spam.jsonl"]
    assert emitted("out/spam.jsonl") == in_order(spam(rows(60)))


def test_large_batches_are_read_ahead(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weir.replay.slices.WORTH_A_THREAD", 1)
    replay_app(app, logs=LOGS, out="out", batch=20, check=True)
    assert emitted("out/spam.parquet") == in_order(spam(rows(60)))


def test_only_some_times(app: App) -> None:
    middle = [m for m in rows(60) if 10 <= m["ts"] < 40]
    for batch in (None, 4):
        report = replay_app(app, logs=LOGS, out=f"out{batch}", start=10, end="40", batch=batch)
        assert emitted(f"out{batch}/spam.parquet") == in_order(spam(middle))
        assert report.events == len(middle)


def test_several_partitions_and_an_empty_one(app: App) -> None:
    messages = rows(60)
    write(Path("p-0.jsonl"), messages[::2])
    write(Path("p-1.jsonl"), [])
    write(Path("p-2.jsonl"), messages[1::2])
    logs = {"message": "p-*.jsonl"}
    digests = {
        replay_app(app, logs=logs, out=f"out{batch}", batch=batch).outputs[0].digest
        for batch in (None, 9, 41)
    }
    assert len(digests) == 1


def test_progress(app: App) -> None:
    told: list[Progress] = []
    replay_app(app, logs=LOGS, out="out", batch=20, progress=told.append)
    stages = list(dict.fromkeys(p.stage for p in told))
    assert stages == ["looking for where to cut", *(f"batch {i} of 3" for i in (1, 2, 3))]
    assert (told[-1].events, told[-1].read, told[-1].size) == (60, 60, 60)
    assert told[-1].reached == rows(60)[-1]["ts"]


# --- states --------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [None, 9])
def test_a_saved_state_goes_on(app: App, batch: int | None) -> None:
    replay_app(app, logs=LOGS, out="one", end=30, state_out="state", batch=batch)
    manifest = json.loads(Path("state/manifest.json").read_text("utf-8"))
    assert (manifest["app"], manifest["upto"]) == ("spam", 30)
    before = [m for m in rows(60) if m["ts"] < 30]
    saved = {row["key0"]: row["value"] for row in pq.read_table("state/n.parquet").to_pylist()}
    assert saved == {k: sum(m["k"] == k for m in before) for k in {m["k"] for m in before}}
    report = replay_app(app, logs=LOGS, out="two", state_in="state", batch=batch)
    both = [*emitted("one/spam.parquet"), *emitted("two/spam.parquet")]
    assert both == in_order(spam(rows(60)))
    assert report.events == 60 - len(before)


def test_what_has_ended_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("ends.py")
    path.write_text(ENDS)
    log = [{"ts": t, "id": t, "sender": t // 3} for t in range(60)]
    logs = {"message": write(Path("ends.jsonl"), log)}
    handed_on: list[int] = []

    def finished(*given: Any) -> FinishedBatch:
        made = assembling.finished_batch(*given)
        handed_on.extend(file.rows for file in made.states.values())
        return made

    monkeypatch.setattr("weir.replay.app_replay.finished_batch", finished)
    found = set()
    for batch in (None, 7, 25):
        out, state = f"out{batch}", f"state{batch}"
        report = replay_app(load_app(path), logs=logs, out=out, state_out=state, batch=batch)
        tables = [Path(state, f"{name}.parquet") for name in ("ending", "window")]
        found.add((report.outputs[0].digest, *(t.read_bytes() for t in tables)))
        assert [len(pq.read_table(t)) for t in tables] == [4, 10]
    assert len(found) == 1
    assert len(handed_on) == 2 * (1 + 9 + 3) and max(handed_on) <= 10


ENDS = """
import weir
app = weir.App("ends")
message = app.events("message", "id BIGINT, sender BIGINT, ts BIGINT", vs="ts")
ending = app.state("ending", default=0, expires=10)
window = app.state("window", default=0, last=10)

@app.on(message)
def count(e):
    ending.add(e.sender, 1)
    window.add(e.sender, 1)
    app.emit("seen", n=ending.get(e.sender - 2), m=window.get(e.sender - 2))
"""


def test_without_an_end_the_cut_is_behind_the_last_event(app: App) -> None:
    replay_app(app, logs=LOGS, out="one", state_out="state")
    manifest = json.loads(Path("state/manifest.json").read_text("utf-8"))
    assert manifest["upto"] == rows(60)[-1]["ts"] + 1
    assert replay_app(app, logs=LOGS, out="two", state_in="state").events == 0


@pytest.mark.parametrize("ts", [-(2**62), 2**62])
def test_states_at_the_ends_of_time(app: App, ts: int) -> None:
    log = [{"id": i, "k": i % 2, "ts": ts} for i in range(8)]
    logs = {"message": write(Path("ends.jsonl"), log)}
    params = {"threshold": 1}
    whole = replay_app(app, logs=logs, out="whole", params=params, state_out="state")
    assert emitted("whole/spam.parquet") == in_order(spam(log, 1))
    batches = replay_app(app, logs=logs, out="out", params=params, batch=3, state_out="again")
    assert batches.outputs[0].digest == whole.outputs[0].digest
    assert Path("state/n.parquet").read_bytes() == Path("again/n.parquet").read_bytes()
    assert replay_app(app, logs=logs, out="on", params=params, state_in="state").events == 0


def test_states_of_variants_go_on_one_by_one(app: App) -> None:
    both = {"threshold": [1, 2]}
    replay_app(app, logs=LOGS, out="a", params=both, end=30, state_out="state")
    with pytest.raises(PlanError, match=r"states of variants: .* 'state/threshold=1'"):
        replay_app(app, logs=LOGS, out="b", params=both, state_in="state")
    alone = {"threshold": 2}
    replay_app(app, logs=LOGS, out="b", params=alone, state_in="state/threshold=2")
    replay_app(app, logs=LOGS, out="whole", params=alone)
    behind = [row for row in emitted("whole/spam.parquet") if row["vs"] >= 30]
    assert emitted("b/spam.parquet") == behind


def test_a_state_that_does_not_fit_is_refused(app: App) -> None:
    replay_app(app, logs=LOGS, out="one", state_out="state")

    def other(change: tuple[str, str]) -> App:
        Path("other.py").write_text(APP.replace(*change), "utf-8")
        return load_app("other.py")

    for change, message in [
        (('"n", default=0', '"m", default=0'), "in 'state' has no state `m`; it has n"),
        (("default=0", "default=0.0"), "`n` with another type: BIGINT, and `spam` has DOUBLE"),
        (("default=0", 'default=0, expires="1d"'), "another expires: none, and `spam` has 8640"),
        (('App("spam")', 'App("ham")'), "is of the app `spam`, not of `ham`"),
    ]:
        with pytest.raises(PlanError) as caught:
            replay_app(other(change), logs=LOGS, out="two", state_in="state")
        assert message in str(caught.value)
    with pytest.raises(PlanError, match=r"has all events before \d+ already: --from 3 would"):
        replay_app(app, logs=LOGS, out="two", state_in="state", start=3)
    Path("state/n.parquet").unlink()
    with pytest.raises(InputError, match=r"n\.parquet: the table of a saved state is missing"):
        replay_app(app, logs=LOGS, out="two", state_in="state")
    with pytest.raises(PlanError, match=r"there is no saved state in 'one': no manifest\.json"):
        replay_app(app, logs=LOGS, out="two", state_in="one")
    with pytest.raises(PlanError, match="'one' has other files, and no saved state"):
        replay_app(app, logs=LOGS, out="two", state_out="one")


# --- variants ------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [None, 25])
def test_variants_equal_runs_of_their_own(app: App, batch: int | None) -> None:
    params = {"threshold": [2, 3, 5]}
    report = replay_app(app, logs=LOGS, out="out", params=params, batch=batch, state_out="state")
    assert [v.label for v in report.variants] == ["threshold=2", "threshold=3", "threshold=5"]
    for variant in report.variants:
        (output,) = variant.outputs
        value = variant.params["threshold"]
        assert isinstance(value, int)
        alone = replay_app(app, logs=LOGS, out=f"alone{value}", params={"threshold": str(value)})
        assert output.digest == alone.outputs[0].digest
        assert output.path == f"out/threshold={value}/spam.parquet"
        assert emitted(output.path) == in_order(spam(rows(60), value))
        assert output.only_here == 0
        assert output.only_first == len(spam(rows(60), 2)) - output.rows
        assert Path(f"state/threshold={value}/manifest.json").exists()
    page = Path("out/what-if.html").read_text("utf-8")
    assert report.page == "out/what-if.html"
    assert "threshold=5" in page and "<svg" in page and "http" not in page


# --- crashes -------------------------------------------------------------------------------


class Crash(BaseException):
    """Stands for kill -9: nothing catches it."""


STEPS = [
    (run_folder, "write_durably"),
    (run_folder, "rename_durably"),
    (run_folder, "remove_folder"),
    (batch_runs, "run_files"),
    (assembling, "put_all_in_place"),
]


@pytest.mark.parametrize("before", [True, False])
def test_a_crash_at_any_step(app: App, monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    """Whatever step is the last one, another try ends with the same rows."""
    whole = replay_app(app, logs=LOGS, out="whole").outputs[0].digest
    steps = ran = 0
    last = 0

    def counting(real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            nonlocal steps, ran
            steps += 1
            if before and steps == last:
                raise Crash
            found = real(*args, **options)
            ran += name == "run_files"
            if steps == last:
                raise Crash
            return found

        return step

    for module, name in STEPS:
        monkeypatch.setattr(module, name, counting(getattr(module, name), name))
    crashed = True
    while crashed:
        last, steps, ran, out = last + 1, 0, 0, f"out{last}"
        try:
            replay_app(app, logs=LOGS, out=out, batch=30)
            crashed = False
        except Crash:
            finished = len(list(Path(out, ".replay").glob("0000?/batch.json")))
            steps, kept, ran, at = -1000, last, 0, last
            last = 0
            assert replay_app(app, logs=LOGS, out=out, batch=30).outputs[0].digest == whole
            done = Path(out, ".replay", "report.json").exists()
            assert done and ran <= 2 - min(finished, 2), (at, finished, ran)
            last = kept
    assert last > 8


def test_what_has_finished_is_not_run_again(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    first = replay_app(app, logs=LOGS, out="out", batch=20)
    assert not first.again

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(batch_runs, "run_files", never)
        again = replay_app(app, logs=LOGS, out="out", batch=20)
    assert again.again and again.outputs == first.outputs
    Path("out/spam.parquet").unlink()
    assert not replay_app(app, logs=LOGS, out="out", batch=20).again
    assert not replay_app(app, logs=LOGS, out="out", batch=20, fresh=True).again
    with pytest.warns(FutureWarning, match="`anew` is deprecated; use `fresh`") as warned:
        assert not app.replay(logs=LOGS, out="out", batch=20, anew=True).again
    assert warned[0].filename == __file__


def test_what_has_changed_is_refused(app: App) -> None:
    replay_app(app, logs=LOGS, out="out", batch=20)
    with pytest.raises(
        PlanError, match="replay: the parameter threshold changed; choose another --out"
    ):
        replay_app(app, logs=LOGS, out="out", batch=20, params={"threshold": 4})
    with pytest.raises(PlanError, match="--batch is gone, --to is new; choose"):
        replay_app(app, logs=LOGS, out="out", end=30)
    Path("app.py").write_text(APP.replace("> threshold", ">= threshold"), "utf-8")
    with pytest.raises(PlanError, match=r"holds another replay: app\.py changed"):
        replay_app(load_app("app.py"), logs=LOGS, out="out", batch=20)
    Path("app.py").write_text(f"{APP}# a comment changes nothing\n", "utf-8")
    assert replay_app(load_app("app.py"), logs=LOGS, out="out", batch=20).again
    write(Path("m.jsonl"), rows(61))
    with pytest.raises(PlanError, match="log message changed"):
        replay_app(app, logs=LOGS, out="out", batch=20)


OUTSIDE = APP.replace("import weir", "import os, weir, outside").replace(
    "n = app", "LIMIT = int(os.environ['LIMIT'])\nTABLE = {0: [LIMIT]}\n\nn = app"
)


@pytest.mark.parametrize(
    "change",
    [
        ("> threshold", "> LIMIT"),
        ("> threshold", "> TABLE.get(e.k * 0, [3])[0]"),
        ("> threshold", "> outside.limit(0)"),
        ("@app.on(message)", "@app.serial\n@app.on(message)", "> threshold", "> LIMIT"),
    ],
)
def test_a_value_from_outside_of_the_text(
    app: App, monkeypatch: pytest.MonkeyPatch, change: tuple[str, ...]
) -> None:
    """It is no part of the code, and decides what the handlers do."""
    text = OUTSIDE
    for old, new in zip(change[::2], change[1::2], strict=True):
        text = text.replace(old, new)
    Path("outside.py").write_text(
        "import os\nLIMIT = int(os.environ['LIMIT'])\ndef limit(x):\n    return LIMIT + x\n"
    )

    def replay(limit: int, layout: str = "\n\n") -> bool:
        monkeypatch.setenv("LIMIT", str(limit))
        Path("app.py").write_text(text.replace("\n\n", layout))
        return replay_app(load_app("app.py"), logs=LOGS, out="out", batch=20).again

    assert not replay(3)
    assert replay(3)
    assert replay(3, "\n\n\n# lines mean nothing\n\n")
    with pytest.raises(PlanError, match=r"holds another replay: what the handlers compile to \(co"):
        replay(4)


def test_an_error_leaves_nothing_in_the_way(app: App) -> None:
    """Who mends a log, or the app, need not delete anything."""
    write(Path("m.jsonl"), list(reversed(rows(5))))
    with pytest.raises(InputError, match=r"^m\.jsonl, line 3, column ts: late"):
        replay_app(app, logs=LOGS, out="out")
    with pytest.raises(InputError, match=r"^m\.jsonl, line 3, column ts: late"):
        replay_app(app, logs=LOGS, out="out", batch=2)
    write(Path("m.jsonl"), rows(60))
    assert replay_app(app, logs=LOGS, out="out").events == 60


# --- what is wrong -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"logs": {"mesage": "m.jsonl"}}, "unknown log `mesage`; did you mean `message`?"),
        ({"logs": {}}, "no log for `message`; pass --log message=PATH, or declare app.events("),
        ({"format": "csv"}, "invalid format 'csv'; expected parquet or jsonl"),
        ({"runner": "live"}, "invalid runner 'live'; expected local or offline"),
        ({"batch": 0}, "invalid batch 0; expected at least 1 event"),
        ({"start": "soon"}, "invalid --from 'soon'; expected ticks (microseconds since 1970)"),
        ({"start": str(2**63)}, f"invalid --from {2**63}; expected a time from -2^62 to 2^62"),
        ({"end": -(2**62) - 1, "batch": 2}, f"invalid --to {-(2**62) - 1}; expected a time from"),
        ({"start": 9, "end": 9}, "--from 9 is not before --to 9"),
        ({"params": {"threshold": "much"}}, "the parameter `threshold` must be an integer"),
        ({"logs": {"message": "tail://m.jsonl"}}, "'tail://m.jsonl' has no end"),
    ],
)
def test_what_is_wrong(app: App, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        replay_app(app, **{"logs": LOGS, "out": "out", **options})
    assert message in str(caught.value)


def test_files_that_are_not_there_or_in_the_way(app: App) -> None:
    with pytest.raises(InputError, match=r"^no\.jsonl: no file matches"):
        replay_app(app, logs={"message": "no.jsonl"}, out="out")
    Path("out/spam.parquet").mkdir(parents=True)
    with pytest.raises(RunError, match=r"cannot write 'out/spam\.parquet': it is a folder"):
        replay_app(app, logs=LOGS, out="out")


def test_events_of_a_stream_are_one_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("m.jsonl"), rows(60))
    columns = {"id": "BIGINT", "k": "BIGINT", "ts": "BIGINT"}
    few = weir.stream("M", columns, "m.jsonl", vs="ts").where(weir.col("k") < 3).select("id", "k")
    app = App("few")
    seen = app.state("seen", default=0)

    @app.on(app.events("few", few))
    def judge(e: Any) -> None:
        seen.add(e.k, 1)
        app.emit("few", id=e.id, n=seen.get(e.k))

    first = replay_app(app, out="out")
    assert first.outputs[0].rows == sum(m["k"] < 3 for m in rows(60))
    assert replay_app(app, out="out").again
    with pytest.raises(PlanError, match="the events of `few` are the rows of a stream: they cann"):
        replay_app(app, out="out", batch=3, fresh=True)
    with pytest.raises(PlanError, match="come from a stream, so they have no log"):
        replay_app(app, out="out", logs={"few": "m.jsonl"})
    write(Path("m.jsonl"), rows(50))
    with pytest.raises(PlanError, match="log M changed"):
        replay_app(app, out="out")


def test_an_app_without_handlers() -> None:
    app = weir.App("idle")
    app.events("message", "id BIGINT, ts BIGINT", vs="ts")
    with pytest.raises(
        PlanError, match=r"`idle` has no handlers; @app\.on\(message\) stands above"
    ):
        replay_app(app, logs=LOGS, out="out")


def test_an_app_that_emits_nothing_has_its_state(tmp_path: Path, app: App) -> None:
    text = APP.replace("if n.get(e.k) > threshold:", "").partition("        app.emit")[0]
    Path("quiet.py").write_text(text, "utf-8")
    quiet = load_app("quiet.py")
    with pytest.raises(PlanError, match="the app `spam` emits nothing"):
        replay_app(quiet, logs=LOGS, out="out")
    replay_app(quiet, logs=LOGS, out="out", state_out="state")
    assert pq.read_table("state/n.parquet").num_rows == 9
    with pytest.raises(RunError, match=r"cannot write to 'app\.py': a part of its path is a file"):
        replay_app(app, logs=LOGS, out="app.py")


def test_iso_times(app: App) -> None:
    report = replay_app(app, logs=LOGS, out="out", end="1970-01-01T00:00:00.000030Z")
    assert report.events == len([m for m in rows(60) if m["ts"] < 30])


SALTED = """
import weir

app = weir.App("salted")
message = app.events("message", "k BIGINT, ts BIGINT", vs="ts")
total = app.state("total", default=0)
SALT = hash("salt") % 1000


def salted(n):
    try:
        return n + SALT
    except TypeError:
        return 0


@app.on(message)
def tell(e):
    total.add(e.k, salted(e.k))
    app.emit("out", n=total.get(e.k))
"""


@pytest.mark.parametrize("batch", [None, 30])
def test_a_second_run_is_in_another_process(app: App, batch: int | None) -> None:
    """The app's file runs again there, with another hash seed."""
    Path("salted.py").write_text(SALTED, "utf-8")
    with pytest.raises(DeterminismViolation, match=r"RowScan tell GIVES .*BY k"):
        replay_app(load_app("salted.py"), logs=LOGS, out="out", batch=batch, check=True)
