"""Views between hosts: what a reader asks for, and what it is served."""

from __future__ import annotations

import numpy as np

from machine.jobs import entry, order, rows
from weir.events.hashing import buckets_of
from weir.job.input_connections import InputConnections
from weir.job.messages import ServedBy
from weir.job.signals import Connect, Deliver, EndSubscription
from weir.job.stream_server import Subscribers
from weir.reliable.cursor import Cursor
from weir.reliable.log import LogStream
from weir.reliable.views import View, layout_of, view_of_part

VIEW = view_of_part((0,), 1, 3)


def test_a_connection_asks_for_the_view_of_its_input() -> None:
    cursor = Cursor("0.0/0", ("1.1", 0), VIEW)
    served = order("1.1", inputs={"0.0/0": (ServedBy("h2", "there", 1),)})
    (connect,) = InputConnections(1 << 20).connect(
        vertex="1.1", input=0, cursor=cursor, order=served, window=1 << 20
    )
    assert isinstance(connect, Connect)
    assert (connect.stream, connect.seq, connect.view) == ("0.0/0", 0, VIEW)


def test_a_subscriber_gets_its_view_and_what_it_covers() -> None:
    stream = LogStream("0.0/0", layout=layout_of([((0,), 3)]))
    subscribers = Subscribers({"0.0/0": stream}, 0.0)
    assert VIEW is not None
    assert subscribers.add("a", "0.0/0", 4, 1 << 20, VIEW) == []
    stream.write(entry(0, 30))
    served, (deliver,) = subscribers.serve(0.0)
    assert served and isinstance(deliver, Deliver)
    buckets = buckets_of(rows(4, 26).columns, 26)
    mine = 4 + np.flatnonzero((VIEW.first <= buckets) & (buckets < VIEW.end))
    found = deliver.entry
    assert found.row_numbers.tolist() == found.rows.columns[0].to_pylist() == mine.tolist()
    assert (found.seq, found.end, found.cti) == (4, 30, 30)


def test_who_asks_for_a_view_that_there_is_not_is_turned_away() -> None:
    stream = LogStream("0.0/0", layout=layout_of([((0,), 3)]))
    subscribers = Subscribers({"0.0/0": stream}, 0.0)
    for view in (View((0,), 1, 2), View((1,), 0, 1366), View((0,), -1, 5000)):
        assert subscribers.add("a", "0.0/0", 0, 9, view) == [EndSubscription("a")]
    assert subscribers.serve(0.0) == (False, [])
