"""Checks that all outputs of a finished replay are still there and unchanged."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from weir.errors import InputError
from weir.files.sidecar import read_sidecar
from weir.replay.durable_files import rows_differ
from weir.replay.reports import EmittedOutput, ReplayReport
from weir.replay.saved_state import state_differs


class FinishedReplay(msgspec.Struct, frozen=True):
    """The record in `report.json` of a finished replay.

    `states` has the marks of the saved states, by the folders of their variants.
    """

    report: ReplayReport
    states: dict[str, str]


def what_differs(done: FinishedReplay, state_out: Path | None) -> str | None:
    """Describe what is missing or changed; None if nothing is."""
    for output in done.report.outputs:
        if problem := _output_differs(output):
            return problem
    for folder, mark in done.states.items():
        assert state_out is not None, "--state-out is a part of what is replayed"
        if problem := state_differs(state_out / folder, mark):
            return problem
    page = done.report.page
    return f"{page}: is gone" if page is not None and not os.path.exists(page) else None


def _output_differs(output: EmittedOutput) -> str | None:
    if not os.path.exists(output.path):
        return f"{output.path}: is gone"
    try:
        sidecar = read_sidecar(output.path)
    except InputError as error:
        return str(error)
    if sidecar is None:
        return f"{output.path}: its digest is gone"
    if sidecar.digest != output.digest:
        return f"{output.path}: it carries the digest {sidecar.digest}, not {output.digest}"
    return rows_differ(output.path, output.digest)
