"""The results of a run on files: tables in input order, and the kept rows, which workers write file by file."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from neardup.engines.local.groups import split_groups
from neardup.engines.spark.arrow_steps import Batches, map_frame
from neardup.engines.spark.documents import FileSource
from neardup.engines.spark.naming import dense_rows
from neardup.engines.spark.results import cluster_rows, with_ids
from neardup.engines.spark.storage import FEW_ROWS, Storage, in_order, one_task_each, stored_batches
from neardup.engines.spark.written_tables import Write, write_file
from neardup.io.columns.rejected_rows import NOT_UTF8
from neardup.io.documents.layout import FileLayout
from neardup.io.records import Verdicts
from neardup.io.streams import copy_permissions

# Rows of a file that are not kept: removed documents with their kept one, rejected rows with null.
_VERDICTS: Final = pa.schema(
    [
        ("at", pa.int64()),
        ("number", pa.int64()),
        ("kept_id", pa.string()),
        ("similarity", pa.float64()),
        ("cluster_size", pa.int64()),
    ]
)
_COUNTED: Final = pa.schema([("rows", pa.int64())])
_WRITTEN: Final = pa.schema([("at", pa.int64())])
_OWN: Final = ("row", "doc_id", "file", "number")


def rejected_table(source: FileSource, *, references: bool = False) -> DataFrame:
    """Return schema.REJECTED in input order, for the input or for the reference files."""
    is_reference = F.col("row") < source.num_references
    rejected = source.rejected.where(is_reference if references else ~is_reference)
    placed = source.add_locations(rejected.withColumn("doc_id", F.lit(None).cast("string")), [_OWN])
    num_rows = source.counted["reference_rejected" if references else "own_rejected"]
    return in_order(placed, ["row"], num_rows).selectExpr("file", "number as row", "reason")


def count_not_utf8(source: FileSource) -> int:
    """Count the rows of the input that were rejected because they are not in UTF-8."""
    is_own = F.col("row") >= source.num_references
    return source.rejected.where(is_own & F.col("reason").contains(NOT_UTF8)).count()


def write_table(
    path: Path, name: str, table: DataFrame, num_rows: int, write: Write, storage: Storage
) -> int:
    """Let one task write a sorted table to a file; return its number of rows.

    No row passes through the driver. What many tasks have sorted is stored first, and one task
    reads it in order.
    """
    folder = None
    if num_rows > FEW_ROWS:
        folder = storage.checkpoint(f"{name}-sorted", lambda: table).path
        table = storage.spark.range(0, 1, 1, 1)
    target = path.resolve()

    def step(rows: Batches) -> Iterator[pa.RecordBatch]:
        return write_file(target, rows if folder is None else stored_batches(folder), write)

    written: list[Any] = storage.run(map_frame(table, _COUNTED, step).collect, name)
    if not written:  # a table that Spark knows to be empty has no task
        write(path, iter(()))
    return sum(row["rows"] for row in written)


def write_kept(
    source: FileSource, selection: DataFrame, members: DataFrame, folder: str
) -> DataFrame:
    """Return a frame with one row per input file that writes its kept rows when computed."""
    layout = source.layout
    is_absent = F.col("num_shingles").isNull() & (F.col("row") >= source.num_references)
    absent = source.notes.where(is_absent).selectExpr(
        "row", "cast(null as string) kept_id", "null similarity"
    )
    removed = selection.withColumn("kept_id", F.lit(None).cast("string"))
    if source.config.mark:
        kept = with_ids(selection, "kept_row", "kept_id", source.ids())
        removed = source.add_locations(kept, [("kept_row", "kept_id", "kept_file", "kept_number")])
    verdicts = removed.select("row", "kept_id", "similarity").unionByName(absent)
    verdicts = verdicts.withColumn("cluster_size", F.lit(None).cast("bigint"))
    if source.config.mark:  # kept rows are listed only for the size of their cluster
        documents = source.documents.where(F.col("row") >= source.num_references)
        clustered = cluster_rows(documents, members)
        sized = clustered.where("cluster_size > 1").select("row", "cluster_size")
        verdicts = verdicts.drop("cluster_size").join(sized, "row", "full")
    own = source.layout.own_files()
    every = selection.sparkSession.range(own.start, own.stop).selectExpr(
        "id as at",
        "cast(null as long) number",
        "cast(null as string) kept_id",
        "cast(null as double) similarity",
    )
    every = every.withColumn("cluster_size", F.lit(None).cast("bigint"))

    def locate(batches: Batches) -> Iterator[pa.RecordBatch]:
        return (_by_file(batch, layout) for batch in batches)

    by_file = map_frame(verdicts, _VERDICTS, locate).unionByName(every)
    numbered = by_file.withColumn("task", F.col("at") - own.start)
    sent = one_task_each(numbered, "task", len(own)).drop("task")
    ordered = sent.sortWithinPartitions("at", "number")
    return map_frame(ordered, _WRITTEN, lambda batches: _write_files(batches, layout, folder))


def _by_file(batch: pa.RecordBatch, layout: FileLayout) -> pa.RecordBatch:
    """Replace rows by the number of the file and the position in it, from 0."""
    rows = batch.column("row").to_numpy()
    dense = dense_rows(layout, rows)
    at = np.searchsorted(layout.file_first_rows[:-1], dense, side="right") - 1
    columns = [pa.array(at), pa.array(dense - layout.file_first_rows[at])]
    verdicts = [batch.column(name) for name in ("kept_id", "similarity", "cluster_size")]
    return pa.record_batch([*columns, *verdicts], schema=_VERDICTS)


def _write_files(batches: Batches, layout: FileLayout, folder: str) -> Iterator[pa.RecordBatch]:
    for verdicts in split_groups(batches, "at"):
        at = verdicts.column("at")[0].as_py()
        _write_file(at, verdicts.filter(verdicts.column("number").is_valid()), layout, folder)
        yield pa.record_batch([pa.array([at])], schema=_WRITTEN)


def _write_file(at: int, rows: pa.Table, layout: FileLayout, folder: str) -> None:
    """Write the kept rows of a file; retries and speculative attempts are safe."""
    first, stop = layout.file_first_rows[at : at + 2].tolist()
    is_kept = np.ones(stop - first, np.bool_)
    is_removed, is_sized = (rows.column(name).is_valid() for name in ("similarity", "cluster_size"))
    is_gone = pc.or_(is_removed, pc.invert(is_sized))
    is_kept[rows.filter(is_gone).column("number").to_numpy()] = False
    sizes = np.ones(stop - first, np.int64)
    sized = rows.filter(is_sized)
    sizes[sized.column("number").to_numpy()] = sized.column("cluster_size").to_numpy()
    removed = rows.filter(is_removed).combine_chunks()
    verdicts = Verdicts(
        is_kept=is_kept,
        removed=removed.column("number").to_numpy(),
        kept_ids=pa.array(removed.column("kept_id").to_pylist(), pa.string()),
        similarities=removed.column("similarity").to_numpy(),
        cluster_sizes=sizes,
    )
    target = Path(folder) / layout.files[at].name
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        layout.formats[at].write(layout.files[at], str(draft), verdicts, layout.config)
        copy_permissions(layout.files[at], str(draft))
        with contextlib.suppress(FileNotFoundError):  # a removed text leaves no file
            os.replace(draft, target)  # noqa: PTH105
    finally:
        draft.unlink(missing_ok=True)
