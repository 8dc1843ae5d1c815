"""Conversion between Arrow and Spark: schemas in the types that both support, and steps as functions for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

Batches = Iterator[pa.RecordBatch]
StreamStep = Callable[[Batches], Iterable[pa.RecordBatch]]


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the types that Spark sends: no large offsets, every column nullable."""
    return pa.schema([(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind):
        return pa.list_(kind.value_type)
    return kind


def large(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast lists to the large offsets that steps expect."""
    fields = [
        field.with_type(pa.large_list(field.type.value_type)) if pa.types.is_list(field.type) else field
        for field in batch.schema
    ]
    return batch.cast(pa.schema(fields))


def spark_schema(schema: pa.Schema) -> StructType:
    """Convert an Arrow schema to one of Spark."""
    return from_arrow_schema(plain(schema))


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """Return the schema of a frame as an Arrow schema."""
    return to_arrow_schema(frame.schema)


def map_frame(frame: DataFrame, schema: pa.Schema, step: StreamStep) -> DataFrame:
    """Apply a step to the batches of every partition."""
    target = plain(schema)

    def run(batches: Batches) -> Batches:
        return (batch.cast(target) for batch in step(batches) if batch.num_rows)

    return frame.mapInArrow(run, spark_schema(schema))
