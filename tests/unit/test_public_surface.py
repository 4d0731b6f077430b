"""The names that users may rely on."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from weir.plan.fluent.stream import Selection, Stream
from weir.plan.fluent.terms import Term

SURFACE = """
    App Committed DeterminismViolation InputError LiveProgress OperatorFailed PlanError PlanWarning
    Progress ReplayDiffers
    RunError RunReport ScriptError SnapshotCorrupt Stream WeirError __version__
    aggregate call case col collect count count_window explode expr from_rows
    from_spark hopping lit operator
    parse_program read_committed run run_live run_offline session snapshot spark_transform stream
    tumbling udf
""".split()  # noqa: SIM905


def test_the_surface_is_pinned() -> None:
    assert sorted(weir.__all__) == sorted(SURFACE)
    assert set(dir(weir)) == set(SURFACE)


@pytest.mark.parametrize("name", SURFACE)
def test_every_name_is_there_and_documented(name: str) -> None:
    found = getattr(weir, name)
    assert name == "__version__" or found.__doc__


NEEDS_SPARK = {
    "Committed",
    "LiveProgress",
    "from_spark",
    "read_committed",
    "run_live",
    "run_offline",
    "spark_transform",
}


@pytest.mark.parametrize("name", sorted({*SURFACE} - {"__version__"} - NEEDS_SPARK))
def test_every_name_has_an_example(name: str) -> None:
    assert ">>> " in getattr(weir, name).__doc__


@pytest.mark.parametrize("cls", [Stream, Selection, Term])
def test_every_method_of_the_algebra_is_documented(cls: type) -> None:
    members = inspect.getmembers(cls)
    methods = {n: m for n, m in members if callable(m) or isinstance(m, property)}
    public = {n: m for n, m in methods.items() if not n.startswith("_")}
    assert len(public) > 5
    assert {n for n, m in public.items() if not m.__doc__} == set()


def test_every_operator_of_a_stream_has_an_example() -> None:
    returned = {
        n: m for n, m in inspect.getmembers(Stream) if n[0] != "_" and inspect.isfunction(m)
    }
    made = {n: m for n, m in returned.items() if m.__annotations__["return"] != "Output"}
    assert {n for n, m in made.items() if ">>> " not in m.__doc__} == {"to_spark"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = weir.no_such_name


def test_type_checkers_see_what_runs() -> None:
    """The imports for type checkers say the same as the table that is used at run time."""
    tree = ast.parse(Path(weir.__file__).read_text(encoding="utf-8"))
    (checked,) = (n for n in tree.body if isinstance(n, ast.If))
    assert ast.unparse(checked.test) == "TYPE_CHECKING"
    imports = [n for n in checked.body if isinstance(n, ast.ImportFrom)]
    seen = {a.name: i.module for i in imports for a in i.names}
    assert seen == weir._HOME_OF


def test_importing_weir_loads_nothing_heavy() -> None:
    code = "import sys, weir, weir.cli; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(weir.__file__).parents[1])},
    ).stdout.split()
    assert not {"numba", "pyarrow", "numpy", "polars", "sqlglot", "pyspark", "pandas"} & set(loaded)
