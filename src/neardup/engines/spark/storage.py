"""The storage of a run on Spark: a folder that the driver and all workers can access."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from neardup import schema
from neardup.engines.base import Advance
from neardup.engines.spark.listener import report_jobs
from neardup.engines.spark.worker_errors import raised_on_driver
from neardup.errors import ConfigError
from neardup.io.storage.workspace import Workspace
from neardup.io.streams import filesystem

T = TypeVar("T")
# Columns that are summed while a table is written, so that no extra job is needed.
_SUMMED: Final = {"num_shingles", "text_bytes", "compared", "found", *schema.CONTENTS.names} - {
    "row"
}
# The most rows that one task sorts and writes by itself.
FEW_ROWS: Final = 1_000_000
# Adaptive execution runs every exchange as a separate job, and so does every broadcast; our tables
# have known sizes. A batch of 10,000 blocks of an exchange might take gigabytes.
_SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
}
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_UNSET_PARTITIONS: Final = "200"
# Text per partition of an exchange. Every task costs tens of milliseconds, and most exchanges send
# less than a tenth of the text; the texts of components are at most all of it, which Spark sorts on
# disk.
_BYTES_A_PARTITION: Final = 128 << 20
# Every task that writes for an exchange keeps an entry for each of its partitions.
_MAX_PARTITIONS: Final = 1 << 15


@dataclasses.dataclass(frozen=True, eq=False)
class SparkTable:
    """A table of the Spark engine; two tables are equal only if they are the same object."""

    frame: DataFrame


@dataclasses.dataclass(frozen=True, eq=False)
class StoredTable(SparkTable):
    """A stored table.

    path: its folder; observed: what was computed while it was stored: `rows`, sums of columns,
    metrics, facts.
    """

    path: str
    observed: Mapping[str, Any]


class Storage:
    """Stores frames as Parquet, so that they are computed once and survive the loss of a worker.

    With a workspace, finished tables are recorded in its journal, and a resumed run loads them.
    """

    def __init__(
        self, spark: SparkSession, folder: str | None, workspace: Workspace | None = None
    ) -> None:
        self.spark = spark
        self._workspace = workspace
        above = folder or _usual_folder(spark, workspace)
        # Every start has a folder of its own, because a killed one may have left half a table.
        self.folder = f"{above.rstrip('/')}/neardup-{uuid.uuid4().hex}"
        if workspace is None:  # frames must be usable as long as the session lives
            weakref.finalize(spark, _remove, spark, self.folder)
        self._listening: tuple[Advance, int] | None = None
        self._folders = {self.folder}  # with those of the starts that this one resumes
        self._num_partitions = max(spark.sparkContext.defaultParallelism, 1)

    def listen(self, advance: Advance, total: int) -> None:
        """Report the progress of the next job to `advance`."""
        self._listening = advance, total

    def plan_partitions(self, num_bytes: int) -> None:
        """Choose how many partitions an exchange has, from the size of the input."""
        self._num_partitions = max(
            self._num_partitions, min(-(-num_bytes // _BYTES_A_PARTITION), _MAX_PARTITIONS)
        )

    @property
    def num_partitions(self) -> int:
        """The number of partitions of an exchange: that of the session, if the user has set it."""
        own = self.spark.conf.get(_PARTITIONS) or _UNSET_PARTITIONS
        if own == _UNSET_PARTITIONS:
            return self._num_partitions
        return max(min(int(own), _MAX_PARTITIONS), 1)

    def checkpoint(
        self,
        name: str,
        make: Callable[[], DataFrame],
        metrics: Mapping[str, Column] | None = None,
        facts: Callable[[], dict[str, Any]] = dict,
    ) -> StoredTable:
        """Compute a frame and return it as stored, or load it if an interrupted run has finished it.

        metrics: computed in the same job; facts: called after it, and kept beside what was
        observed.
        """
        stored = self._load(name)
        if stored is None:
            frame = make()
            path = f"{self.folder}/{name}"
            known = self._write(name, frame, metrics or {}) | facts()
            stored = self._read(path, frame.schema, known)
            if self._workspace is not None:
                entry = {"path": path, "schema": frame.schema.json(), "observed": known}
                self._workspace.finish(_journal_name(name), entry)
        elif self._listening is not None:
            advance, total = self._listening
            self._listening = None
            advance(total)
        return stored

    def _write(self, name: str, frame: DataFrame, metrics: Mapping[str, Column]) -> dict[str, Any]:
        observation = Observation()
        sums = {column: F.sum(column) for column in frame.columns if column in _SUMMED}
        if "component" in frame.columns:
            sums["components"] = F.count_if(F.col("row") == F.col("component"))
        every = {"rows": F.count(F.lit(1)), **sums, **metrics}
        watched = frame.observe(
            observation, *(metric.alias(alias) for alias, metric in every.items())
        )
        # Most columns are hashes and row numbers, which a dictionary does not compress.
        writer = watched.write.option("parquet.enable.dictionary", "false")
        self.run(lambda: writer.parquet(f"{self.folder}/{name}"), name)
        # A sum of hashes is a decimal, which JSON cannot hold.
        return {
            name: int(value) if isinstance(value, Decimal) else value
            for name, value in observation.get.items()
        }

    def _load(self, name: str) -> StoredTable | None:
        """Return a table of an interrupted run, if all of it is still there."""
        if self._workspace is None or not self._workspace.has(_journal_name(name)):
            return None
        known = self._workspace.facts(_journal_name(name))
        files, inner = filesystem(_address(known["path"]))
        if not files.exists(f"{inner}/_SUCCESS"):
            return None
        return self._read(
            known["path"], StructType.fromJson(json.loads(known["schema"])), known["observed"]
        )

    def _read(self, path: str, columns: StructType, observed: dict[str, Any]) -> StoredTable:
        self._folders.add(path.rpartition("/")[0])
        return StoredTable(self.spark.read.schema(columns).parquet(path), path, observed)

    def discard(self) -> None:
        """Remove the tables of this start, and of those that it has resumed."""
        for folder in self._folders:
            _remove(self.spark, folder)

    def run(self, action: Callable[[], T], what: str = "count") -> T:
        """Run a Spark action; a NearDupError raised by a worker is raised again here."""
        advance, total = self._listening or (lambda _: None, 0)
        self._listening = None
        with (
            raised_on_driver(),
            self._settings(),
            report_jobs(self.spark.sparkContext, what, advance, total),
        ):
            return action()

    @contextlib.contextmanager
    def _settings(self) -> Iterator[None]:
        """Set the planner options for our tables; the settings of the session are restored afterwards."""
        chosen = dict(_SETTINGS)
        if self.spark.conf.get(_PARTITIONS) == _UNSET_PARTITIONS:
            chosen[_PARTITIONS] = str(self._num_partitions)
        before = {}
        for name in chosen:
            with contextlib.suppress(PySparkException):  # an older version that lacks it
                before[name] = self.spark.conf.get(name) or ""
        try:
            for name in before:
                self.spark.conf.set(name, chosen[name])
            yield
        finally:
            for name, value in before.items():
                self.spark.conf.set(name, value)


def _journal_name(table: str) -> str:
    return f"spark/{table}"


def _address(path: str) -> str:
    return path if "://" in path else f"file://{path}"


def stored_batches(
    folder: str, columns: Sequence[str] | None = None, task: str = ""
) -> Iterator[pa.RecordBatch]:
    """Read a table that was stored in order, batch by batch; `task`: only the files with this task in their name."""
    files, inner = filesystem(_address(folder))
    for part in sorted(files.glob(f"{inner}/part-{task}*.parquet")):
        with files.open(part, "rb") as source, pq.ParquetFile(source) as parquet:
            yield from parquet.iter_batches(columns=columns)


def in_order(frame: DataFrame, keys: Sequence[str], num_rows: int) -> DataFrame:
    """Sort a frame of about `num_rows`: a small one in one task, since many tasks need a job that draws a sample."""
    if num_rows > FEW_ROWS:
        return frame.orderBy(*keys)
    return frame.repartition(1).sortWithinPartitions(*keys)


def one_task_each(frame: DataFrame, column: str, num_tasks: int) -> DataFrame:
    """Send the rows of each number to a task of its own if Spark supports it (4.1), otherwise by hash."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(max(num_tasks, 1), F.col(column).cast("int"))
    return frame.repartition(max(num_tasks, 1), column)


def _usual_folder(spark: SparkSession, workspace: Workspace | None) -> str:
    """The workspace, or the checkpoint folder of the session; on one machine a temporary one."""
    if workspace is not None:
        return str((workspace.folder / "spark").resolve())
    context = spark.sparkContext
    if (named := context.getCheckpointDir()) is not None:
        return named
    if str(context.master).startswith("local"):
        return tempfile.mkdtemp(prefix="neardup-spark-")
    raise ConfigError(
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
