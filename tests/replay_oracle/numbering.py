"""An app behind the emitted streams of another one, which numbers their rows as they come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from replay_oracle.loop import NUMBER
from weir.events.types import type_name
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import compile_app
from weir.plan.fluent.stream import Stream


def numbered(streams: Mapping[str, Stream], folder: Path) -> dict[str, Stream]:
    """Return the streams with a column that counts the rows of each, from 1; the app's text lies
    in the folder."""
    if not streams:
        return {}
    path = folder / "numbering.py"
    path.write_text("\n".join([_HEAD, *map(_handler, streams.values())]), encoding="utf-8")
    return compile_app(load_app(path), streams=streams).emitted


_HEAD = """
import weir

app = weir.App("numbering")
count = app.state("count", default=0)
"""


def _handler(stream: Stream) -> str:
    name, columns = stream.name, stream.schema.columns
    declared = ", ".join(f"{column} {type_name(dtype)}" for column, dtype in columns)
    fields = ", ".join(f"{column}=e.{column}" for column, _ in columns)
    return f"""
{name} = app.events("{name}", "{declared}, vs BIGINT", vs="vs")
app.emits("{name}", "{declared}, {NUMBER} BIGINT")

@app.on({name})
def number_{name}(e):
    count.add("{name}", 1)
    app.emit("{name}", {fields}, {NUMBER}=count.get("{name}"))
"""
