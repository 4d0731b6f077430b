"""Order of handlers, rings, and what is refused."""

import pytest

from weir.errors import PlanError
from weir.handlers.planning.dataflow import Flow, app_flow
from weir.handlers.planning.handler_order import handler_order
from weir.handlers.planning.row_stages import LiveStep
from weir.handlers.trees.accesses import Analysed, EmitAccess, GetAccess, MergeAccess
from weir.handlers.trees.values import Const, Element, Field, Op, ReadValue, Tree

ONE = Const(1)
NONE: frozenset[str] = frozenset()
Found = GetAccess | MergeAccess | EmitAccess


def touching(handler: str, reads: str = "", writes: str = "") -> Analysed:
    """A handler that has no form as accesses."""
    both = frozenset(reads.split()), frozenset(writes.split())
    return Analysed(handler, "e", (), *both, NONE, "line 3: while", "line 3: while", 3)


def analysed(handler: str, *accesses: Found, event: str = "e") -> Analysed:
    reads = frozenset(a.state for a in accesses if isinstance(a, GetAccess))
    writes = frozenset(a.state for a in accesses if isinstance(a, MergeAccess))
    emits = frozenset(a.name for a in accesses if isinstance(a, EmitAccess))
    return Analysed(handler, event, accesses, reads, writes, emits)


def get(handler: str, order: int, state: str, *key: Tree, block: int | None = None) -> GetAccess:
    over = None if block is None else Field("list")
    return GetAccess(
        order=order, handler=handler, line=10 + order, state=state, key=key, block=block, over=over
    )


def add(
    handler: str,
    order: int,
    state: str,
    *key: Tree,
    x: Tree = ONE,
    guard: Tree | None = None,
    block: int | None = None,
) -> MergeAccess:
    over = None if block is None else Field("list")
    return MergeAccess(
        order=order,
        handler=handler,
        line=10 + order,
        state=state,
        key=key,
        kind="add",
        args=(x,),
        guard=guard,
        block=block,
        over=over,
    )


class Sound:
    """`Sound` says that no state has a window, and that no read fails (see `StateTraits`)."""

    def can_fail(self, state: str) -> bool:
        return False

    defers = is_window = can_fail


def flow(
    *found: Analysed, groups: dict[str, int | None] | None = None, vectorise: bool = True
) -> Flow:
    events = list(dict.fromkeys(a.event for a in found))
    return app_flow(events, found, groups or {}, (), Sound(), vectorise=vectorise)


A, B = Field("a"), Field("b")


# --- order ---------------------------------------------------------------------------------


def test_who_writes_comes_before_who_only_reads() -> None:
    judge, count = touching("judge", reads="n"), touching("count", writes="n")
    assert handler_order([judge, count]) == ("count", "judge")


def test_who_reads_and_writes_keeps_its_place() -> None:
    first, second = touching("first", "n", "n"), touching("second", "", "n")
    assert handler_order([first, second]) == ("first", "second")


def test_unrelated_handlers_keep_the_order_of_definition() -> None:
    names = ["c", "a", "b"]
    assert handler_order([touching(n, writes=n) for n in names]) == ("c", "a", "b")


def test_the_first_defined_of_those_that_may_come_next_does() -> None:
    found = [
        touching("z", reads="s"),
        touching("y", writes="t"),
        touching("x", writes="s"),
        touching("w", reads="t"),
    ]
    assert handler_order(found) == ("y", "x", "z", "w")


def test_a_circle_stays_together() -> None:
    found = [
        touching("one", reads="s", writes="t"),
        touching("other", writes="u"),
        touching("two", reads="t", writes="s"),
    ]
    assert handler_order(found) == ("one", "two", "other")


# --- numbers -------------------------------------------------------------------------------


def test_accesses_are_numbered_over_all_handlers() -> None:
    guard = Op("gt", (ReadValue(0), Const(3)))
    judge = analysed(
        "judge",
        get("judge", 0, "n", A),
        EmitAccess(order=1, handler="judge", line=1, name="x", fields=(), guard=guard),
    )
    count = analysed("count", add("count", 0, "n", A), add("count", 1, "m", A))
    (of_e,) = flow(judge, count).events
    assert of_e.handlers == ("count", "judge")
    assert [a.order for a in of_e.accesses] == [0, 1, 2, 3]
    assert of_e.accesses[3].guard == Op("gt", (ReadValue(2), Const(3)))


def test_a_loop_is_called_by_its_first_access() -> None:
    before = analysed("before", add("before", 0, "n", A))
    loop = analysed("loop", *(add("loop", i, "m", Element(7), block=7) for i in range(2)))
    (of_e,) = flow(before, loop).events
    assert [(a.order, a.block) for a in of_e.accesses] == [(0, None), (1, 1), (2, 1)]
    assert isinstance(of_e.accesses[2], MergeAccess)
    assert of_e.accesses[2].key == (Element(1),)


# --- rings -----------------------------------------------------------------------------------


def seen_before(key: Tree, merged: Tree, event: str = "e", state: str = "seen") -> Analysed:
    guard = Op("not", (ReadValue(0),))
    return analysed(
        "mark", get("mark", 0, state, key), add("mark", 1, state, merged, guard=guard), event=event
    )


def live_steps(drawn: Flow) -> list[tuple[str, str, tuple[str, ...], int, tuple[Tree, ...]]]:
    """Return the runs of units where cells are: event type, handler, states, circle, key."""
    return [
        (placed.unit.event, placed.handler, step.step.states, step.step.block, step.key)
        for placed in drawn.units()
        for step in placed.steps
        if isinstance(step.step, LiveStep)
    ]


def test_reading_what_is_written_with_one_key_is_a_unit() -> None:
    drawn = flow(seen_before(A, A))
    (unit,) = drawn.units()
    assert live_steps(drawn) == [("e", "mark", ("seen",), 0, (A,))]
    assert (len(unit.steps), unit.reads, unit.plan.noted) == (1, (), {})
    assert (drawn.rings, drawn.events[0].accesses) == ((), ())
    assert drawn.why_rows == {"mark": "what it reads depends on what it writes"}


def test_a_read_and_a_merge_that_does_not_depend_on_it_are_none() -> None:
    found = analysed("h", get("h", 0, "s", A), add("h", 1, "s", B))
    drawn = flow(found)
    assert (drawn.rings, drawn.why_rows, list(drawn.units())) == ((), {}, [])


def test_a_circle_over_two_event_types_runs_in_one_scan() -> None:
    guard = Op("not", (ReadValue(0),))
    one = analysed("one", get("one", 0, "s", A), add("one", 1, "t", A, guard=guard), event="e")
    two = analysed("two", get("two", 0, "t", B), add("two", 1, "s", B, guard=guard), event="f")
    drawn = flow(one, two)
    both = ("s", "t")
    assert live_steps(drawn) == [("e", "one", both, 0, (A,)), ("f", "two", both, 0, (B,))]
    assert drawn.rings == ()


def test_who_only_reads_the_state_of_a_unit_stays_in_columns() -> None:
    later = analysed("later", get("later", 0, "seen", A), get("later", 1, "seen", B))
    drawn = flow(seen_before(A, A), later)
    (unit,) = drawn.units()
    (of_e,) = drawn.events
    assert (unit.handler, of_e.handlers) == ("mark", ("mark", "later"))
    assert [a.handler for a in of_e.accesses] == ["later", "later"]
    assert all(unit.place < read.order for read in of_e.accesses)


def seen_in_loop(of_list: Tree) -> tuple[GetAccess, MergeAccess]:
    """A read in a loop over a list of the event, and a merge that depends on it."""
    guard = Op("not", (ReadValue(0),))
    return (
        get("h", 0, "seen", of_list, block=0),
        add("h", 1, "seen", of_list, guard=guard, block=0),
    )


def test_a_circle_in_a_loop_over_a_list_is_a_ring() -> None:
    drawn = flow(analysed("h", *seen_in_loop(Element(0))))
    (ring,) = drawn.rings
    assert (ring.states, drawn.why_rows) == (("seen",), {})
    (place,) = ring.places
    assert (place.block, place.key, [s.order for s in place.steps]) == (0, (Element(0),), [0, 1])


def test_a_loop_with_the_key_of_the_event_is_a_unit() -> None:
    drawn = flow(analysed("h", *seen_in_loop(A)))
    assert live_steps(drawn) == [("e", "h", ("seen",), 0, (A,))]
    assert drawn.rings == ()


def test_other_reads_with_the_key_of_a_ring_are_answered_in_it() -> None:
    outside = [get("h", 0, "s", A), add("h", 1, "s", A, x=ReadValue(0))]
    loop = [get("h", 2, "t", Element(2), block=2), add("h", 3, "u", Element(2), block=2)]
    later = analysed("later", get("later", 0, "s", A), get("later", 1, "s", B))
    (ring,) = flow(analysed("h", *outside, *loop), later).rings
    assert [s.order for s in ring.places[0].steps] == [0, 1, 4]


def test_early_reads_are_asked_before_a_unit_runs() -> None:
    found = analysed("h", get("h", 0, "t", B), *seen_before(A, A).accesses)
    drawn = flow(found, vectorise=False)
    (unit,) = drawn.units()
    assert [(read.state, read.key) for read in unit.early] == [("t", (B,))]
    assert unit.steps[-1].needs == {unit.early[0].order}
    assert drawn.why_rows == {"h": "vectorisation is off"}


def test_a_read_of_what_the_unit_merges_before_is_not_early() -> None:
    found = analysed("h", add("h", 0, "s", A), get("h", 1, "s", B))
    (unit,) = flow(found, vectorise=False).units()
    assert unit.early == ()
    note, ask, last = unit.steps
    assert (note.step.state, ask.step.states) == ("s", ("s",))  # type: ignore[union-attr]
    (read,) = ask.reads
    assert unit.note_order("s") < read.order < unit.place
    assert read.order in last.needs


# --- refusals --------------------------------------------------------------------------------


def test_circles_over_different_keys_are_refused_by_name() -> None:
    with pytest.raises(PlanError) as refused:
        flow(seen_before(A, B))
    assert str(refused.value) == (
        "handlers read and write in a circle over different keys: mark (line 10) → seen → mark; "
        "seen with e.a (line 10), seen with e.b (line 11); use one key in all of them, or "
        "app.serial(mark) runs it in one partition, with all its states at hand"
    )


def test_a_circle_of_two_handlers_names_both() -> None:
    guard = Op("not", (ReadValue(0),))
    one = analysed("one", get("one", 0, "s", A), add("one", 1, "t", A, guard=guard))
    two = analysed("two", get("two", 0, "t", B), add("two", 1, "s", A, guard=guard))
    with pytest.raises(PlanError) as refused:
        flow(one, two)
    assert str(refused.value) == (
        "two (line 11): `t` has the key e.b (line 10), and `s` e.a (line 11): reads and merges "
        "that depend on each other need one key; app.serial(one, two) runs them in one partition, "
        "with all their states at hand"
    )


def test_a_merge_with_another_key_in_the_middle_of_a_ring_is_refused() -> None:
    found = analysed(
        "mark",
        get("mark", 0, "seen", A),
        add("mark", 1, "seen", B),
        add("mark", 2, "seen", A, guard=Op("not", (ReadValue(0),))),
    )
    with pytest.raises(PlanError, match=r"different keys.*seen with e\.b \(line 11\)"):
        flow(found)


def test_two_rings_in_one_loop_are_refused() -> None:
    found = []
    for number, state in enumerate(["s", "t"]):
        first = number * 2
        guard = Op("not", (ReadValue(first),))
        found += [get("h", first, state, A), add("h", first + 1, state, A, guard=guard)]
    loop = [get("h", 4, "s", A, block=4), get("h", 5, "t", A, block=4)]
    as_it_is = flow(analysed("h", *found, *loop))
    assert live_steps(as_it_is) == [("e", "h", ("s", "t"), 0, (A,))]
    in_columns = get("h", 6, "u", Element(4), block=4)
    assert len(flow(analysed("h", *found, loop[0], in_columns)).rings) == 2
    with pytest.raises(PlanError, match=r"the loop reads `s` \(line 14\) and `t` \(line 15\)"):
        flow(analysed("h", *found, *loop, in_columns))


def test_what_a_loop_of_a_ring_waits_for_is_the_rings_own() -> None:
    outside = [get("h", 0, "s", A), add("h", 1, "s", A, x=ReadValue(0))]
    element = Element(2)
    later = [get("h", 2, "t", element, block=2), add("h", 3, "s", A, x=ReadValue(2), block=2)]
    (ring,) = flow(analysed("h", *outside, *later)).rings
    assert [s.order for s in ring.places[0].steps] == [0, 1]
    both = Op("add", (ReadValue(2), ReadValue(3)))
    inside = [
        get("h", 2, "s", A, block=2),
        get("h", 3, "t", element, block=2),
        add("h", 4, "s", A, x=both, block=2),
    ]
    with pytest.raises(PlanError, match=r"the loop reads `t` \(line 13\) for `s` \(line 14\)"):
        flow(analysed("h", *outside, *inside))


def test_a_merge_with_another_key_in_a_loop_of_a_ring_is_refused() -> None:
    loop = [
        add("h", 0, "s", Element(0), block=0),
        get("h", 1, "s", A, block=0),
        add("h", 2, "s", A, x=ReadValue(1), block=0),
    ]
    flow(analysed("h", *loop))
    outside = [get("h", 3, "s", A), add("h", 4, "s", A, x=ReadValue(3))]
    with pytest.raises(PlanError, match="in a circle over different keys"):
        flow(analysed("h", *loop, *outside))


def test_what_analysis_refuses_needs_a_serial_group() -> None:
    strange = touching("h", writes="s")
    with pytest.raises(PlanError, match="line 3: while"):
        flow(strange)
    drawn = flow(strange, groups={"h": 0})
    assert live_steps(drawn) == [("e", "h", ("s",), -1, ())]
    assert drawn.why_rows == {"h": "app.serial"}


def test_a_circle_through_a_serial_group_is_refused() -> None:
    strange = touching("h", reads="t", writes="s")
    other = analysed("other", get("other", 0, "s", A), add("other", 1, "t", A, x=ReadValue(0)))
    with pytest.raises(PlanError) as refused:
        flow(strange, other, groups={"h": 0})
    assert str(refused.value) == (
        "the serial group of h is in a circle with other; app.serial(h, other) runs them in one "
        "partition, with all their states at hand"
    )


def test_a_merge_between_the_handlers_of_a_serial_group_keeps_its_place() -> None:
    one, two = touching("one", writes="s n"), touching("two", reads="s", writes="n")
    between = analysed("between", add("between", 0, "n", A))
    drawn = flow(one, between, two, groups={"one": 0, "two": 0})
    (of_e,) = drawn.events
    assert of_e.handlers == ("one", "between", "two")
    first, second = drawn.units()
    (merge,) = of_e.accesses
    assert first.place < merge.order < second.place
