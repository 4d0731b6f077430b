"""What an app declares, and the errors at the call."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import weir
from weir.errors import PlanError
from weir.events.types import type_name
from weir.handlers.api.app_file import load_app
from weir.handlers.runs.running_event import event_class, running_with
from weir.plan.states import MergeKind


class Noted:
    """Notes what a handler does; every cell is 7."""

    def __init__(self, **params: object) -> None:
        self.notes: list[object] = []
        self.params = params

    def get(self, state: str, key: tuple[object, ...]) -> object:
        self.notes.append(("get", state, key))
        return 7

    def merge(
        self,
        state: str,
        key: tuple[object, ...],
        kind: MergeKind,
        args: tuple[object, ...],
        function: Callable[..., object] | None,
    ) -> None:
        self.notes.append((kind, state, key, args if function is None else function(7)))

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        self.notes.append(("emit", name, dict(fields)))

    def param(self, name: str) -> object:
        return self.params[name]


def spam() -> weir.App:
    app = weir.App("spam")
    message = app.events("message", "id BIGINT, sender BIGINT, ts BIGINT", vs="ts", delay="1s")
    sent = app.state("sent", default=0)
    limit = app.param("limit", 5)

    @app.on(message)
    def count(e):
        sent.add(e.sender, 1)
        sent.merge((e.sender, 1), lambda n: n + e.id)
        if sent.get(e.sender) > limit:
            app.emit("spam", message=e.id, over=f"{limit:03d}")

    return app


def test_what_is_declared_is_data_in_order() -> None:
    app = spam()
    (message,) = app.event_types.values()
    assert [name for name, _ in message.columns] == ["id", "sender", "ts"]
    assert message.options is not None and message.options.delay == 1_000_000
    assert message.path is None and message.is_log
    assert list(app.handlers) == ["count"] and app.handlers["count"].events == (message,)
    assert app.states["sent"].type == pa.int64() and app.states["sent"].default == 0
    assert app.serial_group("count") is None


def run(app: weir.App, **params: object) -> list[object]:
    event = event_class("message", ["id", "sender", "ts"])((3, None, 1, 2, 3))
    noted = Noted(**params)
    with running_with(noted):
        app.handlers["count"].function(event)
    return noted.notes


EXPECTED = [
    ("add", "sent", (2,), (1,)),
    ("call", "sent", (2, 1), 8),
    ("get", "sent", (2,)),
    ("emit", "spam", {"message": 1, "over": "005"}),
]


def test_handlers_reach_what_is_running_by_name() -> None:
    assert run(spam(), limit=5) == EXPECTED
    assert run(spam(), limit=7) == EXPECTED[:3]


def test_an_app_travels_by_value() -> None:
    assert run(pickle.loads(cloudpickle.dumps(spam())), limit=5) == EXPECTED


def test_outside_of_a_run_there_is_no_state() -> None:
    app = spam()
    for use in (
        lambda: app.states["sent"].get(1),
        lambda: app.states["sent"].top_k(1, 2, 3),
        lambda: app.emit("spam"),
        lambda: app.params["limit"] + 1,
        lambda: bool(app.params["limit"]),
    ):
        with pytest.raises(PlanError, match="inside of handlers"):
            use()
    assert repr(app.params["limit"]) == "app.param('limit', 5)"


def test_parameters_act_as_their_values() -> None:
    app = weir.App("a")
    x, s = app.param("x", 0.5), app.param("s", "ab")
    with running_with(Noted(x=0.25, s="xyz")):
        assert (x + 1, 1 - x, -x, x < 1, 2**x, abs(x), round(x), f"{x:.1f}", str(x)) == (
            1.25,
            0.75,
            -0.25,
            True,
            2**0.25,
            0.25,
            0,
            "0.2",
            "0.25",
        )
        assert (s.upper(), "y" in s, s[0], len(s), s + s, {s: 1}["xyz"], s.value) == (
            "XYZ",
            True,
            "x",
            3,
            "xyzxyz",
            1,
            "xyz",
        )
        assert x == 0.25 and s != x and 1 // x == 4.0


def test_states_and_emits_get_the_values_of_parameters() -> None:
    app = weir.App("a")
    sums, limit = app.state("sums", default=0), app.param("limit", 5)
    noted = Noted(limit=6)
    with running_with(noted):
        sums.set((limit, 1), [limit, {"k": limit}])
        sums.merge(limit, lambda _: limit)
        app.emit("x", v=limit)
    assert str(noted.notes) == (
        "[('set', 'sums', (6, 1), ([6, {'k': 6}],)), ('call', 'sums', (6,), 6), "
        "('emit', 'x', {'v': 6})]"
    )


@pytest.mark.parametrize(
    ("default", "said", "expected", "kept"),
    [
        (False, None, "BOOLEAN", False),
        (0, None, "BIGINT", 0),
        (0.0, None, "DOUBLE", 0.0),
        ("", None, "STRING", ""),
        (b"", None, "BINARY", b""),
        (datetime.date(2020, 1, 2), None, "DATE", datetime.date(2020, 1, 2)),
        (0, "DOUBLE", "DOUBLE", 0.0),
        (0, "INT", "INT", 0),
        (None, "BIGINT", "BIGINT", None),
        ([], "LIST(BIGINT)", "LIST(BIGINT)", ()),
        ((), "LIST(STRING)", "LIST(STRING)", ()),
        ([1, 2], None, "LIST(BIGINT)", (1, 2)),
        ({"n": 0, "who": ""}, None, "STRUCT(n BIGINT, who STRING)", (("n", 0), ("who", ""))),
        (None, pa.list_(pa.string()), "LIST(STRING)", None),
    ],
)
def test_types_of_states(default: object, said: object, expected: str, kept: object) -> None:
    state = weir.App("a").state("s", default=default, type=said)
    assert (type_name(state.type), state.default) == (expected, kept)
    assert type(state.default) is type(kept)


def test_a_mutable_default_is_copied() -> None:
    default = [1]
    state = weir.App("a").state("s", default=default)
    default.append(2)
    assert state.default == (1,)


@pytest.mark.parametrize("last", ["7d", 7 * 86_400_000_000, datetime.timedelta(days=7)])
def test_durations(last: object) -> None:
    app = weir.App("a")
    assert app.state("s", default=0, last=last).last == 604_800_000_000
    assert app.state("t", default=0, expires=last).expires == 604_800_000_000


def test_key_types() -> None:
    app = weir.App("a")
    assert app.state("s", default=0, key="BIGINT, STRING").keys == (pa.int64(), pa.string())
    assert app.state("t", default=0, key=["BIGINT", pa.string()]).keys == (pa.int64(), pa.string())
    assert app.state("u", default=0).keys is None


WRONG: list[tuple[Callable[[weir.App], object], str]] = [
    (lambda a: weir.App("no good"), "the name of an app is letters, digits and _, not 'no good'"),
    (lambda a: a.state("s"), "the default of `s` is None; say its type"),
    (lambda a: a.state("s", default=[]), "empty list; say its type: type='LIST(BIGINT)'"),
    (lambda a: a.state("s", default=set()), "a set, which has no order; default=()"),
    (lambda a: a.state("s", default=object()), "of which the type is not known"),
    (lambda a: a.state("s", default=0, type="STRING"), "the default of `s` is 0; expected STRING"),
    (lambda a: a.state("s", default=True, type="BIGINT"), "is True; expected BIGINT"),
    (lambda a: a.state("s", default={"x": 1}, type="STRUCT(y BIGINT)"), "expected STRUCT"),
    (lambda a: a.state("s", default=2**63), "expected BIGINT"),
    (lambda a: a.state("s", default=0, last="1d", expires="1d"), "`last` and `expires`: leave out"),
    (lambda a: a.state("s", default=0, last="1w"), "invalid duration '1w'"),
    (lambda a: a.state("s", default=0, last=0), "`last` must be at least 1 tick"),
    (lambda a: a.state("s", default=0, last=2**62), "`last` must be less than 2**62 ticks, wh"),
    (lambda a: a.state("s", default=0, expires=2**63 - 1), "leave out `expires`: then nothing end"),
    (lambda a: [a.state("s", default=0) for _ in "12"], "two states called `s`"),
    (lambda a: a.state("s", default=0, type="NUMBER"), "unknown type `NUMBER`"),
    (lambda a: a.events("m", "id BIGINT"), "`vs` is missing; vs='id'"),
    (
        lambda a: a.events("m", "id BIGINT, ts", vs="ts"),
        "a column of the event type `m` has no typ",
    ),
    (lambda a: a.events("m", "t BIGINT, t INT", vs="t"), "two columns called `t`"),
    (lambda a: a.events("m", "ts BIGINT", vs="tss"), "unknown column `tss`; did you mean `ts`?"),
    (lambda a: a.events("m", "ts BIGINT", vs="ts", late="perhaps"), "`late` must be one of"),
    (lambda a: [a.events("m", "t BIGINT", vs="t") for _ in "12"], "two event types called `m`"),
    (lambda a: a.events("m", 3), "invalid columns of the event type `m`: 3"),
    (lambda a: a.on(), "app.on takes the event types"),
    (lambda a: a.on(lambda e: None), "app.on takes the event types"),
    (lambda a: a.on(spam().event_types["message"]), "an event type of the app `spam`, not of `a`"),
    (lambda a: a.param("p", None), "a parameter is a bool, an int, a float or a str"),
    (lambda a: [a.param("p", 1) for _ in "12"], "two parameters called `p`"),
    (lambda a: (a.param("abc", 1), a.param_values({"abd": "1"})), "unknown parameter `abd`; did y"),
    (
        lambda a: (a.param("p", 1), a.param_values({"p": "x"})),
        "`p` must be an integer (default 1), n",
    ),
    (
        lambda a: (a.param("p", True), a.param_values({"p": "1"})),
        "must be true or false (default Tru",
    ),
    (lambda a: a.emits("x", "vs BIGINT"), "a payload column cannot be called `vs`"),
    (lambda a: a.serial(3), "app.serial takes handlers, not 3"),
    (
        lambda a: (a.serial(print), a.check_serial()),
        "serial takes handlers, and `print` is not one",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[m for _, m in WRONG])
def test_errors_come_at_the_call(make: Callable[[weir.App], object], message: str) -> None:
    with pytest.raises(PlanError) as raised:
        make(weir.App("a"))
    assert message in str(raised.value)


async def later(e): ...


def lazily(e):
    yield e


def two(e, f): ...


def one(e, f=1): ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (later, "is asynchronous"),
        (lazily, "is a generator, as it has a `yield`; app.emit"),
        (two, "must take one argument, the event; def two(e)"),
        (lambda e: None, "a handler needs a name: write it with def"),
        (len, "a handler is a function, not a builtin_function_or_method"),
    ],
)
def test_what_is_no_handler(function: Callable[..., object], message: str) -> None:
    app = weir.App("a")
    event = app.events("m", "ts BIGINT", vs="ts")
    with pytest.raises(PlanError) as raised:
        app.on(event)(function)
    assert message in str(raised.value)
    app.on(event)(one)
    with pytest.raises(PlanError, match="two handlers `one`"):
        app.on(event)(one)


def test_any_stream_can_be_events() -> None:
    app = weir.App("a")
    a = weir.stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    assert app.events("x", a.shift("1s")).columns == (("v", pa.int64()),)
    with pytest.raises(PlanError, match="are a stream's, with `vs`"):
        app.events("y", a, vs="v")


def test_serial_groups() -> None:
    app = weir.App("a")
    m = app.events("m", "ts BIGINT", vs="ts")

    @app.serial
    @app.on(m)
    def first(e): ...

    @app.on(m)
    def second(e): ...

    @app.on(m)
    @app.serial
    def third(e): ...

    assert [app.serial_group(h) for h in app.handlers] == [0, None, 1]
    app.serial()
    assert [app.serial_group(h) for h in app.handlers] == [0, 0, 0]
    with pytest.raises(PlanError, match="`first` is in two serial groups"):
        app.serial(second, first)


FILE = """
import weir
from rules import limit_of

app = weir.App("spam")
message = app.events("message", "id BIGINT, sender BIGINT, ts BIGINT", vs="ts")
sent = app.state("sent", default=0)
limit = app.param("limit", 5)

@app.on(message)
def count(e):
    sent.add(e.sender, 1)
    sent.merge((e.sender, 1), lambda n: n + e.id)
    if sent.get(e.sender) > limit_of(limit):
        app.emit("spam", message=e.id, over=f"{limit:03d}")
"""


def test_a_file_travels_as_its_text(tmp_path: Path) -> None:
    (tmp_path / "spam.py").write_text(FILE)
    (tmp_path / "rules.py").write_text("def limit_of(x):\n    return x + 0\n")
    app = load_app(tmp_path / "spam.py")
    assert sorted(name for name, _ in app.code) == ["rules", "spam.py"]
    sent = cloudpickle.dumps((app, app.states["sent"], app.event_types["message"]))
    assert b"limit_of" in sent
    again, state, event = pickle.loads(sent)
    assert again is app and state is app.states["sent"] and event is app.event_types["message"]
    assert run(app, limit=5) == EXPECTED


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("x = 1", None, "no app in 'app.py'; define app = weir.App("),
        ("import weir\na = weir.App('a')\nb = weir.App('b')", None, "has 2 apps: a, b"),
        ("import weir\na = weir.App('spam')", "span", "unknown app `span`; did you mean `spam`?"),
        ("x = 1\n1 / 0", None, "app.py, line 2: ZeroDivisionError: division by zero"),
        ("x = 1\nx y", None, "app.py, line 2: SyntaxError: invalid syntax"),
        ("raise SystemExit(3)", None, "app.py, line 1: SystemExit: 3"),
        ("import weir\na = weir.App('a')\na.state('n')", None, "app.py, line 3: the "),
        (
            "import weir\na = weir.App('a')\nb = a.param('lim', 1) * 2",
            None,
            "app.py, line 3: the parameter `lim` works inside of handlers, while an app runs; "
            "a run sets its value: use it in a handler",
        ),
    ],
)
def test_files_without_the_app(tmp_path: Path, text: str, name: str | None, message: str) -> None:
    (tmp_path / "app.py").write_text(text)
    with pytest.raises(PlanError) as raised:
        load_app(tmp_path / "app.py", name)
    assert message in str(raised.value)
    with pytest.raises(PlanError, match="no Python file"):
        load_app(tmp_path / "none.py")


def test_the_named_app_of_several(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import weir\na = weir.App('a')\nb = weir.App('b')\nc = b")
    assert load_app(tmp_path / "app.py", "b").name == "b"
