"""The outputs of a job as onlookers see them: what is committed, and the last rows of it."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from weir.errors import WeirError
from weir.files.sinks import json_values
from weir.job.output_reader import Manifest, OutputReader, manifests
from weir.reliable.store import Store

MOST_ROWS = 12
"""So many of the last rows are shown."""
MOST_COMMITS = 20
"""So many commits are looked through for them."""
MOST_TEXT = 200
"""So many characters of a value are shown."""


class ShownOutput(msgspec.Struct, frozen=True):
    """An output: how much of it is committed, and its last rows as texts. `problem` says why they
    cannot be read, if they cannot."""

    manifest: Manifest
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str | None, ...], ...]
    last_commit_rows: int
    problem: str = ""


class LastRows:
    """Reads the outputs of a store; rows of a commit are read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[tuple[str, str], ShownOutput] = {}

    def read(self) -> list[ShownOutput]:
        """Read what is committed now."""
        return [self._output(manifest) for manifest in manifests(self._store)]

    def _output(self, manifest: Manifest) -> ShownOutput:
        name = (manifest.name, manifest.kind)
        last = self._last.get(name)
        if last is not None and not last.problem and last.manifest.digest == manifest.digest:
            return msgspec.structs.replace(last, manifest=manifest)
        try:
            shown = self._shown(manifest)
        except WeirError as error:
            shown = ShownOutput(manifest, (), (), 0, str(error))
        self._last[name] = shown
        return shown

    def _shown(self, manifest: Manifest) -> ShownOutput:
        reader = OutputReader(self._store, manifest.name, manifest.kind)
        columns = tuple(reader.output.columns)
        if reader.form.lifetime:
            time = reader.output.time
            columns = (("vs", time), ("ve", time), *columns)
        look = reader.look(max(0, manifest.commits - MOST_COMMITS))
        rows: list[tuple[str | None, ...]] = []
        for commit in reversed(look.commits):
            if len(rows) >= MOST_ROWS:
                break
            batches = reader.rows(commit)
            if batches:
                table = reader.table(batches)
                last = table.slice(max(0, table.num_rows - (MOST_ROWS - len(rows))))
                rows = [*_texts(last), *rows]
        count = look.commits[-1].commit.rows if look.commits else 0
        return ShownOutput(manifest, columns, tuple(rows), count)


def _texts(table: pa.Table) -> list[tuple[str | None, ...]]:
    columns = [json_values(c.combine_chunks()) for c in table.columns]
    return [tuple(map(_text, row)) for row in zip(*columns, strict=True)]


def _text(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
