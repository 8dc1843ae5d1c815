"""Errors that workers raise reach the driver as they were raised."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from neardup.engines.spark.arrow_steps import map_frame
from neardup.engines.spark.storage import Storage
from neardup.errors import DataError, NearDupError, StaleError

NUMBERS = pa.schema([("id", pa.int64())])


def raise_on_worker(spark, folder, error):
    def step(batches):
        for _ in batches:
            raise error
        yield from ()

    frame = map_frame(spark.range(1), NUMBERS, step)
    Storage(spark, str(folder)).run(frame.collect)


@pytest.mark.parametrize(
    "hint", [None, "leave it out", 'quote: "\n\nhint: twice"\n  at Naïve.java']
)
@pytest.mark.parametrize("kind", [DataError, StaleError])
def test_kind_message_and_hint_of_a_worker_are_raised_by_the_driver(kind, hint, spark, tmp_path):
    message = "pages.jsonl: line 7\nneardup.errors.ConfigError: not this\n\nhint: nor this"
    with pytest.raises(NearDupError) as raised:
        raise_on_worker(spark, tmp_path, kind(message, hint=hint))
    found = raised.value
    assert (type(found), found.message, found.hint) == (kind, message, hint)


def test_an_unknown_kind_is_still_an_error_of_neardup(spark, tmp_path):
    class ForeignError(NearDupError):
        pass

    with pytest.raises(NearDupError, match="of another package"):
        raise_on_worker(spark, tmp_path, ForeignError("of another package"))


def test_any_other_error_of_a_worker_stays_one_of_spark(spark, tmp_path):
    with pytest.raises(PySparkException, match="division"):
        raise_on_worker(spark, tmp_path, ZeroDivisionError("division by zero"))
