"""Every row finds the pane of its group and interval, in whatever order they come."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.kernels.structures.panes import Panes

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(4, 5)), max_size=20)


@settings(deadline=None)
@given(st.lists(ROWS, max_size=6), st.data())
def test_against_a_dict(batches: list[list[tuple[int, int, int]]], data: st.DataObject) -> None:
    panes = Panes()
    known: dict[tuple[int, int, int], int] = {}
    for rows in batches:
        groups, starts, ends = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
        fresh = [row for row in dict.fromkeys(rows) if row not in known]
        found, new = panes.encode(groups, starts, ends)
        assert len(new) == len(fresh)
        known |= dict(zip(fresh, new.tolist(), strict=True))
        assert found.tolist() == [known[row] for row in rows]
        assert len(set(known.values())) == len(known)
        gone = data.draw(st.sets(st.sampled_from(sorted(known)))) if known else set()
        panes.release(np.array([known.pop(row) for row in sorted(gone)], dtype=np.int64))
