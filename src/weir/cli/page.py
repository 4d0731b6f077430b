"""`weir ui` serves the page of a live job, `weir report` writes it as a file."""

from __future__ import annotations

import threading
import time
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from weir.cli.command_line import DebugOption, clean_errors, say
from weir.cli.live import StoreLocation, opened_store
from weir.wording import in_one_line

PortOption = Annotated[
    int,
    typer.Option(
        min=0, max=65535, metavar="PORT", help="The port to listen on. \\[default: any free one]"
    ),
]


def ui(
    store: StoreLocation,
    port: PortOption = 0,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    debug: DebugOption = False,
) -> None:
    """Serve a page that shows a live job while it runs, or as it ended, until Ctrl-C.

    Example: [bold]weir ui /var/weir/clicks --open[/bold]

    It listens on this machine only. The printed address contains a token; without it the page shows
    nothing of the job. Nothing is written to the store.
    """
    with clean_errors(debug):
        from weir.page.server import serving

        with serving(opened_store(store), port) as address, ExitStack() as folder:
            say(address)
            if browse:
                _browse(address, Path(folder.enter_context(TemporaryDirectory(prefix="weir-ui-"))))
            threading.Event().wait()


def _browse(address: str, folder: Path) -> None:
    """Open the page through a file in a private folder. The address contains the token, and all
    users of a machine can read a browser's command line."""
    file = folder / "page.html"
    leads = f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">'
    file.write_text(f'{leads}<a href="{address}">the page of the job</a>\n', encoding="utf-8")
    if not webbrowser.open(file.as_uri()):
        say("weir: warning: cannot open a browser; open the address yourself", err=True)


def report(
    store: StoreLocation,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The file to write.")] = Path(
        "report.html"
    ),
    debug: DebugOption = False,
) -> None:
    """Write a page that shows a live job as it is now: one HTML file that needs no network.

    Example: [bold]weir report /var/weir/clicks --to report.html[/bold]

    The page has the plan as a graph with rates and waits, latency and throughput over time, the
    story with losses and recoveries, the outputs with their last rows, and the contents of the
    store.
    """
    with clean_errors(debug):
        from weir.page.document import report_page
        from weir.page.view import ViewReader

        view = ViewReader(opened_store(store), time.time).read()
        to.write_text(report_page(view), encoding="utf-8", errors="backslashreplace")
        for problem in view.problems:
            say(f"weir: warning: {in_one_line(problem)}", err=True)
        state = view.status.state if view.status is not None else "has not reported anything yet"
        if view.quiet:
            state += f", no news for {view.quiet:,} s"
        say(in_one_line(f"{view.location} ({state}) -> {to}"))
