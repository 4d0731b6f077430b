"""Random merges: ready-made ones, functions that are recognised, and functions that are not."""

from __future__ import annotations

from replay_oracle.expressions import Drawn, Expressions, Scope, StateShape

_READY = {
    "int": ("add", "set", "max", "min", "add"),
    "float": ("add", "add", "add", "set", "max"),
    "str": ("set",),
    "bool": ("set",),
    "oint": ("set",),
    "ostr": ("set",),
    "ints": ("append", "add_to_set", "add_to_set", "set"),
    "strs": ("append", "add_to_set", "add_to_set"),
    "struct": ("set",),
}
_ELEMENT = {"ints": "int", "strs": "str"}

_FUNCTIONS = {
    "int": (
        "lambda n: n + 1",
        "lambda n: n + $a",
        "lambda n: $a + n",
        "lambda n: n - $a",
        "lambda _: $a",
        "lambda n: max(n, $a)",
        "lambda n: min($a, n)",
        "lambda n: (n * 3 + $a) % 97",
        "lambda n: n + $a if n < 10 else 0",
        "lambda n: n if $b else n + 1",
        "up",
        "lambda n: stepped(n, $a)",
        "lambda n: -n",
    ),
    "float": (
        "lambda v: v + $a",
        "lambda v: v * 0.5 + $a",
        "lambda _: $a",
        "lambda v: max(v, $a)",
        "lambda v: $a + v",
        "lambda v: v - $a if v > 0 else $a",
    ),
    "str": ("lambda _: $a", "lambda v: (v + $a)[-6:]", "lambda v: $a + v[:2]", "lambda v: v or $a"),
    "bool": ("lambda _: True", "lambda _: $a", "lambda v: not v", "lambda v: v or $a"),
    "oint": ("lambda v: $i if v is None else v + $i", "lambda _: $a", "lambda v: v or $a"),
    "ostr": ("lambda _: $a", "lambda v: $a if v is None else v"),
    "ints": ("lambda v: (v + [$i])[-3:]", "lambda v: v + [$i]", "lambda v: v[1:]"),
    "strs": ("lambda v: (v + [$s])[-3:]", "lambda v: v + [$s]"),
    "struct": (
        'lambda v: {"n": v["n"] + $i, "t": $s}',
        'lambda v: {"n": $i, "t": v["t"]}',
        'lambda v: {**v, "n": v["n"] + 1}',
    ),
}


def draw_merge(draw: Expressions, state: StateShape, scope: Scope, limit: int) -> Drawn:
    """Draw a merge into a state, whose arguments have at most the rank `limit`."""
    key = draw.key(state, scope, limit, write=True)
    # A list is either one of the best values or any other: what `top_k` makes of one that it did
    # not sort itself is nobody's business.
    if state.type == "ints" and state.name[-1] in "135":
        value = draw.expr("int", scope, limit, 2)
        args = f"{key.text}, {value.text}, {draw.rng.choice([1, 2, 3])}"
        return Drawn(f"{state.name}.top_k({args})", max(key.rank, value.rank))
    if draw.rng.random() < 0.5:
        return _ready_made(draw, state, key, scope, limit)
    return _function(draw, state, key, scope, limit)


def _ready_made(
    draw: Expressions, state: StateShape, key: Drawn, scope: Scope, limit: int
) -> Drawn:
    kind = draw.rng.choice(_READY[state.type])
    type = state.type if kind == "set" else _ELEMENT.get(state.type, state.type)
    value = draw.expr(type, scope, limit, 2)
    args = f"{key.text}, {value.text}"
    if draw.rng.random() < 0.12:
        return Drawn(f"{_helper(draw, state, kind)}({args})", max(key.rank, value.rank))
    if draw.rng.random() < 0.06:
        draw.small_functions[f"do_{kind}"] = (
            f"def do_{kind}(state, key, x):\n    state.{kind}(key, x)\n"
        )
        return Drawn(f"do_{kind}({state.name}, {args})", max(key.rank, value.rank))
    return Drawn(f"{state.name}.{kind}({args})", max(key.rank, value.rank))


def _helper(draw: Expressions, state: StateShape, kind: str) -> str:
    """Return the name of a function that merges."""
    name = f"{kind}_{state.name}"
    body = f"    {state.name}.{kind}(key, x)\n"
    if len(name) % 2:
        body = f"    if key is None:\n        return\n{body}"
    draw.small_functions[name] = f"def {name}(key, x):\n{body}"
    return name


def _function(draw: Expressions, state: StateShape, key: Drawn, scope: Scope, limit: int) -> Drawn:
    text, rank = draw.rng.choice(_FUNCTIONS[state.type]), key.rank
    # Names of the enclosing function's locals never clash with n, v and _.
    for mark, type in (("$a", state.type), ("$b", "bool"), ("$i", "int"), ("$s", "str")):
        if mark in text:
            value = draw.expr(type, scope, limit, 1)
            text, rank = text.replace(mark, value.text), max(rank, value.rank)
    return Drawn(f"{state.name}.merge({key.text}, {text})", rank)
