"""Runs unchanged handlers: CPython calls the user's functions, event by event.

Contract
1. A `HandlerRun` is a value that can be compared, pickled and given a fingerprint. Calling it makes
   the runner of the handlers in a row scan (`RowCode.make`).
2. A handler may run on an event several times, each time from its start. Runs before the *last* one
   end at the first read that has no answer yet. A handler is deterministic, so it does the same
   each time, with the same answers. The plan says which run takes its emits and merges: one run
   takes all rows of a stream, and one takes all merges into a state.
3. In a run, a handler uses each state only in the way that `StateUse` says:
   - `live`: the scan has its cells;
   - `answered`: reads were answered before the run. A read must have a key that was planned, or one
     from a planned list of keys;
   - `recorded`: reads get the answers of an earlier run, in the same order;
   - `asked`: the first read (for a live state, the first access) gives out its key and ends the
     run;
   - `later`: a read ends the run;
   - `noted`: a merge is given out, and happens elsewhere;
   - `ignored`: a merge happens in another run;
   - `refused`: the access was not planned. It ends the whole run of the app.
4. Each call of a handler gets its own copy of the event, so no call sees what another does to a
   list of the event.
5. The effect of a merge into a live state has the value after the merge, which others then set. If
   that is not enough (for a window, or a DOUBLE sum into which others also merge), or if merges are
   noted, the effect has the merge itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from weir.events.types import type_name
from weir.events.user_copies import copier
from weir.handlers.api.app import App
from weir.handlers.runs.hidden_state import KeptObjects
from weir.handlers.runs.live_handles import ParamPlace, bound, param_places
from weir.handlers.runs.running_event import event_class
from weir.plan.states import (
    MERGE_TRAITS,
    AccessMethod,
    Accessors,
    CellFailure,
    EffectRows,
    MergeKind,
    RowCursor,
    RowRun,
    RowRunner,
    UnplannedAccess,
    key_parts,
)

ReadUse: TypeAlias = Literal["live", "answered", "recorded", "asked", "later", "refused"]
MergeUse: TypeAlias = Literal["live", "noted", "asked", "ignored", "refused"]


# --- what is planned ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateUse:
    """What a handler's reads and merges of a state do in a run."""

    state: str
    reads: ReadUse = "refused"
    merges: MergeUse = "refused"


@dataclass(frozen=True, slots=True)
class AnsweredRead:
    """The columns with the key and the answer of a read.

    If it defers, the answer None stands for a sum beyond its type.
    """

    state: str
    keys: tuple[str, ...]
    answer: str
    defers: bool = False


@dataclass(frozen=True, slots=True)
class ListedReads:
    """The LIST columns with the keys and the answers of a read, in the same order."""

    state: str
    keys: tuple[str, ...]
    answers: str
    defers: bool = False


@dataclass(frozen=True, slots=True)
class PlannedHandler:
    """A handler on the rows of a port.

    `recorded` are the columns with the answers of an earlier run, by state. If one of the `quiet`
    columns is true, an earlier run has shown that the handler does nothing on the row, so it does
    not run.
    """

    name: str
    uses: tuple[StateUse, ...]
    answers: tuple[AnsweredRead, ...] = ()
    lists: tuple[ListedReads, ...] = ()
    recorded: tuple[tuple[str, str], ...] = ()
    quiet: tuple[str, ...] = ()
    is_last: bool = True


@dataclass(frozen=True, slots=True)
class HandlerPort:
    """The handlers for the events of one type, in order.

    `columns` are all columns of its rows; the first `event_columns` of them are those of the event
    that the handlers can reach. If it does not give out, its handlers run only to change cells.
    """

    event: str
    columns: tuple[str, ...]
    event_columns: int
    handlers: tuple[PlannedHandler, ...]
    gives_out: bool = True


@dataclass(frozen=True, slots=True)
class EmitEffect:
    """The rows that a handler emits under a name."""

    event: str
    handler: str
    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeEffect:
    """A handler's merges into a state: the key, then a value or a merge, by `form`.

    The form `value` has the value after the merge, `merge` the merge itself, and `sum` the added
    number, or the value if the merge is not an addition. `kinds` are the planned kinds, if merges
    are given out (`merge_label`).
    """

    event: str
    handler: str
    state: str
    form: Literal["value", "sum", "merge"]
    kinds: tuple[str, ...]
    of_list: bool


@dataclass(frozen=True, slots=True)
class KeyEffect:
    """A part of the key that a handler asks for, of one of these states."""

    event: str
    handler: str
    states: frozenset[str]
    part: int


@dataclass(frozen=True, slots=True)
class QuietEffect:
    """True if a handler ended without asking for a key, and without an emit or a merge.

    Then its other runs do nothing either.
    """

    event: str
    handler: str


@dataclass(frozen=True, slots=True)
class RecordEffect:
    """The answers that a handler's reads of a live state got."""

    event: str
    handler: str
    state: str


@dataclass(frozen=True, slots=True)
class NeverEffect:
    """The effect, never given out, for which a handler that emits nothing runs."""

    event: str
    handler: str


Effect: TypeAlias = EmitEffect | MergeEffect | KeyEffect | QuietEffect | RecordEffect | NeverEffect


@dataclass(frozen=True, slots=True)
class HandlerRun:
    """Runs handlers in a row scan.

    `live` are the states of the scan, in its order. `keys` are, by port, the columns with the key
    that its rows are split by.
    """

    app: App
    params: tuple[tuple[str, object], ...]
    live: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    ports: tuple[HandlerPort, ...]
    effects: tuple[Effect, ...]

    def __call__(
        self,
        accessors: Sequence[Accessors],
        cursor: RowCursor,
        effects: Sequence[EffectRows],
    ) -> RowRunner:
        return _Runner(self, accessors, cursor, effects)


# --- running -----------------------------------------------------------------------------------


class _RunEnds(BaseException):
    """Ends a run of a handler at a read that has no answer yet."""


@dataclass(slots=True)
class _RunState:
    """The current state of a run."""

    place: _Place
    values: tuple[Any, ...] = ()
    """The row."""
    key: tuple[Any, ...] | None = None
    """The key that it asked for."""
    is_stopped: bool = False
    is_quiet: bool = True
    """Whether nothing was emitted or merged."""
    next_answers: dict[str, int] = field(default_factory=dict)
    """How many recorded answers were already used, by state."""
    by_key: dict[str, dict[tuple[Any, ...], tuple[tuple[Any, ...], Any]]] = field(
        default_factory=dict
    )
    """The keys and answers of reads by elements of lists, for the states that were read."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A handler at a port, with the methods for its accesses."""

    handler: str
    methods: dict[str, dict[str, AccessMethod]]
    """The methods by state and name."""
    emits: dict[str, tuple[EmitEffect, AccessMethod]]
    """By name: the effect, and the function that adds a row to it."""
    emits_now: bool = True
    is_serial: bool = False


class _Runner:
    """Calls the handlers of a `HandlerRun` (see `RowRunner`)."""

    def __init__(
        self,
        run: HandlerRun,
        accessors: Sequence[Accessors],
        cursor: RowCursor,
        effects: Sequence[EffectRows],
    ) -> None:
        self.app, self.cursor = run.app, cursor
        self._run = run
        self._live = dict(zip(run.live, accessors, strict=True))
        self._effects = list(zip(run.effects, effects, strict=True))
        self._puts = {id(rows): _putter(effect, rows, cursor) for effect, rows in self._effects}
        self._params = dict(run.params)
        self.stops = any(not h.is_last for port in run.ports for h in port.handlers)
        """Whether some handler may end before its last access."""
        self._param_places: tuple[ParamPlace, ...] | None = None
        self._kept: KeptObjects | None = None
        self.here = _RunState(_Place("", {}, {}))
        self._places = [
            [_place(self, port, handler) for handler in port.handlers] for port in run.ports
        ]
        self.place_count = sum(map(len, self._places))
        self.here.place = self._places[0][0]
        self._methods = self._bound_methods()
        codes = [
            [
                _row_code(self, run.keys[n], port, handler, place)
                for handler, place in zip(port.handlers, places, strict=True)
            ]
            for n, (port, places) in enumerate(zip(run.ports, self._places, strict=True))
        ]
        self.runs: list[list[RowRun]] = [[code.run() for code in of_port] for of_port in codes]
        self.loop = _loop(codes[0], self.runs[0], cursor)

    def bound(self) -> AbstractContextManager[None]:
        if self._param_places is None:
            self._param_places = param_places(self.app)
            self._kept = KeptObjects(*self._functions())
        elif self._kept is not None:
            self._kept.look()
        return bound(self.app, self._methods, self._emit, self._params, self._param_places)

    def check(self) -> None:
        if self._kept is not None:
            self._kept.check()

    def _functions(self) -> list[object]:
        names = {handler.name for port in self._run.ports for handler in port.handlers}
        return [self.app.handlers[name].function for name in sorted(names)]

    def _bound_methods(self) -> dict[str, dict[str, AccessMethod]]:
        """Return the methods of all states; if places differ, they look up the current place's."""
        places = [place for of_port in self._places for place in of_port]
        methods: dict[str, dict[str, AccessMethod]] = {}
        for state in self.app.states:
            methods[state] = {}
            for name in ("get", *(traits.method for traits in MERGE_TRAITS.values())):
                mine = [place.methods[state][name] for place in places]
                shared = all(method is mine[0] for method in mine)
                methods[state][name] = mine[0] if shared else self._looked_up(state, name)
        return methods

    def _looked_up(self, state: str, name: str) -> AccessMethod:
        here = self.here

        def method(*args: Any, **keywords: Any) -> Any:
            return here.place.methods[state][name](*args, **keywords)

        return method

    def _emit(self, name: str, /, **fields: Any) -> None:
        """Take an emit of a handler."""
        here, cursor = self.here, self.cursor
        if here.is_stopped:
            raise _RunEnds
        if not cursor.is_active or cursor.merging:
            raise self.failed("emits inside of a merge function", "emit before or after the merge")
        if not here.place.emits_now:
            here.is_quiet = False
            return
        planned = here.place.emits.get(name)
        if planned is None:
            raise self.unplanned(f"emits {name!r}")
        effect, put = planned
        if len(fields) != len(effect.columns):
            raise cursor.failed(_other_fields(effect, fields))
        try:
            values = [fields[column] for column in effect.columns]
        except KeyError:
            raise cursor.failed(_other_fields(effect, fields)) from None
        put(*values)

    def putter(self, rows: EffectRows) -> AccessMethod:
        """Return a function that adds an entry to an effect: a value for each of its columns."""
        return self._puts[id(rows)]

    def effects_of(
        self, port: HandlerPort, handler: PlannedHandler
    ) -> list[tuple[Effect, EffectRows]]:
        mine = (port.event, handler.name)
        return [(e, rows) for e, rows in self._effects if (e.event, e.handler) == mine]

    def live_methods(self, state: str) -> Accessors:
        return self._live[state]

    def unplanned(self, what: str) -> CellFailure:
        place = self.here.place
        hint = (
            "the text of the handler does not show it: use the state by its name, or pass it on"
            if place.is_serial
            else f"app.serial({place.handler}) runs it with all its states at hand"
        )
        return self.failed(
            f"{what} in a way that was not found when the app was planned",
            f"{hint}; if the handler does not do the same each time, make it deterministic",
        )

    def failed(self, what: str, hint: str) -> CellFailure:
        why = f"{self.here.place.handler} {what}; {hint}"
        return self.cursor.failed(UnplannedAccess(why))


# --- what accesses do --------------------------------------------------------------------------


def _place(runner: _Runner, port: HandlerPort, handler: PlannedHandler) -> _Place:
    uses = {use.state: use for use in handler.uses}
    effects = runner.effects_of(port, handler)
    places = {name: 2 + n for n, name in enumerate(port.columns)}
    methods = {}
    for state in runner.app.states:
        use = uses.get(state, StateUse(state))
        if use.merges == "noted" and not port.gives_out:
            use = replace(use, merges="ignored")
        methods[state] = {"get": _read(runner, use, handler, places, effects)}
        for kind, traits in MERGE_TRAITS.items():
            methods[state][traits.method] = _merge(runner, use, kind, effects)
    emits = {e.name: (e, runner.putter(r)) for e, r in effects if isinstance(e, EmitEffect)}
    return _Place(
        handler.name,
        methods,
        emits,
        handler.is_last and port.gives_out,
        runner.app.serial_group(handler.name) is not None,
    )


def _read(
    runner: _Runner,
    use: StateUse,
    handler: PlannedHandler,
    places: Mapping[str, int],
    effects: Sequence[tuple[Effect, EffectRows]],
) -> AccessMethod:
    here, state = runner.here, use.state
    copy = copier(runner.app.states[state].type)
    slots = [
        (*(places[key] for key in read.keys), places[read.answer])
        for read in handler.answers
        if read.state == state
    ]
    lists = [
        (tuple(places[key] for key in read.keys), places[read.answers])
        for read in handler.lists
        if read.state == state
    ]
    match use.reads:
        case "live":
            live = runner.live_methods(state)["get"]
            record = next((rows for e, rows in effects if _records(e, state)), None)
            return live if record is None else _recording(runner, live, record)
        case "recorded":
            column = next(places[name] for of, name in handler.recorded if of == state)
            return _recorded(runner, state, column, copy)
    asks = use.reads == "asked"
    stops = asks or use.reads == "later"
    asked: list[AnsweredRead | ListedReads] = [*handler.answers, *handler.lists]
    defers = any(read.defers for read in asked if read.state == state)

    dtype = type_name(runner.app.states[state].type)
    beyond = f"overflow: reading state {state} gives a value beyond {dtype}"

    def get(key: Any) -> Any:
        if here.is_stopped:
            raise _RunEnds
        values = here.values
        parts = key if type(key) is tuple else key_parts(key)
        for *at, answer in slots:
            if _same_key(parts, values, at):
                value = values[answer]
                break
        else:
            value = _listed_answer(here, state, parts, lists)
        if value is not _NOT_ASKED:
            if defers and value is None:
                raise runner.cursor.failed(CellFailure(beyond))
            return value if copy is None else copy(value)
        if not stops:
            raise runner.unplanned(f"reads {state} with the key {key!r}")
        raise _stopped(here, parts if asks else None)

    if not slots:
        return get
    # Rows hold the same objects as events; keys that code makes are mostly texts.
    *at, answer = slots[0]
    if len(at) == 1:
        planned = f"values[{at[0]}]"
        is_same = f"key is {planned} or (type(key) is str and key == {planned})"
    else:
        parts = [f"key[{n}] is values[{column}]" for n, column in enumerate(at)]
        is_same = " and ".join((f"type(key) is tuple and len(key) == {len(at)}", *parts))
    lines = [
        "values = here.values",
        f"if not ({is_same}) or here.is_stopped: return other(key)",
        f"value = values[{answer}]",
        *(["if value is None: return other(key)"] if defers else []),
        "return value" if copy is None else "return copy(value)",
    ]
    names: dict[str, object] = {"here": here, "other": get, "copy": copy}
    return _compiled("get", "key", lines, names)  # type: ignore[no-any-return]


_NOT_ASKED = object()


def _listed_answer(
    here: _RunState,
    state: str,
    parts: tuple[Any, ...],
    lists: Sequence[tuple[tuple[int, ...], int]],
) -> Any:
    """Return the answer for a key of a list's element; `_NOT_ASKED` if no element has it."""
    if not lists:
        return _NOT_ASKED
    answers = here.by_key.get(state)
    if answers is None:
        answers = here.by_key[state] = {}
        for keys, at in lists:
            values = here.values
            for *key, answer in zip(*(values[n] for n in keys), values[at], strict=True):
                answers[_dict_key(key)] = tuple(key), answer
    try:
        entry = answers.get(_dict_key(parts))
    except TypeError:  # not hashable, so it equals no key of a state
        return _NOT_ASKED
    if entry is None or not _same_key(parts, entry[0], range(len(entry[0]))):
        return _NOT_ASKED
    return entry[1]


def _dict_key(key: Sequence[Any]) -> tuple[Any, ...]:
    """Return a key for a dict, in which all NaNs are equal."""
    return tuple("NaN" if type(part) is float and part != part else part for part in key)


def _records(effect: Effect, state: str) -> bool:
    return isinstance(effect, RecordEffect) and effect.state == state


def _stopped(here: _RunState, key: tuple[Any, ...] | None) -> _RunEnds:
    """Mark a handler's run as ended, and return the exception to raise.

    Nothing that the handler does from then on counts.
    """
    here.is_stopped, here.key = True, key
    return _RunEnds()


def _recording(runner: _Runner, get: AccessMethod, record: EffectRows) -> AccessMethod:
    here, put = runner.here, runner.putter(record)

    def get_and_record(key: Any) -> Any:
        if here.is_stopped:
            raise _RunEnds
        value = get(key)
        put(value)
        return value

    return get_and_record


def _recorded(runner: _Runner, state: str, column: int, copy: AccessMethod | None) -> AccessMethod:
    here = runner.here

    def get(key: Any) -> Any:
        number = here.next_answers.get(state, 0)
        here.next_answers[state] = number + 1
        answers = here.values[column]
        if number >= len(answers):
            raise runner.unplanned(f"reads {state} more often than before")
        value = answers[number]
        return value if copy is None else copy(value)

    return get


def _merge(
    runner: _Runner,
    use: StateUse,
    kind: MergeKind,
    effects: Sequence[tuple[Effect, EffectRows]],
) -> AccessMethod:
    here, cursor, state = runner.here, runner.cursor, use.state
    merges = [(e, rows) for e, rows in effects if isinstance(e, MergeEffect) and e.state == state]
    method = MERGE_TRAITS[kind].method
    if use.merges == "live":
        merge = runner.live_methods(state)[method]
        return _done_and_noted(runner, merge, *merges[0], kind) if merges else merge

    def merge_elsewhere(key: Any, *args: Any) -> None:
        if here.is_stopped:
            raise _RunEnds
        if cursor.merging:
            raise runner.failed(
                f"merges into {state} inside of a merge function of {cursor.merging}",
                "merge it before or after",
            )
        match use.merges:
            case "ignored":
                here.is_quiet = False
                return
            case "asked":
                raise _stopped(here, key if type(key) is tuple else key_parts(key))
        if not merges:
            raise runner.unplanned(f"merges into {state}")
        _note(runner, *merges[0], key, kind, args)

    if use.merges == "noted" and merges:
        quick = _noted_at_once(runner, *merges[0], kind, merge_elsewhere)
        if quick is not None:
            return quick
    return _with_names(merge_elsewhere, kind)


def _noted_at_once(
    runner: _Runner, effect: MergeEffect, rows: EffectRows, kind: MergeKind, other: AccessMethod
) -> AccessMethod | None:
    """Write a merge of one value that is noted unchanged if a check of its types is enough.

    Otherwise it calls `other`.
    """
    if MERGE_TRAITS[kind].takes != ("x",) or effect.form != "merge":
        return None
    entry = _plain_entry(effect, rows, kind, runner.cursor)
    if entry is None:
        return None
    lines = [
        f"if not ({entry.looks}) or here.is_stopped or cursor.merging: return other(key, x)",
        entry.adds,
    ]
    names = {**entry.names, "here": runner.here, "other": other}
    return _compiled("merge", "key, x", lines, names)  # type: ignore[no-any-return]


def _done_and_noted(
    runner: _Runner, merge: AccessMethod, effect: MergeEffect, rows: EffectRows, kind: MergeKind
) -> AccessMethod:
    """Return a merge into a live state that is also given out."""
    get = runner.live_methods(effect.state)["get"]
    has_value = effect.form == "value" or (effect.form == "sum" and kind == "call")

    def merge_and_note(key: Any, *args: Any) -> None:
        merge(key, *args)
        if has_value:
            _note(runner, effect, rows, key, "set", (get(key),))
        else:
            _note(runner, effect, rows, key, kind, args)

    entry = _plain_entry(effect, rows, "set", runner.cursor) if has_value else None
    if entry is None:
        return _with_names(merge_and_note, kind)
    args = ", ".join(("key", *MERGE_TRAITS[kind].takes))
    lines = [
        f"merge({args})",
        "x = get(key)",
        f"if not ({entry.looks}): return note(runner, effect, rows, key, 'set', (x,))",
        entry.adds,
    ]
    names = {
        **entry.names,
        "merge": merge,
        "get": get,
        "note": _note,
        "runner": runner,
        "effect": effect,
        "rows": rows,
    }
    return _compiled("merge_and_note", args, lines, names)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _PlainEntry:
    """Code that adds a merge of `x` by `key` to an effect, if the type checks `looks` hold."""

    looks: str
    adds: str
    names: dict[str, object]


def _plain_entry(
    effect: MergeEffect, rows: EffectRows, kind: MergeKind, cursor: RowCursor
) -> _PlainEntry | None:
    """Write the code that adds a merge to an effect; None if checks of its types are not enough."""
    of_list = effect.of_list and effect.form != "value"
    after = 1 if effect.form == "value" else 2 + of_list
    count = len(rows.columns) - after
    parts = ["key"] if count == 1 else [f"key[{n}]" for n in range(count)]
    values = ["x"]
    if of_list:
        values = ["None", "x"] if MERGE_TRAITS[kind].of_elements else ["x", "None"]
    if effect.form != "value":
        if merge_label(kind) not in effect.kinds:
            return None
        values.insert(0, repr(merge_label(kind)))
    looks = [] if count == 1 else [f"type(key) is tuple and len(key) == {count}"]
    kinds = rows.kinds or (None,) * len(rows.columns)
    for name, column_kind in zip([*parts, *values], kinds, strict=True):
        if name in parts or name == "x":
            if column_kind is None:
                return None
            looks.append(_is_plain(name, column_kind))
    adds = [f"add{n}({name})" for n, name in enumerate([*parts, *values])]
    names: dict[str, object] = {
        "cursor": cursor,
        "add_row": rows.rows.append,
        **{f"add{n}": column.append for n, column in enumerate(rows.columns)},
    }
    return _PlainEntry(" and ".join(looks), "; ".join(("add_row(cursor.row)", *adds)), names)


def _note(
    runner: _Runner,
    effect: MergeEffect,
    rows: EffectRows,
    key: Any,
    kind: MergeKind,
    args: tuple[Any, ...],
) -> None:
    label = merge_label(kind, args[1] if MERGE_TRAITS[kind].has_k else 0)
    if effect.form != "value" and label not in effect.kinds:
        raise runner.unplanned(f"merges into {effect.state} by {_shown(kind, args)}")
    parts = key if type(key) is tuple else key_parts(key)
    of_element = MERGE_TRAITS[kind].of_elements
    values = [*parts] if effect.form == "value" else [*parts, label]
    values.append(None if of_element else args[0])
    if effect.of_list and effect.form != "value":
        values.append(args[0] if of_element else None)
    if len(values) != len(rows.columns):
        expected = len(rows.columns) - len(values) + len(parts)
        why = f"a key of {effect.state} has {expected} parts, not {len(parts)}"
        raise runner.cursor.failed(CellFailure(why))
    runner.putter(rows)(*values)


def _putter(effect: Effect, rows: EffectRows, cursor: RowCursor) -> AccessMethod:
    """Write the function that adds an entry to an effect, for the types of its columns."""
    args = [f"v{n}" for n in range(len(rows.columns))]

    def misfit(failure: CellFailure, number: int) -> CellFailure:
        why = f"{_part_of(effect, number, len(args))} must be {failure}"
        return cursor.failed(CellFailure(why))

    names: dict[str, object] = {
        "cursor": cursor,
        "CellFailure": CellFailure,
        "add_row": rows.rows.append,
        "misfit": misfit,
    }
    kinds = rows.kinds or (None,) * len(args)
    lines = ["try:"]
    for n, (arg, kind) in enumerate(zip(args, kinds, strict=True)):
        names[f"settle{n}"], names[f"add{n}"] = rows.settle[n], rows.columns[n].append
        lines.append(f"    {_unless_plain(arg, kind)}at = {n}; {arg} = settle{n}({arg})")
    lines += ["except CellFailure as failure:", "    raise misfit(failure, at) from None"]
    lines.append("add_row(cursor.row)")
    lines += [f"add{n}({arg})" for n, arg in enumerate(args)]
    return _compiled("put", ", ".join(args), lines, names)  # type: ignore[no-any-return]


def _unless_plain(name: str, kind: type | None) -> str:
    """Write the condition under which a value must be converted."""
    return "" if kind is None else f"if not ({_is_plain(name, kind)}): "


def _is_plain(name: str, kind: type) -> str:
    """Write the condition under which a value of a column needs no conversion."""
    looks = f"type({name}) is {kind.__name__}"
    if kind is int:
        looks += f" and {-(1 << 63)} <= {name} < {1 << 63}"
    elif kind is str:
        looks += f" and {name}.isascii()"
    return looks


def merge_label(kind: MergeKind, k: int = 0) -> str:
    """Return a label for a merge that is given out: its kind, and for `top_k` also k."""
    return f"{kind} {k}" if MERGE_TRAITS[kind].has_k else kind


def _shown(kind: MergeKind, args: tuple[Any, ...]) -> str:
    if kind == "call":
        return "a function"
    return f"top_k with k = {args[1]!r}" if MERGE_TRAITS[kind].has_k else kind


def _with_names(merge: AccessMethod, kind: MergeKind) -> AccessMethod:
    """Return a merge that can be called with the parameter names of `weir.State`."""
    match MERGE_TRAITS[kind].takes:
        case ("function",):
            return lambda key, function: merge(key, function)
        case ("x", "k"):
            return lambda key, x, k: merge(key, x, k)
    return lambda key, x: merge(key, x)


def _same_key(parts: tuple[Any, ...], values: tuple[Any, ...], at: Sequence[int]) -> bool:
    """Tell whether a key equals the one in these columns."""
    if len(parts) != len(at):
        return False
    for part, n in zip(parts, at, strict=True):
        if part is not values[n] and not _are_equal(part, values[n]):
            return False
    return True


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool | int | float) and isinstance(other, bool | int | float):
        return one == other or (one != one and other != other)
    return isinstance(one, type(other)) and bool(one == other)


def _part_of(effect: Effect, number: int, count: int) -> str:
    """Describe one of the values of an entry."""
    match effect:
        case EmitEffect():
            return f"`{effect.columns[number]}` of what is emitted as `{effect.name}`"
        case KeyEffect():
            return f"a key of {' and '.join(sorted(effect.states))}"
        case MergeEffect():
            after = 1 if effect.form == "value" else 2 + effect.of_list
            is_key = number < count - after
            return f"a key of {effect.state}" if is_key else f"what is merged into {effect.state}"
        case RecordEffect():
            return f"state {effect.state}"
        case QuietEffect() | NeverEffect():
            raise AssertionError("no value of a handler is given out for it")


def _other_fields(effect: EmitEffect, fields: Mapping[str, object]) -> UnplannedAccess:
    for column in fields:
        if column not in effect.columns:
            return UnplannedAccess(
                f"`{effect.name}` has no column `{column}`; it has {', '.join(effect.columns)}"
            )
    missing = next(column for column in effect.columns if column not in fields)
    return UnplannedAccess(
        f"this emit of `{effect.name}` has no `{missing}`; write {missing}=None where there is none"
    )


# --- rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RowCode:
    """The text of the code for a row at one place, with only what it needs."""

    lines: tuple[str, ...]
    names: dict[str, object]

    def run(self) -> RowRun:
        run: RowRun = _compiled("run", "values", self.lines, self.names)
        return run


def _row_code(
    runner: _Runner,
    keys: Sequence[str],
    port: HandlerPort,
    handler: PlannedHandler,
    place: _Place,
) -> _RowCode:
    app, places = runner.app, {name: 2 + n for n, name in enumerate(port.columns)}
    event_columns = port.columns[: port.event_columns]
    types = dict(app.event_types[port.event].columns)
    nested = {places[c]: copy for c in event_columns if (copy := copier(types[c])) is not None}
    names: dict[str, object] = {
        "cursor": runner.cursor,
        "here": runner.here,
        "place": place,
        "handler": app.handlers[handler.name].function,
        "made": event_class(port.event, event_columns),
        "fresh": _fresh(nested, 2 + port.event_columns),
        "Stop": _RunEnds,
    }
    lines = ["cursor.now = values[0]"]
    if runner.place_count > 1:
        lines.append("here.place = place")
    if keys:
        parts = ", ".join(f"values[{places[key]}]" for key in keys)
        lines.append(f"cursor.key = {parts}" if len(keys) == 1 else f"cursor.key = ({parts})")
    if handler.lists:
        lines.append("here.by_key.clear()")
    if handler.answers or handler.lists or handler.recorded:
        lines.append("here.values = values")
    if handler.recorded:
        lines.append("here.next_answers.clear()")
    if runner.stops:
        lines.append("here.is_stopped = False; here.is_quiet = True; here.key = None")
    width = 2 + port.event_columns
    row = "values" if len(port.columns) == port.event_columns else f"values[:{width}]"
    event = "made(fresh(values))" if nested else f"made({row})"
    if handler.is_last:
        lines.append(f"handler({event})")
    else:
        lines += [
            "try:",
            f"    handler({event})",
            "except Stop:",
            "    pass",
            "except BaseException:",
            "    if not here.is_stopped: raise",
        ]
    lines.append("if cursor.failure is not None: raise cursor.failure")
    lines += _given_out(runner, port, handler, names)
    if handler.quiet:
        is_quiet = " or ".join(f"values[{places[name]}]" for name in handler.quiet)
        lines = [f"if not ({is_quiet}):", *(f"    {line}" for line in lines)]
    return _RowCode(tuple(lines), names)


def _given_out(
    runner: _Runner, port: HandlerPort, handler: PlannedHandler, names: dict[str, object]
) -> list[str]:
    """Write the code that gives out the results of a run that is not the last."""
    lines = []
    for number, (effect, rows) in enumerate(runner.effects_of(port, handler)):
        names[f"put{number}"] = runner.putter(rows)
        if isinstance(effect, KeyEffect):
            lines.append(f"if here.key is not None: put{number}(here.key[{effect.part}])")
        elif isinstance(effect, QuietEffect):
            lines.append(f"if here.is_quiet and not here.is_stopped: put{number}(True)")
    return lines


def _loop(
    codes: Sequence[_RowCode], runs: Sequence[RowRun], cursor: RowCursor
) -> Callable[[Iterable[tuple[Any, ...]]], None]:
    """Return a function that runs many rows at all places of a port."""
    if len(codes) == 1:
        lines = ["for cursor.row, values in enumerate(rows):"]
        lines += [f"    {line}" for line in codes[0].lines]
        loop: Callable[[Iterable[tuple[Any, ...]]], None]
        loop = _compiled("loop", "rows", lines, codes[0].names)
        return loop

    def loop_over(rows: Iterable[tuple[Any, ...]]) -> None:
        for cursor.row, values in enumerate(rows):
            for run in runs:
                run(values)

    return loop_over


def _compiled(name: str, argument: str, lines: Sequence[str], names: dict[str, object]) -> Any:
    text = "\n".join((f"def {name}({argument}):", *(f"    {line}" for line in lines)))
    exec(compile(text, __file__, "exec"), names)  # its frames are Weir's own
    return names[name]


def _fresh(
    nested: Mapping[int, Callable[[Any], Any]], width: int
) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that copies an event's values where they can change."""

    def fresh(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(nested[n](v) if n in nested else v for n, v in enumerate(values[:width]))

    return fresh
