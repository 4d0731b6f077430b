"""Small apps, compiled, against a plain loop over dicts that calls the same handlers."""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import weir
from weir.errors import OperatorFailed, PlanError
from weir.events.types import DOUBLE
from weir.events.user_copies import default_value
from weir.handlers.api.app import App
from weir.handlers.planning.app_compiler import compile_app
from weir.handlers.runs.running_event import event_class, running_with

Rows = Sequence[Mapping[str, Any]]
CUTS = [(cut, parallelism) for cut in (1, 7, None) for parallelism in (1, 2, 5)]


class Plain:
    """A plain serial loop: dicts of the merges of each key, folded at each read."""

    def __init__(self, app: App, params: Mapping[str, object] | None = None) -> None:
        self.app, self.params = app, app.param_values(params)
        self.merges: dict[str, dict[tuple[object, ...], list[tuple[int, Any]]]] = {}
        self.emitted: dict[str, list[dict[str, object]]] = {}
        self.now, self.until = 0, 0

    def run(self, logs: Mapping[str, Rows], order: Sequence[str] | None = None) -> None:
        names = list(order or self.app.handlers)
        events = [
            (row[self._time(event)], number, place, event, row)
            for number, event in enumerate(self.app.event_types)
            for place, row in enumerate(logs[event])
        ]
        with running_with(self):
            for vs, _, _, event, row in sorted(events, key=lambda e: e[:3]):
                columns = [name for name, _ in self.app.event_types[event].columns]
                values = [row.get(name) for name in columns]
                self.now, self.until = vs, vs + 1
                made = event_class(event, columns)((vs, vs + 1, *values))
                for name in names:
                    handler = self.app.handlers[name]
                    if any(e.name == event for e in handler.events):
                        handler.function(made)

    def _time(self, event: str) -> str:
        options = self.app.event_types[event].options
        return "ts" if options is None else options.vs

    def param(self, name: str) -> object:
        return self.params[name]

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        row = {"vs": self.now, "ve": self.until, **fields}
        self.emitted.setdefault(name, []).append(row)

    def merge(
        self,
        state: str,
        key: tuple[object, ...],
        kind: str,
        args: tuple[Any, ...],
        function: Callable[..., object] | None,
    ) -> None:
        # What a function reads, it reads now: the windows of other states move on.
        captured = function
        if function is not None and self.app.states[state].last is None:
            old = self.get(state, key)
            value = function(old)
            kind, args, captured = "set", (value,), None
        merge = (self.now, (kind, args, captured))
        self.merges.setdefault(state, {}).setdefault(key, []).append(merge)

    def get(self, state: str, key: tuple[object, ...]) -> object:
        return self.at(state, key, self.now)

    def at(self, state: str, key: tuple[object, ...], now: int) -> Any:
        declared = self.app.states[state]
        default = default_value(declared.default, declared.type)
        value: Any = default
        before = -math.inf
        for time, merge in self.merges.get(state, {}).get(key, []):
            if declared.last is not None and not now < time + declared.last:
                continue
            if declared.expires is not None and time >= before + declared.expires:
                value = default
            value, before = _merged(value, *merge), time
        if declared.expires is not None and now >= before + declared.expires:
            value = default
        return float(value) if isinstance(value, Fraction) else value


def _merged(old: Any, kind: str, args: tuple[Any, ...], function: Any) -> Any:
    match kind:
        case "set":
            return args[0]
        case "call":
            return function(old)
        case "add" if isinstance(old, float | Fraction):
            return Fraction(old) + Fraction(args[0])
        case "add":
            return old + args[0]
        case "max":
            return max(old, args[0])
        case "min":
            return min(old, args[0])
        case "append":
            return [*old, args[0]]
        case "add_to_set":
            return old if args[0] in old else [*old, args[0]]
        case "top_k":
            return sorted([*old, args[0]], reverse=True)[: args[1]]
    raise AssertionError(kind)


def compared(rows: Rows) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def check(
    app: App,
    logs: Mapping[str, Rows],
    order: Sequence[str] | None = None,
    params: Mapping[str, object] | None = None,
    cuts: Sequence[tuple[int | None, int]] = CUTS,
    final: bool = True,
) -> dict[str, list[dict[str, object]]]:
    """Run the app in all ways, compare emits and final states with the loop's, return emits."""
    plain = Plain(app, params)
    plain.run(logs, order)
    for vectorise in (True, False):
        made = compile_app(app, params=params, final=final, vectorise=vectorise)
        again = compile_app(app, params=params, final=final, vectorise=vectorise)
        assert (made.emitted, made.final) == (again.emitted, again.final)
        assert plain.emitted.keys() <= made.emitted.keys()
        for cut, parallelism in cuts if vectorise else cuts[-1:]:
            for name, stream in made.emitted.items():
                rows = weir.collect(stream, inputs=logs, cut=cut, parallelism=parallelism)
                wanted = [in_columns(row, rows) for row in plain.emitted.get(name, [])]
                assert compared(rows.to_pylist()) == compared(wanted)
        for name, stream in made.final.items():
            state = app.states[name]
            if state.last is None and state.expires is None:
                rows = weir.collect(stream, inputs=logs, cut=7, parallelism=2)
                found = {
                    tuple(v for n, v in r.items() if n.startswith("key")): r["value"]
                    for r in rows.to_pylist()
                }
                end = 10**9
                known = plain.merges.get(name, {})
                assert found == {key: plain.at(name, key, end) for key in known}
    return plain.emitted


def in_columns(row: Mapping[str, Any], table: pa.Table) -> dict[str, Any]:
    """Return an emitted row as the table has it: missing fields are NULL, ints may be DOUBLE."""
    found = {name: row.get(name) for name in table.column_names}
    doubles = [f.name for f in table.schema if f.type == DOUBLE and found[f.name] is not None]
    return found | {name: float(found[name]) for name in doubles}


def numbers(count: int, *sizes: int, seed: int = 1) -> list[tuple[int, ...]]:
    """Return rows of small numbers, by a fixed rule."""
    rows, state = [], seed
    for _ in range(count):
        row = []
        for size in sizes:
            state = (state * 1103515245 + 12345) % 2**31
            row.append((state >> 8) % size)
        rows.append(tuple(row))
    return rows


def log(count: int, *columns: tuple[str, int], seed: int = 1, until: int = 40) -> Rows:
    """Return rows ordered by `ts`, with equal times among them."""
    names, sizes = [c for c, _ in columns], [s for _, s in columns]
    rows = sorted(numbers(count, until, *sizes, seed=seed), key=lambda r: r[0])
    return [{"ts": row[0], **dict(zip(names, row[1:], strict=True))} for row in rows]


# --- the apps ------------------------------------------------------------------------------


def spam_app() -> App:
    app = App("spam")
    friendship = app.events("friendship", "a BIGINT, b BIGINT, ts BIGINT", vs="ts")
    message = app.events(
        "message",
        "id BIGINT, sender BIGINT, recipient BIGINT, ip BIGINT, content STRING, ts BIGINT",
        vs="ts",
    )
    friendships = app.state("friendships", default=False)
    friend_msgs = app.state("friend_msgs", default=0)
    nonfriend_msgs = app.state("nonfriend_msgs", default=0)
    ip_msgs = app.state("ip_msgs", default=0)
    ip_email_msgs = app.state("ip_email_msgs", default=0)
    share = app.param("share", 0.2)

    @app.on(friendship)
    def befriend(e):  # type: ignore[no-untyped-def]
        friendships.merge((e.a, e.b), lambda _: True)

    @app.on(message)
    def count(e):  # type: ignore[no-untyped-def]
        if friendships.get((e.sender, e.recipient)):
            friend_msgs.merge(e.sender, lambda n: n + 1)
        else:
            nonfriend_msgs.merge(e.sender, lambda n: n + 1)

    @app.on(message)
    def by_ip(e):  # type: ignore[no-untyped-def]
        ip_msgs.merge(e.ip, lambda n: n + 1)
        if "@" in e.content:
            ip_email_msgs.merge(e.ip, lambda n: n + 1)

    @app.on(message)
    def judge(e):  # type: ignore[no-untyped-def]
        if nonfriend_msgs.get(e.sender) > 2 * friend_msgs.get(e.sender) and ip_email_msgs.get(
            e.ip
        ) > share * ip_msgs.get(e.ip):
            app.emit("spam", message=e.id, sender=e.sender)

    return app


def spam_logs() -> dict[str, Rows]:
    messages = log(40, ("sender", 3), ("recipient", 3), ("ip", 2), ("mail", 2), until=20)
    return {
        "friendship": log(6, ("a", 3), ("b", 3), seed=5, until=20),
        "message": [
            {**row, "id": i, "content": "a@b" if row["mail"] else "hi"}
            for i, row in enumerate(messages)
        ],
    }


def test_the_spam_app() -> None:
    emitted = check(spam_app(), spam_logs())
    assert 5 < len(emitted["spam"]) < 35


def test_scans_are_grouped_by_key() -> None:
    scans = compile_app(spam_app()).scans
    assert [[read.state for read in scan.reads] for scan in scans] == [
        ["friendships"],
        ["nonfriend_msgs", "friend_msgs"],
        ["ip_email_msgs", "ip_msgs"],
    ]
    assert [len(scan.others) for scan in scans] == [1, 0, 0]


def test_a_parameter_changes_only_what_depends_on_it() -> None:
    app = spam_app()
    one, other = (compile_app(app, params={"share": s}).emitted["spam"] for s in (0.2, 0.9))
    assert one != other
    assert one.node.inputs[0].inputs[0].inputs == other.node.inputs[0].inputs[0].inputs
    check(app, spam_logs(), params={"share": 0.9}, cuts=CUTS[3:5])


# --- one thing each --------------------------------------------------------------------------

FEW: list[tuple[int | None, int]] = [(1, 2), (7, 5)]
Numbered = tuple[App, Any]


def events_app(columns: str = "k BIGINT, j BIGINT, v BIGINT") -> Numbered:
    app = App("a")
    return app, app.events("e", f"{columns}, ts BIGINT", vs="ts")


def events_log(count: int = 40, seed: int = 1) -> dict[str, Rows]:
    rows = log(count, ("k", 4), ("j", 4), ("v", 10), seed=seed)
    return {"e": rows}


def test_reads_see_earlier_statements_and_handlers() -> None:
    app, e_type = events_app()
    n = app.state("n", default=0)

    @app.on(e_type)
    def judge(e):  # type: ignore[no-untyped-def]
        app.emit("after", k=e.k, n=n.get(e.k), other=n.get(e.j))

    @app.on(e_type)
    def count(e):  # type: ignore[no-untyped-def]
        before = n.get(e.k)
        n.add(e.k, e.v)
        between = n.get(e.k)
        n.add(e.k, 1)
        app.emit("within", before=before, between=between, behind=n.get(e.k))

    check(app, events_log(), order=["count", "judge"], cuts=FEW)


def test_windows_and_expiry() -> None:
    app, e_type = events_app()
    recent = app.state("recent", default=0, last=5)
    alive = app.state("alive", default=0, expires=4)
    prices = app.state("prices", default=[], type="LIST(BIGINT)", last=6)

    @app.on(e_type)
    def all_of_it(e):  # type: ignore[no-untyped-def]
        app.emit("before", k=e.k, r=recent.get(e.k), a=alive.get(e.k), p=prices.get(e.j))
        recent.add(e.k, e.v)
        alive.merge(e.k, lambda n: n * 2 + e.v)
        prices.append(e.k, e.v)
        app.emit("after", k=e.k, r=recent.get(e.k), a=alive.get(e.k), p=prices.get(e.j))

    check(app, events_log(), cuts=FEW)


def test_loops_go_element_by_element() -> None:
    app = App("loops")
    order = app.events("order", "id BIGINT, items LIST(BIGINT), ts BIGINT", vs="ts")
    sold = app.state("sold", default=0)
    last_seller = app.state("last_seller", default=-1)

    @app.on(order)
    def sell(e):  # type: ignore[no-untyped-def]
        before = sold.get(7)
        for item in e.items:
            if item != 3:
                sold.add(item, 1)
                last_seller.set(item, e.id)
            app.emit("sold", item=item, n=sold.get(item), before=before)
        app.emit("order", id=e.id, seller=last_seller.get(1), seven=sold.get(7))

    rows = log(60, ("a", 9), ("b", 9), ("n", 3))
    orders = [
        {"ts": r["ts"], "id": i, "items": [r["a"], r["b"], r["a"]][: r["n"] + 1]}
        for i, r in enumerate(rows)
    ]
    check(app, {"order": orders}, cuts=FEW)


@pytest.mark.parametrize("ring", [False, True])
def test_a_loop_over_none_fails_where_it_is_run(ring: bool) -> None:
    app = App("loops")
    order = app.events("order", "id BIGINT, items LIST(BIGINT), ts BIGINT", vs="ts")
    sold = app.state("sold", default=0)

    @app.on(order)
    def sell(e):  # type: ignore[no-untyped-def]
        if e.id > 0:
            for item in e.items:
                if e.id > 1:
                    sold.add(e.id if ring else item, sold.get(e.id) if ring else 1)
        app.emit("order", n=sold.get(e.id))

    rows = [{"ts": 1, "id": 0, "items": None}, {"ts": 2, "id": 2, "items": [1, 2]}]
    check(app, {"order": rows}, cuts=FEW)
    for wrong in ({"ts": 3, "id": 2, "items": None}, {"ts": 3, "id": 1, "items": None}):
        with pytest.raises(OperatorFailed, match=r"sell .*'NoneType' object is not iterable"):
            weir.collect(compile_app(app).emitted["order"], inputs={"order": [*rows, wrong]})


def units_in_scans(app: App) -> list[list[str]]:
    """Return the handlers that run as they are where the cells of their states are, by scan; no
    other scan runs reads and merges together."""
    scans = compile_app(app).scans
    assert not any(scan.is_ring for scan in scans)
    return [[run.unit.handler for run in scan.runs] for scan in scans if scan.runs]


def test_circles_run_together_within_a_key() -> None:
    app, e_type = events_app()
    seen = app.state("seen", default=0)
    left = app.state("left", default=3)
    total = app.state("total", default=0)

    @app.on(e_type)
    def take(e):  # type: ignore[no-untyped-def]
        if left.get(e.k) > 0:
            seen.merge(e.k, lambda n: n + e.v)
            app.emit("taken", k=e.k, v=e.v, n=seen.get(e.k))
            total.add(e.j, 1)

    @app.on(e_type)
    def fill(e):  # type: ignore[no-untyped-def]
        if seen.get(e.k) > 12:
            seen.set(e.k, 0)
            left.set(e.k, 2)
        else:
            left.add(e.k, -1)

    @app.on(e_type)
    def look(e):  # type: ignore[no-untyped-def]
        app.emit("look", n=seen.get(e.j), t=total.get(e.k), left=left.get(e.k))

    check(app, events_log(), order=["fill", "take", "look"], cuts=FEW)
    assert units_in_scans(app) == [["fill", "take"]]


def test_rings_over_event_types_and_in_loops() -> None:
    app = App("rings")
    put = app.events("put", "k BIGINT, xs LIST(BIGINT), ts BIGINT", vs="ts")
    take = app.events("take", "k BIGINT, n BIGINT, ts BIGINT", vs="ts")
    stock = app.state("stock", default=0)
    open_orders = app.state("open_orders", default=0)
    first = app.state("first", default=-1)

    @app.on(put)
    def fill(e):  # type: ignore[no-untyped-def]
        if open_orders.get(e.k) > 0:
            open_orders.add(e.k, -1)
        else:
            stock.add(e.k, 1)

    @app.on(take)
    def sell(e):  # type: ignore[no-untyped-def]
        have = stock.get(e.k)
        if have >= e.n:
            stock.add(e.k, -e.n)
            app.emit("sold", k=e.k, n=e.n, have=have)
        else:
            open_orders.add(e.k, 1)

    @app.on(put)
    def firsts(e):  # type: ignore[no-untyped-def]
        for x in e.xs:
            if first.get(x) < 0:
                first.set(x, e.k)
                app.emit("first", x=x, k=first.get(x))

    rows = log(50, ("k", 3), ("a", 30), ("b", 30))
    puts = [{"ts": r["ts"], "k": r["k"], "xs": [r["a"], r["b"], r["a"]]} for r in rows]
    takes = log(30, ("k", 3), ("n", 3), seed=9)
    check(app, {"put": puts, "take": takes}, cuts=FEW)


def test_loops_run_within_a_circle_of_the_same_key() -> None:
    app = App("loops")
    order = app.events("order", "k BIGINT, items LIST(BIGINT), ts BIGINT", vs="ts")
    left = app.state("left", default=5)

    @app.on(order)
    def take(e):  # type: ignore[no-untyped-def]
        before = left.get(e.k)
        for item in e.items:
            if left.get(e.k) >= item:
                left.add(e.k, -item)
                app.emit("taken", k=e.k, item=item, before=before, left=left.get(e.k))
        if left.get(e.k) < 2:
            left.merge(e.k, lambda n: n + 7)
            app.emit("filled", k=e.k, left=left.get(e.k))

    rows = log(30, ("k", 3), ("a", 4), ("b", 4), ("n", 3))
    orders = [
        {"ts": r["ts"], "k": r["k"], "items": [r["a"], r["b"], r["a"]][: r["n"] + 1]} for r in rows
    ]
    emitted = check(app, {"order": orders}, cuts=FEW)
    assert emitted["taken"] and emitted["filled"]
    assert units_in_scans(app) == [["take"]]


def test_values_of_all_kinds() -> None:
    app, e_type = events_app("k BIGINT, j BIGINT, v BIGINT, s STRING, x DOUBLE")
    by_pair = app.state("by_pair", default=0.0)
    best = app.state("best", default=[], type="LIST(BIGINT)")
    names = app.state("names", default=[], type="LIST(STRING)")
    latest = app.state("latest", default={"v": 0, "s": ""}, type="STRUCT(v BIGINT, s STRING)")
    high = app.state("high", default=-1)
    drift = app.state("drift", default=0.0)

    @app.on(e_type)
    def keep(e):  # type: ignore[no-untyped-def]
        by_pair.add((e.k, e.s), e.x)
        best.top_k(e.k, e.v, 3)
        names.add_to_set(e.j, f"{e.s}-{e.v}")
        latest.set(e.k, {"v": e.v, "s": e.s})
        high.max(e.s, e.v)
        drift.merge(e.k, lambda n: n + e.x)

    @app.on(e_type)
    def show(e):  # type: ignore[no-untyped-def]
        now = latest.get(e.j)
        app.emit(
            "shown",
            pair=by_pair.get((e.j, e.s)),
            best=best.get(e.k),
            names=names.get(e.k),
            v=now["v"],
            s=now["s"].upper(),
            high=high.get(e.s),
            drift=drift.get(e.k),
        )

    rows = [
        {**r, "s": "äßc"[r["j"] % 3] if r["v"] else None, "x": r["v"] / 10 + r["k"] * 1e9}
        for r in events_log()["e"]
    ]
    rows = [{**r, "s": r["s"] or "none"} for r in rows]
    check(app, {"e": rows}, cuts=FEW)


def test_a_merge_function_reads_just_before_the_merge() -> None:
    app, e_type = events_app()
    rate, sums = app.state("rate", default=1), app.state("sums", default=0)

    @app.on(e_type)
    def add(e):  # type: ignore[no-untyped-def]
        sums.merge(e.k, lambda n: n * 2 + rate.get(e.j))
        rate.set(e.j, e.v)
        app.emit("sums", k=e.k, n=sums.get(e.k))

    check(app, events_log(), cuts=FEW)


def test_serial_groups_run_any_code() -> None:
    app, e_type = events_app()
    other = app.events("f", "k BIGINT, ts BIGINT", vs="ts")
    pairs = app.state("pairs", default=0, key="BIGINT")
    longest = app.state("longest", default=0, key="BIGINT")
    given = app.state("given", default=1)
    app.emits("walked", "k BIGINT, steps BIGINT")

    @app.on(other)
    def give(e):  # type: ignore[no-untyped-def]
        given.add(e.k, 1)

    @app.serial
    @app.on(e_type)
    def walk(e):  # type: ignore[no-untyped-def]
        at, steps = e.k, 0
        while pairs.get(at) and steps < 5:
            at, steps = pairs.get(at), steps + given.get(at)
        pairs.set(at, e.j)
        longest.max(e.k, steps)
        if steps:
            app.emit("walked", k=e.k, steps=steps)

    @app.on(e_type)
    def show(e):  # type: ignore[no-untyped-def]
        app.emit("shown", k=e.k, longest=longest.get(e.j))

    logs = {**events_log(), "f": log(20, ("k", 4), seed=3)}
    check(app, logs, cuts=FEW)


class Hidden:
    """A `Hidden` reads or writes a state where no text of a handler says so."""

    def __init__(self, access: Callable[[object], object]) -> None:
        self.access = access

    def __neg__(self) -> int:
        self.access(1)
        return 1


@pytest.mark.parametrize("writes", [False, True])
def test_a_serial_handler_touches_only_what_its_order_counts_with(writes: bool) -> None:
    app, e_type = events_app()
    n = app.state("n", default=0, key="BIGINT")
    hidden = Hidden((lambda k: n.add(k, 1)) if writes else n.get)
    app.emits("seen", "v BIGINT")

    @app.on(e_type)
    def judge(e):  # type: ignore[no-untyped-def]
        app.emit("seen", v=-hidden)

    @app.on(e_type)
    def count(e):  # type: ignore[no-untyped-def]
        n.add(e.k, n.get(e.k) + 1)

    app.serial(judge, count)
    what = "judge merges into n" if writes else "judge reads n with the key 1"
    hint = "the text of the handler does not show it: use the state by its name, or pass it on"
    why = f"{what} in a way that was not found when the app was planned; {hint}"
    with pytest.raises(OperatorFailed, match=why):
        weir.collect(compile_app(app).emitted["seen"], inputs=events_log())


def test_a_merge_between_the_handlers_of_a_serial_group() -> None:
    app, e_type = events_app()
    n = app.state("n", default=0)
    m = app.state("m", default=0)

    @app.on(e_type)
    def first(e):  # type: ignore[no-untyped-def]
        m.add(e.k, 1)
        n.add(e.k, e.v)

    @app.on(e_type)
    def between(e):  # type: ignore[no-untyped-def]
        n.max(e.k, 12)

    @app.on(e_type)
    def second(e):  # type: ignore[no-untyped-def]
        if m.get(e.k) > 1:
            n.set(e.k, n.get(e.k) % 1000 + 5)

    @app.on(e_type)
    def shown(e):  # type: ignore[no-untyped-def]
        app.emit("shown", n=n.get(e.k), other=n.get(e.j))

    app.serial(first, second)
    assert check(app, events_log(), cuts=FEW)["shown"]
    assert units_in_scans(app) == [["first", "second"]]


def test_a_whole_app_can_be_serial() -> None:
    app = spam_app()
    app.serial()
    check(app, spam_logs(), cuts=FEW)


def test_events_of_any_stream() -> None:
    clicks = weir.stream("Clicks", {"k": "BIGINT", "v": "BIGINT", "ts": "BIGINT"}, "", vs="ts")
    app = App("a")
    click = app.events("click", clicks.where(weir.col("v") > 2))
    total = app.events("total", clicks.group_by("k").window(weir.tumbling(10)).agg(n=weir.count()))
    plain = app.events("plain", "k BIGINT, ts BIGINT", vs="ts")
    seen = app.state("seen", default=[], type="LIST(BIGINT)")

    @app.on(click)
    def clicked(e):  # type: ignore[no-untyped-def]
        seen.append(e.k, e.v)

    @app.on(total)
    def counted(e):  # type: ignore[no-untyped-def]
        seen.append(e.k, -e.n)

    @app.on(plain)
    def asked(e):  # type: ignore[no-untyped-def]
        app.emit("seen", k=e.k, seen=seen.get(e.k))

    rows = log(60, ("k", 3), ("v", 6))
    asks = log(20, ("k", 3), seed=4)
    wanted: list[Any] = []
    counts: dict[tuple[int, int], int] = {}
    for row in rows:
        window = row["ts"] // 10 * 10
        counts[window, row["k"]] = counts.get((window, row["k"]), 0) + 1
    inputs = [(r["ts"], 0, i, r["k"], r["v"]) for i, r in enumerate(rows) if r["v"] > 2]
    inputs += [(w, 1, i, k, -n) for i, ((w, k), n) in enumerate(sorted(counts.items()))]
    inputs += [(r["ts"], 2, i, r["k"], 0) for i, r in enumerate(asks)]
    lists: dict[int, list[int]] = {}
    for ts, kind, _, k, v in sorted(inputs):
        if kind == 2:
            wanted.append((ts, k, list(lists.get(k, []))))
        else:
            lists.setdefault(k, []).append(v)
    for cut, parallelism in FEW:
        made = weir.collect(
            compile_app(app).emitted["seen"],
            inputs={"Clicks": rows, "plain": asks},
            cut=cut,
            parallelism=parallelism,
        ).to_pylist()
        assert sorted((r["vs"], r["k"], r["seen"]) for r in made) == sorted(wanted)


def test_a_span_of_time_and_a_state_to_go_on_from() -> None:
    app, logs = spam_app(), spam_logs()
    whole = weir.collect(compile_app(app).emitted["spam"], inputs=logs).to_pylist()
    first = compile_app(app, end=10, final=True)
    saved = {
        name: weir.collect(stream, inputs=logs, parallelism=2)
        for name, stream in first.final.items()
    }
    restored = {}
    for number, (name, table) in enumerate(saved.items()):
        columns = {c: table.schema.field(c).type for c in table.column_names}
        restored[name] = weir.stream(f"S_{name}", columns, "", vs="vs", index=number + 2)
    then = compile_app(app, start=10, restored=restored)
    tables = {f"S_{name}": table.to_pylist() for name, table in saved.items()}
    for cut, parallelism in FEW:
        parts = [
            weir.collect(of, inputs=logs | tables, cut=cut, parallelism=parallelism).to_pylist()
            for of in (first.emitted["spam"], then.emitted["spam"])
        ]
        assert parts[0] + parts[1] == whole


def test_errors_are_those_of_the_handler() -> None:
    app, e_type = events_app()

    @app.on(e_type)
    def divide(e):  # type: ignore[no-untyped-def]
        if e.v != 5:
            app.emit("x", x=1 / (e.v - 5))
        if e.k == 9:
            app.emit("x", x=1 / (e.j - e.j))

    logs = events_log()
    assert len(check(app, logs, cuts=FEW)["x"])
    rows = [*logs["e"], {"ts": 99, "k": 9, "j": 1, "v": 1}]
    with pytest.raises(OperatorFailed, match=r"divide .*ZeroDivisionError"):
        weir.collect(compile_app(app).emitted["x"], inputs={"e": rows})


def test_the_text_says_what_runs_how() -> None:
    text = compile_app(spam_app()).text()
    assert "merge friend_msgs[e.sender]: add 1, if friendships.get((e.sender, e.recipient))" in text
    assert "message by e.sender: reads nonfriend_msgs, friend_msgs together" in text
    assert "merges come in from friendship's befriend by (e.a, e.b)" in text
    assert "nothing: all values are column expressions" in text


def test_fields_of_emits_must_fit_together() -> None:
    app, e_type = events_app()

    @app.on(e_type)
    def twice(e):  # type: ignore[no-untyped-def]
        app.emit("x", a=e.v, b=0, c=None)
        app.emit("x", a=None, b=e.v / 2, c=f"{e.k}")

    check(app, events_log(), cuts=FEW[:1])
    other, o_type = events_app()

    @other.on(o_type)
    def unlike(e):  # type: ignore[no-untyped-def]
        other.emit("x", a=e.v)
        other.emit("x", a=e.v / 2)

    with pytest.raises(PlanError, match=r"`a` of `x` is BIGINT in unlike .* and DOUBLE"):
        compile_app(other)


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("serial", [False, True])
def test_all_emits_of_a_stream_have_all_of_its_fields(declared: bool, serial: bool) -> None:
    app, e_type = events_app()

    @app.on(e_type)
    def fewer(e):  # type: ignore[no-untyped-def]
        if e.v > 0:
            app.emit("x", a=e.v, b=e.k)
        else:
            app.emit("x", a=e.v)

    if declared:
        app.emits("x", "a BIGINT, b BIGINT")
    if serial:
        app.serial()
    with pytest.raises(PlanError) as caught:
        compile_app(app)
    first = fewer.__code__.co_firstlineno
    known = f"it has in fewer ({__file__}:{first + 3})"
    assert str(caught.value) == (
        f"fewer ({__file__}:{first + 5}): this emit of `x` has no `b`, which "
        f"{'app.emits declares' if declared else known}; write b=None where there is none"
    )
