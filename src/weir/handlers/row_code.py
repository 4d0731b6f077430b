"""What runs row by row: the steps of a ring, and handlers of serial groups as they are.

Contract
1. Both are values that can be compared, pickled and given a fingerprint: trees and names. The
   functions are made from them once in each process.
2. A row's function gets the port, the lifetime, the values of the port's columns and the cells. For
   a row of port 0 it returns one value for each new column; what it returns for others is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.handlers.python_code import TreeFunction
from weir.handlers.values import Instant, Old, Tree
from weir.plan.states import Cells, MergeKind, RowFunction

Environment = list[object]
RowStep = Callable[[Environment, "tuple[object, ...]", Cells], None]


@dataclass(frozen=True, slots=True)
class RingStep:
    """A `RingStep` is a read (without a kind) or a merge of a ring; its values are computed from
    all that the row has and from the reads before it.

    `args` are the arguments of a merge, `new` the result of a `call`; `guard` says where the step
    happens.
    """

    handler: str
    file: str
    state: int
    guard: Tree | None = None
    kind: MergeKind | None = None
    args: tuple[Tree, ...] = ()
    k: int = 0
    new: Tree | None = None
    answer: Tree | None = None
    """The read's answer, as later steps name it."""


@dataclass(frozen=True, slots=True)
class RingPort:
    """A `RingPort` has the steps for rows of one port: `keys` key columns, then the `leaves`."""

    keys: int
    leaves: tuple[Tree, ...]
    steps: tuple[RingStep, ...]

    def make(self) -> Callable[[int, int | None, tuple[object, ...], Cells], Sequence[object]]:
        """Make the function of one row."""
        names: tuple[Tree, ...] = (
            Instant("vs"), Instant("ve"), *self.leaves,
            *(s.answer for s in self.steps if s.answer is not None),
        )  # fmt: skip
        steps = [_made(step, names) for step in self.steps]
        keys, own = self.keys, 2 + len(self.leaves)
        empty: Environment = [None] * (len(names) - own)

        def run(
            vs: int, ve: int | None, values: tuple[object, ...], cells: Cells
        ) -> Sequence[object]:
            around: Environment = [vs, ve, *values[keys:], *empty]
            key = values[:keys]
            for step in steps:
                step(around, key, cells)
            return around[own:]

        return run


@dataclass(frozen=True, slots=True)
class RingCode:
    """A `RingCode` runs a ring; called, it makes the function (`RowCode.make`)."""

    ports: tuple[RingPort, ...]

    def __call__(self) -> RowFunction:
        ports = [port.make() for port in self.ports]

        def run(
            port: int, vs: int, ve: int | None, values: tuple[object, ...], cells: Cells
        ) -> Sequence[object]:
            return ports[port](vs, ve, values, cells)

        return run


def _made(step: RingStep, names: tuple[Tree, ...]) -> RowStep:
    """Make the function of one step."""

    def function(trees: tuple[Tree, ...], parameters: tuple[Tree, ...]) -> Callable[..., object]:
        return TreeFunction(step.handler, step.file, parameters, trees).make()

    state = step.state
    test = None if step.guard is None else function((step.guard,), names)
    if step.kind is None:
        assert step.answer is not None
        place = names.index(step.answer)

        def read(around: Environment, key: tuple[object, ...], cells: Cells) -> None:
            if test is None or test(*around):
                around[place] = cells.get(state, key)

        return read
    kind = step.kind
    if step.new is not None:
        call = function((step.new,), (Old(), *names))

        def merge_call(around: Environment, key: tuple[object, ...], cells: Cells) -> None:
            if test is None or test(*around):
                cells.merge(state, key, kind, (), lambda old: call(old, *around))

        return merge_call
    values = [function((tree,), names) for tree in step.args]
    more = (step.k,) if kind == "top_k" else ()

    def merge(around: Environment, key: tuple[object, ...], cells: Cells) -> None:
        if test is None or test(*around):
            cells.merge(state, key, kind, (*(value(*around) for value in values), *more))

    return merge
