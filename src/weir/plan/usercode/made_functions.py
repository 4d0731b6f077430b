"""Descriptions of functions that Weir makes from the user's source; a plan can compare them.

A handler's expression that does not become a column expression is called row by row. Its function
is made in each process that calls it, from a description that can be compared, pickled and given a
fingerprint; a `ScalarFunction` holds the description in place of a function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeAlias

RowLoop: TypeAlias = Callable[[Callable[[object], None], Iterable[tuple[object, ...]]], None]
"""Takes what to do with each result, and the rows: tuples of arguments."""


def plain_function(function: Callable[..., object]) -> Callable[..., object]:
    """Return what is called, made in this process if it has to be."""
    return function.make() if isinstance(function, MadeFunction) else function


class MadeFunction(ABC):
    """A `MadeFunction` describes a function; `make` gives the function itself.

    Subclasses are frozen dataclasses. `file` is that of the user's source, as messages name it.
    """

    __slots__ = ()
    file: str

    @abstractmethod
    def make(self) -> Callable[..., object]:
        """Return the function of one row's arguments; the same one in each call."""

    @abstractmethod
    def make_loop(self) -> RowLoop:
        """Return a function that calls it for many rows, with less to do for each."""

    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """Return what its fingerprint is taken of: all that it computes, without lines."""

    @abstractmethod
    def lines(self) -> tuple[int, ...]:
        """Return the lines of its parts, which errors name: functions that are equal may differ in
        them."""

    @property
    def __wrapped__(self) -> Callable[..., object]:
        """Where messages look for the code of a function that failed."""
        return self.make()

    def __call__(self, *args: object) -> object:
        return self.make()(*args)
