"""What a generated program knows of a relation while it is being written."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that can stand after FROM: a name or a nested select, its columns with their
    types, and whether it may hold open events."""

    source: str
    columns: tuple[tuple[str, str], ...]
    endless: bool

    def of(self, *types: str) -> list[str]:
        return [name for name, dtype in self.columns if dtype in types]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def type_of(self, name: str) -> str:
        return dict(self.columns)[name]


@dataclass(frozen=True, slots=True)
class Step:
    """A query's text and what comes out of it."""

    text: str
    columns: tuple[tuple[str, str], ...]
    endless: bool
    nests: bool = True
    """Whether it can stand in parentheses after FROM."""


def chance(draw: st.DrawFn, one_in: int) -> bool:
    """True once in so many times; shrinks to False, so put what is simpler there."""
    return draw(st.integers(0, one_in - 1)) == one_in - 1
