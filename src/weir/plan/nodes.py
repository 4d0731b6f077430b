"""The algebra as data: one frozen class per temporal operator.

Contract
1. A node is fully bound: its expressions are typed, its column names exist in its inputs.
   The builder (`stream.py`) is the only maker of nodes; rewrites make new ones from old.
2. Keys, aggregate arguments, filters and order columns are *column names* of the input: the
   builder puts a `Project` below when they are computed.
3. Two sides of a `Join` have disjoint column names: the builder qualifies them (`A.k`), the
   inputs' lifetimes among them (`A.vs`, `A.ve`). Bare `vs` / `ve` is the node's own lifetime.
4. `schema(node)` are the payload columns in order; `time` of it is how `vs` and `ve` look in
   expressions and outputs.

What each operator means is in the reference (docs/reference/semantics.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import pyarrow as pa

from weir.plan.expressions import Expr
from weir.plan.node_class import node_class

if TYPE_CHECKING:
    from weir.plan.user_code import AggregateFunction, OperatorCall


@dataclass(frozen=True, slots=True)
class Schema:
    """Payload columns in order, and the type of the time columns (BIGINT or TIMESTAMP)."""

    columns: tuple[tuple[str, pa.DataType], ...]
    time: pa.DataType

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return tuple(dtype for _, dtype in self.columns)

    def type_of(self, name: str) -> pa.DataType:
        if name in ("vs", "ve"):
            return self.time
        return dict(self.columns)[name]

    def index(self, name: str) -> int:
        return self.names.index(name)


# --- windows -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows `[offset + k·hop, offset + k·hop + size)`; tumbling when hop == size."""

    size: int
    hop: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    timeout: int


@dataclass(frozen=True, slots=True)
class CountWindow:
    n: int
    step: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cell between any two neighbouring endpoints of a group's events."""


Window: TypeAlias = Hopping | Session | CountWindow | Snapshot

# --- lifetime changes ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duration:
    ticks: int


@dataclass(frozen=True, slots=True)
class SetLifetime:
    """`[vs + shift, end)`; a NULL end is open. `end` reads the lifetime before the change."""

    shift: int
    end: Expr


@dataclass(frozen=True, slots=True)
class Shift:
    ticks: int


@dataclass(frozen=True, slots=True)
class Extend:
    ticks: int


@dataclass(frozen=True, slots=True)
class ClipDuration:
    ticks: int


@dataclass(frozen=True, slots=True)
class Point:
    pass


@dataclass(frozen=True, slots=True)
class PointAtEnd:
    pass


@dataclass(frozen=True, slots=True)
class Quantize:
    size: int
    hop: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class HopLifetime:
    size: int
    hop: int
    offset: int = 0


LifetimeChange: TypeAlias = (
    Duration
    | SetLifetime
    | Shift
    | Extend
    | ClipDuration
    | Point
    | PointAtEnd
    | Quantize
    | HopLifetime
)

# --- operators -----------------------------------------------------------------------------

MAX_RECORD, LARGEST_RECORD = 16 << 20, 1 << 30
"""How long a record of a text source may be: if nothing is said, and at most (Arrow counts the
bytes of a column's texts in 31 bits)."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The WITH options of STREAM; durations in ticks."""

    vs: str
    ve: str | None = None
    lifetime: int | None = None
    delay: int = 0
    late: Literal["fail", "drop", "adjust"] = "fail"
    idle: int | None = None
    bad: Literal["fail", "skip"] = "fail"
    max_record: int = MAX_RECORD
    """In bytes."""


@node_class
class Source:
    """A declared input. `declared` are the columns of the data; a column called `vs` or `ve`
    is consumed as the time and is not in the payload. `index` is its place among the
    program's STREAM statements: the first part of every origin. Rows of a DataFrame have no
    origins; `data` then holds it, in this process alone."""

    name: str
    declared: tuple[tuple[str, pa.DataType], ...]
    path: str
    options: SourceOptions
    index: int
    has_origins: bool = True
    data: object | None = field(default=None, compare=False, repr=False)


@node_class
class Project:
    input: Node
    columns: tuple[tuple[str, Expr], ...]


@node_class
class Filter:
    input: Node
    predicate: Expr


@node_class
class Explode:
    """One event per element of the LIST column, which keeps its name and place."""

    input: Node
    column: str


@node_class
class AlterLifetime:
    input: Node
    change: LifetimeChange


@node_class
class Chop:
    input: Node
    period: int
    offset: int = 0


@node_class
class Stitch:
    input: Node


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of an `Aggregate`: columns in, one column out.

    `function`: count_star, count, count_distinct, sum, avg, min, max, stddev, variance, first,
    last, quantile_disc, quantile_cont, collect, or `user` with the user's own in `user`.
    MEDIAN is quantile_cont with params ("0.5",).
    In two phases: `moments`, with params ("squares",) if squares are asked for, gives what
    sums, means and variances are made of; they then read that column, and `of` says of values
    of which type it is made.
    """

    function: str
    args: tuple[str, ...]
    type: pa.DataType
    filter: str | None = None
    params: tuple[str, ...] = ()
    user: AggregateFunction | None = None
    of: pa.DataType | None = None


@node_class
class Aggregate:
    """Rows are the key columns, then the aggregates."""

    input: Node
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregation], ...]
    window: Window


@node_class
class PartialAggregate:
    """One row for each pane: the rows of a group, in one vertex, that are in the same windows.
    Its lifetime is in just these windows too. A rewrite makes it, below an `Aggregate`."""

    input: Node
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregation], ...]
    window: Hopping


@node_class
class Distinct:
    input: Node


@node_class
class Top:
    """ORDER BY … LIMIT k: of each window (rows of equal lifetime) or of each instant."""

    input: Node
    order: tuple[tuple[str, bool], ...]  # column, descending
    limit: int
    ties: bool
    scope: Literal["window", "instant"]


JoinKind: TypeAlias = Literal[
    "inner", "left", "right", "full", "semi", "anti", "clip", "asof", "left_asof"
]


@node_class
class Join:
    """`keys` are pairs of (left column, right column) of equal type; none is a theta or cross
    join. `condition` reads both sides' columns (never bare `vs` / `ve`)."""

    left: Node
    right: Node
    kind: JoinKind
    keys: tuple[tuple[str, str], ...]
    condition: Expr | None = None


@node_class
class Union:
    """UNION ALL of two or more inputs with equal column types; names are the first's."""

    inputs: tuple[Node, ...]


@node_class
class Apply:
    """The user's own operator: PROCESS (no keys), REDUCE (keys), COMBINE (two inputs, keys).

    `keys` has one tuple of column names for each input.
    """

    inputs: tuple[Node, ...]
    keys: tuple[tuple[str, ...], ...]
    call: OperatorCall


@node_class
class Partition:
    """PARTITION BY key INTO n AS 'uid': fixes how the stage that reads this is split. Without
    keys it has no say in that, only in how the stage that it is in recovers (`strategy`)."""

    input: Node
    keys: tuple[str, ...]
    count: int
    uid: str
    strategy: str = ""


Node: TypeAlias = (
    Source
    | Project
    | Filter
    | Explode
    | AlterLifetime
    | Chop
    | Stitch
    | Aggregate
    | PartialAggregate
    | Distinct
    | Top
    | Join
    | Union
    | Apply
    | Partition
)


@dataclass(frozen=True, slots=True)
class Output:
    """OUTPUT … TO: the rows of a stream, or a source's late or bad rows."""

    name: str
    node: Node
    path: str
    kind: Literal["rows", "late", "bad"] = "rows"


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program's text and what else it was parsed with; `directory` is where IMPORT looks."""

    source: str
    params: tuple[tuple[str, str], ...]
    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class Program:
    """A checked program: named streams in order of definition, outputs, settings."""

    sources: tuple[Source, ...]
    streams: tuple[tuple[str, Node], ...]
    outputs: tuple[Output, ...]
    settings: tuple[tuple[str, object], ...] = ()
    code: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    """What IMPORT ran, file by file and module by module, with fingerprints."""
    text: ProgramText | None = field(default=None, compare=False, repr=False)
    """What it was parsed from, if it was."""


def inputs_of(node: Node) -> tuple[Node, ...]:
    match node:
        case Source():
            return ()
        case Join():
            return (node.left, node.right)
        case Union() | Apply():
            return node.inputs
        case _:
            return (node.input,)


T = TypeVar("T")


def schema(node: Node) -> Schema:
    """The payload columns of a node's rows and the type of its time columns."""
    return computed(node, "_schema", _schema)


def computed(node: Node, name: str, compute: Callable[[Node], T]) -> T:
    """What is computed of a node from what is known of its inputs; each node remembers it. The
    inputs come first, so that deep plans need no deep stack."""
    stack = [] if name in node.__dict__ else [node]
    while stack:
        unknown = [i for i in inputs_of(stack[-1]) if name not in i.__dict__]
        if unknown:
            stack += unknown
        else:
            top = stack.pop()
            object.__setattr__(top, name, compute(top))
    known: T = node.__dict__[name]
    return known


def _schema(node: Node) -> Schema:
    match node:
        case Source():
            return _source_schema(node)
        case Filter() | AlterLifetime() | Chop() | Stitch() | Distinct() | Top() | Partition():
            return schema(node.input)
        case Project():
            columns = tuple((name, _typed(e)) for name, e in node.columns)
            return Schema(columns, schema(node.input).time)
        case Explode():
            below = schema(node.input)
            columns = tuple((n, t.value_type if n == node.column else t) for n, t in below.columns)
            return Schema(columns, below.time)
        case Aggregate() | PartialAggregate():
            below = schema(node.input)
            keys = tuple((k, below.type_of(k)) for k in node.keys)
            return Schema((*keys, *((n, a.type) for n, a in node.aggregates)), below.time)
        case Join():
            left, right = schema(node.left), schema(node.right)
            if node.kind in ("semi", "anti", "clip"):
                return Schema(left.columns, _common_time((left, right)))
            return Schema(left.columns + right.columns, _common_time((left, right)))
        case Union():
            below_all = tuple(schema(i) for i in node.inputs)
            return Schema(below_all[0].columns, _common_time(below_all))
        case Apply():
            return Schema(node.call.columns, _common_time(tuple(schema(i) for i in node.inputs)))


def _source_schema(source: Source) -> Schema:
    payload = tuple((n, t) for n, t in source.declared if n not in ("vs", "ve"))
    return Schema(payload, dict(source.declared)[source.options.vs])


def _common_time(schemas: tuple[Schema, ...]) -> pa.DataType:
    # TIMESTAMP only when every source's is: a plain tick count has no calendar.
    return schemas[0].time if all(s.time == schemas[0].time for s in schemas) else pa.int64()


def _typed(expr: Expr) -> pa.DataType:
    assert expr.type is not None, f"unbound expression in a plan: {expr}"
    return expr.type
