"""Prints the first rows of a local run's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weir.cli.command_line import say
from weir.wording import counted, in_one_line

if TYPE_CHECKING:
    from weir.local.file_run import FirstRows
    from weir.plan.program import Output
    from weir.runtime.reports import RunReport


def show_first(
    outputs: Sequence[Output], report: RunReport, first: FirstRows, *, everything: bool
) -> None:
    """Print the rows of outputs TO 'console:' as tables; with `everything`, those of all
    outputs."""
    from weir.files.text_tables import text_lines

    for number, (output, written) in enumerate(zip(outputs, report.outputs, strict=True)):
        printed = output.path == written.path == "console:"
        if not printed and not everything:
            continue
        table = first.table(number)
        say(f"{in_one_line(output.title)}:")
        for line in text_lines(table):
            say(f"  {line}")
        rows, more = counted(written.rows, "row"), written.rows - table.num_rows
        digest = f", digest {written.digest}" if printed else ""
        summary = f"{rows}{f', {table.num_rows:,} of them shown' if more else ''}{digest}"
        say(f"  {summary}" if written.rows else f"  no rows{digest}")


def first_values(outputs: Sequence[Output], first: FirstRows) -> dict[str, object]:
    """Return the first rows of each output as JSON values."""
    from weir.files.sinks import json_values

    values: dict[str, object] = {}
    for number, output in enumerate(outputs):
        table = first.table(number).combine_chunks()
        columns = [json_values(column.combine_chunks()) for column in table.columns]
        rows = zip(*columns, strict=True)
        names = table.column_names
        values[output.title] = [dict(zip(names, row, strict=True)) for row in rows]
    return values
