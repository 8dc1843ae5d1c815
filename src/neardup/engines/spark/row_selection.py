"""Which rows of a table a step gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from neardup.engines.base import BatchStep
from neardup.engines.spark.arrow_steps import Batches, large
from neardup.engines.spark.storage import SparkTable


class Chosen(NamedTuple):
    """A selection of rows: those with a positive value less than `below` in a column that are not in a table."""

    column: str | None
    without: SparkTable | None
    below: int | None = None


def keep_all(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep every row."""
    return batch


def widened(batches: Batches, spare: BatchStep) -> Iterator[pa.RecordBatch]:
    """Return the batches of Spark as steps expect them, without the rows that `spare` leaves out."""
    return (spare(large(batch)) for batch in batches if batch.num_rows)


def select_rows(table: SparkTable, where: Chosen | None) -> DataFrame:
    """Return the rows of a selection."""
    if where is None:
        return table.frame
    rows = table.frame
    if where.column is not None:
        rows = rows.where(F.col(where.column) > 0)
        if where.below is not None:
            rows = rows.where(F.col(where.column) < where.below)
    if where.without is None:
        return rows
    return rows.join(where.without.frame.select("row"), "row", "left_anti")
