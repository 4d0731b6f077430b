"""All bugs: the `BUGS` of every module of this package."""

import importlib
import pkgutil

from sabotage.bugs import Bug


def all_bugs() -> tuple[Bug, ...]:
    package = importlib.import_module("sabotage")
    found: list[Bug] = []
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("bugs"):
            found += importlib.import_module(f"sabotage.{module.name}").BUGS
    return tuple(found)
