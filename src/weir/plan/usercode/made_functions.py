"""Descriptions of functions that Weir makes from the user's source; plans can compare them.

A handler's expression that cannot become a column expression is called row by row. Each process
that calls it makes its function from a description that can be compared, pickled and given a
fingerprint. A `ScalarFunction` has the description instead of a function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeAlias

RowLoop: TypeAlias = Callable[[Callable[[object], None], Iterable[tuple[object, ...]]], None]
"""Takes a function for each result, and the rows: tuples of arguments."""


def plain_function(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function to call; make it in this process if necessary."""
    return function.make() if isinstance(function, MadeFunction) else function


class MadeFunction(ABC):
    """Describes a function; `make` returns the function itself.

    Subclasses are frozen dataclasses. `file` is that of the user's source, as messages name it.
    """

    __slots__ = ()
    file: str

    @abstractmethod
    def make(self) -> Callable[..., object]:
        """Return the function of one row's arguments; every call returns the same one."""

    @abstractmethod
    def make_loop(self) -> RowLoop:
        """Return a function that calls it for many rows, at a lower cost per row."""

    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """Return what its fingerprint covers: all that it computes, without line numbers."""

    @abstractmethod
    def lines(self) -> tuple[int, ...]:
        """Return the lines of its parts, for errors; equal functions may differ in them."""

    @property
    def __wrapped__(self) -> Callable[..., object]:
        """The function whose code messages show after a failure."""
        return self.make()

    def __call__(self, *args: object) -> object:
        return self.make()(*args)
