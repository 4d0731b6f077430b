"""The fluent API has streams as Python objects.

Every method writes the query that a script would, and gives it to the same builder: so
`a.where(col("v") > 0).group_by("k").window(hopping("5s", "5s")).agg(n=count())` and the script
that says the same make equal plans.

A `Stream` is a plan. A `Selection` is a SELECT that still lacks its list: `select` or `agg` ends
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, get_args

import pyarrow as pa

from weir.errors import PlanError, UnknownAttribute
from weir.events.python_types import TypeText, written_type
from weir.events.types import type_name
from weir.plan.binding.builder import apply, union
from weir.plan.binding.drafts import Draft, Named, both, draft, listed, select_items, term
from weir.plan.binding.lifetimes import BoundChange, change_lifetime
from weir.plan.binding.partitioning import checked
from weir.plan.binding.query import (
    ChopChange,
    JoinClause,
    LifetimeClause,
    NamedRelation,
    PartitionClause,
    StitchChange,
)
from weir.plan.binding.selects import partition
from weir.plan.doubts import told_already, warn_of_plain, warn_of_unordered
from weir.plan.durations import Ticks, parse_duration
from weir.plan.lifetime_changes import (
    ClipDuration,
    Duration,
    Extend,
    HopLifetime,
    Point,
    PointAtEnd,
    Quantize,
    Shift,
)
from weir.plan.operators import Distinct, Node, Recovery, Source, SourceOptions, schema
from weir.plan.operators.source import MAX_RECORD
from weir.plan.program import Output, turned_away
from weir.plan.python_habits import KIND_HABITS, STREAM_HABITS, habit, instead, no_attribute
from weir.plan.runners import provided
from weir.plan.schema import Schema
from weir.plan.sizes import parse_size
from weir.plan.sources import declare_source
from weir.plan.strategy import parse_strategy
from weir.plan.terms import Condition, Term, as_condition, explode
from weir.plan.user_code import OperatorCall
from weir.plan.windows import Hopping, Session, Window, window_text

JoinName: TypeAlias = Literal[
    "inner", "left", "right", "full", "semi", "anti", "clip", "asof", "left_asof", "cross"
]


@instead(
    schema="columns={'at': 'TIMESTAMP', …}",
    **dict.fromkeys(("time", "ts", "timestamp", "event_time", "time_column"), "vs='at'"),
    **dict.fromkeys(("watermark", "lateness"), "delay='10s'"),
    format="a path with its ending: .jsonl, .csv, .parquet, .arrow",
)
def stream(
    name: str,
    columns: Mapping[str, TypeText],
    path: object,
    *,
    vs: str,
    ve: str | None = None,
    lifetime: Ticks | None = None,
    delay: Ticks = 0,
    late: Literal["fail", "drop", "adjust"] = "fail",
    idle: Ticks | None = None,
    bad: Literal["fail", "skip"] = "fail",
    max_record: str | int = MAX_RECORD,
    unit: Literal["s", "ms", "us", "ns", "tick"] | None = None,
    index: int = 0,
) -> Stream:
    """Declare an input, as STREAM in a script.

    Types are names ("BIGINT"), Python's (int) or Arrow's. Instead of a path there may be rows: see
    `weir.from_rows`. Rows of equal times are ordered by the inputs' `index`, then by their names.

    >>> a = stream("A", {"At": "TIMESTAMP", "k": str}, "a.jsonl", vs="At", delay="10s")
    >>> a.columns
    ('At', 'k')
    """
    if not (isinstance(name, str) and _is_mapping(columns)):
        hint = 'as in stream("A", {"At": "TIMESTAMP", "k": "STRING"}, "a.jsonl", vs="At")'
        raise PlanError("a stream has a name, columns with types, and a path", hint=hint)
    if not isinstance(path, str | Path):
        types = {n: written_type(t, f"column `{n}`") for n, t in columns.items()}
        path = str(provided("rows_path")(path, name, types))
    options = SourceOptions(
        vs=vs,
        ve="ve" if ve is None and "ve" in columns else ve,
        lifetime=None if lifetime is None else parse_duration(lifetime),
        delay=parse_duration(delay),
        late=late,
        idle=None if idle is None else parse_duration(idle),
        bad=bad,
        max_record=parse_size(max_record),
        unit=unit,
    )
    source = declare_source(name, columns, str(path), options, index)
    for option, value in (("delay", delay), ("lifetime", lifetime), ("idle", idle)):
        warn_of_plain(option, [value], [source])
    return Stream(source, name)


def _is_mapping(given: object) -> bool:
    return isinstance(given, Mapping)


_JOIN_OPTIONS = {
    "how": 'kind="left"',
    **dict.fromkeys(("left_on", "right_on", "by", "using"), 'on="A.k = B.k"'),
}
_ENDS = '.agg(n=weir.count()), or .select("*")'


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """A `Selection` is a SELECT without its list: joins, WHERE, GROUP BY, HAVING and a window so
    far."""

    draft: Draft
    keys: tuple[Term, ...] = ()

    def __repr__(self) -> str:
        return f"<Selection of {', '.join(self.draft.streams)}, which .select(…) or .agg(…) ends>"

    if not TYPE_CHECKING:  # so that type checkers still tell what is not there

        def __getattr__(self, name: str) -> NoReturn:
            # Asked for what a selection does not have: most likely it was to be a stream.
            if name in vars(Stream) and not name.startswith("_"):
                what = f"`.{name}` is for a stream: end the selection first"
                raise UnknownAttribute(what, name, hint=_ENDS)
            raise no_attribute("a selection", name, STREAM_HABITS, vars(Selection))

    @instead(**_JOIN_OPTIONS)
    def join(
        self, other: Stream, on: Condition | None = None, kind: JoinName = "inner"
    ) -> Selection:
        """Add another join; both sides' columns are then `A.k`, by the streams' names."""
        if as_stream(other).name is None:
            raise PlanError("a stream in a join needs a name", hint='as_("…")')
        assert other.name is not None
        if kind not in get_args(JoinName):
            hint = habit(str(kind), KIND_HABITS) or f"one of {', '.join(get_args(JoinName))}"
            raise PlanError(f"no join is of kind {kind!r}", hint=hint)
        self._check_on(other, on)
        condition = None if on is None else as_condition(on).expr
        clause = JoinClause(kind, NamedRelation(other.name), condition)
        return replace(self, draft=self.draft.joined(clause, other.node))

    def _check_on(self, other: Stream, on: object) -> None:
        """Refuse keys by their names, as elsewhere: a join says of which stream each is."""
        keys = [on] if isinstance(on, str) else on
        if not (isinstance(keys, list | tuple) and keys):
            return
        for name, node in self.draft.streams.items():
            both = [k for k in keys if k in schema(node).names and k in other.columns]
            if len(both) == len(keys):
                said = " AND ".join(f"{name}.{k} = {other.name}.{k}" for k in both)
                raise PlanError(f"{on!r} is in both streams of the join", hint=f'write on="{said}"')

    def where(self, condition: Condition) -> Selection:
        """Keep the rows for which the condition is true, as WHERE; several are joined by AND."""
        select = self.draft.select
        return self._with(where=both(select.where, as_condition(condition).expr))

    def group_by(self, *keys: Named) -> Selection:
        """Group rows by keys, as GROUP BY."""
        terms = tuple(term(k) for k in listed(keys))
        return replace(self._with(group_by=tuple(t.expr for t in terms)), keys=terms)

    def window(self, window: Window) -> Selection:
        """Set the windows of the aggregates, as WITH."""
        given: object = window
        if not isinstance(given, Window):
            hint = 'weir.tumbling("10s"), hopping("1m", "10s"), session("5m"), count_window(10)'
            raise PlanError(f"{window!r} is no window", hint=hint)
        if isinstance(given, Hopping | Session):
            warn_of_plain(window_text(given), given.plain, self.draft.streams.values())
        return self._with(with_clause=window)

    def having(self, condition: Condition) -> Selection:
        """Keep the results for which the condition is true, as HAVING."""
        kept = as_condition(condition)
        changed = replace(self.draft.select, having=kept.expr)
        return replace(self, draft=self.draft.changed(changed, [kept]))

    def select(self, *items: Named, **named: Named) -> Stream:
        """Select rows; strings are columns' names, `*` is all of them, keywords give names."""
        items = listed(items)
        terms = [term(t) for t in (*items, *named.values())]
        changed = replace(self.draft.select, items=select_items(items, named))
        done = self.draft.changed(changed, terms)
        return Stream(done.planned(), draft=done)

    def agg(self, *aggregates: Condition, **named: Condition) -> Stream:
        """Select the group keys, then these aggregates: terms, or expressions as a script writes
        them."""
        computed = {name: as_condition(given) for name, given in named.items()}
        return self.select(*self.keys, *map(as_condition, listed(aggregates)), **computed)

    def _with(self, **changes: object) -> Selection:
        # The callers name fields of the draft; mypy would want each of their types here.
        changed = replace(self.draft.select, **changes)  # type: ignore[arg-type]
        return replace(self, draft=self.draft.changed(changed))


@dataclass(frozen=True, slots=True, repr=False)
class Stream:
    """A `Stream` is a plan and the name its rows have in joins. Streams of equal plans are equal.

    >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
    >>> a.shift("1s") == a.shift("1000ms")
    True
    """

    node: Node
    name: str | None = field(default=None, compare=False)
    draft: Draft | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        columns = ", ".join(f"{n} {type_name(t)}" for n, t in self.schema.columns)
        return f"<Stream{f' {self.name}' if self.name else ''} ({columns})>"

    def _repr_html_(self) -> str:
        shown = provided("html")(self)
        assert isinstance(shown, str)
        return shown

    if not TYPE_CHECKING:  # so that type checkers still tell what is not there

        def __getattr__(self, name: str) -> NoReturn:
            # What the class has is asked for here while an object is made: its columns are not
            # there yet.
            if not name.startswith("_") and name not in vars(Stream) and name in self.columns:
                hint = f"a column is col({name!r}), or {name!r} in select and group_by"
                raise UnknownAttribute(f"a stream has no `{name}`", name, hint=hint)
            raise no_attribute("a stream", name, STREAM_HABITS, vars(Stream))

    def __getitem__(self, key: object) -> NoReturn:
        hint = "the rows as a list of dicts are s.collect().to_pylist()"
        if isinstance(key, str):
            hint = f"a column is col({key!r}), and s.select({key!r}) a stream of it"
        elif isinstance(key, list):
            hint = f"write s.select({key!r})"
        elif isinstance(key, Term):
            hint = 'write s.where(col("v") > 3)'
        raise PlanError("a stream is a plan, and has no [ ]", hint=hint)

    @property
    def schema(self) -> Schema:
        """Return the columns with their types, and the type of the lifetime's ends."""
        return schema(self.node)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the payload's columns.

        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.columns
        ('v',)
        """
        return self.schema.names

    def as_(self, name: str) -> Stream:
        """Return the stream under the name that its columns get in a join.

        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.as_("B").name
        'B'
        """
        return replace(self, name=name)

    # --- payload -------------------------------------------------------------------------

    def select(self, *items: Named, **named: Named) -> Stream:
        """Compute columns, as SELECT: strings are columns' names, `*` is all of them, keywords give
        names.

        >>> from weir import col, collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 9, "v": 5}]
        >>> collect(a.select("v", twice=2 * col("v")), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 9, 'v': 5, 'twice': 10}]
        """
        return self._selection().select(*items, **named)

    def where(self, condition: Condition) -> Stream:
        """Keep the rows for which the condition is true, as WHERE: a term, or an expression as a
        script writes it.

        >>> from weir import col, collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 2, "v": 5}, {"vs": 1, "ve": 2, "v": 6}]
        >>> collect(a.where(col("v") > 5), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 2, 'v': 6}]
        >>> a.where("v > 5") == a.where(col("v") > 5)
        True
        """
        return self._keeping(self._selection().where(condition).select("*").node)

    def explode(self, column: str) -> Stream:
        """Make one row for each element of the column's list; the element replaces the list.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "tags": "LIST(STRING)"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "tags": ["x", "y"]}]
        >>> collect(a.explode("tags"), inputs={"A": rows}).column("tags").to_pylist()
        ['x', 'y']
        """
        items = [explode(n).as_(n) if n == column else n for n in self.columns]
        if column not in self.columns:
            items.append(explode(column).as_(column))
        return self.select(*items)

    def distinct(self) -> Stream:
        """Make one row of equal rows that overlap or touch, as SELECT DISTINCT.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 3, "v": 5}, {"vs": 2, "ve": 7, "v": 5}]
        >>> collect(a.distinct(), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 7, 'v': 5}]
        """
        return Stream(checked(Distinct(self.node)))

    # --- windows, joins, unions ----------------------------------------------------------

    @instead(**_JOIN_OPTIONS)
    def join(
        self, other: Stream, on: Condition | None = None, kind: JoinName = "inner"
    ) -> Selection:
        """Pair rows with those of another stream at the instants at which both are valid, as JOIN;
        `select` or `agg` ends it.

        >>> from weir import collect
        >>> columns = {"vs": "BIGINT", "ve": "BIGINT", "k": "BIGINT"}
        >>> a = stream("A", columns, "a.jsonl", vs="vs")
        >>> b = stream("B", columns, "b.jsonl", vs="vs")
        >>> both = a.join(b, "A.k = B.k").select("A.k")
        >>> rows = {"A": [{"vs": 1, "ve": 5, "k": 7}], "B": [{"vs": 3, "ve": 9, "k": 7}]}
        >>> collect(both, inputs=rows).to_pylist()
        [{'vs': 3, 've': 5, 'k': 7}]
        """
        if self.name is None:
            raise PlanError("a stream in a join needs a name", hint='as_("…")')
        return self._selection().join(other, on, kind)

    def group_by(self, *keys: Named) -> Selection:
        """Group rows by keys, as GROUP BY; `agg` ends it.

        >>> from weir import collect, count, tumbling
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> counts = a.group_by("v").window(tumbling(10)).agg(n=count())
        >>> collect(counts, inputs={"A": [{"vs": 1, "ve": 2, "v": 5}]}).to_pylist()
        [{'vs': 0, 've': 10, 'v': 5, 'n': 1}]
        """
        return self._selection().group_by(*keys)

    def window(self, window: Window) -> Selection:
        """Set the windows of an aggregate, as WITH; `agg` ends it.

        >>> from weir import col, collect, tumbling
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> sums = a.window(tumbling(10)).agg(total=col("v").sum())
        >>> collect(sums, inputs={"A": [{"vs": 1, "ve": 2, "v": 5}]}).to_pylist()
        [{'vs': 0, 've': 10, 'total': 5}]
        """
        return self._selection().window(window)

    def agg(self, *aggregates: Condition, **named: Condition) -> Stream:
        """Compute aggregates of the whole stream at every instant.

        >>> from weir import collect, count
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 9, "v": 5}, {"vs": 4, "ve": 9, "v": 6}]
        >>> collect(a.agg(n=count()), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 4, 'n': 1}, {'vs': 4, 've': 9, 'n': 2}]
        """
        return self._selection().agg(*aggregates, **named)

    def top(self, k: int, by: Named | Sequence[Named] = (), *, ties: bool = False) -> Stream:
        """Keep the first k rows of an order, of each window right after a hopping one, else of each
        instant.

        >>> from weir import col, collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 4, "v": 5}, {"vs": 1, "ve": 4, "v": 6}]
        >>> collect(a.top(1, by=col("v").desc()), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 4, 'v': 6}]
        """
        given = [by] if isinstance(by, str | Term) else by
        if not given:
            warn_of_unordered(k)
        before = self.draft or draft(self.node, self.name)
        ranked = before.ranked(k, [term(t) for t in given], ties)
        with told_already():  # of the SELECT, which is planned once more
            return Stream(ranked.planned())

    def union(self, *others: Stream) -> Stream:
        """Take the rows of this stream and of others with the same columns, as UNION ALL.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.union(a.shift(10)), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 9, 'v': 5}, {'vs': 11, 've': 19, 'v': 5}]
        """
        return Stream(union([self.node, *(as_stream(o).node for o in others)]))

    def partition_by(self, *keys: str, into: int, uid: str) -> Stream:
        """Set how the stage that reads this stream is split, and its name.

        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.partition_by("v", into=4, uid="sums").columns
        ('v',)
        """
        clause = PartitionClause(tuple(term(k).expr for k in keys), into, uid)
        return self._keeping(partition(self.node, clause))

    def with_strategy(self, strategy: str) -> Stream:
        """Set how the stage that makes these rows recovers in a live run.

        The strategy is `checkpoint(10s)`, `replay` or `replicate(2)`; a stage that reads an input
        takes checkpoints. It applies to all that the stage does, before and after.

        >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.distinct().with_strategy("replicate(2)").columns
        ('v',)
        """
        said = str(parse_strategy(strategy))
        return self._keeping(Recovery(self.node, said))

    # --- lifetimes -----------------------------------------------------------------------

    def duration(self, d: Ticks) -> Stream:
        """Let every row live for `d` from its start on, as DURATION.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.duration(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 4, 'v': 5}]
        """
        return self._change(Duration(*self._ticks("duration", d)))

    def shift(self, d: Ticks) -> Stream:
        """Move both ends of lifetimes by `d`, as SHIFT.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.shift(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 4, 've': 12, 'v': 5}]
        """
        return self._change(Shift(*self._ticks("shift", d)))

    def extend(self, d: Ticks) -> Stream:
        """Move the ends of lifetimes by `d`, which may be negative, as EXTEND.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.extend(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 12, 'v': 5}]
        """
        return self._change(Extend(*self._ticks("extend", d)))

    def clip_duration(self, d: Ticks) -> Stream:
        """Let no row live for longer than `d`, as CLIP_DURATION.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.clip_duration(3), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 4, 'v': 5}]
        """
        return self._change(ClipDuration(*self._ticks("clip_duration", d)))

    def point(self) -> Stream:
        """Make every row a point at its start, as POINT.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.point(), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 2, 'v': 5}]
        """
        return self._change(Point())

    def point_at_end(self) -> Stream:
        """Make every row a point at its end, as POINT_AT_END; open rows are dropped.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.point_at_end(), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 9, 've': 10, 'v': 5}]
        """
        return self._change(PointAtEnd())

    def quantize(self, size: Ticks, hop: Ticks, offset: Ticks = 0) -> Stream:
        """Move both ends of lifetimes to the grid of hopping windows, as QUANTIZE: each row lives
        as long as the windows that it falls into.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.quantize(10, 5), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 0, 've': 10, 'v': 5}]
        """
        return self._change(Quantize(*self._ticks("quantize", size, hop, offset)))

    def hop_lifetime(self, size: Ticks, hop: Ticks, offset: Ticks = 0) -> Stream:
        """Let every row live from the grid point at or after its start up to the one at or after
        its start + `size`, as HOP_LIFETIME.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.hop_lifetime(10, 5), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 5, 've': 15, 'v': 5}]
        """
        return self._change(HopLifetime(*self._ticks("hop_lifetime", size, hop, offset)))

    def chop(self, period: Ticks, offset: Ticks = 0) -> Stream:
        """Cut lifetimes at every point of a grid, as CHOP.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.chop(5), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 5, 'v': 5}, {'vs': 5, 've': 9, 'v': 5}]
        """
        return self._change(ChopChange(*self._ticks("chop", period, offset)))

    def stitch(self) -> Stream:
        """Make one row of equal rows of which one ends where the next one starts, as STITCH.

        >>> from weir import collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 3, "v": 5}, {"vs": 3, "ve": 7, "v": 5}]
        >>> collect(a.stitch(), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 7, 'v': 5}]
        """
        return self._change(StitchChange())

    def lifetime(self, start: Named, end: Named) -> Stream:
        """Set lifetimes to `[start, end)`: start is `vs` moved by a constant, end any expression.

        >>> from weir import col, collect
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> moved = a.lifetime(col("vs") + 1, "v")
        >>> collect(moved, inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 2, 've': 5, 'v': 5}]
        """
        clause = LifetimeClause(term(start).expr, term(end).expr)
        changed = self._selection()._with(with_clause=clause)
        return self._keeping(changed.select("*").node)

    # --- the user's own operators --------------------------------------------------------

    def process(self, using: OperatorCall) -> Stream:
        """Run the user's operator over all rows together, as PROCESS.

        >>> from weir import collect, operator
        >>> @operator(columns={"n": "BIGINT"})
        ... class Numbered:
        ...     n: int = 0
        ...     def on_event(self, event, ctx):
        ...         self.n += 1
        ...         ctx.emit(n=self.n)
        >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "v": 5}, {"vs": 2, "v": 6}]
        >>> collect(a.process(Numbered()), inputs={"A": rows}).column("n").to_pylist()
        [1, 2]
        """
        return Stream(apply([self.node], [()], using))

    def reduce(self, *keys: str, using: OperatorCall) -> Stream:
        """Run the user's operator over the rows of each key apart, as REDUCE.

        >>> from weir import collect, operator
        >>> @operator(columns={"n": "BIGINT"})
        ... class Numbered:
        ...     n: int = 0
        ...     def on_event(self, event, ctx):
        ...         self.n += 1
        ...         ctx.emit(n=self.n)
        >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "v": 5}, {"vs": 2, "v": 6}]
        >>> collect(a.reduce("v", using=Numbered()), inputs={"A": rows}).column("n").to_pylist()
        [1, 1]
        """
        return Stream(apply([self.node], [keys], using))

    def combine(self, other: Stream, *keys: str | tuple[str, str], using: OperatorCall) -> Stream:
        """Run the user's operator over the rows of each key of two streams, as COMBINE; keys have
        one name in both, or are pairs of names.

        >>> from weir import operator
        >>> @operator(columns={"n": "BIGINT"})
        ... class Meeting:
        ...     def on_event(self, event, ctx): ...
        >>> a = stream("A", {"vs": "BIGINT", "k": "BIGINT"}, "a.jsonl", vs="vs")
        >>> b = stream("B", {"vs": "BIGINT", "key": "BIGINT"}, "b.jsonl", vs="vs")
        >>> a.combine(b, ("k", "key"), using=Meeting()).columns
        ('n',)
        """
        pairs = [(k, k) if isinstance(k, str) else k for k in keys]
        sides = [[left for left, _ in pairs], [right for _, right in pairs]]
        return Stream(apply([self.node, as_stream(other).node], sides, using))

    # --- looking at rows -----------------------------------------------------------------

    def collect(self, **options: Any) -> pa.Table:
        """Return the rows as a table, in the order in which a file would have them; the options are
        those of `weir.collect`.

        >>> from weir import from_rows
        >>> from_rows([{"at": 1, "v": 5}], vs="at").collect().to_pylist()
        [{'vs': 1, 've': 2, 'at': 1, 'v': 5}]
        """
        return provided("collect")(self, **options)

    def head(self, n: int = 5, *, directory: str | Path = ".") -> pa.Table:
        """Return the first n rows, in the order of a file; no more of the inputs is read than that
        needs.

        >>> from weir import from_rows
        >>> from_rows({"at": [1, 2, 3]}, vs="at").head(2).column("at").to_pylist()
        [1, 2]
        """
        return provided("head")(self, n, directory=directory)

    def show(self, n: int = 20, *, directory: str | Path = ".") -> None:
        """Print the first n rows.

        >>> from weir import from_rows
        >>> from_rows({"at": [1, 2, 3], "k": ["x", "y", None]}, vs="at").show(2)
        vs  ve  at  k
         1   2   1  x
         2   3   2  y
        … shown: 2 rows, and there are more
        """
        provided("show")(self, n, directory=directory)

    def explain(self, format: Literal["text", "dot", "json"] = "text") -> None:
        """Print what will be done: the plan, its stages, how long each operator can hold rows back.

        >>> from weir import from_rows
        >>> from_rows({"at": [1]}, vs="at").duration("5s").explain("dot")  # doctest: +ELLIPSIS
        digraph weir {
        ...
        """
        provided("explain")(self, format)

    # --- where rows go -------------------------------------------------------------------

    def to(self, path: str | Path, name: str | None = None) -> Output:
        """Write the rows to a file or a folder, as OUTPUT … TO in a script.

        A runner takes one such output or a list of them. `name` is what reports, callbacks and
        readers call it; else it is the input's, of which only rows or lifetimes were changed, or
        the file's. Two streams of one name cannot be written by one program.

        >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.to("out/rows.parquet").name, a.select("v").to("out/values.csv").name
        ('A', 'values')
        """
        named = name or self.name or Path(path).stem or "Out"
        return Output(named, self.node, str(path))

    def late_to(self, path: str | Path) -> Output:
        """Write the late rows of this input to a file, as OUTPUT LATE OF … TO."""
        return self._turned_away("late", path)

    def bad_to(self, path: str | Path) -> Output:
        """Write the bad rows of this input to a file, as OUTPUT BAD OF … TO."""
        return self._turned_away("bad", path)

    def _turned_away(self, kind: Literal["late", "bad"], path: str | Path) -> Output:
        if not isinstance(self.node, Source):
            raise PlanError(f"only an input has {kind} rows, not what is computed of it")
        return turned_away(self.node, kind, str(path))

    # --- on Spark ------------------------------------------------------------------------

    def to_spark(
        self, spark: object, *, directory: str | Path = ".", parallelism: int | None = None
    ) -> object:
        """Return the rows as a Spark DataFrame: vs, ve, then the payload; Spark computes it when it
        is used.

        `directory` is where relative paths of sources start, `parallelism` the number of vertices.
        """
        return provided("to_spark")(self, spark, directory=directory, parallelism=parallelism)

    def _selection(self) -> Selection:
        return Selection(draft(self.node, self.name))

    def _keeping(self, node: Node) -> Stream:
        return Stream(node, self.name)

    def _ticks(self, method: str, *given: Ticks) -> list[int]:
        warn_of_plain(method, given, [self.node])
        return [parse_duration(value) for value in given]

    def _change(self, change: BoundChange) -> Stream:
        return self._keeping(change_lifetime(self.node, change))


def as_stream(given: object) -> Stream:
    """Return what is a stream; PlanError, with what to do, for anything else."""
    if isinstance(given, Stream):
        return given
    if isinstance(given, Selection):
        raise PlanError("a selection is no stream yet", hint=f"end it: {_ENDS}")
    if isinstance(given, Output):
        raise PlanError("an output is no stream", hint="leave .to(…) out, or give it to weir.run")
    if isinstance(given, str):
        raise PlanError(f"{given!r} (str) is no stream", hint="weir.stream(…) declares one")
    hint = "rows in memory become one by weir.from_rows(rows, vs=…), files by weir.stream(…)"
    raise PlanError(f"a value of type {type(given).__name__} is no stream", hint=hint)
