"""Checks a STREAM statement, which declares an input: its columns and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from weir.errors import PlanError
from weir.events.types import BIGINT, TIMESTAMP, type_name
from weir.plan.fluent.sources import check_unit
from weir.plan.names import WINDOW_COLUMNS
from weir.plan.operators import Source as SourceNode
from weir.plan.operators import SourceOptions
from weir.plan.operators.source import LARGEST_RECORD, MAX_RECORD
from weir.plan.sizes import parse_size
from weir.plan.urls import refuse_secrets
from weir.script.constants import StatementScope, literal, string, ticks
from weir.script.source import did_you_mean
from weir.script.tree import DurationLiteral
from weir.script.type_names import arrow_type

ColumnTypes: TypeAlias = Mapping[str, pa.DataType]

_OPTIONS = ("vs", "ve", "lifetime", "delay", "late", "idle", "bad", "max_record", "unit")
_ELSEWHERE = {
    "watermark": "how late rows may come is `delay`, as in delay = 10s",
    **dict.fromkeys(("timestamp", "event_time", "rowtime", "time"), "the time is vs = column"),
    **dict.fromkeys(("format", "connector"), "the ending of the path says the format"),
    "separator": "fields of a .csv are separated by commas",
    "delimiter": "fields of a .csv are separated by commas",
}
_CHOICES = {"late": ("fail", "drop", "adjust"), "bad": ("fail", "skip")}
_SHORTEST = {"lifetime": 1, "delay": 0, "idle": 1}


@dataclass(frozen=True, slots=True)
class _Statement:
    """A STREAM statement, with its columns and its options by name."""

    node: exp.Expr
    columns: ColumnTypes
    options: Mapping[str, exp.Expr]
    scope: StatementScope

    def node_of(self, option: str) -> exp.Expr:
        """Return the node to which errors of an option point: its value or, without one, the
        stream's name."""
        name: exp.Expr = self.node.this
        return self.options.get(option, name)


def source_node(node: exp.Expr, index: int, scope: StatementScope) -> SourceNode:
    """Make the source that a STREAM statement declares; `index` is its number, from 0."""
    path = string(node.args["path"], scope, "the path of a STREAM")
    refuse_secrets(path)
    statement = _Statement(node, _columns(node, scope), _options(node, scope), scope)
    return SourceNode(
        name=node.name,
        declared=tuple(statement.columns.items()),
        path=path,
        options=_source_options(statement),
        index=index,
    )


def _columns(node: exp.Expr, scope: StatementScope) -> ColumnTypes:
    columns: dict[str, pa.DataType] = {}
    for column in node.expressions:
        if column.name in columns:
            raise scope.error(f"column `{column.name}` is declared twice", column)
        if column.name in WINDOW_COLUMNS:
            raise scope.error(f"a column cannot be called `{column.name}`", column)
        columns[column.name] = arrow_type(column.args["kind"], scope.source)
    return columns


def _options(node: exp.Expr, scope: StatementScope) -> Mapping[str, exp.Expr]:
    options: dict[str, exp.Expr] = {}
    for option in node.args["options"]:
        name = option.name.lower()
        if name not in _OPTIONS:
            hint = _ELSEWHERE.get(name) or did_you_mean(name, _OPTIONS)
            hint = hint or f"the options are {', '.join(_OPTIONS)}"
            raise scope.error(f"unknown option `{option.name}`", option, hint)
        if name in options:
            raise scope.error(f"option `{name}` is given twice", option)
        options[name] = option.args["expression"]
    return options


def _source_options(s: _Statement) -> SourceOptions:
    vs = _time_column(s, "vs")
    if vs is None:
        hint = "add WITH (vs = column), the column with the start of validity"
        raise s.scope.error(f"stream `{s.node.name}` has no `vs`", s.node.this, hint)
    ve, lifetime = _time_column(s, "ve"), _ticks(s, "lifetime")
    if ve is not None and lifetime is not None:
        raise s.scope.error("a stream has `ve` or `lifetime`, not both", s.node_of("lifetime"))
    if ve is not None and s.columns[ve] != s.columns[vs]:
        both = f"{type_name(s.columns[vs])} and {type_name(s.columns[ve])}"
        raise s.scope.error(f"`vs` and `ve` must have one type, not {both}", s.node_of("ve"))
    delay = _ticks(s, "delay")
    # `_choice` returns a word of `_CHOICES`, which has exactly the words that the types allow.
    return SourceOptions(
        vs=vs,
        ve=ve,
        lifetime=lifetime,
        delay=0 if delay is None else delay,
        late=_choice(s, "late"),  # type: ignore[arg-type]
        idle=_ticks(s, "idle"),
        bad=_choice(s, "bad"),  # type: ignore[arg-type]
        max_record=_size(s, "max_record", MAX_RECORD),
        unit=_unit(s, s.columns[vs]),  # type: ignore[arg-type]
    )


def _time_column(s: _Statement, option: str) -> str | None:
    """Return the column that an option names. A column with the option's own name needs no
    option."""
    name = _word(s, option) if option in s.options else None
    if option in s.columns and name not in (None, option):
        raise s.scope.error(
            f"column `{option}` is the stream's `{option}`, so `{name}` cannot be",
            s.node_of(option),
        )
    name = option if option in s.columns else name
    if name is None:
        return None
    if name not in s.columns:
        hint = did_you_mean(name, s.columns)
        raise s.scope.error(f"unknown column `{name}`", s.node_of(option), hint)
    if s.columns[name] not in (BIGINT, TIMESTAMP):
        raise s.scope.error(
            f"`{option}` must be BIGINT or TIMESTAMP, `{name}` is {type_name(s.columns[name])}",
            s.node_of(option),
            "declare it as TIMESTAMP (ISO 8601 in texts, a plain day too), or BIGINT with a unit",
        )
    return name


def _word(s: _Statement, option: str) -> str:
    """Read a bare word or a string."""
    value = s.options[option]
    if isinstance(value, exp.Column) and not isinstance(value.this, exp.Star):
        return value.name
    constant = literal(value, s.scope)
    if constant is None or not isinstance(constant.value, str):
        raise s.scope.error(f"`{option}` must be a name", value)
    return constant.value


def _ticks(s: _Statement, option: str) -> int | None:
    if option not in s.options:
        return None
    value = ticks(s.options[option], s.scope, f"`{option}`")
    if value < _SHORTEST[option]:
        refused = "negative" if _SHORTEST[option] == 0 else "zero or negative"
        raise s.scope.error(f"`{option}` cannot be {refused}", s.node_of(option))
    return value


def _size(s: _Statement, option: str, default: int) -> int:
    """Read a number of bytes, or a text like '16MB'."""
    if option not in s.options:
        return default
    constant = literal(s.options[option], s.scope)
    is_duration = isinstance(s.options[option], DurationLiteral)
    if constant is None or is_duration or not isinstance(constant.value, str | int):
        raise s.scope.error(f"`{option}` must be a size, such as '64MB'", s.node_of(option))
    try:
        size = parse_size(constant.value)
    except PlanError as error:
        raise s.scope.error(error.message, s.node_of(option), error.hint) from None
    if not 1 <= size <= LARGEST_RECORD:
        raise s.scope.error(f"`{option}` must be from 1 byte to 1GB", s.node_of(option))
    return size


def _unit(s: _Statement, time: pa.DataType) -> str | None:
    unit = _word(s, "unit") if "unit" in s.options else None
    try:
        check_unit(time, unit)
    except PlanError as error:
        raise s.scope.error(error.message, s.node_of("unit"), error.hint) from None
    return unit


def _choice(s: _Statement, option: str) -> str:
    choices = _CHOICES[option]
    value = _word(s, option) if option in s.options else choices[0]
    if value not in choices:
        listed = ", ".join(f"'{c}'" for c in choices)
        raise s.scope.error(f"`{option}` must be one of {listed}, not '{value}'", s.node_of(option))
    return value
