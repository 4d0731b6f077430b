"""Runs a Spark action that can be cancelled.

The action runs in a thread of its own. So Ctrl-C, or the news that a task has failed permanently,
finds the calling thread between two looks and never inside a call to Spark: such a call cannot be
interrupted without losing the connection that it uses.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import TypeVar

from pyspark import InheritableThread
from pyspark.sql import SparkSession

LOOK_SECONDS = 0.5
END_SECONDS = 10.0
"""How long an action that is told to end may take to do so."""

T = TypeVar("T")


def run_action(spark: SparkSession, action: Callable[[], T], look: Callable[[], None]) -> T:
    """Run the action and return its result. `look` is called now and then meanwhile, and at the
    end; what it raises, or Ctrl-C, ends the action's jobs and is raised here."""
    tag = f"weir-{secrets.token_hex(8)}"
    over = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def act() -> None:
        try:
            spark.addTag(tag)
            results.append(action())
        except BaseException as error:
            errors.append(error)  # raised below, where the caller is
        finally:
            over.set()

    InheritableThread(act, session=spark, daemon=True).start()
    try:
        while not over.wait(LOOK_SECONDS):
            look()
    except BaseException:
        spark.interruptTag(tag)
        over.wait(END_SECONDS)
        raise
    if errors:
        raise errors[0]
    look()  # what a short action did, too
    return results[0]
