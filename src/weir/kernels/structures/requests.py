"""Requests to states are put in order: (vs, the event's origin, block, element, order)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.events.batch import Batch, Int64s
from weir.events.order import sort_rows


@dataclass(frozen=True, slots=True)
class StateRequest:
    """A `StateRequest` is a merge or a read by the rows of a port."""

    port: int
    block: int
    order: int


def ordered_requests(
    accesses: Sequence[StateRequest], rows: Sequence[Int64s], slices: Sequence[Batch], depth: int
) -> tuple[Int64s, Int64s]:
    """Return the accesses in order, and the row of each in its port's slice.

    `rows` are, for each access, the rows of its port that ask for it. Event origins have `depth`
    columns, the rest is the element.
    """
    elements = max((len(b.origin) - depth for b in slices), default=0)
    columns: list[list[Int64s]] = [[] for _ in range(depth + max(elements, 0) + 3)]
    for access, at in zip(accesses, rows, strict=True):
        batch = slices[access.port]
        event = [o[at] for o in batch.origin[:depth]]
        element = [o[at] for o in batch.origin[depth:]]
        element += [np.full(len(at), -1, dtype=np.int64)] * (elements - len(element))
        block = np.full(len(at), access.block, dtype=np.int64)
        order = np.full(len(at), access.order, dtype=np.int64)
        key = (batch.vs[at], *event, block, *element, order)
        for column, values in zip(columns, key, strict=True):
            column.append(values)
    if not rows:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order_of = sort_rows([np.concatenate(column) for column in columns])
    which = np.repeat(np.arange(len(rows)), [len(at) for at in rows])
    return which[order_of], np.concatenate(rows)[order_of]
