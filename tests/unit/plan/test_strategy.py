"""Which strategy a stage has, and why."""

from __future__ import annotations

import pytest

import weir
from weir.errors import PlanError
from weir.plan.fluent.stream import Stream
from weir.plan.program import Output, Program
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import cut_stages
from weir.plan.strategy import (
    Choice,
    NamedStrategy,
    choose_strategies,
    default_strategy,
    parse_strategy,
)
from weir.script.program import parse_program

INPUT = "STREAM P (At TIMESTAMP, k STRING, v BIGINT) FROM 'p.jsonl' WITH (vs = At);"


def choices(query: str, settings: str = "") -> tuple[Choice, ...]:
    text = f"{INPUT} {settings} Out = {query}; OUTPUT Out TO 'out.jsonl';"
    program = rewrite(parse_program(text))
    return choose_strategies(cut_stages(program, 2), default_strategy(program))


def counted(window: str) -> str:
    return f"SELECT k, COUNT(*) AS n FROM P GROUP BY k WITH {window}"


def test_names() -> None:
    for text in ("replay", "checkpoint(5s)", "replicate(3)"):
        assert str(parse_strategy(text)) == text
    assert parse_strategy("checkpoint") == NamedStrategy()
    for wrong in (
        "",
        "replay(2)",
        "replicate",
        "replicate(1)",
        "checkpoint(0s)",
        "checkpoint(-1s)",
    ):
        with pytest.raises(PlanError):
            parse_strategy(wrong)


def test_the_planner_replays_what_is_short_and_keeps_what_is_long() -> None:
    source, short = choices(counted("TUMBLING(5s)"))
    assert str(source.strategy) == "checkpoint(10s)" and "source" in source.why
    assert str(short.strategy) == "replay" and "5s of input" in short.why
    *_, long = choices(counted("TUMBLING(1m)"))
    assert str(long.strategy) == "checkpoint(10s)" and "1m of input, which is long" in long.why
    *_, endless = choices("SELECT DISTINCT k FROM P")
    assert str(endless.strategy) == "checkpoint(10s)" and "all of history" in endless.why


def test_a_stage_without_state_is_replayed() -> None:
    """Both halves read it, so it is a stage of its own; the filter above it keeps nothing."""
    text = f"""{INPUT}
    Counts = {counted("TUMBLING(1h)")};
    Many = SELECT k, n FROM Counts WHERE n > 10;
    OUTPUT Counts TO 'counts.jsonl'; OUTPUT Many TO 'many.jsonl';
    """
    program = rewrite(parse_program(text))
    last = choose_strategies(cut_stages(program, 2))[-1]
    assert str(last.strategy) == "replay" and last.why == "it keeps nothing"


def test_plain_ticks_have_no_length() -> None:
    text = """STREAM B (vs BIGINT, k STRING) FROM 'b.jsonl';
    Out = SELECT k, COUNT(*) AS n FROM B GROUP BY k WITH TUMBLING(10); OUTPUT Out TO 'o.jsonl';"""
    *_, last = choose_strategies(cut_stages(rewrite(parse_program(text)), 2))
    assert str(last.strategy) == "checkpoint(10s)"
    assert "nobody knows how long a tick is" in last.why


def test_the_program_decides_for_all_stages_but_sources() -> None:
    source, last = choices(counted("TUMBLING(5s)"), "SET strategy = 'replicate(2)';")
    assert (str(source.strategy), source.strategy.copies) == ("checkpoint(10s)", 1)
    assert str(last.strategy) == "replicate(2)" and last.why == "set for the program"
    source, last = choices(counted("TUMBLING(5s)"), "SET strategy = 'checkpoint(2s)';")
    assert str(source.strategy) == str(last.strategy) == "checkpoint(2s)"
    *_, last = choices(counted("TUMBLING(1h)"), "SET strategy = 'replay';")
    assert str(last.strategy) == "replay"


@pytest.mark.parametrize("window", ["SESSION(5s)", "COUNT(3)"])
def test_replay_of_all_of_history_is_refused(window: str) -> None:
    with pytest.raises(PlanError, match=r"stage 1 cannot .* by replay.*all of history"):
        choices(counted(window), "SET strategy = 'replay';")


# --- a stage's own -------------------------------------------------------------------------


def _planned(stream: Stream, default: NamedStrategy | None = None) -> tuple[Choice, ...]:
    source = weir.stream("P", {"At": "TIMESTAMP", "k": "STRING"}, "p.jsonl", vs="At").node
    program = Program((source,), (), (Output("Out", stream.node, ""),))  # type: ignore[arg-type]
    return choose_strategies(cut_stages(rewrite(program), 2), default)


def _counts() -> Stream:
    source = weir.stream("P", {"At": "TIMESTAMP", "k": "STRING"}, "p.jsonl", vs="At")
    return source.group_by("k").window(weir.tumbling("1h")).agg(n=weir.count())


def test_a_stage_has_what_is_said_of_it() -> None:
    said = _counts().with_strategy("replay")
    *_, last = _planned(said, NamedStrategy("replicate", copies=2))
    assert str(last.strategy) == "replay" and last.why.startswith("set for the stage")
    assert said.columns == ("k", "n")


def test_it_changes_nothing_in_the_cut_or_the_answer() -> None:
    rows = {"P": [{"At": 1, "k": "a"}, {"At": 2, "k": "a"}]}
    plain, said = _counts(), _counts().with_strategy("replicate(2)")
    assert weir.collect(said, inputs=rows).equals(weir.collect(plain, inputs=rows))
    assert len(_planned(said)) == len(_planned(plain)) == 2
    above = said.group_by("k").window(weir.tumbling("1d")).agg(n=weir.col("n").sum())
    assert [str(c.strategy) for c in _planned(above)] == ["checkpoint(10s)", "replicate(2)"]


def test_two_that_differ_are_refused() -> None:
    twice = _counts().with_strategy("replay").where(weir.col("n") > 1).with_strategy("checkpoint")
    with pytest.raises(PlanError, match="stage 1 has two strategies: replay, checkpoint"):
        _planned(twice)


def test_a_stage_that_reads_an_input_takes_checkpoints() -> None:
    source = weir.stream("P", {"At": "TIMESTAMP", "k": "STRING"}, "p.jsonl", vs="At")
    some = source.where(weir.col("k") == "a")
    assert str(_planned(some.with_strategy("checkpoint(2s)"))[0].strategy) == "checkpoint(2s)"
    for stream in (source, some):
        with pytest.raises(PlanError, match=r"stage 0 reads an input.*replicate\(2\)"):
            _planned(stream.with_strategy("replicate(2)"))


def test_a_wrong_one_is_refused_at_once() -> None:
    with pytest.raises(PlanError, match="unknown strategy 'often'"):
        _counts().with_strategy("often")
