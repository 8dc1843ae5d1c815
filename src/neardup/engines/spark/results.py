"""The results of a run on Spark as frames, with ids instead of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from neardup.engines.spark.documents import FileSource, FrameSource
from neardup.engines.spark.engine import SparkEngine
from neardup.engines.spark.storage import SparkTable
from neardup.report import CLUSTER_COLUMNS, NUM_LARGEST


def with_ids(table: DataFrame, row: str, doc_id: str, ids: DataFrame) -> DataFrame:
    """Add the id of the document whose row is in a column; null for one without an id."""
    known = ids.select(F.col("row").alias("known_row"), F.col("doc_id").alias(doc_id))
    named = table.join(known, F.col(row) == F.col("known_row"), "left")
    return named.drop("known_row")


def mutual_pairs(row_pairs: SparkTable, columns: pa.Schema) -> SparkTable:
    """Return the pairs of two documents that are each other's most similar partner; ties by row, the smallest first."""
    similarity = F.col("similarity").desc()
    by_a = Window.partitionBy("row_a").orderBy(similarity, "row_b")
    by_b = Window.partitionBy("row_b").orderBy(similarity, "row_a")
    ranked = row_pairs.frame.withColumn("rank_of_b", F.row_number().over(by_a))
    ranked = ranked.withColumn("rank_of_a", F.row_number().over(by_b))
    mutual = ranked.where((F.col("rank_of_a") == 1) & (F.col("rank_of_b") == 1))
    return SparkTable(mutual.select(*columns.names))


def cluster_rows(documents: DataFrame, members: DataFrame) -> DataFrame:
    """Return every document with the kept one of its cluster, by row, and the size of the cluster."""
    joined = documents.select("row").join(members.select("row", "kept_row"), "row", "left")
    named = joined.select("row", F.coalesce("kept_row", "row").alias("kept_row"))
    by_kept = members.groupBy(F.col("kept_row").alias("counted_row"))
    counted = by_kept.agg((F.count("*") + 1).alias("cluster_size"))
    sized = named.join(counted, F.col("kept_row") == F.col("counted_row"), "left")
    size = F.coalesce("cluster_size", F.lit(1).cast("bigint"))
    return sized.select("row", "kept_row", size.alias("cluster_size"))


def frame_tables(
    source: FrameSource, selection: DataFrame, members: DataFrame, row_pairs: DataFrame | None
) -> dict[str, DataFrame]:
    """Return the tables of a report; each is computed when it is used."""
    ids = source.ids()
    own = source.id_column

    def named(table: DataFrame, ends: dict[str, str], *columns: str) -> DataFrame:
        for row, doc_id in ends.items():
            table = with_ids(table, row, doc_id, ids)
        return table.select(*ends.values(), *columns)

    rejected = named(source.rejected, {"row": "doc_id"}, "reason")
    gone_rows = selection.select("row").unionByName(source.rejected.select("row"))
    gone = named(gone_rows, {"row": "gone_id"})
    kept = source.frame.join(gone, source.frame[own] == F.col("gone_id"), "left_anti")
    tables = {
        "kept": _with_doc_id(kept, own),
        "removed": named(selection, {"row": "doc_id", "kept_row": "kept_id"}, "similarity"),
        "clusters": named(
            cluster_rows(source.documents, members),
            {"row": "doc_id", "kept_row": "cluster_id"},
            "cluster_size",
        ),
        "rejected": rejected,
    }
    if row_pairs is not None:
        values = [name for name in row_pairs.columns if name not in ("row_a", "row_b")]
        tables["pairs"] = named(row_pairs, {"row_a": "doc_a", "row_b": "doc_b"}, *values)
    return tables


def _with_doc_id(frame: DataFrame, own: str) -> DataFrame:
    """Return a frame with its ids also as `doc_id`; an existing column of that name is renamed."""
    if own == "doc_id":
        return frame
    name = "doc_id_"
    while name in frame.columns:
        name += "_"
    return frame.withColumnRenamed("doc_id", name).select(F.col(own).alias("doc_id"), "*")


def largest_clusters(selection: DataFrame, per_cluster: int) -> DataFrame:
    """Return kept_row, documents, weakest_row and similarity of the largest clusters, in no order."""
    by_weakness = F.struct("similarity", "row")
    sizes = selection.groupBy("kept_row").agg(
        (F.count("*") + per_cluster).alias("documents"),
        F.min_by("row", by_weakness).alias("weakest_row"),
        F.min("similarity").alias("similarity"),
    )
    return sizes.orderBy(F.desc("documents"), "kept_row").limit(NUM_LARGEST)


class RemovedCounts(NamedTuple):
    """The removed documents: all, below the threshold, for a reference document; and those that were spared."""

    removed: int
    below: int
    against: int
    spared: int


def count_selection(
    source: FrameSource | FileSource,
    selection: SparkTable,
    members: SparkTable,
    engine: SparkEngine,
) -> RemovedCounts:
    """Count the removed and the spared documents."""
    config = source.config
    removed = engine.total(selection)
    below = 0
    against = 0
    # Only chains of pairs can remove documents below the threshold.
    if removed and (config.cluster == "components" or source.num_references > 0):
        is_below = F.col("similarity") < config.threshold
        is_against = F.col("kept_row") < source.num_references
        found: Any = engine.storage.run(
            selection.frame.agg(F.count_if(is_below), F.count_if(is_against)).first
        )
        below, against = found
    spared = 0 if members is selection else engine.total(members) - removed
    return RemovedCounts(removed=removed, below=below, against=against, spared=spared)


def cluster_facts(rows: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """Return the rows of `largest_clusters` in order, as a report has them."""

    def facts_of(row: Any) -> dict[str, Any]:
        return {name: row[name] for name in CLUSTER_COLUMNS}

    ordered = sorted(rows, key=lambda row: (-row["documents"], row["kept_row"]))
    return tuple(map(facts_of, ordered))
