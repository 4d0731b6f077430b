"""Prints tables, fitted to the terminal's width if there is one."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weir.cli.command_line import say
from weir.wording import in_one_line

WIDE = 10_000
"""The width of a table without a terminal, so that nothing is cut or wrapped."""


def cell(text: str) -> Text:
    """Return foreign text as a cell, without markup and without anything that moves the cursor."""
    return Text(in_one_line(text))


def show_table(table: Table, *, whole: bool = False) -> None:
    """Print a table as plain text, as wide as the terminal or, without one, as needed. With
    `whole`, no cell is wrapped, so that people can copy digests."""
    width = WIDE if whole else _width()
    console = Console(no_color=True, force_terminal=False, highlight=False, width=width)
    with console.capture() as captured:
        console.print(table)
    say("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_rows(
    rows: Sequence[Mapping[str, str]], spare: Sequence[str], words: Sequence[str]
) -> list[str]:
    """Print rows, each on one line. Columns of `spare` are left out, in their order, until the rest
    fits; return their names. All columns but `words` are numbers."""
    if not rows:
        return []
    shown = {
        name: max(len(name), *(cell_len(in_one_line(row[name])) for row in rows))
        for name in rows[0]
    }
    left_out = []
    for name in spare:
        if sum(wide + 2 for wide in shown.values()) <= _width():
            break
        if shown.pop(name, None) is not None:
            left_out.append(name)
    table = Table(box=None)
    for name in shown:
        table.add_column(name, no_wrap=True, justify="left" if name in words else "right")
    for row in rows:
        table.add_row(*(cell(row[name]) for name in shown))
    show_table(table)
    return left_out


def _width() -> int:
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return get_terminal_size().columns if is_terminal else WIDE
