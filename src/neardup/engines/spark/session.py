"""A Spark session for the command line."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from typing import Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from neardup.config import Config
from neardup.engines.spark.engine import SparkEngine
from neardup.errors import NearDupError

_DEFAULTS: Final = {
    # Our own bars show the progress, and our own errors what stopped a run, not a Java stack trace
    # per attempt.
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",
    "spark.python.daemon.module": "neardup.engines.spark_daemon",
}
# Less JIT compilation, and garbage collection on one thread: the driver only plans, and a short run
# on executors ends before optimised code has paid off (83 against 46 CPU seconds for 106 MB).
_QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SHORT_BYTES: Final = 4 << 30


def open_engine(config: Config, num_bytes: int) -> SparkEngine:
    """Use the active session, as with spark-submit or in a notebook, or start one for this many bytes of input."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("neardup")
    if config.master is not None:
        builder = builder.master(config.master)
    for setting in config.spark_conf:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    is_ours = SparkSession.getActiveSession() is None
    if is_ours:
        # PySpark warns about the version of pandas, which it requires although nothing here uses
        # it.
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        quick = {"spark.driver.extraJavaOptions": _QUICK}
        if num_bytes < _SHORT_BYTES:
            quick["spark.executor.extraJavaOptions"] = _QUICK
        for name, value in (_DEFAULTS | quick).items():
            if not any(setting.startswith(f"{name}=") for setting in config.spark_conf):
                builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise NearDupError(
            f"Spark cannot start: {error}",
            hint="it needs Java 17 or newer: install it, or set JAVA_HOME",
        ) from error
    if is_ours:
        atexit.register(session.stop)
    return SparkEngine(session)
