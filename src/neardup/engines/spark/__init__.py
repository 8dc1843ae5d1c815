"""The Spark engine: the same stages on a cluster. Only this package imports pyspark."""

from __future__ import annotations

from neardup.errors import MissingExtraError

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        "the Spark engine needs pyspark, which is not installed",
        hint="pip install 'neardup[spark]'",
    ) from error

from neardup.engines.spark import file_tables as files
from neardup.engines.spark import results
from neardup.engines.spark.documents import FileSource, FrameSource
from neardup.engines.spark.engine import SparkEngine

__all__ = ["FileSource", "FrameSource", "SparkEngine", "files", "results"]
