"""Conditions of accesses become columns where they are first known, each part once.

A condition is a list of parts that are tried in order (`a and b and c`). Accesses behind the same
`if` begin with the same parts. A part that calls the user's code, or reads a wide column, is then
computed once, and only its truth travels on: as soon as the first parts of a condition are known,
they are a column, and the rest is computed from it later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weir.handlers.trees import conjuncts_of, reads_in
from weir.handlers.values import Tree

Parts = tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class KnownParts:
    """A `KnownParts` is a column to be: the first parts of a condition, of which `base` are a
    column already."""

    column: str
    parts: Parts
    base: Parts


def known_prefix(parts: Parts, known: Mapping[Parts, str]) -> Parts:
    """Return the longest beginning of a condition that is a column."""
    lengths = range(len(parts), 0, -1)
    return next((parts[:n] for n in lengths if parts[:n] in known), ())


def new_conditions(
    guards: Sequence[tuple[int, Tree]], known: Mapping[Parts, str], answered: frozenset[int]
) -> list[list[KnownParts]]:
    """Return the columns that conditions need at a point, in layers that use one another.

    `guards` come with the orders of their accesses, which give the names.
    """
    told: dict[Parts, int] = {}
    for order, guard in guards:
        parts = conjuncts_of(guard)
        count = next(
            (n for n, part in enumerate(parts) if not reads_in((part,)) <= answered), len(parts)
        )
        if count:
            told.setdefault(parts[:count], order)
    wanted = dict(told)
    for parts, order in told.items():
        for n in range(1, len(parts)):
            # Two conditions part here: what they share is a column of its own.
            followers = {other[n : n + 1] for other in told if other[:n] == parts[:n]}
            if len(followers) > 1:
                wanted.setdefault(parts[:n], order)
    layers: list[list[KnownParts]] = []
    layer_of: dict[Parts, int] = {}
    found: dict[Parts, str] = dict(known)
    for parts in sorted(wanted, key=lambda p: (len(p), wanted[p])):
        if parts in found:
            continue
        base = known_prefix(parts, found)
        layer = layer_of.get(base, -1) + 1
        order = wanted[parts]
        name = f"$g{order}.{len(parts)}"
        if layer == len(layers):
            layers.append([])
        layers[layer].append(KnownParts(name, parts, base))
        layer_of[parts], found[parts] = layer, name
    return layers
