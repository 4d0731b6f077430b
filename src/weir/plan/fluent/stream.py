"""The fluent API: streams as Python objects.

Every method writes the same query as a script would, and passes it to the same builder. So
`a.where(col("v") > 0).group_by("k").window(hopping("5s", "5s")).agg(n=count())` and the script with
the same meaning make equal plans.

A `Stream` is a plan. A `Selection` is a SELECT without its list so far: `select` or `agg` completes
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, get_args

from weir.errors import PlanError, UnknownAttribute
from weir.events.types import type_name
from weir.plan.advice.plan_warnings import told_already, warn_of_plain, warn_of_unordered
from weir.plan.advice.python_habits import KIND_HABITS, STREAM_HABITS, habit, instead, no_attribute
from weir.plan.binding.builder import apply, union
from weir.plan.binding.partitioning import checked
from weir.plan.binding.query import (
    JoinClause,
    LifetimeClause,
    NamedRelation,
    PartitionClause,
)
from weir.plan.binding.selects import partition
from weir.plan.fluent.drafts import Draft, Named, both, draft, listed, select_items, term
from weir.plan.fluent.runners import provided
from weir.plan.fluent.stream_lifetimes import LifetimeMethods
from weir.plan.fluent.stream_results import ResultMethods
from weir.plan.fluent.terms import Condition, Term, as_aggregate, as_condition, explode
from weir.plan.operators import Distinct, Node, Recovery, schema
from weir.plan.program import Output
from weir.plan.schema import Schema
from weir.plan.strategy import parse_strategy
from weir.plan.usercode.functions import OperatorCall
from weir.plan.windows import Hopping, Session, Window, window_text

JoinName: TypeAlias = Literal[
    "inner", "left", "right", "full", "semi", "anti", "clip", "asof", "left_asof", "cross"
]


_JOIN_OPTIONS = {
    "how": 'kind="left"',
    **dict.fromkeys(("left_on", "right_on", "by", "using"), 'on="A.k = B.k"'),
}
_ENDS = '.agg(n=weir.count()), or .select("*")'


@dataclass(frozen=True, slots=True, repr=False)
class Selection:
    """A SELECT without its list: the joins, WHERE, GROUP BY, HAVING and window so far."""

    draft: Draft
    keys: tuple[Term, ...] = ()

    def __repr__(self) -> str:
        return f"<Selection of {', '.join(self.draft.streams)}, which .select(…) or .agg(…) ends>"

    if not TYPE_CHECKING:  # hidden from type checkers, which still report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            # The name is unknown for a selection; most likely a stream was meant.
            if name in dir(Stream) and not name.startswith("_"):
                what = f"`.{name}` is for a stream: end the selection first"
                raise UnknownAttribute(what, name, hint=_ENDS)
            raise no_attribute("a selection", name, STREAM_HABITS, dir(Selection))

    @instead(**_JOIN_OPTIONS)
    def join(
        self, other: Stream, on: Condition | None = None, kind: JoinName = "inner"
    ) -> Selection:
        """Add another join; the columns of both sides are then `A.k`, by the streams' names."""
        if as_stream(other).name is None:
            raise PlanError("a stream in a join needs a name", hint='as_("…")')
        assert other.name is not None
        _check_kind(kind)
        _check_keys(self.draft, other, on)
        condition = None if on is None else as_condition(on).expr
        clause = JoinClause(kind, NamedRelation(other.name), condition)
        return replace(self, draft=self.draft.joined(clause, other.node))

    def where(self, condition: Condition) -> Selection:
        """Keep the rows for which the condition is true, as WHERE; repeated calls mean AND."""
        select = self.draft.select
        return self._with(where=both(select.where, as_condition(condition).expr))

    def group_by(self, *keys: Named) -> Selection:
        """Group rows by keys, as GROUP BY."""
        terms = tuple(term(k) for k in listed(keys))
        return replace(self._with(group_by=tuple(t.expr for t in terms)), keys=terms)

    def window(self, window: Window) -> Selection:
        """Set the windows of the aggregates, as WITH."""
        value: object = window
        if not isinstance(value, Window):
            windows = 'weir.tumbling("10s"), hopping("1m", "10s"), session("5m"), count_window(10)'
            raise PlanError(f"{window!r} is not a window", hint=f"expected one of {windows}")
        if isinstance(value, Hopping | Session):
            warn_of_plain(window_text(value), value.plain, self.draft.streams.values())
        return self._with(with_clause=window)

    def having(self, condition: Condition) -> Selection:
        """Keep the results for which the condition is true, as HAVING."""
        kept = as_condition(condition)
        changed = replace(self.draft.select, having=kept.expr)
        return replace(self, draft=self.draft.changed(changed, [kept]))

    def select(self, *items: Named, **named: Named) -> Stream:
        """Select columns; strings are column names, `*` is all columns, keywords give names."""
        items = listed(items)
        terms = [term(t) for t in (*items, *named.values())]
        changed = replace(self.draft.select, items=select_items(items, named))
        done = self.draft.changed(changed, terms)
        return Stream(done.planned(), draft=done)

    def agg(self, *aggregates: Condition, **named: Condition) -> Stream:
        """Select the group keys, followed by these aggregates.

        An aggregate is a term, or text as in a script."""
        if not (self.keys or aggregates or named):
            raise PlanError("agg has nothing to compute", hint="as in .agg(n=weir.count())")
        computed = {name: as_aggregate(value) for name, value in named.items()}
        return self.select(*self.keys, *map(as_aggregate, listed(aggregates)), **computed)

    def _with(self, **changes: object) -> Selection:
        # The callers pass fields of the draft; mypy would need the type of each.
        changed = replace(self.draft.select, **changes)  # type: ignore[arg-type]
        return replace(self, draft=self.draft.changed(changed))


@dataclass(frozen=True, slots=True, repr=False)
class Stream(LifetimeMethods, ResultMethods):
    """A plan, and the name of its rows in joins; streams of equal plans are equal.

    >>> from weir import stream
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

    if not TYPE_CHECKING:  # hidden from type checkers, which still report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            # While an object is created, Python looks up the class's own names here; its columns do
            # not exist yet.
            if not name.startswith("_") and name not in dir(Stream) and name in self.columns:
                hint = f"a column is col({name!r}), or {name!r} in select and group_by"
                raise UnknownAttribute(f"a stream has no `{name}`", name, hint=hint)
            raise no_attribute("a stream", name, STREAM_HABITS, dir(Stream))

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
        """Return the names of the payload columns.

        >>> from weir import stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.columns
        ('v',)
        """
        return self.schema.names

    def as_(self, name: str) -> Stream:
        """Return the stream under another name, which its columns get in a join.

        >>> from weir import stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.as_("B").name
        'B'
        """
        return replace(self, name=name)

    # --- payload -------------------------------------------------------------------------

    def select(self, *items: Named, **named: Named) -> Stream:
        """Compute columns, as SELECT.

        Strings are column names, `*` is all columns, keywords give names.

        >>> from weir import col, collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 9, "v": 5}]
        >>> collect(a.select("v", twice=2 * col("v")), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 9, 'v': 5, 'twice': 10}]
        """
        return self._selection().select(*items, **named)

    def where(self, condition: Condition) -> Stream:
        """Keep the rows for which the condition is true, as WHERE.

        The condition is a term, or an expression in text as in a script.

        >>> from weir import col, collect, stream
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

        >>> from weir import collect, stream
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
        """Combine equal rows that overlap or touch into one, as SELECT DISTINCT.

        >>> from weir import collect, stream
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
        """Pair rows with those of another stream while both are valid, as JOIN.

        `select` or `agg` completes the result.

        >>> from weir import collect, stream
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
        """Group rows by keys, as GROUP BY; `agg` completes the result.

        >>> from weir import collect, count, stream, tumbling
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> counts = a.group_by("v").window(tumbling(10)).agg(n=count())
        >>> collect(counts, inputs={"A": [{"vs": 1, "ve": 2, "v": 5}]}).to_pylist()
        [{'vs': 0, 've': 10, 'v': 5, 'n': 1}]
        """
        return self._selection().group_by(*keys)

    def window(self, window: Window) -> Selection:
        """Set the windows of an aggregate, as WITH; `agg` completes the result.

        >>> from weir import col, collect, stream, tumbling
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> sums = a.window(tumbling(10)).agg(total=col("v").sum())
        >>> collect(sums, inputs={"A": [{"vs": 1, "ve": 2, "v": 5}]}).to_pylist()
        [{'vs': 0, 've': 10, 'total': 5}]
        """
        return self._selection().window(window)

    def agg(self, *aggregates: Condition, **named: Condition) -> Stream:
        """Compute aggregates of the whole stream at every instant.

        >>> from weir import collect, count, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 9, "v": 5}, {"vs": 4, "ve": 9, "v": 6}]
        >>> collect(a.agg(n=count()), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 4, 'n': 1}, {'vs': 4, 've': 9, 'n': 2}]
        """
        return self._selection().agg(*aggregates, **named)

    @instead(**dict.fromkeys(("desc", "descending", "ascending", "reverse"), 'by=col("v").desc()'))
    def top(self, k: int, by: Named | Sequence[Named] = (), *, ties: bool = False) -> Stream:
        """Keep the first k rows by an order.

        They are the first of each window if this is an aggregate over hopping windows, else of each
        instant.

        >>> from weir import col, collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> rows = [{"vs": 1, "ve": 4, "v": 5}, {"vs": 1, "ve": 4, "v": 6}]
        >>> collect(a.top(1, by=col("v").desc()), inputs={"A": rows}).to_pylist()
        [{'vs': 1, 've': 4, 'v': 6}]
        """
        terms = [by] if isinstance(by, str | Term) else by
        if not terms:
            warn_of_unordered(k)
        before = self.draft or draft(self.node, self.name)
        ranked = before.ranked(k, [term(t) for t in terms], ties)
        with told_already():  # raised for the SELECT, which is planned a second time
            return Stream(ranked.planned())

    def union(self, *others: Stream) -> Stream:
        """Combine the rows of this stream and of others with the same columns, as UNION ALL.

        >>> from weir import collect, stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> collect(a.union(a.shift(10)), inputs={"A": [{"vs": 1, "ve": 9, "v": 5}]}).to_pylist()
        [{'vs': 1, 've': 9, 'v': 5}, {'vs': 11, 've': 19, 'v': 5}]
        """
        return Stream(union([self.node, *(as_stream(o).node for o in listed(others))]))

    def partition_by(self, *keys: str, into: int, uid: str) -> Stream:
        """Set how the stage that reads this stream is split, and the name of the split.

        >>> from weir import stream
        >>> a = stream("A", {"vs": "BIGINT", "ve": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.partition_by("v", into=4, uid="sums").columns
        ('v',)
        """
        clause = PartitionClause(tuple(term(k).expr for k in keys), into, uid)
        return self._keeping(partition(self.node, clause))

    def with_strategy(self, strategy: str) -> Stream:
        """Set how the stage that makes these rows recovers in a live run.

        The strategy is `checkpoint(10s)`, `replay` or `replicate(2)`; a stage that reads an input
        can only use checkpoints. The strategy applies to the whole stage, including the operators
        before and after this one.

        >>> from weir import stream
        >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.distinct().with_strategy("replicate(2)").columns
        ('v',)
        """
        return self._keeping(Recovery(self.node, str(parse_strategy(strategy))))

    def lifetime(self, start: Named, end: Named) -> Stream:
        """Set lifetimes to `[start, end)`.

        The start is `vs` plus or minus a constant; the end is any expression.

        >>> from weir import col, collect, stream
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

        >>> from weir import collect, operator, stream
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
        """Run the user's operator separately over the rows of each key, as REDUCE.

        >>> from weir import collect, operator, stream
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
        """Run the user's operator over the rows of each key of two streams, as COMBINE.

        A key is one name for both streams, or a pair of names.

        >>> from weir import operator, stream
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

    def _selection(self) -> Selection:
        return Selection(draft(self.node, self.name))

    def _keeping(self, node: Node) -> Stream:
        return Stream(node, self.name)


def as_stream(value: object) -> Stream:
    """Return the value if it is a stream; otherwise raise PlanError, which says what to do."""
    if isinstance(value, Stream):
        return value
    if isinstance(value, Selection):
        raise PlanError("a selection is not a stream yet", hint=f"end it: {_ENDS}")
    if isinstance(value, Output):
        raise PlanError(
            "an output is not a stream", hint="leave .to(…) out, or give it to weir.run"
        )
    if isinstance(value, str):
        raise PlanError(f"{value!r} (str) is not a stream", hint="weir.stream(…) declares one")
    hint = "weir.from_rows(rows, vs=…) makes one of rows in memory, weir.stream(…) of files"
    raise PlanError(f"a value of type {type(value).__name__} is not a stream", hint=hint)


def _check_kind(kind: object) -> None:
    if kind not in get_args(JoinName):
        hint = habit(str(kind), KIND_HABITS) or f"one of {', '.join(get_args(JoinName))}"
        raise PlanError(f"unknown kind of join {kind!r}", hint=hint)


def _check_keys(left: Draft, right: Stream, on: object) -> None:
    """Raise PlanError if a join's condition is only key names, as it must name both streams."""
    keys = [on] if isinstance(on, str) else on
    if not (isinstance(keys, list | tuple) and keys):
        return
    for name, node in left.streams.items():
        if all(k in schema(node).names and k in right.columns for k in keys):
            condition = " AND ".join(f"{name}.{k} = {right.name}.{k}" for k in keys)
            raise PlanError(
                f"{on!r} is in both streams of the join", hint=f'write on="{condition}"'
            )
