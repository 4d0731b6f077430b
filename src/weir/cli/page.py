"""`weir report` writes the page of a live job as a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.command_line import DebugOption, clean_errors, say
from weir.cli.live import StoreLocation, opened_store
from weir.events.printable import in_one_line


def report(
    store: StoreLocation,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="Where the page goes.")] = Path(
        "report.html"
    ),
    debug: DebugOption = False,
) -> None:
    """Write a page that shows a live job as it is now: one HTML file that needs no network.

    Example: [bold]weir report /var/weir/clicks --to report.html[/bold]

    It has the plan as a graph with rates and waits, latency and throughput over
    time, the story with losses and recoveries, the outputs with their last rows,
    and what the store holds.
    """
    with clean_errors(debug):
        from weir.page.document import report_page
        from weir.page.view import ViewReader

        view = ViewReader(opened_store(store), time.time).read()
        to.write_text(report_page(view), encoding="utf-8", errors="backslashreplace")
        for problem in view.problems:
            say(f"weir: warning: {in_one_line(problem)}", err=True)
        state = view.status.state if view.status is not None else "has said nothing yet"
        say(in_one_line(f"{view.location} ({state}) -> {to}"))
