"""Connected components by alternating large and small stars (Kiveris and others, SoCC 2014).

Every round is linear in the links, and no task holds more than the neighbours of one row on disk.
Once few links are left, one task connects them as the local engine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F  # noqa: N812 - as every book on Spark writes it

from neardup import schema
from neardup.engines.spark.arrow_steps import Batches, map_frame, plain
from neardup.engines.spark.storage import Storage
from neardup.kernels import union_find as kernel

# One task connects this many links in about a second, with 500 MB.
FEW_LINKS: Final = 1 << 22


def connect(
    links: DataFrame, storage: Storage, few_links: int = FEW_LINKS
) -> tuple[DataFrame, list[int]]:
    """Return schema.COMPONENTS, and how many links there were at the start of every round.

    Every round is stored, so that a lost worker does not undo the rounds before.
    """
    contracted = map_frame(links, schema.LINKS, _forests)
    stored = storage.checkpoint("links", lambda: contracted, _fingerprint())
    sizes = [stored.observed["rows"]]
    while sizes[-1] > few_links:
        before = stored
        starred = partial(_starred, before.frame)
        stored = storage.checkpoint(f"links-{len(sizes)}", starred, _fingerprint())
        sizes.append(stored.observed["rows"])
        if stored.observed == before.observed:  # stars already
            return _labels(stored.frame), sizes
    rest = stored.frame.coalesce(1)
    return _labels(map_frame(rest, schema.LINKS, lambda batches: [_forest(list(batches))])), sizes


def connect_few(links: DataFrame) -> tuple[DataFrame, Observation]:
    """Return schema.COMPONENTS of few documents, joined by one task in the job that stores them.

    The observation has the number of links, as `links`.
    """
    watched = Observation()
    contracted = map_frame(links, schema.LINKS, _forests).observe(
        watched, F.count(F.lit(1)).alias("links")
    )
    return _labels(map_frame(contracted.repartition(1), schema.LINKS, _one_forest)), watched


def _one_forest(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Contract the links of all batches; what is held never has more links than there are rows."""
    collected: list[pa.RecordBatch] = []
    for batch in batches:
        collected.append(batch)
        if sum(part.num_rows for part in collected) >= FEW_LINKS:
            collected = [_forest(collected)]
    yield _forest(collected)


def _starred(links: DataFrame) -> DataFrame:
    return _small_star(_large_star(links))


def _forests(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Contract the links of each partition: every row keeps one link, to the smallest row connected with it."""
    collected = []
    num_links = 0
    for batch in batches:
        collected.append(batch)
        num_links += batch.num_rows
        if num_links >= FEW_LINKS:
            yield _forest(collected)
            collected = []
            num_links = 0
    yield _forest(collected)


def _forest(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches, schema=plain(schema.LINKS))
    ends = np.concatenate([table.column(name).to_numpy() for name in ("row", "smallest")])
    rows, numbered = np.unique(ends, return_inverse=True)
    parents = np.arange(rows.size)
    kernel.union_links(numbered[: table.num_rows], numbered[table.num_rows :], parents)
    kernel.find_roots(parents)
    is_child = parents != np.arange(rows.size)
    return pa.record_batch(
        [pa.array(rows[is_child]), pa.array(rows[parents[is_child]])], schema=schema.LINKS
    )


def _fingerprint() -> dict[str, Column]:
    """Return a fingerprint of links, to detect changes: a sum of hashes, wide enough not to overflow."""
    return {"fingerprint": F.sum(F.xxhash64("row", "smallest").cast("decimal(20,0)"))}


def _large_star(links: DataFrame) -> DataFrame:
    """Link every neighbour that is larger than a row to the smallest of the row and its neighbours."""
    both = links.unionByName(
        links.select(F.col("smallest").alias("row"), F.col("row").alias("smallest"))
    )
    least = F.least(F.col("row"), F.min("smallest").over(Window.partitionBy("row")))
    stars = both.withColumn("least", least).where(F.col("smallest") > F.col("row"))
    return stars.select(F.col("smallest").alias("row"), F.col("least").alias("smallest"))


def _small_star(links: DataFrame) -> DataFrame:
    """Link a row and its smaller neighbours to the smallest of these."""
    least = F.min("smallest").over(Window.partitionBy("row"))
    stars = links.withColumn("least", least)
    ends = F.explode(F.array("row", "smallest")).alias("row")
    return (
        stars.select(ends, F.col("least").alias("smallest"))
        .where(F.col("row") != F.col("smallest"))
        .distinct()
    )


def _labels(stars: DataFrame) -> DataFrame:
    """Return every row of a star with its centre, the smallest row."""
    leaves = stars.select("row", F.col("smallest").alias("component"))
    centres = stars.select(
        F.col("smallest").alias("row"), F.col("smallest").alias("component")
    ).distinct()
    return leaves.unionByName(centres)
