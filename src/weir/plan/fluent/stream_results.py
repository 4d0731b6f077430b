"""The methods of a stream that end a plan: they show rows, write them, or pass them to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from weir.errors import PlanError
from weir.plan.fluent.runners import provided
from weir.plan.operators import Node, Source
from weir.plan.program import Output, turned_away


class ResultMethods:
    """The methods of a stream that return, show or write its rows."""

    __slots__ = ()

    node: Node
    name: str | None

    def collect(self, **options: Any) -> pa.Table:
        """Return the rows as a table, in the order of a file.

        The options are those of `weir.collect`.

        >>> from weir import from_rows
        >>> from_rows([{"at": 1, "v": 5}], vs="at").collect().to_pylist()
        [{'vs': 1, 've': 2, 'at': 1, 'v': 5}]
        """
        return provided("collect")(self, **options)

    def head(self, n: int = 5, *, directory: str | Path = ".") -> pa.Table:
        """Return the first n rows, in the order of a file.

        It reads only as much of the inputs as it needs.

        >>> from weir import from_rows
        >>> from_rows({"at": [1, 2, 3]}, vs="at").head(2).column("at").to_pylist()
        [1, 2]
        """
        return provided("head")(self, n, directory=directory)

    def show(self, n: int = 20, *, directory: str | Path = ".") -> None:
        """Print the first n rows.

        >>> from weir import from_rows
        >>> from_rows({"at": [1, 2, 3], "k": ["x", "y", None]}, vs="at").show(2)
        vs  ve  at  k
         1   2   1  x
         2   3   2  y
        … shown: 2 rows, and there are more
        """
        provided("show")(self, n, directory=directory)

    def explain(self, format: Literal["text", "dot", "json"] = "text") -> None:
        """Print what a run will do: the plan, its stages, how long operators can hold rows back.

        >>> from weir import from_rows
        >>> from_rows({"at": [1]}, vs="at").duration("5s").explain("dot")  # doctest: +ELLIPSIS
        digraph weir {
        ...
        """
        provided("explain")(self, format)

    # --- where rows go -------------------------------------------------------------------

    def to(self, path: str | Path, name: str | None = None) -> Output:
        """Write the rows to a file or a folder, as OUTPUT … TO in a script.

        A runner takes one such output or a list of them. `name` identifies the output in reports,
        callbacks and readers. By default, it is the stream's name, or else the file's. (A stream
        still has an input's name if only its rows or lifetimes were changed.) A program cannot
        write two streams with the same name.

        >>> from weir import stream
        >>> a = stream("A", {"vs": "BIGINT", "v": "BIGINT"}, "a.jsonl", vs="vs")
        >>> a.to("out/rows.parquet").name, a.select("v").to("out/values.csv").name
        ('A', 'values')
        """
        named = name or self.name or Path(path).stem or "Out"
        return Output(named, self.node, str(path))

    def late_to(self, path: str | Path) -> Output:
        """Write the late rows of this input to a file, as OUTPUT LATE OF … TO."""
        return self._turned_away("late", path)

    def bad_to(self, path: str | Path) -> Output:
        """Write the bad rows of this input to a file, as OUTPUT BAD OF … TO."""
        return self._turned_away("bad", path)

    def _turned_away(self, kind: Literal["late", "bad"], path: str | Path) -> Output:
        if not isinstance(self.node, Source):
            raise PlanError(f"only an input has {kind} rows, not what is computed of it")
        return turned_away(self.node, kind, str(path))

    # --- on Spark ------------------------------------------------------------------------

    def to_spark(
        self, spark: object, *, directory: str | Path = ".", parallelism: int | None = None
    ) -> object:
        """Return the rows as a Spark DataFrame: vs, ve, then the payload.

        Spark computes it when it is used. `directory` is where relative paths of sources start,
        `parallelism` the number of vertices.
        """
        return provided("to_spark")(self, spark, directory=directory, parallelism=parallelism)
