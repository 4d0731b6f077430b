"""Converts between DataFrames and streams: `weir.from_spark(df, …)`, `stream.to_spark(spark)`.

1. The rows of a DataFrame have no origin: rows with equal vs are ordered by (ve, payload). So the
   order in which Spark's tasks produce them does not matter, and `delay` and `late`, which concern
   the order of arrival, do not apply. Spark sorts each of its partitions by vs on the way in.
2. A stream as a DataFrame is lazy, like any other DataFrame: each action computes its rows. The
   columns are vs, ve (NULL if open), then the payload. The rows have no order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from weir.errors import PlanError
from weir.files.columnar import ArrivingBatches
from weir.files.writers import OutputForm
from weir.plan.durations import Ticks, parse_duration
from weir.plan.fluent.sources import declare_source
from weir.plan.fluent.stream import Stream, as_stream
from weir.plan.limits import MOST_VERTICES, check_numbers
from weir.plan.operators import SourceOptions
from weir.plan.program import Program
from weir.runtime.partitions import Partitions
from weir.runtime.programs import program_of
from weir.spark.frames import all_partitions, frame_sources
from weir.spark.offline.blocks import COLLECTED, decode, rows_of
from weir.spark.offline.query import job_frame
from weir.spark.offline.targets import Target
from weir.spark.offline.tasks import Records
from weir.spark.offline.waves import make_job, make_layout
from weir.spark.session import ARROW_BATCHES, default_parallelism
from weir.spark.spark_types import spark_record, spark_schema, weir_type

_numbers = count(1)


class FrameHandle:
    """A DataFrame in a plan; in another process the handle is empty."""

    def __init__(self, frame: DataFrame | None = None) -> None:
        self.frame = frame

    def __reduce__(self) -> tuple[type[FrameHandle], tuple[()]]:
        return FrameHandle, ()


def from_spark(
    frame: DataFrame,
    *,
    vs: str,
    ve: str | None = None,
    lifetime: Ticks | None = None,
    name: str | None = None,
) -> Stream:
    """Make a stream of a DataFrame with a time column. `name` is its name in joins, which no other
    input may have; the default is `DataFrame1`, `DataFrame2`, ….

    `vs` is a column of timestamps or ticks. `ve` is a column of ends (NULL: open), or `lifetime` is
    one duration for all events. Without both, events are points.
    """
    columns = {field.name: weir_type(field.dataType, field.name) for field in frame.schema.fields}
    options = SourceOptions(
        vs=vs,
        ve="ve" if ve is None and "ve" in columns else ve,
        lifetime=None if lifetime is None else parse_duration(lifetime),
    )
    number = next(_numbers)
    name = f"DataFrame{number}" if name is None else name
    source = declare_source(
        name=name, columns=columns, path=f"dataframe:{number}", options=options, index=number
    )
    return Stream(replace(source, has_origins=False, data=FrameHandle(frame)), name)


def to_spark(
    stream: Stream,
    spark: SparkSession,
    *,
    directory: str | Path = ".",
    parallelism: int | None = None,
) -> DataFrame:
    """Return the rows of a stream as a DataFrame; see the module's rules."""
    check_numbers(cut=None, parallelism=parallelism)
    program = program_of([stream.to("", name="Out")])
    partitions = all_partitions(program, directory)
    form = OutputForm("", stream.schema)
    target = Target("rows", 0, form)
    cores = default_parallelism(spark)
    layout = make_layout(program, partitions, [target], parallelism or min(cores, MOST_VERTICES))
    for key, value in ARROW_BATCHES.items():
        spark.conf.set(key, value)  # kept: Spark plans the query when rows are requested
    frames = frames_of(program, partitions)
    rows = job_frame(spark, make_job([layout]), cores, frames=frames)
    return rows.where(f.col("partition") == COLLECTED).mapInArrow(
        _Decoding(form), spark_schema(form.columns)
    )


def spark_transform(
    query: Callable[[Stream], Stream],
    *,
    vs: str,
    ve: str | None = None,
    lifetime: Ticks | None = None,
    parallelism: int | None = None,
) -> Callable[[DataFrame], DataFrame]:
    """Turn a query on a stream into a function for `DataFrame.transform`:

        hourly = weir.spark_transform(
            lambda rows: rows.group_by("k").window(weir.tumbling("1h")).agg(n=weir.count()), vs="at"
        )
        frame.transform(hourly).where("n > 3").show()

    `vs`, `ve` and `lifetime` are those of `from_spark`.
    """
    function: object = query
    if not callable(function):
        hint = 'as in spark_transform(lambda rows: rows.where("n > 3"), vs="at")'
        raise PlanError("a query is a function of a stream that returns one", hint=hint)

    def transform(frame: DataFrame) -> DataFrame:
        rows = as_stream(query(from_spark(frame, vs=vs, ve=ve, lifetime=lifetime)))
        return to_spark(rows, frame.sparkSession, parallelism=parallelism)

    return transform


def frames_of(program: Program, partitions: Partitions) -> dict[str, DataFrame]:
    """Return a program's DataFrames by their sources' paths. They have the columns of their
    partitions, and their rows are sorted by time."""
    frames = {}
    for source in frame_sources(program):
        assert isinstance(source.data, FrameHandle)
        if source.data.frame is None:
            raise PlanError(f"the DataFrame of {source.name} belongs to another process")
        # By index from here on: to PySpark, a dot in a column's name means a path.
        (partition,) = partitions[source.name]
        assert isinstance(partition, ArrivingBatches)
        names = [name for name, _ in partition.columns]
        columns = [_column(name).alias(f"c{i}") for i, name in enumerate(names)]
        rows = source.data.frame.select(*columns)
        frames[source.path] = rows.sortWithinPartitions(f"c{names.index(source.options.vs)}")
    return frames


def _column(name: str) -> Column:
    quoted = name.replace("`", "``")
    return f.col(f"`{quoted}`")


@dataclass(frozen=True, slots=True)
class _Decoding:
    """Converts blocks to plain rows, in a task."""

    form: OutputForm

    def __call__(self, records: Records) -> Iterator[pa.RecordBatch]:
        width = len(self.form.schema.columns)
        for row in (row for record in records for row in rows_of(record)):
            yield spark_record(self.form.record(decode(row.block, width)))
