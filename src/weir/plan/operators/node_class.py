"""Makes the classes of nodes: frozen values that store their hash and their facts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


def _take_hash(node: object) -> None:
    hash(node)


@dataclass_transform(frozen_default=True)
def node_class(cls: type[T]) -> type[T]:
    """Make a frozen dataclass that stores its hash and schema.

    Plans share inputs, and walking a shared input again for every reader would take time that is
    exponential in the plan's depth. The hash is computed when a node is created; its inputs already
    have theirs, so deep plans need no deep stack.
    """
    # mypy does not know the attributes that a class gets here, nor that it is a dataclass now.
    cls.__post_init__ = _take_hash  # type: ignore[attr-defined]
    node_type = dataclass(frozen=True)(cls)
    fresh_hash = node_type.__hash__
    names = tuple(f.name for f in fields(node_type))  # type: ignore[arg-type]

    def remembered_hash(self: T) -> int:
        cached_hash = self.__dict__.get("_hash")
        if cached_hash is None:
            cached_hash = fresh_hash(self)
            object.__setattr__(self, "_hash", cached_hash)
        return int(cached_hash)

    def own_fields(self: T) -> dict[str, object]:
        # Hashes differ from process to process, so stored facts are not pickled.
        return {name: getattr(self, name) for name in names}

    node_type.__hash__ = remembered_hash  # type: ignore[assignment, method-assign]
    node_type.__getstate__ = own_fields  # type: ignore[assignment, method-assign]
    return node_type
