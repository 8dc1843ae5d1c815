"""Conversion between Arrow and Spark: schemas in the types that both support, and steps as functions for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.types import is_large_list as is_list
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from neardup import schema as schemas
from neardup.engines.spark.worker_errors import sent_to_driver

Batches = Iterator[pa.RecordBatch]
StreamStep = Callable[[Batches], Iterable[pa.RecordBatch]]


# Lists of numbers travel as their bytes, because Spark converts and stores every number of a list
# by itself.
_OF_NEIGHBOURS: Final = ("query_shares", "shares")
LISTS: Final = (
    {"keys": pa.large_list(pa.int64())}
    | dict.fromkeys(_OF_NEIGHBOURS, pa.large_list(pa.float64()))
    | {field.name: field.type for field in schemas.SETS if is_list(field.type)}
    | {field.name: field.type for field in schemas.VERIFIED if is_list(field.type)}
)


def _travels(field: pa.Field) -> bool:
    return field.name in LISTS and is_list(field.type)


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the types that Spark sends: every column nullable, lists of numbers as bytes."""
    return pa.schema(
        [(field.name, pa.binary() if _travels(field) else _narrow(field.type)) for field in schema]
    )


def narrow(schema: pa.Schema) -> pa.Schema:
    """Return a schema without large offsets, every column nullable."""
    return pa.schema([(field.name, _narrow(field.type)) for field in schema])


def _narrow(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind):
        return pa.list_(kind.value_type)
    return kind


def as_plain(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to a schema of `plain`."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in LISTS and is_list(column.type):
            columns.append(_bytes_of(column))
        else:
            columns.append(column.cast(target.field(name).type))
    return pa.record_batch(columns, schema=target)


def _bytes_of(lists: pa.Array) -> pa.Array:
    """Return lists of numbers of 8 bytes as their bytes, without a copy of the numbers."""
    offsets = lists.offsets.to_numpy()
    numbers = np.ascontiguousarray(lists.values.to_numpy()[offsets[0] : offsets[-1]])
    buffers = [None, pa.py_buffer((offsets - offsets[0]) * 8), pa.py_buffer(numbers)]
    found = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers).cast(pa.binary())
    if lists.null_count:
        return pc.if_else(pc.is_valid(lists), found, None)
    return found


def large(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of Spark with the lists that steps expect; null becomes an empty list."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in LISTS and pa.types.is_binary(column.type):
            columns.append(_lists_of(column, LISTS[name]))
        else:
            columns.append(column)
    return pa.record_batch(columns, names=batch.schema.names)


def large_table(table: pa.Table) -> pa.Table:
    """Return a table of Spark with the lists that steps expect."""
    batches = [*table.to_batches(), pa.RecordBatch.from_pylist([], schema=table.schema)]
    return pa.Table.from_batches([large(batch) for batch in batches])


def _lists_of(raw: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the bytes of numbers as lists, without a copy of the numbers."""
    if not len(raw):
        return pa.array([], kind)
    wide = pc.fill_null(raw, b"").cast(pa.large_binary())
    _, ends, data = wide.buffers()
    offsets = np.frombuffer(ends, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    every = np.frombuffer(data or b"", kind.value_type.to_pandas_dtype())
    numbers = every[offsets[0] // 8 : offsets[-1] // 8]
    starts = (offsets - offsets[0]) // 8
    return pa.LargeListArray.from_arrays(pa.array(starts), pa.array(numbers))


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
        with sent_to_driver():
            for batch in step(batches):
                if batch.num_rows:
                    yield as_plain(batch, target)

    return frame.mapInArrow(run, spark_schema(schema))
