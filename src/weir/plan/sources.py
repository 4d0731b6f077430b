"""A source that Python declares is checked here: its columns and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from weir.errors import PlanError
from weir.events.python_types import TypeText, written_type
from weir.events.types import BIGINT, TIMESTAMP, type_name
from weir.plan.binding.binder import unknown
from weir.plan.binding.projection import check_name
from weir.plan.operators import Source, SourceOptions
from weir.plan.operators.source import LARGEST_RECORD, UNITS_OF_TIME
from weir.plan.urls import refuse_secrets

_DECLARE_TIME = (
    "declare it in `columns`: as 'TIMESTAMP' (ISO 8601 in texts, a plain day too), or 'BIGINT' "
    "with a unit"
)


def declare_source(
    name: str,
    columns: Mapping[str, TypeText],
    path: str,
    options: SourceOptions,
    index: int,
) -> Source:
    """Make a source whose options fit its columns; raise PlanError where they do not."""
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
            found = type_name(columns[column])
            message = f"`{option}` must be BIGINT or TIMESTAMP, `{column}` is {found}"
            raise PlanError(message, hint=_DECLARE_TIME)
    if options.ve is not None and columns[options.vs] != columns[options.ve]:
        raise PlanError("`vs` and `ve` must have one type")


def check_unit(time: pa.DataType, unit: str | None) -> None:
    """Raise PlanError for a unit of time that there is not, or of a column that needs none."""
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
        raise PlanError(f"`max_record` is from 1 byte to 1GB, not {options.max_record} bytes")
    _check_choice("late", options.late, ("fail", "drop", "adjust"))
    _check_choice("bad", options.bad, ("fail", "skip"))


def _check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise PlanError(f"`{name}` is one of {', '.join(choices)}, not {value!r}")
