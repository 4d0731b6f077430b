"""A span is an upper bound of a time: how long rows are valid, or operators hold them back."""

from __future__ import annotations

from dataclasses import dataclass

from weir.plan.durations import duration_text


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """An upper bound of a time: some ticks, the longest lifetime in the data, or no bound."""

    rank: int
    ticks: int = 0

    def __str__(self) -> str:
        if self.rank:
            return "longest lifetime" if self.rank == 1 else "unbounded"
        return duration_text(self.ticks) if self.ticks else "none"

    def __add__(self, ticks: int) -> Span:
        return self if self.rank else Span(0, max(self.ticks + ticks, 0))

    @property
    def known(self) -> bool:
        return self.rank == 0


NONE = Span(0)
TICK = Span(0, 1)
LONGEST_LIFETIME = Span(1)
UNBOUNDED = Span(2)
