"""Shows values to people as equivalent Python code, in messages and by `explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weir.handlers.trees.printed_trees import Printer
from weir.handlers.trees.values import Tree

_LONGEST = 120


def tree_text(tree: Tree, reads: Mapping[int, str] | None = None) -> str:
    """Write a value as Python; `reads` has the names of reads, by order.

    >>> from weir.handlers.trees.values import Const, Field, Op, ReadValue
    >>> tree_text(Op("gt", (Op("add", (Field("a"), Const(1))), ReadValue(3))), {3: "n.get(e.a)"})
    'e.a + 1 > n.get(e.a)'
    """
    text, _ = Printer(reads or {}).text(tree)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]} …"


def key_text(key: Sequence[Tree], reads: Mapping[int, str] | None = None) -> str:
    """Write a key as it stands in a call.

    >>> from weir.handlers.trees.values import Field
    >>> key_text((Field("a"),)), key_text((Field("a"), Field("b")))
    ('e.a', '(e.a, e.b)')
    """
    parts = [tree_text(part, reads) for part in key]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
