"""`App`: where users declare event types, states, parameters, handlers and emitted streams.

    app = weir.App("spam")
    message = app.events("message", "id BIGINT, sender BIGINT, ts BIGINT", vs="ts")
    sent = app.state("sent", default=0)

    @app.on(message)
    def count(e):
        sent.add(e.sender, 1)
        if sent.get(e.sender) > 100:
            app.emit("spam", message=e.id)

A wrong declaration raises at the call. Handlers are analysed from their source (`analysis.py`) and
compiled (`app_compiler.py`) when its emitted rows are requested. `docs/design/0017-replay.md`
defines what an app means.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeVar, cast

import pyarrow as pa

from weir.errors import PlanError
from weir.events.python_types import TypeText
from weir.events.types import BIGINT, TIMESTAMP
from weir.handlers.api.declarations import EmitDeclaration, EventHandler, EventType, State
from weir.handlers.api.declared_types import (
    ColumnsText,
    KeyTypes,
    check_app_name,
    parse_columns,
    parse_keys,
    parse_span,
    typed_default,
)
from weir.handlers.api.parameters import (
    AppParam,
    ParamValue,
    check_default,
    param_default,
    param_value,
    without_params,
)
from weir.handlers.runs.running_event import current
from weir.plan.binding.binder import unknown
from weir.plan.durations import Ticks
from weir.plan.fluent.runners import provided
from weir.plan.fluent.sources import stream
from weir.plan.fluent.stream import Stream
from weir.plan.names import check_name
from weir.plan.operators import Source
from weir.plan.operators.source import MAX_RECORD
from weir.plan.usercode.functions import EmittingApp

if TYPE_CHECKING:
    from weir.plan.program import Program
    from weir.plan.usercode.imported_files import ImportedFrom

HandlerFunction = TypeVar("HandlerFunction", bound=Callable[..., object])


class App(EmittingApp):
    """Event handlers over versioned state, with the answer of a serial loop over the events.

    >>> app = App("spam")
    >>> message = app.events("message", "id BIGINT, sender BIGINT, ts BIGINT", vs="ts")
    >>> sent = app.state("sent", default=0)
    >>> @app.on(message)
    ... def count(e):
    ...     sent.add(e.sender, 1)
    ...     if sent.get(e.sender) > 100:
    ...         app.emit("spam", message=e.id)
    >>> app.handlers["count"].events == (message,)
    True
    """

    def __init__(self, name: str) -> None:
        self.name = check_app_name("an app", name)
        self.event_types: dict[str, EventType] = {}
        """Event types by name, in order of declaration; so are the mappings below."""
        self.states: dict[str, State] = {}
        self.params: dict[str, AppParam] = {}
        self.handlers: dict[str, EventHandler] = {}
        self.emit_declarations: dict[str, EmitDeclaration] = {}
        self.imported: ImportedFrom | None = None
        """The file that `load_app` ran, if the app is from one; other processes get its text."""
        self.code: tuple[tuple[str, str], ...] = ()
        """The file and modules that the app was loaded from, each with its fingerprint."""
        self.needed: tuple[tuple[str, str], ...] = ()
        """Modules that other processes must have for its code, with the file that imports each."""
        self.turn = threading.RLock()
        """Held while a runner runs the handlers."""
        self._serial: list[tuple[Callable[..., object], ...]] = []
        self._all_serial = False

    # --- what comes in --------------------------------------------------------------------

    def events(
        self,
        name: str,
        columns: ColumnsText | Stream,
        *,
        vs: str | None = None,
        path: str | None = None,
        ve: str | None = None,
        lifetime: str | int | None = None,
        delay: str | int = 0,
        late: Literal["fail", "drop", "adjust"] = "fail",
        idle: str | int | None = None,
        bad: Literal["fail", "skip"] = "fail",
        max_record: str | int = MAX_RECORD,
        unit: Literal["s", "ms", "us", "ns", "tick"] | None = None,
    ) -> EventType:
        """Declare an event type: a log with these columns, or the rows of any stream.

        A log corresponds to STREAM in a script. Times in BIGINT are ticks (microseconds), unless
        `unit` names another unit.

        >>> app = App("a")
        >>> app.events("click", {"user": "STRING", "at": "TIMESTAMP"}, vs="at", delay="10s").name
        'click'
        """
        check_app_name("an event type", name)
        if name in self.event_types:
            raise PlanError(f"the app `{self.name}` has two event types called `{name}`")
        said = {
            "vs": vs,
            "path": path,
            "ve": ve,
            "lifetime": lifetime,
            "idle": idle,
            "unit": unit,
        }
        index = len(self.event_types)
        if isinstance(columns, Stream):
            log_options = [option for option, value in said.items() if value is not None]
            if (
                log_options
                or delay != 0
                or late != "fail"
                or bad != "fail"
                or max_record != MAX_RECORD
            ):
                hint = "leave them out: the stream's rows have their lifetimes"
                what = ", ".join(f"`{g}`" for g in log_options) or "options of a log"
                raise PlanError(f"the events of `{name}` are a stream's, with {what}", hint=hint)
            event_type = EventType(self, name, columns, index)
        else:
            declared = parse_columns(columns, f"the event type `{name}`")
            if vs is None and "vs" not in declared:
                hint = f"vs='{_likely_time(declared)}' says which column it is"
                raise PlanError(f"the event type `{name}` has no time: `vs` is missing", hint=hint)
            read = stream(
                name,
                declared,
                path or "",
                vs="vs" if vs is None else vs,
                ve=ve,
                lifetime=lifetime,
                delay=delay,
                late=late,
                idle=idle,
                bad=bad,
                max_record=max_record,
                unit=unit,
                index=index,
            )
            assert isinstance(read.node, Source)
            event_type = EventType(self, name, read, index, path, read.node.options)
        self.event_types[name] = event_type
        return event_type

    # --- what is kept ---------------------------------------------------------------------

    def state(
        self,
        name: str,
        *,
        default: object = None,
        type: TypeText | None = None,
        key: KeyTypes | None = None,
        last: Ticks | None = None,
        expires: Ticks | None = None,
    ) -> State:
        """Declare versioned state: a cell for each key, of type `type` or of the default's type.

        With `last`, a read sees only merges of that last span of time. With `expires`, a cell
        returns to the default after that time without a merge.

        >>> app = App("a")
        >>> app.state("recent", default=0, last="7d").last
        604800000000
        >>> app.state("prices", default=(), type="LIST(DOUBLE)").default
        ()
        """
        check_app_name("a state", name)
        if name in self.states:
            raise PlanError(f"the app `{self.name}` has two states called `{name}`")
        if last is not None and expires is not None:
            hint = "`last` forgets single merges, `expires` the whole cell"
            raise PlanError(
                f"the state `{name}` has `last` and `expires`: leave out one", hint=hint
            )
        dtype, frozen_default = typed_default(name, default, type)
        self.states[name] = State(
            self,
            name,
            dtype,
            frozen_default,
            None if key is None else parse_keys(key),
            None if last is None else parse_span("last", last),
            None if expires is None else parse_span("expires", expires),
        )
        return self.states[name]

    def param(self, name: str, default: ParamValue) -> Any:
        """Declare a parameter, which handlers use like its value; each run may set another value.

        >>> app = App("a")
        >>> app.param("threshold", 0.2)
        app.param('threshold', 0.2)
        >>> app.param_values({"threshold": "0.5"})
        {'threshold': 0.5}
        """
        check_app_name("a parameter", name)
        if name in self.params:
            raise PlanError(f"the app `{self.name}` has two parameters called `{name}`")
        self.params[name] = AppParam(self, name, check_default(name, default))
        return self.params[name]

    def param_values(self, given: Mapping[str, object] | None = None) -> dict[str, ParamValue]:
        """Return the values of all parameters; `given` has values, or their texts, by name."""
        for name in given or {}:
            if name not in self.params:
                raise unknown("parameter", name, self.params)
        return {
            name: param_value(param, (given or {}).get(name, param_default(param)))
            for name, param in self.params.items()
        }

    # --- what is done ---------------------------------------------------------------------

    def on(self, *events: EventType) -> Callable[[HandlerFunction], HandlerFunction]:
        """Let a function handle the events of these types.

        >>> app = App("a")
        >>> click = app.events("click", "user STRING, at BIGINT", vs="at")
        >>> @app.on(click)
        ... def count(e): ...
        >>> list(app.handlers)
        ['count']
        """
        if not events or not all(isinstance(e, EventType) for e in events):
            hint = "@app.on(message), where message = app.events('message', …)"
            raise PlanError("app.on takes the event types that a handler is for", hint=hint)
        for event in events:
            if event.app is not self:
                raise PlanError(
                    f"`{event.name}` is an event type of the app `{event.app.name}`, not of "
                    f"`{self.name}`"
                )
        if len(set(events)) < len(events):
            raise PlanError("app.on has an event type twice")

        def decorate(function: HandlerFunction) -> HandlerFunction:
            name = _handler_name(function)
            if name in self.handlers:
                hint = "a handler may be on several event types: @app.on(a, b)"
                raise PlanError(f"the app `{self.name}` has two handlers `{name}`", hint=hint)
            self.handlers[name] = EventHandler(name, function, events)
            return function

        return decorate

    def serial(self, *handlers: Callable[..., object]) -> Any:
        """Run a group of handlers in one partition, row by row, so that they may contain any code.

        Write `@app.serial` at one handler, `app.serial(count, judge)` for several that belong
        together, or `app.serial()` for all handlers of the app.

        >>> app = App("a")
        >>> click = app.events("click", "user STRING, at BIGINT", vs="at")
        >>> @app.serial
        ... @app.on(click)
        ... def count(e): ...
        >>> app.serial_group("count")
        0
        """
        if not handlers:
            self._all_serial = True
            return None
        for function in handlers:
            if not callable(function) or isinstance(function, EventType | State):
                raise PlanError(f"app.serial takes handlers, not {function!r}")
            if any(function in group for group in self._serial):
                raise PlanError(f"the handler `{_handler_name(function)}` is in two serial groups")
        self._serial.append(handlers)
        return handlers[0] if len(handlers) == 1 else None

    def serial_group(self, handler: str) -> int | None:
        """Return the number of the serial group that a handler is in, or None."""
        if self._all_serial:
            return 0
        function = self.handlers[handler].function
        return next((n for n, group in enumerate(self._serial) if function in group), None)

    def check_serial(self) -> None:
        """Raise PlanError if `serial` got a function that is not a handler of this app."""
        functions = [handler.function for handler in self.handlers.values()]
        for function in (f for group in self._serial for f in group):
            if function not in functions:
                hint = "a handler has @app.on(…)"
                name = getattr(function, "__name__", repr(function))
                raise PlanError(f"app.serial takes handlers, and `{name}` is not one", hint=hint)

    # --- what comes out -------------------------------------------------------------------

    def emit(self, name: str, /, **fields: object) -> None:
        """Emit a row from a handler; it gets the lifetime of the event."""
        live = self.__dict__.get("emit")  # where somebody kept this method from before it was bound
        if live is not None:
            live(name, **fields)
            return
        plain = {field: without_params(value) for field, value in fields.items()}
        current("app.emit()").emit(name, plain)

    def emits(self, name: str, columns: ColumnsText) -> None:
        """Declare the columns of an emitted stream; otherwise they are those of its emits.

        >>> app = App("a")
        >>> app.emits("spam", "message BIGINT, score DOUBLE")
        >>> [name for name, _ in app.emit_declarations["spam"].columns]
        ['message', 'score']
        """
        check_app_name("an emitted stream", name)
        if name in self.emit_declarations:
            raise PlanError(f"app.emits declares `{name}` twice")
        declared = parse_columns(columns, f"the emitted stream `{name}`")
        for column in declared:
            check_name(column)
        self.emit_declarations[name] = EmitDeclaration(name, tuple(declared.items()))

    def emitted(self, name: str, *, params: Mapping[str, object] | None = None) -> Stream:
        """Return the rows that are emitted under a name, as a stream for queries and outputs."""
        stream = provided("app_emitted")(self, name, params=params or {})
        assert isinstance(stream, Stream)
        return stream

    @property
    def event_names(self) -> tuple[str, ...]:
        return tuple(self.event_types)

    @property
    def param_names(self) -> tuple[str, ...]:
        return tuple(self.params)

    def emitted_over(
        self, streams: Mapping[str, Stream], params: Mapping[str, object]
    ) -> Mapping[str, Stream]:
        """Return what the app emits, by name, when its events are the rows of these streams."""
        from weir.handlers.planning.app_compiler import compile_app  # it knows this module

        return compile_app(self, params=params, streams=streams).emitted

    def travel_with(self, file: ImportedFrom) -> None:
        """Note the file that the app is from; other processes then get the file's text."""
        self.imported = file

    def program(
        self,
        *,
        logs: Mapping[str, str] | None = None,
        out: str | None = None,
        format: str = "parquet",
        params: Mapping[str, object] | None = None,
        vectorise: bool = True,
    ) -> Program:
        """Return the app as a program for any runner; it writes emitted rows to files in `out`.

        `logs` has the paths of logs by event type. Without `out`, the program can only be
        inspected, and needs no logs.
        """
        program = provided("app_program")(
            self, logs=logs, out=out, format=format, params=params, vectorise=vectorise
        )
        return cast("Program", program)

    def replay(
        self,
        *,
        out: str | os.PathLike[str],
        logs: Mapping[str, str | os.PathLike[str]] | None = None,
        format: str = "parquet",
        runner: str = "local",
        start: int | str | None = None,
        end: int | str | None = None,
        batch: int | None = None,
        state_in: str | os.PathLike[str] | None = None,
        state_out: str | os.PathLike[str] | None = None,
        params: Mapping[str, object] | None = None,
        fresh: bool = False,
        **more: Any,
    ) -> Any:
        """Run the app over its logs, as `weir replay` does, and write what it emits to `out`.

        `logs` has paths by event type. Only events with start ≤ vs < end count (ticks, or ISO
        8601). `batch` is the number of events in a batch, counted over all logs. `state_in` is a
        saved state to start from, `state_out` a folder for the final state. A parameter with a list
        of values makes variants, each in a folder of its own. `fresh` discards the finished parts
        of earlier runs of this replay. The runner is `local`, or `offline`: Spark jobs in the
        session `spark=`, or in one made with `master=` and `settings=`. More options:
        `parallelism=`, `cut=`, `check=`, `shadow=`, `vectorise=`, `progress=`.

        The report has `variants` with their `outputs` (`path`, `rows`, `digest`), `events` and
        `batches`.
        """
        return provided("app_replay")(
            self,
            logs=logs,
            out=out,
            format=format,
            runner=runner,
            start=start,
            end=end,
            batch=batch,
            state_in=state_in,
            state_out=state_out,
            params=params,
            fresh=fresh,
            **more,
        )

    # --- travelling -----------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"App({self.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {n: v for n, v in self.__dict__.items() if n not in ("turn", "emit")}

    def __setstate__(self, held: dict[str, Any]) -> None:
        self.__dict__.update(held)
        self.turn = threading.RLock()

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if self.imported is None:
            return object.__reduce_ex__(self, protocol)
        from weir.handlers.api.app_file import arrived_app  # it knows this module

        return arrived_app, (self.imported, self.name)


def _likely_time(columns: Mapping[str, pa.DataType]) -> str:
    """Return the column that is most likely the time."""
    times = [name for name, dtype in columns.items() if dtype == TIMESTAMP]
    called_so = [name for name in columns if name.lower() in ("ts", "at", "time", "timestamp")]
    whole = [name for name, dtype in columns.items() if dtype == BIGINT]
    return next(iter((*times, *called_so, *whole)), "ts")


def _handler_name(function: object) -> str:
    """Return the name of a function that can be a handler; raise PlanError if it cannot."""
    name = getattr(function, "__name__", None)
    if not inspect.isfunction(function) or not isinstance(name, str):
        raise PlanError(f"a handler is a function, not a {type(function).__name__}")
    if name == "<lambda>":
        raise PlanError("a handler needs a name: write it with def")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise PlanError(f"the handler `{name}` is asynchronous", hint="write it without async")
    if inspect.isgeneratorfunction(function):
        hint = "app.emit(…) emits rows"
        raise PlanError(f"the handler `{name}` is a generator, as it has a `yield`", hint=hint)
    parameters = list(inspect.signature(function).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty]
    if not parameters or parameters[0].kind not in plain or len(needed) != 1:
        raise PlanError(
            f"the handler `{name}` must take one argument, the event", hint=f"def {name}(e)"
        )
    return name
