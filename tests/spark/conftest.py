"""One Spark session for all tests of this folder: two tasks in one worker, or in two where long tests run too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import neardup
from support import java

# Workers, cores and memory of each. Starting a second worker, and its JIT compilation, takes as
# long as a test.
ONE_WORKER = "local-cluster[1,2,1024]"
TWO_WORKERS = "local-cluster[2,1,1024]"


# Spark generates and compiles Java for every new plan, which takes longer than to interpret a plan
# for few rows.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory, pytestconfig):
    is_short = pytestconfig.option.markexpr == "not long"
    master = ONE_WORKER if is_short else TWO_WORKERS
    home = java.java_home(dict(os.environ), tmp_path_factory.mktemp("java"))
    patch = pytest.MonkeyPatch()
    if home is not None:
        patch.setenv("JAVA_HOME", home)
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    # These programs run for seconds, in which JIT optimisation does not pay off.
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    settings = {
        "spark.driver.extraJavaOptions": quick,
        "spark.executor.extraJavaOptions": quick,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": str(Path(neardup.__file__).parents[1]),
        "spark.python.daemon.module": "neardup.engines.spark_daemon",
        "spark.local.dir": str(tmp_path_factory.mktemp("local")),
        "spark.sql.shuffle.partitions": "2",
        "spark.shuffle.compress": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master).appName("tests")
    for name, value in (settings | (INTERPRETED if is_short else {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    patch.undo()


@pytest.fixture
def generated(spark):
    """Generate Java for the plans of one test, as Spark does by default."""
    usual = {name: spark.conf.get(name) for name in GENERATED}
    for name, value in GENERATED.items():
        spark.conf.set(name, value)
    yield
    for name, value in usual.items():
        spark.conf.set(name, value)
