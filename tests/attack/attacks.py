"""What an attack is: a function that does harm to a real run and asserts what must come of it.

Every module beside this one whose functions are marked by `attack` is run by `make attack`. An
attack gets an empty folder of its own. It raises AssertionError when the engine gave a wrong
answer, hung or showed a traceback; what it returns is one line about what happened instead.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[Path], str]


@dataclass(frozen=True, slots=True)
class Attack:
    """`item` is what it is about, for the table; `run` does it."""

    item: str
    name: str
    run: Run


_known: list[Attack] = []


def attack(item: str) -> Callable[[Run], Run]:
    """Mark a function as an attack; its docstring's first line is its name."""

    def mark(run: Run) -> Run:
        name = (run.__doc__ or run.__name__).splitlines()[0].rstrip(".")
        _known.append(Attack(item, name, run))
        return run

    return mark


def all_attacks() -> list[Attack]:
    """Those of every module of this package."""
    package = importlib.import_module("attack")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "__main__":
            importlib.import_module(f"attack.{module.name}")
    return list(_known)
