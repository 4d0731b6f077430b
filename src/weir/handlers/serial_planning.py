"""What serial groups merge reaches the scans of others from here.

A group's scans come when all merges of others into the states that it touches have their place.
From then on its own merges are ports like those of compiled handlers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weir.handlers.accesses import GetAccess
from weir.handlers.dataflow import Flow
from weir.handlers.handler_order import WholeHandler
from weir.handlers.scan_ports import ScanPort
from weir.handlers.serial_code import EffectForm
from weir.handlers.serial_scans import SerialGroup, check_window, effect_form, merge_port
from weir.plan.operators import Node
from weir.plan.states import Cell


class SerialRows:
    """The `SerialRows` are those of the scans of serial groups, by group and event type."""

    def __init__(self, flow: Flow, cells: Mapping[str, Cell], *, final: bool) -> None:
        self._flow, self._cells, self._final = flow, cells, final
        self.groups = {n: SerialGroup(n, tuple(m)) for n, m in flow.groups().items()}
        self.rows: dict[tuple[int, str], Node] = {}

    def is_done(self, group: SerialGroup) -> bool:
        return all((group.number, event) in self.rows for event in group.events)

    def are_done(self, states: Iterable[str], without: int | None = None) -> bool:
        """Tell whether all groups that write these states have their scans."""
        return all(self.is_done(group) for group, *_ in self.writers(states, without))

    def writers(
        self, states: Iterable[str], without: int | None = None
    ) -> list[tuple[SerialGroup, str, WholeHandler, str]]:
        """Return the handlers of groups that write these states: group, event type, handler,
        state."""
        return [
            (group, event, whole, state)
            for state in states
            for group in self.groups.values()
            if group.number != without
            for event, whole in group.writers(state)
        ]

    def ports(
        self, cells: tuple[Cell, ...], without: int | None = None
    ) -> list[tuple[WholeHandler, ScanPort]]:
        """Make the ports of groups' merges into these states."""
        numbers = {cell.state: n for n, cell in enumerate(cells)}
        ports = []
        for group, event, whole, state in self.writers(numbers, without):
            rows = self.rows[group.number, event]
            form = self.forms(group)[state]
            port = merge_port(rows, whole, self._cells[state], numbers[state], form)
            ports.append((whole, port))
        return ports

    def forms(self, group: SerialGroup) -> dict[str, EffectForm]:
        """Return what others must know of a group's merges into states that they touch."""
        found: dict[str, EffectForm] = {}
        for state in sorted(group.touched & self._cells.keys()):
            own = group.writers(state)
            if not own:
                continue
            others = len(self.writers([state])) > len(own)
            merged = others or bool(self._flow.merges_into(state))
            if self._final or merged or self._is_read(state, group.number):
                found[state] = effect_form(self._cells[state], merged or self._final)
                if found[state] == "window":
                    check_window(group, state)
        return found

    def _is_read(self, state: str, without: int) -> bool:
        """Tell whether somebody outside of a group reads a state."""
        compiled = any(
            isinstance(access, GetAccess) and access.state == state
            for of in self._flow.events
            for access in of.accesses
        )
        groups = (g for g in self.groups.values() if g.number != without)
        return compiled or any(state in group.touched for group in groups)
