"""A Spark session for the command line."""

from __future__ import annotations

import atexit
import os
import sys
import warnings

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from neardup.config import Config
from neardup.engines.spark.engine import SparkEngine
from neardup.errors import NearDupError


def open_engine(config: Config) -> SparkEngine:
    """Take the session that is there, as under spark-submit in a notebook, or start one."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("neardup")
    if config.master is not None:
        builder = builder.master(config.master)
    for setting in config.spark_conf:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    is_ours = SparkSession.getActiveSession() is None
    if is_ours:
        # PySpark warns of pandas, which it asks for and nothing here uses.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        # Progress is told by our own bars, and what stops a run by our own errors, not by a page of Java for each try.
        for name, value in {"spark.ui.showConsoleProgress": "false", "spark.log.level": "FATAL"}.items():
            if not any(setting.startswith(f"{name}=") for setting in config.spark_conf):
                builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise NearDupError(
            f"Spark cannot start: {error}", hint="it needs Java 17 or newer: install it, or set JAVA_HOME"
        ) from error
    if is_ours:
        atexit.register(session.stop)
    return SparkEngine(session)
