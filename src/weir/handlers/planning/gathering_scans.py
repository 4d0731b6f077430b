"""Plans gathering scans: they put the answers of reads by a list's elements into the event's row.

A unit that reads a state for elements of a list needs the answers before it runs. They are on the
rows of the elements, each at the place of its key. A gathering scan brings them together again. The
rows of the elements append to cells, in order. The event's row, which comes after them in the order
of requests, reads the cells and empties them.

The cells may have any key that an event and its elements share: it only decides where they meet,
since the requests of one event follow each other. The key is the time, so that cells end with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from weir.events.types import BIGINT
from weir.handlers.columns.column_values import column_of
from weir.handlers.planning.chains import EventChains, RowChain
from weir.handlers.planning.scan_ports import PortColumns, ScanPort
from weir.handlers.trees.accesses import GetAccess
from weir.handlers.trees.values import Instant
from weir.plan.binding.projection import project, with_columns
from weir.plan.expressions import Column, Expr, Literal
from weir.plan.operators import StateScan, schema
from weir.plan.states import Cell, StateMerge, StateRead

_TIME = "$time"


def gathering_scan(
    chains: EventChains,
    reads: Sequence[tuple[RowChain, GetAccess]],
    cells: Mapping[str, Cell],
    depth: int,
) -> StateScan:
    """Return a scan that adds LISTs of keys and answers to each event.

    They are those of `reads`, which are answered on the rows of their chains.
    """
    by_chain: dict[int, list[tuple[RowChain, GetAccess]]] = {}
    for chain, read in reads:
        by_chain.setdefault(id(chain), []).append((chain, read))
    lists: list[Cell] = []
    writers: list[ScanPort] = []
    for group in by_chain.values():
        port, of_port = _writer(chains, group, cells, len(lists))
        writers.append(port)
        lists += of_port
    last = len(lists)
    at = chains.main.points[-1]
    rows = with_columns(at.node, [(_TIME, _time(chains))])
    emptied = tuple(
        StateMerge(n, "set", (Literal([], type=cell.type),), last + 1, last + 1)
        for n, cell in enumerate(lists)
    )
    answers = tuple(StateRead(n, cell.state, last, last) for n, cell in enumerate(lists))
    reader = ScanPort(rows, (_TIME,), emptied)
    ports = (reader, *writers)
    return StateScan(
        tuple(port.node for port in ports),
        tuple(port.keys for port in ports),
        tuple(lists),
        tuple(port.merges for port in ports),
        answers,
        depth,
    )


def _time(chains: EventChains) -> Expr:
    return column_of(Instant("vs"), chains.unit_scope(""), target=BIGINT)


def _writer(
    chains: EventChains,
    reads: Sequence[tuple[RowChain, GetAccess]],
    cells: Mapping[str, Cell],
    first: int,
) -> tuple[ScanPort, list[Cell]]:
    """Make the port of a list's elements, and the cells that they append to.

    The first cell has the number `first`.
    """
    at = reads[0][0].points[-1]
    columns = PortColumns(at.node)
    own = dict(schema(at.node).columns)
    columns.own.clear()  # only gathered columns travel
    time = columns.name(_TIME, _time(chains))
    lists: list[Cell] = []
    merges: list[StateMerge] = []

    def gather(name: str, value: str, dtype: pa.DataType) -> None:
        number = first + len(lists)
        lists.append(Cell(name, (BIGINT,), pa.list_(dtype), (), expires=1))
        merges.append(StateMerge(number, "append", (value,), number, first))

    for _, read in reads:
        scope = chains.scope(read)
        parts = zip(read.key, cells[read.state].keys, chains.gathered_keys(read), strict=True)
        for n, (part, dtype, name) in enumerate(parts):
            scanned = f"$k{read.order}.{n}"  # the scan of the read has it already
            computed = own.get(scanned) == dtype
            key = Column(scanned, type=dtype) if computed else column_of(part, scope, target=dtype)
            gather(name, columns.name(name, key), dtype)
        answer, dtype = chains.answer_column(read)
        gathered = chains.gathered_answers(read)
        gather(gathered, columns.name(gathered, Column(answer, type=dtype)), dtype)
    rows = project(at.node, tuple(columns.added.items()))
    return ScanPort(rows, (time,), tuple(merges)), lists
