"""Sorts requests to states: by (vs, the event's origin, block, element, order).

A *program* is a sequence of requests by the rows of one port that no other request can interrupt,
so one visit of a row runs all of them. The programs follow from the requests alone; a slice only
decides in which order they visit which rows. If only one port with one program has rows, that is
the order in which the rows lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weir.events.batch import Batch, Int64s
from weir.kernels.structures.requests_loops import merge_visits

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class StateRequest:
    """A merge or a read by the rows of a port; `number` identifies it."""

    port: int
    block: int
    order: int
    number: int


@dataclass(frozen=True, slots=True)
class RequestProgram:
    """Consecutive requests by the rows of a port."""

    port: int
    block: int
    requests: tuple[int, ...]
    """The requests' numbers, in order."""


@dataclass(frozen=True, slots=True)
class Visits:
    """The visits of programs to rows, in order.

    Without `programs`, program `only` visits the first `count` rows of its port, one after the
    other.
    """

    only: int
    count: int
    programs: Int64s
    rows: Int64s

    def each(self) -> Iterator[tuple[int, int]]:
        """Yield the program and the row of each visit."""
        if self.only >= 0:
            return ((self.only, row) for row in range(self.count))
        return zip(self.programs.tolist(), self.rows.tolist(), strict=True)


def request_programs(
    requests: Sequence[StateRequest], nested: Sequence[bool]
) -> tuple[RequestProgram, ...]:
    """Divide the requests into programs; `nested` tells which ports have elements of events.

    >>> mine = [StateRequest(0, 1, 1, 0), StateRequest(1, 2, 2, 1), StateRequest(0, 3, 3, 2)]
    >>> [p.requests for p in request_programs(mine, [False, False])]
    [(0,), (1,), (2,)]
    """
    programs: list[RequestProgram] = []
    for request in sorted(requests, key=lambda r: (r.block, r.order, r.port)):
        last = programs[-1] if programs else None
        if (
            last is not None
            and last.port == request.port
            # All elements go through one block before the next block begins.
            and (last.block == request.block or not nested[request.port])
        ):
            programs[-1] = RequestProgram(last.port, last.block, (*last.requests, request.number))
        else:
            programs.append(RequestProgram(request.port, request.block, (request.number,)))
    return tuple(programs)


def ordered_visits(
    programs: Sequence[RequestProgram], slices: Sequence[Batch], depth: int
) -> Visits:
    """Sort the visits to the rows of these slices; an event has `depth` origin columns."""
    busy = [i for i, program in enumerate(programs) if len(slices[program.port])]
    if not busy:
        return Visits(0, 0, _NONE, _NONE)
    if len(busy) == 1:
        (only,) = busy
        return Visits(only, len(slices[programs[only].port]), _NONE, _NONE)
    ports = sorted({programs[i].port for i in busy})
    rows = [slices[port] for port in ports]
    vs = np.concatenate([b.vs for b in rows]) if len(rows) > 1 else rows[0].vs
    deepest = max(len(b.origin) for b in rows)
    origins = np.full((deepest, len(vs)), -1, dtype=np.int64)
    offsets, end = {}, 0
    for port, batch in zip(ports, rows, strict=True):
        offsets[port], start, end = end, end, end + len(batch)
        for i, column in enumerate(batch.origin):
            origins[i, start:end] = column
    starts = np.array([offsets[programs[i].port] for i in busy], dtype=np.int64)
    lengths = [len(slices[programs[i].port]) for i in busy]
    blocks = np.array([programs[i].block for i in busy], dtype=np.int64)
    program, row = np.empty((2, sum(lengths)), dtype=np.int64)
    merge_visits(vs, origins, depth, starts, starts.copy(), starts + lengths, blocks, program, row)
    return Visits(-1, len(program), np.array(busy, dtype=np.int64)[program], row)
