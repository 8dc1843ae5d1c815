"""The daemon that forks Python workers: workers neither garbage-collect nor recompile what it has loaded."""

from __future__ import annotations

import sys

import pytest

from neardup.engines.spark_daemon import prefer_installed


@pytest.mark.slow("a job of Spark")
def test_a_worker_starts_with_kernels_that_garbage_collection_skips(spark):
    def look(_):
        import gc
        import sys

        return (
            gc.get_freeze_count(),
            "neardup.kernels.verify" in sys.modules,
            sys.modules["pyspark"].__file__,
        )

    [(num_frozen, has_kernels, pyspark)] = (
        spark.sparkContext.parallelize([0], 1).map(look).collect()
    )
    assert num_frozen > 10_000
    assert has_kernels
    assert ".zip" not in pyspark


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_installed_pyspark_takes_precedence_over_its_archive(
    tmp_path, monkeypatch, is_installed
):
    package = tmp_path / "site" / "pyspark"
    archive = package / "python" / "lib" / "pyspark.zip"
    archive.parent.mkdir(parents=True)
    if is_installed:
        (package / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(archive), "elsewhere"])
    prefer_installed()
    assert sys.path == (
        ["elsewhere", str(package.parent)] if is_installed else [str(archive), "elsewhere"]
    )
