"""Spark: the same stages on many machines. Only this package imports pyspark."""

from __future__ import annotations

from neardup.errors import MissingExtraError

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise MissingExtraError(
        "the Spark engine needs pyspark, which is not installed", hint="pip install 'neardup[spark]'"
    ) from error

from neardup.engines.spark import files, results
from neardup.engines.spark.engine import SparkEngine
from neardup.engines.spark.sources import FileSource, FrameSource

__all__ = ["FileSource", "FrameSource", "SparkEngine", "files", "results"]
