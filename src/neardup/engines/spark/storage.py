"""The storage of a run on Spark: a folder that the driver and all workers can access."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from neardup import errors, schema
from neardup.engines.base import Advance
from neardup.engines.spark.listener import report_jobs
from neardup.io.streams import filesystem

T = TypeVar("T")
# Columns whose sum is taken while a table is written, so that no extra job is needed.
_SUMMED: Final = {"num_shingles", "text_bytes", "compared", *schema.CONTENTS.names} - {"row"}
# What one task sorts and writes by itself.
_FEW_ROWS: Final = 1_000_000
# Adaptive execution makes a job of every exchange, and every broadcast is a job; our tables are of known size.
_SETTINGS: Final = {"spark.sql.adaptive.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"}
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_UNSET_PARTITIONS: Final = "200"
_BYTES_A_PARTITION: Final = 32 << 20
_RAISED = re.compile(r"neardup\.errors\.(\w+): (.*?)(?:\n\nhint: (.*?))?(?:\n|$)(?!\n?hint)", re.DOTALL)


class Storage:
    """Stores frames as Parquet, so that they are computed once and survive the loss of a worker."""

    def __init__(self, spark: SparkSession, folder: str | None) -> None:
        self.spark = spark
        above = folder or _usual_folder(spark)
        self.folder = f"{above.rstrip('/')}/neardup-{uuid.uuid4().hex}"
        # Frames must be usable as long as the session lives.
        weakref.finalize(spark, _remove, spark, self.folder)
        self._listening: tuple[Advance, int] | None = None
        # Frames stay here, so that no other one can have their identity.
        self._observed: dict[int, tuple[DataFrame, dict[str, Any]]] = {}
        self._num_partitions = max(spark.sparkContext.defaultParallelism, 1)

    def listen(self, advance: Advance, total: int) -> None:
        """Report the progress of the next job to `advance`."""
        self._listening = advance, total

    def plan_partitions(self, num_bytes: int) -> None:
        """Choose how many partitions an exchange has, from the size of the input."""
        self._num_partitions = max(self._num_partitions, -(-num_bytes // _BYTES_A_PARTITION))

    def store(self, name: str, frame: DataFrame, metrics: Mapping[str, Column] | None = None) -> DataFrame:
        """Compute a frame and return it as stored; `metrics` are computed in the same job, see `observed`."""
        path, observation = f"{self.folder}/{name}", Observation()
        sums = {column: F.sum(column) for column in frame.columns if column in _SUMMED}
        if "component" in frame.columns:
            sums["components"] = F.count_if(F.col("row") == F.col("component"))
        every = {"rows": F.count(F.lit(1)), **sums, **(metrics or {})}
        watched = frame.observe(observation, *(metric.alias(alias) for alias, metric in every.items()))
        self.run(lambda: watched.write.parquet(path), name)
        stored = self.spark.read.schema(frame.schema).parquet(path)
        self._observed[id(stored)] = stored, observation.get
        return stored

    def observed(self, frame: DataFrame) -> dict[str, Any] | None:
        """Return what was computed while a frame was stored: `rows`, sums of columns, metrics; None for any other."""
        found = self._observed.get(id(frame))
        return None if found is None else found[1]

    def batches(self, name: str, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        """Compute a frame, and read it on the driver in order, batch by batch."""
        self.store(name, frame)
        path = f"{self.folder}/{name}"
        files, inner = filesystem(path) if "://" in path else filesystem(f"file://{path}")
        for part in sorted(files.glob(f"{inner}/part-*.parquet")):
            with files.open(part, "rb") as source, pq.ParquetFile(source) as parquet:
                yield from parquet.iter_batches()

    def run(self, action: Callable[[], T], what: str = "count") -> T:
        """Run a Spark action; an error of ours raised by a worker is raised again as itself."""
        advance, total = self._listening or (lambda _: None, 0)
        self._listening = None
        with _ours(), self._settings(), report_jobs(self.spark.sparkContext, what, advance, total):
            return action()

    @contextlib.contextmanager
    def _settings(self) -> Iterator[None]:
        """Let Spark plan a statement by what is known of our tables; the settings of the session come back."""
        chosen = dict(_SETTINGS)
        if self.spark.conf.get(_PARTITIONS) == _UNSET_PARTITIONS:
            chosen[_PARTITIONS] = str(self._num_partitions)
        before = {name: self.spark.conf.get(name) or "" for name in chosen}
        try:
            for name, value in chosen.items():
                self.spark.conf.set(name, value)
            yield
        finally:
            for name, value in before.items():
                self.spark.conf.set(name, value)


def in_order(frame: DataFrame, keys: Sequence[str], num_rows: int) -> DataFrame:
    """Sort a frame of about `num_rows`: a small one in one task, since many tasks need a job that draws a sample."""
    if num_rows > _FEW_ROWS:
        return frame.orderBy(*keys)
    return frame.repartition(1).sortWithinPartitions(*keys)


def _usual_folder(spark: SparkSession) -> str:
    """The checkpoint folder of the session; on one machine a temporary one."""
    context = spark.sparkContext
    if (named := context.getCheckpointDir()) is not None:
        return named
    if str(context.master).startswith("local"):
        return tempfile.mkdtemp(prefix="neardup-spark-")
    raise errors.ConfigError(
        f"a run on {context.master} needs a folder that every worker reaches",
        hint="SparkEngine(spark, folder='hdfs:///tmp'), or spark.sparkContext.setCheckpointDir('hdfs:///tmp')",
    )


def _remove(spark: SparkSession, folder: str) -> None:
    if "://" not in folder:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # the folder above, if it was a temporary one
            if Path(folder).parent.name.startswith("neardup-spark-"):
                Path(folder).parent.rmdir()
        return
    with contextlib.suppress(Exception):  # the session may already have ended
        jvm: Any = spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(folder)
        path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, True)


@contextlib.contextmanager
def _ours() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        found = _RAISED.search(str(error))
        if found is None:
            raise
        kind = getattr(errors, found[1], errors.NearDupError)
        raise kind(found[2].strip(), hint=found[3]) from error
