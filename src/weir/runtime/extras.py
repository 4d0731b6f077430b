"""The extras of the package: what parts of Weir need beyond its core.

They are read from the package's own metadata, so `pyproject.toml` alone says what they hold.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

from weir.errors import PlanError

DISTRIBUTION = "weirstream"
"""What pip calls Weir: the package index has another project called weir."""
_OF_EXTRA = re.compile(r"^\s*([^;]*?)\s*;\s*extra\s*==\s*['\"]([\w-]+)['\"]\s*$")


def packages_of(extra: str) -> list[str]:
    """List the requirements of an extra, as pip takes them; none where Weir is not installed."""
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # its folder is on the path, no more
        return []
    matches = (_OF_EXTRA.match(each) for each in requirements)
    return [match[1] for match in matches if match and match[2] == extra]


def pip_line(extra: str) -> str:
    """Return the command that installs an extra, wherever Weir itself came from."""
    packages = packages_of(extra)
    return "pip install " + " ".join(f"'{each}'" for each in packages or [extra_name(extra)])


def extra_name(extra: str) -> str:
    """Return what pip calls an extra.

    >>> extra_name("spark")
    'weirstream[spark]'
    """
    return f"{DISTRIBUTION}[{extra}]"


def need_extra(extra: str, module: str, what: str) -> None:
    """Refuse to go on without a module that comes with an extra; `what` says what needs it."""
    if find_spec(module) is None:
        raise PlanError(
            f"{what} {module}, which is not installed",
            hint=f"{pip_line(extra)} ({extra_name(extra)})",
        )
