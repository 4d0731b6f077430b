"""Random programs of the script language, and their inputs.

A program is a chain of steps; each step is one operator over the relation before it (joins and
unions take any earlier relation as their second input) and gives a relation with known columns.
A step becomes a named stream or a nested sub-select. The last one is `Out`.

Programs that must fail are rare: where an operator refuses open events, a CLIP_DURATION comes
first when there can be some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from property.expressions import expression, literal, predicate
from property.inputs import COLUMNS, Input, inputs
from property.relations import Relation, Step, chance

Draw = st.DrawFn


@dataclass(frozen=True, slots=True)
class Example:
    """A program's text (streams declared in it) and the partitions of each stream."""

    text: str
    inputs: dict[str, list[list[dict[str, object]]]]


# --- one input, no state -------------------------------------------------------------------


def select(draw: Draw, rel: Relation) -> Step:
    items = [expression(draw, rel) for _ in range(draw(st.integers(1, 3)))]
    return Step(_select(items, rel, _where(draw, rel)), _columns(items), rel.endless)


def where(draw: Draw, rel: Relation) -> Step:
    text = f"SELECT * FROM {rel.source} WHERE {predicate(draw, rel)}"
    return Step(text, rel.columns, rel.endless)


def explode(draw: Draw, rel: Relation) -> Step:
    lists = [name for name, dtype in rel.columns if dtype.startswith("LIST")]
    if not lists:
        return where(draw, rel)
    name = draw(st.sampled_from(lists))
    element = rel.type_of(name)[5:-1]
    items = [expression(draw, rel) for _ in range(draw(st.integers(0, 2)))]
    items.insert(draw(st.integers(0, len(items))), (f"EXPLODE({name})", element))
    return Step(_select(items, rel, _where(draw, rel)), _columns(items), rel.endless)


def lifetime(draw: Draw, rel: Relation) -> Step:
    change, endless = draw(_changes(rel.endless))
    text = f"SELECT {_some_columns(draw, rel)} FROM {rel.source}{_where(draw, rel)} WITH {change}"
    return Step(text, rel.columns, endless)


def _changes(endless: bool) -> st.SearchStrategy[tuple[str, bool]]:
    size, moved = st.integers(1, 9), st.integers(-6, 9)
    grid = st.sampled_from(("", ", 1", ", -2", ", 7"))
    ends = st.sampled_from(("ve", "ve + 2", "ve - 3", "CASE WHEN vs > 4 THEN ve END"))
    hopping = st.tuples(size, size, grid)
    return st.one_of(
        size.map(lambda d: (f"DURATION({d})", False)),
        size.map(lambda d: (f"CLIP_DURATION({d})", False)),
        moved.map(lambda d: (f"SHIFT({d})", endless)),
        moved.map(lambda d: (f"EXTEND({d})", endless)),
        st.sampled_from((("POINT", False), ("POINT_AT_END", False))),
        hopping.map(lambda w: (f"HOP_LIFETIME({w[0]}, {w[1]}{w[2]})", False)),
        hopping.map(lambda w: (f"QUANTIZE({w[0]}, {w[1]}{w[2]})", endless)),
        st.tuples(st.integers(0, 4), size).map(
            lambda m: (f"LIFETIME(vs + {m[0]}, vs + {m[1]})", False)
        ),
        st.tuples(st.integers(0, 4), ends).map(
            lambda m: (f"LIFETIME(vs - {m[0]}, {m[1]})", endless or "CASE" in m[1])
        ),
    )


def chop(draw: Draw, rel: Relation) -> Step:
    rel = _bounded(draw, rel)
    offset = draw(st.sampled_from(("", ", 1", ", -4")))
    period = draw(st.integers(1, 9))
    text = f"SELECT {_some_columns(draw, rel)} FROM {rel.source}{_where(draw, rel)}"
    return Step(f"{text} WITH CHOP({period}{offset})", rel.columns, False)


def stitch(draw: Draw, rel: Relation) -> Step:
    items = _few_columns(draw, rel)
    return Step(
        f"{_select(items, rel, _where(draw, rel))} WITH STITCH", _columns(items), rel.endless
    )


# --- windows -------------------------------------------------------------------------------


def hopping(draw: Draw, rel: Relation) -> Step:
    rel = _bounded(draw, rel)
    size, hop = draw(st.integers(1, 10)), draw(st.integers(1, 6))
    offset = draw(st.sampled_from(("", "", ", 1", ", -3")))
    tumbling = not chance(draw, 2)
    window = f"TUMBLING({size}{offset})" if tumbling else f"HOPPING({size}, {hop}{offset})"
    return _aggregate(draw, rel, window, False)


def session(draw: Draw, rel: Relation) -> Step:
    return _aggregate(draw, rel, f"SESSION({draw(st.integers(1, 6))})", False)


def count_window(draw: Draw, rel: Relation) -> Step:
    n, step = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    window = f"COUNT({n})" if chance(draw, 2) else f"COUNT({n}, {step})"
    return _aggregate(draw, rel, window, rel.endless)


def snapshot(draw: Draw, rel: Relation) -> Step:
    return _aggregate(draw, rel, draw(st.sampled_from(("SNAPSHOT", ""))), rel.endless)


def _aggregate(draw: Draw, rel: Relation, window: str, endless: bool) -> Step:
    count = draw(st.sampled_from((0, 1, 1, 2)))
    keys = list(dict.fromkeys(draw(st.sampled_from(rel.names)) for _ in range(count)))
    items = [(k, rel.type_of(k)) for k in keys]
    items += [_aggregate_call(draw, rel) for _ in range(draw(st.integers(1, 3)))]
    items = draw(st.permutations(items)) if chance(draw, 4) else items
    text = _select(items, rel, _where(draw, rel))
    if keys:
        text += f" GROUP BY {', '.join(keys)}"
    if chance(draw, 5):
        text += f" HAVING COUNT(*) > {draw(st.integers(0, 2))}"
    step = Step(text + (f" WITH {window}" if window else ""), _columns(items), endless)
    return _ranked(draw, step) if chance(draw, 5) else step


_OF_ANY = (
    "COUNT({})",
    "COUNT(DISTINCT {})",
    "FIRST({})",
    "LAST({})",
    "COLLECT({})",
    "MIN({})",
    "MAX({})",
    "QUANTILE_DISC({}, 0.3)",
    "QUANTILE_DISC({}, 0)",
)
_OF_NUMBERS = (
    "SUM({})",
    "AVG({})",
    "VARIANCE({})",
    "STDDEV({})",
    "MEDIAN({})",
    "QUANTILE_CONT({}, 0.35)",
    "QUANTILE_CONT({}, 1)",
)
_DOUBLES = ("AVG", "VARIANCE", "STDDEV", "MEDIAN", "QUANTILE_CONT")


def _aggregate_call(draw: Draw, rel: Relation) -> tuple[str, str]:
    name = draw(st.sampled_from((None, *rel.names)))
    if name is None:
        call, dtype = "COUNT(*)", "BIGINT"
    else:
        call, dtype = _call_over(draw, name, rel.type_of(name))
    if chance(draw, 5):
        call += f" FILTER (WHERE {predicate(draw, rel)})"
    return call, dtype


def _call_over(draw: Draw, name: str, dtype: str) -> tuple[str, str]:
    choices = _OF_ANY
    if dtype in ("BIGINT", "DOUBLE"):
        choices += _OF_NUMBERS
    form = draw(st.sampled_from(choices))
    if form.startswith("COUNT"):
        dtype = "BIGINT"
    elif form.startswith("COLLECT"):
        dtype = f"LIST({dtype})"
    elif form.startswith(_DOUBLES):
        dtype = "DOUBLE"
    return form.format(name), dtype


# --- distinct and top ----------------------------------------------------------------------


def distinct(draw: Draw, rel: Relation) -> Step:
    items = _few_columns(draw, rel)
    text = _select(items, rel, _where(draw, rel)).replace("SELECT", "SELECT DISTINCT", 1)
    return Step(text, _columns(items), rel.endless)


def top(draw: Draw, rel: Relation) -> Step:
    text = f"SELECT {_some_columns(draw, rel)} FROM {rel.source}{_where(draw, rel)}"
    return _ranked(draw, Step(text, rel.columns, rel.endless))


def _ranked(draw: Draw, step: Step) -> Step:
    columns = st.sampled_from([name for name, _ in step.columns])
    names = draw(st.lists(columns, min_size=1, max_size=2, unique=True))
    order = ", ".join(f"{n}{draw(st.sampled_from(('', ' DESC', ' ASC')))}" for n in names)
    ties = " WITH TIES" if chance(draw, 2) else ""
    text = f"{step.text} ORDER BY {order} LIMIT {draw(st.integers(1, 3))}{ties}"
    return Step(text, step.columns, step.endless)


# --- two inputs ----------------------------------------------------------------------------

_KINDS = {
    "INNER JOIN": lambda left, right: left and right,
    "LEFT OUTER JOIN": lambda left, right: left,
    "RIGHT OUTER JOIN": lambda left, right: right,
    "FULL OUTER JOIN": lambda left, right: left or right,
    "LEFT SEMI JOIN": lambda left, right: left and right,
    "LEFT ANTI JOIN": lambda left, right: left,
    "CLIP JOIN": lambda left, right: left,
    "ASOF JOIN": lambda left, right: left,
    "LEFT ASOF JOIN": lambda left, right: left,
    "CROSS JOIN": lambda left, right: left and right,
}
_LEFT_ONLY = ("LEFT SEMI JOIN", "LEFT ANTI JOIN", "CLIP JOIN")


def join(kind: str) -> Callable[[Draw, Relation, Relation], Step]:
    def step(draw: Draw, left: Relation, right: Relation) -> Step:
        return _join(draw, kind, left, right)

    return step


def _join(draw: Draw, kind: str, left: Relation, right: Relation) -> Step:
    items = [(f"l.{n}", left.type_of(n)) for n in _names(draw, left)]
    if kind not in _LEFT_ONLY:
        items += [(f"r.{n}", right.type_of(n)) for n in _names(draw, right)]
        if chance(draw, 4):
            items.append((draw(st.sampled_from(("l.vs", "r.vs", "r.ve", "vs"))), "BIGINT"))
    text = f"SELECT {_aliased(items)} FROM {left.source} AS l {kind} {right.source} AS r"
    if kind != "CROSS JOIN":
        text += f" ON {_condition(draw, left, right)}"
    return Step(text, _columns(items), _KINDS[kind](left.endless, right.endless))


def _condition(draw: Draw, left: Relation, right: Relation) -> str:
    pairs = _pairs(left, right)
    parts = []
    if pairs:
        count = draw(st.sampled_from((1, 1, 1, 2)))
        chosen = [draw(st.sampled_from(pairs)) for _ in range(count)]
        equals = draw(st.sampled_from((" = ", " == ")))
        parts = [f"l.{a}{equals}r.{b}" for a, b in chosen]
        if chance(draw, 10):
            parts = [f"l.{a} <= r.{b}" for a, b in chosen]
    if not parts or chance(draw, 4):
        parts.append(draw(st.sampled_from(("l.vs <= r.vs", "l.vs < r.vs + 3", "r.ve > l.vs"))))
    return " AND ".join(parts)


def _pairs(left: Relation, right: Relation) -> list[tuple[str, str]]:
    """Columns of one type on both sides."""
    return [(a, b) for a, one in left.columns for b, other in right.columns if one == other]


def union(draw: Draw, left: Relation, right: Relation) -> Step:
    types = [t for _, t in (left.columns[i] for i in _places(draw, left))]
    selects = []
    for rel in (left, right):
        items = [(_of_type(draw, rel, t), t) for t in types]
        selects.append(_select(items, rel, _where(draw, rel)))
    step = Step(
        " UNION ALL ".join(selects),
        _columns([("", t) for t in types]),
        left.endless or right.endless,
    )
    return _ranked(draw, step) if chance(draw, 6) else step


def _of_type(draw: Draw, rel: Relation, dtype: str) -> str:
    names = rel.of(dtype)
    return draw(st.sampled_from(names)) if names else literal(dtype)


# --- the user's own code -------------------------------------------------------------------

_IMPORT = f"IMPORT '{Path(__file__).parent / 'user_functions.py'}';"
_QUIET = (("what", "STRING"), ("n", "BIGINT"), ("since", "BIGINT"))


def user_select(draw: Draw, rel: Relation) -> Step:
    """SELECT with scalar functions, row by row and vectorised."""
    forms = {"BIGINT": "or_minus_one({0})", "DOUBLE": "added({0}, 0.5)"}
    items = [(forms.get(t, "{0}").format(n), t) for n, t in rel.columns]
    return Step(_select(items, rel, _where(draw, rel)), _columns(items), rel.endless)


def user_aggregate(draw: Draw, rel: Relation) -> Step:
    rel = _bounded(draw, rel)
    items = [(f"Chained({n})", "STRING") for n in rel.of("STRING")]
    items += [(f"Evens({n})", "BIGINT") for n in rel.of("BIGINT")]
    items += [(f"Linked({n})", "STRING") for n in rel.of("STRING")]
    items += [(f"Rolled({n})", "BIGINT") for n in rel.of("BIGINT")]
    items.append(("COUNT(*)", "BIGINT"))
    windows = ("SNAPSHOT", "TUMBLING(5)", "HOPPING(6, 2)", "SESSION(3)", "COUNT(3, 1)")
    text = _select(items, rel, _where(draw, rel))
    return Step(f"{text} WITH {draw(st.sampled_from(windows))}", _columns(items), False)


def process(draw: Draw, rel: Relation) -> Step:
    # Of a DOUBLE the user's code could tell -0 from 0, which are one value to all others.
    columns = rel.of("STRING", "BIGINT", "BOOLEAN")
    if not columns:
        return where(draw, rel)
    column = draw(st.sampled_from(columns))
    text = f"PROCESS {rel.source} USING Numbered('{column}')"
    return Step(text, (("n", "BIGINT"),), False, nests=False)


def reduce(draw: Draw, rel: Relation) -> Step:
    key = draw(st.sampled_from(rel.names))
    text = f"REDUCE {rel.source} ON {key} USING Quiet({draw(st.integers(1, 5))})"
    return Step(text, _QUIET, False, nests=False)


def combine(draw: Draw, left: Relation, right: Relation) -> Step:
    # COMBINE takes keys of equal types only, and a generated BIGINT may be an INT.
    pairs = [(a, b) for a, b in _pairs(left, right) if "BIGINT" not in left.type_of(a)]
    if not pairs or left.source == right.source:
        return process(draw, left)
    mine, theirs = draw(st.sampled_from(pairs))
    text = f"COMBINE {left.source} WITH {right.source}"
    text += f" ON {left.source}.{mine} == {right.source}.{theirs}"
    return Step(f"{text} USING Quiet({draw(st.integers(1, 5))})", _QUIET, False, nests=False)


# --- parts of a select ---------------------------------------------------------------------


def _places(draw: Draw, rel: Relation) -> list[int]:
    indices = st.integers(0, len(rel.columns) - 1)
    return sorted(draw(st.lists(indices, min_size=1, max_size=3, unique=True)))


def _names(draw: Draw, rel: Relation) -> list[str]:
    return [rel.columns[i][0] for i in _places(draw, rel)]


def _few_columns(draw: Draw, rel: Relation) -> list[tuple[str, str]]:
    """One or two columns, so that rows are often equal."""
    return [(n, rel.type_of(n)) for n in _names(draw, rel)[:2]]


def _some_columns(draw: Draw, rel: Relation) -> str:
    return draw(st.sampled_from(("*", ", ".join(n for n, _ in rel.columns))))


def _where(draw: Draw, rel: Relation) -> str:
    return f" WHERE {predicate(draw, rel)}" if chance(draw, 7) else ""


def _select(items: Sequence[tuple[str, str]], rel: Relation, rest: str) -> str:
    return f"SELECT {_aliased(items)} FROM {rel.source}{rest}"


def _aliased(items: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))


def _columns(items: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((f"c{i}", dtype) for i, (_, dtype) in enumerate(items))


def _bounded(draw: Draw, rel: Relation) -> Relation:
    """The relation without open events; now and then as it is, and the run must fail."""
    if not rel.endless or chance(draw, 20):
        return rel
    text = f"(SELECT * FROM {rel.source} WITH CLIP_DURATION({draw(st.integers(1, 12))}))"
    return Relation(text, rel.columns, False)


# --- programs ------------------------------------------------------------------------------

ONE_INPUT: dict[str, Callable[[Draw, Relation], Step]] = {
    "select": select,
    "where": where,
    "explode": explode,
    "lifetime": lifetime,
    "chop": chop,
    "stitch": stitch,
    "hopping": hopping,
    "session": session,
    "count": count_window,
    "snapshot": snapshot,
    "distinct": distinct,
    "top": top,
    "user_select": user_select,
    "user_aggregate": user_aggregate,
    "process": process,
    "reduce": reduce,
}
TWO_INPUTS: dict[str, Callable[[Draw, Relation, Relation], Step]] = {
    "union": union,
    "combine": combine,
    **{kind.lower().replace(" ", "_"): join(kind) for kind in _KINDS},
}
OPERATORS = (*ONE_INPUT, *TWO_INPUTS)
_USERS_OWN = ("user_select", "user_aggregate", "process", "reduce", "combine")
_NAMED_INPUTS = ("process", "reduce", "combine")


@st.composite
def programs(draw: Draw, operators: Sequence[str], *, max_rows: int = 12) -> Example:
    """A program that applies these operators in turn."""
    streams = [draw(inputs(name, max_rows=max_rows)) for name in ("A", "B")]
    # A program that reads only A has only A's rows to shrink.
    if all(name in ONE_INPUT for name in operators):
        streams = streams[:1]
    relations = [Relation(s.name, COLUMNS, _endless(s)) for s in streams]
    statements = [_IMPORT] if any(name in _USERS_OWN for name in operators) else []
    statements += [s.declaration for s in streams]
    current = relations[0]
    for place, name in enumerate(operators):
        last = place == len(operators) - 1
        if name in ONE_INPUT:
            step = ONE_INPUT[name](draw, current)
        else:
            # Most often the other source; a relation may also meet itself.
            other = draw(st.sampled_from((relations[1], relations[1], *relations)))
            step = TWO_INPUTS[name](draw, current, other)
        can_nest = not last and step.nests and operators[place + 1] not in _NAMED_INPUTS
        if can_nest and chance(draw, 2):
            current = Relation(f"({step.text})", step.columns, step.endless)
            continue
        stream = "Out" if last else f"S{place}"
        statements.append(f"{stream} = {step.text};")
        current = Relation(stream, step.columns, step.endless)
        relations.append(current)
    return Example("\n".join(statements), {s.name: s.partitions for s in streams})


def _endless(stream: Input) -> bool:
    items = (item for p in stream.partitions for item in p)
    return any(item.get("ve", 0) is None for item in items)


def compositions(least: int, most: int) -> st.SearchStrategy[Example]:
    """Programs of several operators."""
    names = st.lists(st.sampled_from(OPERATORS), min_size=least, max_size=most)
    return names.flatmap(lambda chosen: programs(chosen, max_rows=10))
