"""By which columns scans are split, so that rows stay where the next scan needs them."""

from __future__ import annotations

from dataclasses import replace

from handler_apps import app_of
from weir.handlers.planning.app_compiler import compile_app
from weir.plan.operators import FinalState, Partition, StateScan
from weir.plan.program import Output
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import StagedPlan, cut_stages
from weir.runtime.programs import program_of

PATHS = {"m": "m.jsonl", "n": "n.jsonl"}


def _plan(body: str, *, states: bool = False) -> StagedPlan:
    text = f"@app.on(m)\ndef h(e):\n    {body}\n"
    compiled = compile_app(app_of(text), paths=PATHS, params={}, final=states)
    outputs = [Output("o", compiled.emitted["o"].node, "o.jsonl")]
    if states:
        outputs += [
            Output(name, state.node, f"{name}.jsonl") for name, state in compiled.final.items()
        ]
    return cut_stages(rewrite(program_of(outputs)), 3)


def _scans(plan: StagedPlan) -> list[list[tuple[str, ...]]]:
    """The keys of the scans of each stage that has any."""
    found = [[o.keys[0] for o in s.operators if isinstance(o, StateScan)] for s in plan.stages]
    return [keys for keys in found if keys]


def _split(plan: StagedPlan) -> list[set[str]]:
    """The columns by which each stage with a scan is split that is not beside another."""
    return [
        set(stage.ports[0].links[0].keys)
        for stage in plan.stages
        if isinstance(stage.operators[0], StateScan | FinalState)
        and stage.ports[0].links[0].channel == "hash"
    ]


TWO = "sums.add((e.a, e.b), 1)\n    if sums.get((e.a, e.b)) > 1:\n        seen.set(e.a, True)\n"
EMIT = '    if seen.get(e.a): app.emit("o", s=e.s)'


def test_a_scan_is_split_by_the_keys_of_the_next() -> None:
    plan = _plan(TWO + EMIT)
    assert _scans(plan) == [[("a", "b"), ("a",)]] and _split(plan) == [{"a"}]


def test_and_by_those_of_the_last_of_several() -> None:
    body = (
        "sums.add((e.a, e.b, e.s), 1)\n"
        "    if sums.get((e.a, e.b, e.s)) > 1: total.add((e.b, e.a), 1)\n"
        "    if total.get((e.b, e.a)) > 1: seen.set(e.b, True)\n"
        '    if seen.get(e.b): app.emit("o", s=e.s)'
    )
    plan = _plan(body)
    assert _scans(plan) == [[("a", "b", "s"), ("b", "a"), ("b",)]] and _split(plan) == [{"b"}]


def test_other_keys_need_an_exchange() -> None:
    plan = _plan(TWO.replace("seen.set(e.a", "seen.set(e.s") + EMIT.replace("e.a", "e.s"))
    assert _scans(plan) == [[("a", "b")], [("s",)]] and _split(plan) == [{"a", "b"}, {"s"}]


def test_final_states_of_what_stays_stand_beside_it() -> None:
    plan = _plan(TWO + EMIT, states=True)
    beside = [
        stage.ports[0].links[0].channel
        for stage in plan.stages
        if any(isinstance(o, FinalState) and o.state.state == "seen" for o in stage.operators)
    ]
    assert beside == ["forward"]


def test_a_users_partition_between_scans_counts() -> None:
    plan_text = TWO + EMIT
    compiled = compile_app(
        app_of(f"@app.on(m)\ndef h(e):\n    {plan_text}\n"), paths=PATHS, params={}
    )
    emitted = compiled.emitted["o"].node
    scan = emitted
    while not isinstance(scan, StateScan):
        (scan,) = scan.inputs
    hinted = replace(scan, streams=(Partition(scan.streams[0], ("a",), 2, "mine"),))
    plan = cut_stages(program_of([Output("o", hinted, "o.jsonl")]), 3)
    assert _split(plan) == [{"a", "b"}, {"a"}]
    assert [s.uid for s in plan.stages if s.uid] == ["mine"]
