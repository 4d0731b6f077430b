"""Weir: a reliable temporal stream engine. One program, one answer.

Everything a program in Python needs is here; `weir.testing` runs programs on rows in memory.
Names are loaded when they are first used, so that `import weir` and `weir --help` cost little.

>>> import weir
>>> clicks = weir.stream("Clicks", {"At": "TIMESTAMP", "User": "STRING"}, "c.jsonl", vs="At")
>>> clicks.group_by("User").window(weir.tumbling("1m")).agg(n=weir.count()).columns
('User', 'n')
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weir.plan.fluent.runners import provide

if TYPE_CHECKING:
    from weir.errors import (
        DeterminismViolation,
        InputError,
        OperatorFailed,
        PlanError,
        PlanWarning,
        ReplayDiffers,
        RunError,
        ScriptError,
        SnapshotCorrupt,
        WeirError,
    )
    from weir.files.memory_rows import from_rows
    from weir.handlers.api.app import App
    from weir.job.output_reader import Committed, read_committed
    from weir.local.run import collect, run
    from weir.plan.fluent.sources import stream
    from weir.plan.fluent.stream import Stream
    from weir.plan.fluent.terms import call, case, col, count, explode, expr, lit
    from weir.plan.usercode.decorators import aggregate, operator, udf
    from weir.plan.windows import count_window, hopping, session, snapshot, tumbling
    from weir.runtime.reports import Progress, RunReport
    from weir.script.program import parse_program
    from weir.spark.live.run_live import LiveProgress, run_live
    from weir.spark.offline.frames import from_spark, spark_transform
    from weir.spark.offline.run_offline import run_offline

__version__ = "0.1.0"

__all__ = [
    "App",
    "Committed",
    "DeterminismViolation",
    "InputError",
    "LiveProgress",
    "OperatorFailed",
    "PlanError",
    "PlanWarning",
    "Progress",
    "ReplayDiffers",
    "RunError",
    "RunReport",
    "ScriptError",
    "SnapshotCorrupt",
    "Stream",
    "WeirError",
    "__version__",
    "aggregate",
    "call",
    "case",
    "col",
    "collect",
    "count",
    "count_window",
    "explode",
    "expr",
    "from_rows",
    "from_spark",
    "hopping",
    "lit",
    "operator",
    "parse_program",
    "read_committed",
    "run",
    "run_live",
    "run_offline",
    "session",
    "snapshot",
    "spark_transform",
    "stream",
    "tumbling",
    "udf",
]

_HOMES = {
    "weir.errors": (
        "DeterminismViolation",
        "InputError",
        "OperatorFailed",
        "PlanError",
        "PlanWarning",
        "ReplayDiffers",
        "RunError",
        "ScriptError",
        "SnapshotCorrupt",
        "WeirError",
    ),
    "weir.files.memory_rows": ("from_rows",),
    "weir.handlers.api.app": ("App",),
    "weir.job.output_reader": ("Committed", "read_committed"),
    "weir.local.run": ("collect", "run"),
    "weir.plan.usercode.decorators": ("aggregate", "operator", "udf"),
    "weir.plan.fluent.sources": ("stream",),
    "weir.plan.fluent.stream": ("Stream",),
    "weir.plan.fluent.terms": ("call", "case", "col", "count", "explode", "expr", "lit"),
    "weir.plan.windows": ("count_window", "hopping", "session", "snapshot", "tumbling"),
    "weir.runtime.reports": ("Progress", "RunReport"),
    "weir.script.program": ("parse_program",),
    "weir.spark.offline.frames": ("from_spark", "spark_transform"),
    "weir.spark.offline.run_offline": ("run_offline",),
    "weir.spark.live.run_live": ("LiveProgress", "run_live"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def _loaded(home: str, name: str) -> Callable[..., object]:
    """Make a function that loads its module when it is first called: Spark, numba and the like cost
    time."""

    def called(*args: Any, **options: Any) -> object:
        found: object = getattr(import_module(home), name)(*args, **options)
        return found

    return called


for _name, _home, _function in (
    ("to_spark", "weir.spark.offline.frames", "to_spark"),
    ("app_emitted", "weir.handlers.planning.app_compiler", "app_emitted"),
    ("app_replay", "weir.replay.app_replay", "replay_app"),
    ("app_program", "weir.replay.app_programs", "app_program"),
    ("expression", "weir.script.fragments", "read_expression"),
    ("rows_path", "weir.files.memory_rows", "rows_path"),
    ("collect", "weir.local.run", "collect"),
    ("head", "weir.local.stream_display", "head"),
    ("show", "weir.local.stream_display", "show"),
    ("explain", "weir.local.stream_display", "explain_stream"),
    ("html", "weir.local.stream_display", "html_of"),
):
    provide(_name, _loaded(_home, _function))


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise _unknown(name)
    found: object = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def _unknown(name: str) -> AttributeError | ImportError:
    if name.startswith("_"):
        return AttributeError(f"module 'weir' has no attribute '{name}'")
    # `from weir import cli` asks here before it looks for a module.
    if name.isidentifier() and find_spec(f"weir.{name}") is not None:
        return AttributeError(f"module 'weir' has no attribute '{name}': write import weir.{name}")
    from weir.plan.advice.python_habits import MODULE_HABITS, functions_as_habits, no_attribute

    found = no_attribute("weir", name, {**functions_as_habits(name), **MODULE_HABITS}, __all__)
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":  # `from weir import when`
        return ImportError(str(found), name="weir")  # of an AttributeError the hint would be lost
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
