"""The storage of a run on Spark: a folder that the driver and all workers can access."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from neardup import errors
from neardup.engines.base import Advance
from neardup.engines.spark.listener import report_jobs
from neardup.io.streams import filesystem

T = TypeVar("T")
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

    def listen(self, advance: Advance, total: int) -> None:
        """Report the progress of the next job to `advance`."""
        self._listening = advance, total

    def store(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute a frame and return it as stored."""
        path = f"{self.folder}/{name}"
        self.run(lambda: frame.write.parquet(path), name)
        return self.spark.read.schema(frame.schema).parquet(path)

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
        with _ours(), report_jobs(self.spark.sparkContext, what, advance, total):
            return action()


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
