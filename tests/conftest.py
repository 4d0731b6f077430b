"""What holds for all tests."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark first: they wait a good deal, while other workers go through the rest."""
    items.sort(key=lambda item: "spark" not in item.path.parts)
