"""Translates column types between Spark and Weir."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import types as t

from weir.errors import PlanError
from weir.events.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
)

_OURS: dict[type[t.DataType], pa.DataType] = {
    t.LongType: BIGINT,
    t.IntegerType: INT,
    t.ShortType: INT,
    t.ByteType: INT,
    t.DoubleType: DOUBLE,
    t.FloatType: DOUBLE,
    t.BooleanType: BOOLEAN,
    t.StringType: STRING,
    t.BinaryType: BINARY,
    t.TimestampType: TIMESTAMP,
    t.TimestampNTZType: TIMESTAMP,
    t.DateType: DATE,
    t.NullType: NULL,
}
_THEIRS: dict[pa.DataType, t.DataType] = {
    BIGINT: t.LongType(),
    INT: t.IntegerType(),
    DOUBLE: t.DoubleType(),
    BOOLEAN: t.BooleanType(),
    STRING: t.StringType(),
    BINARY: t.BinaryType(),
    TIMESTAMP: t.TimestampType(),
    DATE: t.DateType(),
    NULL: t.NullType(),
}


def weir_type(dtype: t.DataType, column: str) -> pa.DataType:
    """Return our type for a DataFrame's column; raise PlanError if there is none."""
    match dtype:
        case t.DecimalType():
            return pa.decimal128(dtype.precision, dtype.scale)
        case t.ArrayType():
            return pa.list_(weir_type(dtype.elementType, column))
        case t.StructType():
            return pa.struct([(f.name, weir_type(f.dataType, column)) for f in dtype.fields])
        case _ if type(dtype) in _OURS:
            return _OURS[type(dtype)]
        case _:
            name = dtype.simpleString()
            hint = "select it away or cast it"
            raise PlanError(f"column `{column}` of the DataFrame is {name}", hint=hint)


def spark_type(dtype: pa.DataType) -> t.DataType:
    """Return Spark's type of our column; a TIMESTAMP is an instant."""
    if pa.types.is_decimal(dtype):
        return t.DecimalType(dtype.precision, dtype.scale)
    if pa.types.is_list(dtype):
        return t.ArrayType(spark_type(dtype.value_type))
    if pa.types.is_struct(dtype):
        return t.StructType([t.StructField(f.name, spark_type(f.type)) for f in dtype])
    return _THEIRS[dtype]


def arrow_type(dtype: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which Spark accepts our column: its instants have a time zone."""
    if dtype == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if pa.types.is_list(dtype):
        return pa.list_(arrow_type(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(f.name, arrow_type(f.type)) for f in dtype])
    return dtype


def spark_schema(columns: Iterable[tuple[str, pa.DataType]]) -> t.StructType:
    """Return the schema of a DataFrame with our columns."""
    return t.StructType([t.StructField(name, spark_type(dtype)) for name, dtype in columns])


def spark_record(record: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows to the types that Spark accepts."""
    arrays = [column.cast(arrow_type(column.type)) for column in record.columns]
    return pa.RecordBatch.from_arrays(arrays, names=record.schema.names)
