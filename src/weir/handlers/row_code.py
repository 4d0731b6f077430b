"""The steps of a ring run row by row: reads, merges, and loops of them.

Contract
1. A ring's code is a value that can be compared, pickled and given a fingerprint: trees and names.
   The functions are made from it once in each process.
2. A row's function gets the port, the lifetime, the values of the port's columns and the cells. For
   a row of port 0 it returns one value for each new column: the answers of the reads outside of
   loops, then for each loop with reads a list of structs, of its elements and their answers. What
   it returns for other rows is ignored.
3. A read happens for every row: it has no effect, and its key is NULL where it cannot be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from weir.handlers.python_code import TreeFunction
from weir.handlers.values import Element, Instant, Old, ReadValue, Tree
from weir.plan.made_functions import plain_function
from weir.plan.saved_states import saved_name
from weir.plan.states import (
    MERGE_TRAITS,
    CellFailure,
    Cells,
    HandlerPlace,
    MergeKind,
    RowFunction,
    WindowCall,
)

Environment = list[object]
RowStep = Callable[[Environment, "tuple[object, ...]", Cells], None]


@dataclass(frozen=True, slots=True)
class RingStep:
    """A `RingStep` is a read (without a kind) or a merge of a ring; its values are computed from
    all that the row has and from the reads before it.

    `args` are the arguments of a merge, `new` the result of a `call`, or for windows `called` what
    takes the arguments; `guard` says where a merge happens. `answer` is what a read gives, as later
    steps name it.
    """

    handler: str
    file: str
    state: int
    guard: Tree | None = None
    kind: MergeKind | None = None
    args: tuple[Tree, ...] = ()
    k: int = 0
    new: Tree | None = None
    answer: ReadValue | None = None
    called: WindowCall | None = None
    at: HandlerPlace | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RingLoop:
    """A `RingLoop` runs steps for each element of a list, where the loop's own `guard` holds.

    `names` are what the fields of its structs are called: the element, then the answers.
    """

    handler: str
    file: str
    over: Tree
    guard: Tree | None
    element: Element
    steps: tuple[RingStep, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RingPort:
    """A `RingPort` has the steps for rows of one port: `keys` key columns, then the `leaves`."""

    keys: int
    leaves: tuple[Tree, ...]
    steps: tuple[RingStep | RingLoop, ...]

    def make(self) -> Callable[[int, int | None, tuple[object, ...], Cells], Sequence[object]]:
        """Make the function of one row."""
        outside = [s.answer for s in self.steps if isinstance(s, RingStep) and s.answer]
        loops = [s for s in self.steps if isinstance(s, RingLoop)]
        within: list[Tree] = []
        for loop in loops:
            within += [loop.element, *_answers(loop)]
        names = (Instant("vs"), Instant("ve"), *self.leaves, *outside, *within)
        listed = {loop: n for n, loop in enumerate(loop for loop in loops if _answers(loop))}
        steps = [
            _made(step, names)
            if isinstance(step, RingStep)
            else _made_loop(step, names, len(names) + listed[step] if step in listed else None)
            for step in self.steps
        ]
        ats = (step.at if isinstance(step, RingStep) else None for step in self.steps)
        places = dict(zip(steps, ats, strict=True))
        keys, own = self.keys, 2 + len(self.leaves)
        behind = own + len(outside)
        empty: Environment = [None] * (len(names) + len(listed) - own)

        def run(
            vs: int, ve: int | None, values: tuple[object, ...], cells: Cells
        ) -> Sequence[object]:
            around: Environment = [vs, ve, *values[keys:], *empty]
            key = values[:keys]
            try:
                for step in steps:
                    step(around, key, cells)
            except CellFailure as failure:
                failure.at = failure.at or places[step]
                raise
            return [*around[own:behind], *around[len(names) :]]

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


def _answers(loop: RingLoop) -> list[ReadValue]:
    return [step.answer for step in loop.steps if step.answer is not None]


def _function(
    step: RingStep | RingLoop, tree: Tree, names: tuple[Tree, ...]
) -> Callable[..., object]:
    """Make the function that computes a value from what the row has."""
    compute = TreeFunction(step.handler, step.file, names, (tree,)).make()
    count = len(names)
    return lambda around: compute(*around[:count])


def _made(step: RingStep, names: tuple[Tree, ...]) -> RowStep:
    """Make the function of one step."""
    state = step.state
    if step.kind is None:
        assert step.answer is not None
        place = names.index(step.answer)

        def read(around: Environment, key: tuple[object, ...], cells: Cells) -> None:
            around[place] = cells.get(state, key)

        return read
    kind = step.kind
    test = None if step.guard is None else _function(step, step.guard, names)
    if step.new is not None:
        function = TreeFunction(step.handler, step.file, (Old(), *names), (step.new,)).make()
        count = len(names)

        def merge_call(around: Environment, key: tuple[object, ...], cells: Cells) -> None:
            if test is None or test(around):
                cells.merge(state, key, kind, (), lambda old: function(old, *around[:count]))

        return merge_call
    values = [_function(step, tree, names) for tree in step.args]
    more = (step.k,) if MERGE_TRAITS[kind].has_k else ()
    called: Callable[..., object] | None = None
    name = ""
    if step.called is not None:
        merged = step.called.function
        called, name = plain_function(merged.function), saved_name(merged)

    def merge(around: Environment, key: tuple[object, ...], cells: Cells) -> None:
        if test is None or test(around):
            args = (*(value(around) for value in values), *more)
            cells.merge(state, key, kind, args, called, name)

    return merge


def _made_loop(loop: RingLoop, names: tuple[Tree, ...], listed: int | None) -> RowStep:
    over = _function(loop, loop.over, names)
    test = None if loop.guard is None else _function(loop, loop.guard, names)
    steps = [_made(step, names) for step in loop.steps]
    places = {made: step.at for made, step in zip(steps, loop.steps, strict=True)}
    element = names.index(loop.element)
    taken = [element, *(names.index(answer) for answer in _answers(loop))]
    fields = loop.names

    def run(around: Environment, key: tuple[object, ...], cells: Cells) -> None:
        rows: list[dict[str, object]] = []
        given = over(around) if test is None or test(around) else ()
        assert given is None or isinstance(given, Iterable)
        for value in given or ():
            around[element] = value
            try:
                for step in steps:
                    step(around, key, cells)
            except CellFailure as failure:
                failure.at = places[step]
                raise
            if listed is not None:
                rows.append(dict(zip(fields, (around[i] for i in taken), strict=True)))
        if listed is not None:
            around[listed] = rows

    return run
