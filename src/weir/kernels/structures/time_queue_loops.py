"""Compiled loops of the time queue (merging runs) and of its holds (a heap)."""

from __future__ import annotations

from weir.loops.argument_types import I64, I64s
from weir.loops.compiled import in_place


@in_place
def merge_runs(
    a_times: I64s,
    a_ids: I64s,
    b_times: I64s,
    b_ids: I64s,
    times: I64s,
    ids: I64s,
    done: I64s,
    count: I64,
):
    """Continue the merge from where `done` says; return whether it is complete."""
    i, j = done[0], done[1]
    until = min(i + j + count, len(times))
    for at in range(i + j, until):
        if j == len(b_times) or (i < len(a_times) and a_times[i] <= b_times[j]):
            times[at], ids[at] = a_times[i], a_ids[i]
            i += 1
        else:
            times[at], ids[at] = b_times[j], b_ids[j]
            j += 1
    done[0], done[1] = i, j
    return until == len(times)


@in_place
def _push_one(heap, ids, size, start, owner):
    at = size
    while at > 0 and heap[(at - 1) >> 1] > start:
        heap[at], ids[at] = heap[(at - 1) >> 1], ids[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at], ids[at] = start, owner
    return size + 1


@in_place
def push_all(heap: I64s, ids: I64s, size: I64, starts: I64s, new_ids: I64s):
    """Push starts with their ids onto the heap; return its new size."""
    for i in range(len(starts)):
        size = _push_one(heap, ids, size, starts[i], new_ids[i])
    return size


@in_place
def drop_stale(heap: I64s, ids: I64s, size: I64, current: I64s):
    """Pop until the first start is still current for its id; return the new size."""
    while size > 0 and current[ids[0]] != heap[0]:
        size -= 1
        start, owner = heap[size], ids[size]
        at = 0
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= start:
                break
            heap[at], ids[at] = heap[child], ids[child]
            at = child
        heap[at], ids[at] = start, owner
    return size
