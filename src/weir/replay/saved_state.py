"""Saves the state of an app as of a time to a folder of tables, and loads it again.

    manifest.json     the app, `upto`, and of each state its type, default, columns and digest,
                      of a window its merges too
    NAME.parquet      the cells of a state (`plan/saved_states.py`), with the digest file that every
                      output has

The state contains all events before the time `upto`; a replay that starts from it processes the
later ones. The app that loads it must have the same states with the same types and defaults; an
error names what is missing or different. A window holds merges, not values. So the kinds and
functions that are merged into it must be the same too.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from itertools import starmap
from pathlib import Path
from typing import Annotated

import msgspec

from weir.errors import InputError, PlanError
from weir.events.batch import LATEST
from weir.events.types import type_name
from weir.files.sidecar import read_sidecar, sidecar_path
from weir.handlers.api.app import App
from weir.plan.operators import FinalState, schema
from weir.plan.usercode.code_fingerprint import changes, value_text
from weir.replay.durable_files import rename_durably, rows_differ

MANIFEST = "manifest.json"
FORMAT = 3
"""The format of manifests and tables in this version."""
_WAY_OUT = "bring back the folder as it was, or save the state again (--state-out)"
_OTHER_APP = "go on with the app that saved it, or replay its logs with this one (--state-out)"
_IS_OF_STATE = re.compile(rf"{re.escape(MANIFEST)}|\w+\.parquet(\.digest)?")


class SavedColumns(msgspec.Struct, frozen=True):
    """The properties of a saved state's cells, and the columns of its table."""

    type: str
    default: str
    last: int | None
    expires: int | None
    time: str
    columns: tuple[tuple[str, str], ...]
    merges: dict[str, str] = {}
    """The merges into a window: kinds, and functions with their hashes."""


class StateManifest(msgspec.Struct, frozen=True):
    """The contents of a folder of saved states."""

    app: str
    upto: Annotated[int, msgspec.Meta(ge=-LATEST, le=LATEST + 1)] | None
    """The time before which all events are in it; None if there were no events."""
    states: dict[str, SavedColumns]
    digests: dict[str, str]
    """The digests of the tables, by state."""
    format: int


class _AnyManifest(msgspec.Struct, frozen=True):
    """The fields that the manifests of all formats have."""

    format: int
    states: dict[str, msgspec.Raw]


_decoder = msgspec.json.Decoder(StateManifest)
_any_decoder = msgspec.json.Decoder(_AnyManifest)


def saved_columns(saved: FinalState) -> SavedColumns:
    """Return the properties with which a state is saved."""
    cell, shape = saved.state, schema(saved)
    merges: dict[str, str] = {}
    for merge in (m for of_port in saved.merges for m in of_port if cell.last is not None):
        function = merge.function
        if function is None:
            merges[merge.kind] = ""
        else:
            code = value_text((function.function, function.step)).encode()
            merges[f"the function of {function.name}"] = hashlib.sha256(code).hexdigest()[:32]
    return SavedColumns(
        type_name(cell.type),
        repr(cell.default),
        cell.last,
        cell.expires,
        type_name(shape.time),
        tuple((n, type_name(t)) for n, t in shape.columns),
        dict(sorted(merges.items())),
    )


def save_state(
    folder: Path,
    tables: Mapping[str, Path],
    app: App,
    saved: Mapping[str, FinalState],
    upto: int | None,
) -> None:
    """Copy tables to a new folder with a manifest; an old state is replaced at the very end.

    `saved` has the states of the tables, by name.
    """
    check_replaceable(folder)
    part = _part(folder)
    _remove(part)
    part.mkdir(parents=True)
    digests = {}
    for name, table in tables.items():
        shutil.copyfile(table, part / f"{name}.parquet")
        shutil.copyfile(sidecar_path(str(table)), sidecar_path(str(part / f"{name}.parquet")))
        sidecar = read_sidecar(str(table))
        assert sidecar is not None, f"{table} was written without a digest"
        digests[name] = sidecar.digest
    states = {name: saved_columns(state) for name, state in saved.items()}
    manifest = StateManifest(app.name, upto, states, digests, FORMAT)
    (part / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    _remove(folder)
    rename_durably(part, folder)


def check_replaceable(folder: Path) -> None:
    """Raise PlanError if a saved state cannot go to a folder.

    That is so if it is not a folder, or contains anything but a saved state.
    """
    for path in (folder, _part(folder)):
        if path.is_symlink():
            raise PlanError(f"'{path}' is a link", hint="give the folder itself for the state")
        if path.exists() and not path.is_dir():
            raise PlanError(f"'{path}' is a file; the state goes to a folder")
    above = next(path for path in _part(folder).parents if path.exists())
    if not above.is_dir():
        raise PlanError(f"cannot save a state to '{folder}': '{above}' is a file")
    if folder.is_dir() and os.listdir(folder):
        try:
            manifest = _any_decoder.decode((folder / MANIFEST).read_bytes())
        except (OSError, ValueError):
            message = f"'{folder}' has other files, and no saved state"
            raise PlanError(message, hint="give the state its own folder") from None
        _check_only(folder, {MANIFEST, *(n for name in manifest.states for n in _files(name))})
    if _part(folder).is_dir():  # left by a process that was killed
        names = os.listdir(_part(folder))
        _check_only(_part(folder), {n for n in names if _IS_OF_STATE.fullmatch(n)})


def _check_only(folder: Path, expected: Collection[str]) -> None:
    """Raise PlanError if anything but these files is in a folder."""
    for entry in sorted(folder.iterdir()):
        if entry.name not in expected or entry.is_symlink() or not entry.is_file():
            message = f"'{folder}' has more than a saved state: '{entry.name}'"
            raise PlanError(message, hint="give the state its own folder")


def _remove(folder: Path) -> None:
    """Remove a folder that may be replaced, if it exists.

    The manifest is removed last, so a folder that is left after a kill may be replaced too.
    """
    if not folder.exists():
        return
    for file in sorted(folder.iterdir(), key=lambda file: file.name == MANIFEST):
        file.unlink()
    folder.rmdir()


def _part(folder: Path) -> Path:
    """Return the temporary folder to which a state is written."""
    whole = Path(os.path.abspath(folder))
    return whole.parent / f".{whole.name}.part"


def _files(name: str) -> tuple[str, str]:
    """Return the names of a state's files."""
    return f"{name}.parquet", f"{name}.parquet.digest"


def load_state(
    folder: Path, app: App, variant_states: Iterable[Mapping[str, FinalState]]
) -> tuple[StateManifest, dict[str, str]]:
    """Return a folder's manifest, and the paths of its tables by state.

    PlanError if they do not fit the app. `variant_states` has the states of each variant, by name.
    """
    try:
        manifest = _decoded(folder)
    except (FileNotFoundError, NotADirectoryError):
        message = f"there is no saved state in '{folder}': no {MANIFEST}"
        raise PlanError(message, hint=_of_variant(folder)) from None
    except (OSError, ValueError) as error:  # not JSON, other fields, not UTF-8
        problem = f"no manifest of a saved state: {getattr(error, 'strerror', None) or error}"
        raise InputError(f"{problem}; {_WAY_OUT}", file=str(folder / MANIFEST)) from None
    for states in variant_states:
        now = {name: saved_columns(state) for name, state in states.items()}
        _check(manifest, app, now, folder)
    tables = {name: str((folder / f"{name}.parquet").absolute()) for name in manifest.states}
    for name, path in tables.items():
        if not os.path.exists(path):
            raise InputError(f"the table of a saved state is missing; {_WAY_OUT}", file=path)
        if name not in manifest.digests:
            message = f"it has no digest of `{name}`; {_WAY_OUT}"
            raise InputError(message, file=str(folder / MANIFEST))
        if changed := rows_differ(path, manifest.digests[name]):
            message = f"the saved state in '{folder}' was changed: {changed}"
            raise PlanError(message, hint=_WAY_OUT)
    return manifest, tables


def _decoded(folder: Path) -> StateManifest:
    """Read a manifest; PlanError for another version's, ValueError for an invalid one."""
    data = (folder / MANIFEST).read_bytes()
    version = _any_decoder.decode(data).format
    if version != FORMAT:
        raise PlanError(
            f"the saved state in '{folder}' is of another version of Weir: its format is "
            f"{version}, not {FORMAT}",
            hint="replay the logs with this version, and save the state again (--state-out)",
        )
    return _decoder.decode(data)


def state_mark(folder: Path) -> str:
    """Return the fingerprint of a saved state: the hash of its manifest."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()[:32]


def state_differs(folder: Path, mark: str) -> str | None:
    """Describe why a folder does not hold the state with this mark; None if it does."""
    if not (folder / MANIFEST).is_file():
        return f"there is no saved state in '{folder}'"
    if state_mark(folder) != mark:
        return f"'{folder}' holds another state"
    digests = _decoder.decode((folder / MANIFEST).read_bytes()).digests
    tables = ((str(folder / f"{name}.parquet"), digest) for name, digest in digests.items())
    return next(filter(None, starmap(rows_differ, tables)), None)


def _of_variant(folder: Path) -> str:
    """Return a hint if a folder has the states of variants in its subfolders."""
    manifests = sorted(folder.glob(f"*=*/**/{MANIFEST}"))
    if not manifests:
        return ""
    return f"it has states of variants: replay each alone, with its own as '{manifests[0].parent}'"


def _check(
    manifest: StateManifest, app: App, states: Mapping[str, SavedColumns], folder: Path
) -> None:
    where = f"the saved state in '{folder}'"
    if manifest.app != app.name:
        raise PlanError(f"{where} is of the app `{manifest.app}`, not of `{app.name}`")
    for name in states:
        if name not in manifest.states:
            names = ", ".join(manifest.states) or "none"
            raise PlanError(f"{where} has no state `{name}`", hint=f"it has {names}")
    for name in manifest.states:
        if name not in states:
            names = ", ".join(states) or "none"
            message = f"{where} has a state `{name}`, which `{app.name}` does not merge into"
            raise PlanError(message, hint=f"it has {names}")
    for name, now in states.items():
        before = manifest.states[name]
        for what in ("type", "default", "last", "expires", "time"):
            _check_same(what, before, now, f"{where} has the state `{name}`", app)
        if differences := ", ".join(changes(before.merges, now.merges)):
            message = f"{where} has merges into the window of `{name}` that are not those of"
            raise PlanError(f"{message} `{app.name}` now: {differences}", hint=_OTHER_APP)
        _check_same("columns", before, now, f"{where} has the state `{name}`", app)


def _check_same(what: str, before: SavedColumns, now: SavedColumns, where: str, app: App) -> None:
    old, new = getattr(before, what), getattr(now, what)
    if old != new:
        label = "type of its times" if what == "time" else what
        message = f"{where} with another {label}: {_shown(old)}, and `{app.name}` has {_shown(new)}"
        raise PlanError(message, hint=_OTHER_APP)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(" ".join(column) for column in value)
    return "none" if value is None else str(value)
