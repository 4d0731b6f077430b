"""A program's stages in one chain of vertices, fed by hand: what the kernel benchmarks time."""

from __future__ import annotations

from collections.abc import Iterator

from weir.events.batch import OPEN, Batch, empty_batch
from weir.plan.operators import Source, schema
from weir.reliable.chain import Chain
from weir.runtime.program_plan import plan_program
from weir.script import parse_program
from weir.testing import with_output


class Pipeline:
    """Rows go from stage to stage without streams in between; results are counted."""

    def __init__(self, text: str) -> None:
        plan = plan_program(with_output(parse_program(text), "Out")).stages
        self.chains = []
        self._sources: dict[str, int] = {}
        self._types = {}
        # By stage: who reads it, and as which of its streams.
        self._readers: list[list[tuple[int, int]]] = [[] for _ in plan.stages]
        for stage in plan.stages:
            links = [(port, link) for port, p in enumerate(stage.ports) for link in p.links]
            self.chains.append(Chain(stage, plan.origins, [port for port, _ in links] or [0]))
            for place, (_, link) in enumerate(links):
                self._readers[link.stage].append((stage.number, place))
            first = stage.operators[0]
            if isinstance(first, Source):
                self._sources[first.name] = stage.number
                self._types[first.name] = schema(first).types
        self.rows = 0

    def feed(self, source: str, batch: Batch | None, cti: int) -> None:
        """Rows of a source (None: no rows), then the CTI behind them."""
        rows = empty_batch(self._types[source]) if batch is None else batch
        self._push(self._sources[source], 0, rows, cti)

    def _push(self, stage: int, stream: int, batch: Batch, cti: int) -> None:
        chain = self.chains[stage]
        chain.push(stream, batch, cti)
        rows, out = chain.pull()
        if not self._readers[stage]:
            self.rows += 0 if rows is None else len(rows)
        for reader, place in self._readers[stage]:
            self._push(reader, place, chain.empty() if rows is None else rows, out)

    def run(self, streams: dict[str, list[Batch]]) -> int:
        """All entries of all streams, to the end; the number of result rows."""
        for name, batch, cti in entries(streams):
            self.feed(name, batch, cti)
        return self.rows

    @property
    def state_rows(self) -> int:
        return sum(chain.state_rows for chain in self.chains)


def entries(streams: dict[str, list[Batch]]) -> Iterator[tuple[str, Batch, int]]:
    """Entries of all streams in order of time, each with the CTI behind it."""
    flat = [
        (batch, name, OPEN if following is None else int(following.vs[0]))
        for name, batches in streams.items()
        for batch, following in zip(batches, [*batches[1:], None], strict=True)
    ]
    for batch, name, cti in sorted(flat, key=lambda entry: int(entry[0].vs[0])):
        yield name, batch, cti
