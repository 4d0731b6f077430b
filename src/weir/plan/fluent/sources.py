"""Declares inputs from Python: `stream` makes one, with checked columns and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import pyarrow as pa

from weir.errors import PlanError
from weir.events.python_types import TypeText, written_type
from weir.events.types import BIGINT, TIMESTAMP, type_name
from weir.plan.advice.plan_warnings import warn_of_plain
from weir.plan.advice.python_habits import instead
from weir.plan.binding.binder import unknown
from weir.plan.durations import Ticks, parse_duration
from weir.plan.fluent.runners import provided
from weir.plan.fluent.stream import Stream
from weir.plan.names import check_name
from weir.plan.operators import Source, SourceOptions
from weir.plan.operators.source import LARGEST_RECORD, MAX_RECORD, UNITS_OF_TIME
from weir.plan.sizes import parse_size
from weir.plan.urls import refuse_secrets

_DECLARE_TIME = (
    "declare it in `columns`: as 'TIMESTAMP' (ISO 8601 in texts, a plain day too), or 'BIGINT' "
    "with a unit"
)


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

    Types are names ("BIGINT"), Python's (int) or Arrow's. For rows in memory instead of a path, see
    `weir.from_rows`. Rows of equal times are ordered by the inputs' `index`, then by their names.

    >>> a = stream("A", {"At": "TIMESTAMP", "k": str}, "a.jsonl", vs="At", delay="10s")
    >>> a.columns
    ('At', 'k')
    """
    if not (isinstance(name, str) and _is_mapping(columns)):
        hint = 'as in stream("A", {"At": "TIMESTAMP", "k": "STRING"}, "a.jsonl", vs="At")'
        raise PlanError("a stream has a name, columns with types, and a path", hint=hint)
    for column in columns:
        if "." in column:
            hint = "rename it: in queries `a.b` is the column b of a, or a field of it"
            raise PlanError(f"a column cannot be called `{column}`", hint=hint)
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


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def declare_source(
    name: str,
    columns: Mapping[str, TypeText],
    path: str,
    options: SourceOptions,
    index: int,
) -> Source:
    """Make a source; raise PlanError if its options do not fit its columns."""
    refuse_secrets(path)
    declared = {n: written_type(t, f"column `{n}`") for n, t in columns.items()}
    for column in declared:
        if column not in ("vs", "ve"):
            check_name(column)
    _check_time(declared, options)
    check_unit(declared[options.vs], options.unit)
    _check_options(options)
    return Source(name, tuple(declared.items()), path, options, index)


def _check_time(columns: Mapping[str, pa.DataType], options: SourceOptions) -> None:
    for option, column in (("vs", options.vs), ("ve", options.ve)):
        if column is not None and column not in columns:
            raise unknown("column", column, columns)
        if option in columns and column != option:
            raise PlanError(f"column `{option}` is the stream's `{option}`, not `{column}`")
        if column is not None and columns[column] not in (BIGINT, TIMESTAMP):
            column_type = type_name(columns[column])
            message = f"`{option}` must be BIGINT or TIMESTAMP, `{column}` is {column_type}"
            raise PlanError(message, hint=_DECLARE_TIME)
    if options.ve is not None and columns[options.vs] != columns[options.ve]:
        raise PlanError("`vs` and `ve` must have one type")


def check_unit(time: pa.DataType, unit: str | None) -> None:
    """Raise PlanError if the unit of time is unknown, or if the column needs none."""
    if unit is None:
        return
    _check_choice("unit", unit, UNITS_OF_TIME)
    if time != BIGINT:
        raise PlanError("`unit` is of a BIGINT time; a TIMESTAMP has its own", hint="leave it out")


def _check_options(options: SourceOptions) -> None:
    if options.ve is not None and options.lifetime is not None:
        raise PlanError("a stream has `ve` or `lifetime`, not both")
    least = (
        ("lifetime", options.lifetime, 1),
        ("delay", options.delay, 0),
        ("idle", options.idle, 1),
    )
    for name, ticks, smallest in least:
        if ticks is not None and ticks < smallest:
            raise PlanError(f"`{name}` must be at least {smallest} tick(s), not {ticks}")
    if not 1 <= options.max_record <= LARGEST_RECORD:
        raise PlanError(f"`max_record` must be from 1 byte to 1GB, not {options.max_record} bytes")
    _check_choice("late", options.late, ("fail", "drop", "adjust"))
    _check_choice("bad", options.bad, ("fail", "skip"))


def _check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise PlanError(f"`{name}` must be one of {', '.join(choices)}, not {value!r}")
