"""Code that runs the steps of a ring row by row: reads, merges, and loops of them.

Contract
1. A ring's code is a value of trees and names that can be compared, pickled and given a
   fingerprint. Each process makes the functions from it once.
2. A row has vs, ve, its key columns and the values of the port's leaves. A row of port 0 gives out
   the answers of the reads outside of loops, then for each loop with reads a LIST of STRUCTs with
   its elements and their answers.
3. A read happens for every row: it has no effect, and its key is NULL where it cannot be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from weir.events.user_copies import copier
from weir.handlers.columns.python_code import TreeFunction
from weir.handlers.trees.values import Element, Instant, Old, ReadValue, Tree
from weir.plan.saved_states import saved_name
from weir.plan.states import (
    MERGE_TRAITS,
    Accessors,
    CellFailure,
    EffectRows,
    HandlerPlace,
    MergeKind,
    RowCursor,
    RowRun,
    RowRunner,
    WindowCall,
)
from weir.plan.usercode.made_functions import plain_function

Environment = list[Any]
RowStep = Callable[[Environment, Any], None]
"""A function of the row's values so far, and its key."""


@dataclass(frozen=True, slots=True)
class RingStep:
    """A read (without `kind`) or a merge of a ring.

    Its values are computed from the row and the reads before it. `args` are the arguments of a
    merge. `new` is the result of a `call`; for windows, `called` takes the arguments instead.
    `guard` is the condition of a merge. `answer` is how later steps refer to a read's answer.
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
    """Runs steps for each element of a list, where the loop's own `guard` holds.

    `names` are the field names of its structs: the element, then the answers.
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
    """The steps for rows of one port.

    A row has `keys` key columns, then the `leaves`, which have these `types`.
    """

    keys: int
    leaves: tuple[Tree, ...]
    types: tuple[pa.DataType, ...]
    steps: tuple[RingStep | RingLoop, ...]


@dataclass(frozen=True, slots=True)
class RingCode:
    """Runs a ring; calling it makes the runner (`RowCode.make`)."""

    ports: tuple[RingPort, ...]

    def __call__(
        self, accessors: Sequence[Accessors], cursor: RowCursor, effects: Sequence[EffectRows]
    ) -> RowRunner:
        return _RingRunner(self, accessors, cursor, effects)


class _RingRunner:
    """Runs the steps of a ring (see `RowRunner`)."""

    def __init__(
        self,
        code: RingCode,
        accessors: Sequence[Accessors],
        cursor: RowCursor,
        effects: Sequence[EffectRows],
    ) -> None:
        self._accessors, self._cursor, self._effects = accessors, cursor, effects
        self.runs: list[list[RowRun]] = [
            [self._port_run(port, reader=number == 0)] for number, port in enumerate(code.ports)
        ]

    def bound(self) -> AbstractContextManager[None]:
        return nullcontext()  # it runs expressions only, which reach no handles

    def check(self) -> None:
        """Do nothing: expressions keep nothing."""

    def loop(self, rows: Iterable[tuple[Any, ...]]) -> None:
        cursor, (run,) = self._cursor, self.runs[0]
        for cursor.row, values in enumerate(rows):
            run(values)

    def _port_run(self, port: RingPort, *, reader: bool) -> RowRun:
        outside = [s.answer for s in port.steps if isinstance(s, RingStep) and s.answer]
        loops = [s for s in port.steps if isinstance(s, RingLoop)]
        within: list[Tree] = []
        for loop in loops:
            within += [loop.element, *_answers(loop)]
        names = (Instant("vs"), Instant("ve"), *port.leaves, *outside, *within)
        listed = {loop: n for n, loop in enumerate(loop for loop in loops if _answers(loop))}
        first_list = len(outside)
        steps = [
            (
                _step_function(step, names, self._accessors)
                if isinstance(step, RingStep)
                else _loop_function(
                    step,
                    names,
                    self._accessors,
                    self._put(first_list + listed[step]) if reader and step in listed else None,
                ),
                step.at if isinstance(step, RingStep) else None,
            )
            for step in port.steps
        ]
        cursor, keys, own = self._cursor, port.keys, 2 + len(port.leaves)
        after = own + len(outside)
        empty: Environment = [None] * (len(names) - own)
        puts = [self._put(number) for number in range(len(outside))] if reader else []
        copies = [
            (2 + n, copy)
            for n, dtype in enumerate(port.types)
            if (copy := copier(dtype)) is not None
        ]

        def run(values: tuple[Any, ...]) -> None:
            cursor.now = values[0]
            key = cursor.key = values[2] if keys == 1 else values[2 : 2 + keys]
            around: Environment = [*values[:2], *values[2 + keys :], *empty]
            for place, copy in copies:
                around[place] = copy(around[place])
            for step, at in steps:
                try:
                    step(around, key)
                except CellFailure as failure:
                    failure.at = failure.at or at
                    raise
            for put, answer in zip(puts, around[own:after], strict=reader):
                put((answer,))

        return run

    def _put(self, number: int) -> Callable[[Sequence[Any]], None]:
        """Return a function that adds an entry to an effect."""
        rows, cursor = self._effects[number], self._cursor

        def put(values: Sequence[Any]) -> None:
            rows.rows.append(cursor.row)
            for column, settle, value in zip(rows.columns, rows.settle, values, strict=True):
                column.append(settle(value))

        return put


def _answers(loop: RingLoop) -> list[ReadValue]:
    return [step.answer for step in loop.steps if step.answer is not None]


def _function(
    step: RingStep | RingLoop, tree: Tree, names: tuple[Tree, ...]
) -> Callable[..., object]:
    """Make the function that computes a value from the row's values so far."""
    compute = TreeFunction(step.handler, step.file, names, (tree,)).make()
    return lambda around: compute(*around)


def _step_function(
    step: RingStep, names: tuple[Tree, ...], accessors: Sequence[Accessors]
) -> RowStep:
    """Make the function of one step."""
    methods = accessors[step.state]
    if step.kind is None:
        assert step.answer is not None
        place, get = names.index(step.answer), methods["get"]

        def read(around: Environment, key: Any) -> None:
            around[place] = get(key)

        return read
    test = None if step.guard is None else _function(step, step.guard, names)
    if step.new is not None:
        function = TreeFunction(step.handler, step.file, (Old(), *names), (step.new,)).make()
        merge = methods["merge"]

        def merge_function(around: Environment, key: Any) -> None:
            if test is None or test(around):
                merge(key, lambda old: function(old, *around))

        return merge_function
    values = [_function(step, tree, names) for tree in step.args]
    if step.called is not None:
        merged = step.called.function
        called, name, merge_call = (
            plain_function(merged.function),
            saved_name(merged),
            methods["merge_call"],
        )

        def merge_named(around: Environment, key: Any) -> None:
            if test is None or test(around):
                merge_call(key, tuple(value(around) for value in values), called, name)

        return merge_named
    traits = MERGE_TRAITS[step.kind]
    more, method = ((step.k,) if traits.has_k else ()), methods[traits.method]

    def merge_value(around: Environment, key: Any) -> None:
        if test is None or test(around):
            method(key, *(value(around) for value in values), *more)

    return merge_value


def _loop_function(
    loop: RingLoop,
    names: tuple[Tree, ...],
    accessors: Sequence[Accessors],
    put: Callable[[Sequence[Any]], None] | None,
) -> RowStep:
    over = _function(loop, loop.over, names)
    test = None if loop.guard is None else _function(loop, loop.guard, names)
    steps = [(_step_function(step, names, accessors), step.at) for step in loop.steps]
    element = names.index(loop.element)
    indexes = [element, *(names.index(answer) for answer in _answers(loop))]

    def run(around: Environment, key: Any) -> None:
        elements = over(around) if test is None or test(around) else ()
        assert elements is None or isinstance(elements, Iterable)
        for value in elements or ():
            around[element] = value
            for step, at in steps:
                try:
                    step(around, key)
                except CellFailure as failure:
                    failure.at = failure.at or at
                    raise
            if put is not None:
                put([around[i] for i in indexes])

    return run
