"""Whole apps with their logs, drawn from a seed."""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from python_apps import list_reads
from python_apps.grammar import DrawnState, Grammar, Scope, Uses
from python_apps.kinds import ALWAYS, COLUMNS, DEFAULTS, EMITTED_KINDS, SQL, STATE_KINDS

Rows = list[dict[str, object]]
Touches = Mapping[str, tuple[frozenset[str], frozenset[str]]]

_MODULES = (
    "abc",
    "bisect",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "heapq",
    "io",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "statistics",
    "string",
    "textwrap",
    "types",
    "typing",
)
_KEYS = (("str",), ("str",), ("str",), ("int",), ("int",), ("str", "int"))
_STRINGS = ("a", "b", "ab", "", "ß", "x y", "A", "0", "a\n")
_FLOATS = (0.5, 1.0, -2.5, 0.1, 0.2, 1e16, 0.0, 3.0, 7.25)


@dataclass(frozen=True)
class DrawnApp:
    """A `DrawnApp` is an app's text with logs. `touches` has the states that each handler reads and
    writes, by its text; None where nobody knows, as for an app that was made smaller."""

    seed: int
    source: str
    logs: dict[str, list[Rows]]
    touches: Touches | None = None
    params: Mapping[str, object] = field(default_factory=dict)


def draw_app(seed: int) -> DrawnApp:
    """Draw the app and the logs of a seed."""
    for attempt in range(50):
        rng = random.Random(f"python app {seed} {attempt}")
        # What reads by lists is drawn apart, so that it does not change the rest of an app.
        apart = random.Random(f"list reads {seed} {attempt}") if seed % 3 == 0 else None
        source, events, lists, touches = _draw_source(rng, apart)
        if _compiles(source):
            logs = _draw_logs(rng, events)
            for name, columns in lists.items():
                for row in (row for part in logs[name] for row in part):
                    row |= {c: _value(apart or rng, c) for c in columns}
            return DrawnApp(seed, source, logs, touches)
    raise AssertionError(f"no text of seed {seed} is Python")


def _compiles(source: str) -> bool:
    """Tell whether a text is Python: a drawn one may bind a name where that cannot be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(source, "app.py", "exec")
            ast.parse(source, feature_version=(3, 11))
        except SyntaxError:
            return False
    return True


def _draw_source(
    rng: random.Random, apart: random.Random | None
) -> tuple[str, dict[str, tuple[str, ...]], dict[str, tuple[str, ...]], Touches | None]:
    """Draw the text of an app; return also the columns of its events, and those that its handler
    of lists needs more."""
    events = {}
    for name in ("ea", "eb")[: rng.choice((1, 1, 2))]:
        events[name] = (*ALWAYS, *(c for c in COLUMNS if c not in ALWAYS and rng.random() < 0.5))
    states = [_draw_state(rng, rank) for rank in range(rng.choice((2, 2, 3, 3, 4)))]
    emitted = {
        name: [(f"f{i}", rng.choice(EMITTED_KINDS)) for i in range(rng.choice((1, 2, 2)))]
        for name in ("o0", "o1")[: rng.choice((1, 2))]
    }
    darkness = rng.choice((0.0, 0.0, 0.1, 0.1, 0.4))
    grammar = Grammar(rng, states, emitted, darkness)
    for _ in range(rng.choice((0, 1, 1, 2))):
        grammar.helper()
    touches: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    handlers = []
    for number in range(rng.choice((1, 1, 2, 2, 3))):
        of = [n for n in events if rng.random() < 0.5] or [rng.choice(list(events))]
        grammar.uses = Uses()
        handlers.append(_draw_handler(grammar, f"h{number}", of, events))
        touches[f"h{number}"] = frozenset(grammar.uses.reads), frozenset(grammar.uses.writes)
    serial = rng.choice(("", "", "", "", "", "app.serial()\n"))
    lists: dict[str, tuple[str, ...]] = {}
    more: list[str] = []
    if apart is not None:
        of = [n for n in events if apart.random() < 0.6] or [apart.choice(list(events))]
        lists = {n: tuple(c for c in list_reads.COLUMNS if c not in events[n]) for n in of}
        drawn = list_reads.ListHandler(apart, states)
        at = apart.randint(0, len(handlers))
        handlers.insert(at, drawn.draw("hl", of))
        touches["hl"] = frozenset(drawn.reads), frozenset(drawn.writes)
        more = [list_reads.EMITS, list_reads.HELPERS]
    declared = {n: (*columns, *lists.get(n, ())) for n, columns in events.items()}
    head = _declarations(declared, states, emitted) + "\n".join(more)
    body = "\n\n".join([*grammar.module, *handlers, serial])
    used = [m for m in _MODULES if re.search(rf"\b{m}\.", body)]
    imports = "".join(f"import {m}\n" for m in (*used, "weir"))
    return (
        f"{imports}\n{head}\nLIMIT = 5\n\n{body}",
        events,
        lists,
        None if grammar.is_vague else touches,
    )


def _draw_state(rng: random.Random, rank: int) -> DrawnState:
    kind, keys = rng.choice(STATE_KINDS), rng.choice(_KEYS)
    options = [f"default={rng.choice(DEFAULTS[kind])}", f"type='{SQL[kind]}'"]
    options.append(f"key='{SQL[keys[0]]}'" if len(keys) == 1 else "key=('STRING', 'BIGINT')")
    is_window = rng.random() < 0.12
    if is_window:
        options.append(f"last={rng.choice((1, 3, 8, 20))}")
    elif rng.random() < 0.08:
        options.append(f"expires={rng.choice((1, 3, 8, 20))}")
    declared = f"s{rank} = app.state('s{rank}', {', '.join(options)})"
    return DrawnState(f"s{rank}", rank, kind, keys, declared, is_window)


def _declarations(
    events: Mapping[str, tuple[str, ...]],
    states: list[DrawnState],
    emitted: Mapping[str, list[tuple[str, str]]],
) -> str:
    lines = ["app = weir.App('drawn')"]
    for name, columns in events.items():
        declared = ", ".join(f"{c} {SQL[COLUMNS.get(c, c)]}" for c in columns)
        lines.append(f"{name} = app.events('{name}', 'ts BIGINT, {declared}', vs='ts')")
    lines += [state.declared for state in states]
    for name, fields in emitted.items():
        columns = ", ".join(f"{n} {SQL[kind]}" for n, kind in fields)
        lines.append(f"app.emits('{name}', '{columns}')")
    return "\n".join(lines) + "\n"


def _draw_handler(
    grammar: Grammar, name: str, of: list[str], events: Mapping[str, tuple[str, ...]]
) -> str:
    """Draw a handler. Most read states of lower rank than those that they write, or one state that
    they also write, with one key: others form circles, which are refused."""
    rng, states = grammar.rng, grammar.states
    columns = tuple(c for c in COLUMNS if all(c in events[n] for n in of))
    grammar.wide = rng.random() < 0.75
    grammar.defaults, grammar.own_keys = [], {}
    roll = rng.random()
    every = frozenset(s.name for s in states)
    if roll < 0.08:
        grammar.readable = grammar.writable = every
    elif roll < 0.5:
        pivot = rng.randrange(len(states))
        own = states[pivot]
        parts = [
            rng.choice({"str": ("e.k", "e.k", "e.s"), "int": ("e.u", "e.n % 3")}[kind])
            for kind in own.keys
        ]
        grammar.own_keys[own.name] = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
        grammar.readable = frozenset(s.name for s in states[: pivot + 1])
        grammar.writable = frozenset(s.name for s in states[pivot:])
    else:
        pivot = rng.randint(0, len(states))
        grammar.readable = frozenset(s.name for s in states[:pivot])
        grammar.writable = frozenset(s.name for s in states[pivot:])
    scope = Scope(columns=columns)
    lines: list[str] = []
    for _ in range(rng.choice((2, 3, 3, 4, 5))):
        text, scope = grammar.statement(scope, 2)
        lines += text.split("\n")
    if grammar.uses.reads or not grammar.uses.writes:
        lines += (grammar.merge(scope, 2) or grammar.emit(scope, 2)).split("\n")
    if rng.random() < 0.4:
        lines += grammar.emit(scope, 2).split("\n")
    arguments = ", ".join(["e", *dict.fromkeys(grammar.defaults)])
    body = "".join(f"    {line}\n" for line in lines)
    return f"@app.on({', '.join(of)})\ndef {name}({arguments}):\n{body}"


# --- logs --------------------------------------------------------------------------------------


def _draw_logs(rng: random.Random, events: Mapping[str, tuple[str, ...]]) -> dict[str, list[Rows]]:
    logs = {}
    size = rng.randint(30, 60) // len(events)
    for name, columns in events.items():
        partitions = rng.choice((1, 1, 1, 2))
        logs[name] = [_draw_rows(rng, columns, size // partitions) for _ in range(partitions)]
    return logs


def _draw_rows(rng: random.Random, columns: tuple[str, ...], size: int) -> Rows:
    now, rows = 0, []
    for _ in range(size):
        now += rng.choice((0, 0, 1, 1, 2, 3))
        rows.append({"ts": now, **{c: _value(rng, c) for c in columns}})
    return rows


def _value(rng: random.Random, column: str) -> object:
    match column:
        case "k":
            return rng.choice("aabbc")
        case "u":
            return rng.choice((0, 0, 1, 2))
        case "n" | "v":
            return rng.choice((0, 1, 1, 2, 3, 5, -1, -4, 9))
        case "m":
            return rng.choice((None, 0, 2, 7))
        case "x":
            return float("nan") if rng.random() < 0.02 else rng.choice(_FLOATS)
        case "s":
            return rng.choice(_STRINGS)
        case "t":
            return rng.choice((None, "a", "b", ""))
        case "f":
            return rng.random() < 0.5
        case "tags":
            return [rng.choice("abc") for _ in range(rng.choice((0, 1, 2, 3)))]
        case "nums":
            return [rng.choice((0, 1, 2, 5, -3)) for _ in range(rng.choice((0, 1, 2, 3)))]
        case "items":
            return list_reads.items(rng)
        case "d":
            return {"n": rng.choice((0, 1, 4)), "t": rng.choice("ab")}
    raise AssertionError(column)
