"""What holds for all tests."""

import gc

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark first: they wait a good deal, while other workers go through the rest."""
    items.sort(key=lambda item: "spark" not in item.path.parts)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the collector of garbage need not go through it, and
    not after every 700 objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
