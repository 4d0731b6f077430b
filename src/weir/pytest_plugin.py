"""The fixture `weir_check` for pytest: `weir.testing.check`, from the folder of the test.

It is an entry point, which pytest loads whenever it starts: what costs time is imported when a test
asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from weir.testing import Checked


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs the same tests on Spark too."""
    parser.getgroup("weir").addoption(
        "--weir-runners",
        default="local",
        metavar="NAME,…",
        help="the runners that `weir_check` compares: local, offline",
    )


@pytest.fixture
def weir_check(request: pytest.FixtureRequest) -> Callable[..., Checked]:
    """`weir.testing.check`; IMPORT starts at the folder of the test, and the runners are those of
    --weir-runners."""
    from weir.testing import check

    runners = request.config.getoption("--weir-runners").split(",")
    return partial(check, directory=request.path.parent, runners=runners)
