"""Makes both sides of a comparison of an app's text and rows in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from weir.handlers.api.app_file import load_app
from weir.ingress.memory_partitions import MemoryPartition
from weir.replay.app_programs import app_program
from weir.shadow.app_shadow import AppShadow, app_shadow

HEAD = """import weir
app = weir.App("a")
click = app.events("click", "id BIGINT, user STRING, at BIGINT", vs="at")
app.emits("out", "id BIGINT, n BIGINT")
"""
COUNT = """
count = app.state("count", default=0)

@app.on(click)
def tell(e):
    count.add(e.user, e.id)
    if e.id % 2 == 0:
        app.emit("out", id=e.id, n=count.get(e.user) + 1)
"""


def shadow_of(folder: Path, body: str, events: int | None = None) -> AppShadow:
    path = folder / "app.py"
    path.write_text(HEAD + body, "utf-8")
    app = load_app(path)
    logs = {name: f"{name}.jsonl" for name in app.event_types}
    shadow = app_shadow(app_program(app, logs=logs, out=str(folder)), events)
    assert shadow is not None
    return shadow


def clicks(count: int) -> list[dict[str, object]]:
    return [{"id": n, "user": "abc"[n % 3], "at": n} for n in range(count)]


def parts(
    shadow: AppShadow, **rows: Sequence[Mapping[str, object]]
) -> dict[str, list[MemoryPartition]]:
    """The partitions of a program's sources, one each."""
    sources = {source.name: source for source in shadow.program.sources}
    return {n: [MemoryPartition(f"{n}.jsonl", r, sources[n].declared)] for n, r in rows.items()}
