"""Scores for `keep`: equal values have the same order as Python values and as columns."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from neardup.errors import DataError
from neardup.io.columns.scores import SCORES, sortable_column, sortable_values


def keys(scores):
    """The sort keys of a run: number, then the remainder beyond a double, then text; None without a score."""
    assert scores.type == SCORES
    return [
        None if row is None else (row["number"], row["rest"], row["text"])
        for row in scores.to_pylist()
    ]


def order(scores):
    """Row positions in ascending order of score, ties by row, rows without a score last."""
    table = pa.table(
        [*scores.flatten(), pa.array(range(len(scores)))], names=["number", "rest", "text", "row"]
    )
    return (
        table.sort_by([(name, "ascending") for name in table.column_names])
        .column("row")
        .to_pylist()
    )


def ranks(values):
    """Equal values have equal keys, greater ones greater keys."""
    found = keys(values)
    return [sorted(set(found)).index(key) for key in found]


def column(values, kind):
    return sortable_column(pa.array(values, kind))


def test_whole_numbers_beyond_doubles_keep_their_order():
    values = [2**53 + 1, 2**53, -(2**53) - 1, 2**62 + 1, 2**62, -(2**62) - 1, 0]
    assert ranks(sortable_values(values)) == [sorted(values).index(value) for value in values]
    assert keys(column(values, pa.int64())) == keys(sortable_values(values))


@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal128(19), pa.decimal256(40)], ids=str)
def test_any_column_of_whole_numbers_keeps_their_order_beyond_doubles(kind):
    values = [2**53 + 1, 2**53, 2**62 + 1, 2**62, 7]
    given = [Decimal(value) for value in values] if pa.types.is_decimal(kind) else values
    assert keys(column(given, kind)) == keys(sortable_values(values))


def test_the_ends_of_64_bits_are_in_order():
    values = [-(2**63), -(2**63) + 1, -(2**62), 0, 2**62, 2**63 - 1]
    assert (
        order(sortable_values(values))
        == order(column(values, pa.int64()))
        == list(range(len(values)))
    )


def test_numbers_of_more_than_64_bits_are_beyond_all_others():
    values = [-(10**400), -(2**70), -(2**62), 2**62, 2**63 - 1, 2**63, 2**64, 10**400]
    assert order(sortable_values(values)) == list(range(len(values)))
    assert order(column([2**62, 2**63 - 1, 2**63, 2**64 - 1], pa.uint64())) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
    ids=str,
)
def test_every_width_of_integer_is_the_same_number(kind):
    assert keys(column([0, 5, None, 100], kind)) == keys(sortable_values([0, 5, None, 100]))


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_a_whole_float_ties_with_the_integer(kind):
    values = [5.0, -3.0, 0.0, 1024.0]
    integers = keys(sortable_values([5, -3, 0, 1024]))
    assert keys(column(values, kind)) == keys(sortable_values(values)) == integers


def test_negative_zero_ties_with_zero():
    assert ranks(column([-0.0, 0.0], pa.float64())) == ranks(sortable_values([-0.0, 0])) == [0, 0]


def test_floats_fall_between_integers():
    values = [2, 1.5, 1, 2.5, -0.5, 0]
    assert ranks(sortable_values(values)) == [4, 3, 2, 5, 0, 1]


def test_infinities_are_at_the_ends():
    values = [float("inf"), 1e300, 0, -1e300, float("-inf")]
    assert order(sortable_values(values)) == order(column(values, pa.float64())) == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_nan_and_null_are_missing_scores(kind):
    assert keys(column([float("nan"), None, 1.0], kind)) == [None, None, (1.0, 0, None)]
    assert keys(sortable_values([float("nan"), None, 1.0])) == [None, None, (1.0, 0, None)]


def test_booleans_are_zero_and_one():
    assert keys(column([True, None, False], pa.bool_())) == keys(sortable_values([1, None, 0]))
    assert keys(sortable_values([True, False])) == keys(sortable_values([1, 0]))


@pytest.mark.parametrize(
    "kind",
    [pa.decimal32(5, 1), pa.decimal64(9, 2), pa.decimal128(12, 3), pa.decimal256(50, 4)],
    ids=str,
)
def test_decimals_are_numbers(kind):
    values = [Decimal("2.5"), None, Decimal("-1"), Decimal("2")]
    assert keys(column(values, kind)) == keys(sortable_values([2.5, None, -1, 2]))


def test_texts_are_compared_as_texts():
    values = ["b", "", "a", None, "é", "10", "9"]
    expected = sorted((value for value in values if value is not None), key=str.encode)
    scores = sortable_values(values)
    assert [values[place] for place in order(scores)] == [*expected, None]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert keys(column(values, kind)) == keys(scores)


@pytest.mark.parametrize(
    "values",
    [
        ["b", None, "a", "b"],
        [2, None, 2**53 + 1, 2],
        [1.5, None, 2.0, 1.5],
        [dt.date(2020, 1, 2), None],
    ],
)
def test_a_dictionary_is_its_values(values):
    plain = pa.array(values)
    assert keys(sortable_column(plain.dictionary_encode())) == keys(sortable_column(plain))


def test_a_dictionary_of_string_views_is_its_values():
    encoded = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], pa.int8()), pa.array(["a", "b"], pa.string_view())
    )
    assert keys(sortable_column(encoded)) == keys(sortable_values(["b", None, "a"]))


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
def test_a_timestamp_is_the_same_score_in_every_unit(zone):
    moments = [
        dt.datetime(2024, 2, 29, 12, 0, 1),
        None,
        dt.datetime(1969, 7, 20),
        dt.datetime(1970, 1, 1),
    ]
    of_unit = [keys(column(moments, pa.timestamp(unit, zone))) for unit in ("s", "ms", "us", "ns")]
    assert all(found == of_unit[0] for found in of_unit)
    assert ranks(column([moment for moment in moments if moment], pa.timestamp("ms", zone))) == [
        2,
        0,
        1,
    ]


def test_a_timestamp_is_the_same_score_in_every_time_zone():
    moment = pa.array([1_700_000_000], pa.timestamp("s", "UTC"))
    assert keys(sortable_column(moment.cast(pa.timestamp("s", "America/Lima")))) == keys(
        sortable_column(moment)
    )


def test_nanoseconds_are_distinguished():
    assert ranks(sortable_column(pa.array([2, 1, 1_001], pa.timestamp("ns")))) == [1, 0, 2]


def test_a_date_is_the_midnight_it_begins_with():
    dates = [dt.date(1970, 1, 2), None, dt.date(1969, 12, 31)]
    midnights = [date and dt.datetime(date.year, date.month, date.day) for date in dates]
    expected = keys(column(midnights, pa.timestamp("us")))
    assert keys(column(dates, pa.date32())) == keys(column(dates, pa.date64())) == expected
    assert ranks(column([dates[0], dates[2]], pa.date32())) == [1, 0]


def test_durations_and_times_of_day_are_on_one_scale():
    spans = [dt.timedelta(days=1, seconds=3), None, dt.timedelta(seconds=-1)]
    assert (
        len({tuple(keys(column(spans, pa.duration(unit)))) for unit in ("s", "ms", "us", "ns")})
        == 1
    )
    times = [dt.time(23, 59, 1), None, dt.time(0, 0)]
    kinds = (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
    assert len({tuple(keys(column(times, kind))) for kind in kinds}) == 1
    assert ranks(column([times[0], times[2]], pa.time32("s"))) == [1, 0]


def test_timestamps_out_of_range_are_not_confused_with_others():
    far = pa.array([2**62, 1], pa.int64())
    assert order(sortable_column(far.cast(pa.timestamp("s")))) == [1, 0]
    assert order(sortable_column(far.cast(pa.duration("s")))) == [1, 0]
    assert order(sortable_column(pa.array([2**31 - 1, 1], pa.int32()).cast(pa.date32()))) == [1, 0]


def test_a_column_of_nulls_has_no_score():
    for kind in (pa.null(), pa.int64(), pa.float16(), pa.string_view(), pa.date32(), pa.bool_()):
        assert keys(sortable_column(pa.nulls(3, kind))) == [None] * 3
        assert keys(sortable_column(pa.nulls(0, kind))) == []


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([b"x"]),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
    ],
    ids=lambda values: str(values.type),
)
def test_a_column_without_an_order_is_named_by_its_type(values):
    with pytest.raises(DataError, match="cannot be sorted: ") as error:
        sortable_column(values)
    assert str(values.type) in str(error.value)


def test_a_value_that_is_neither_number_nor_text_has_no_score():
    assert keys(sortable_values([[1], {"a": 1}, b"x", None])) == [None] * 4


def test_a_sliced_column_gives_the_scores_of_its_own_rows():
    for values in (
        [1, 2, None, 4],
        [1.5, float("nan"), 2.0, None],
        ["a", None, "c", "d"],
        [True, False, None, True],
    ):
        whole = pa.array(values)
        assert keys(sortable_column(whole.slice(1, 2))) == keys(sortable_column(whole))[1:3]


@pytest.mark.parametrize("seed", range(5))
def test_scores_do_not_depend_on_the_batches_they_come_in(seed):
    rng = random.Random(seed)
    values = [
        rng.choice([None, rng.randint(-5, 5), float(rng.randint(-5, 5)), rng.random(), 2**60])
        for _ in range(50)
    ]
    apart = [key for value in values for key in keys(sortable_values([value]))]
    assert keys(sortable_values(values)) == apart


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_that_of_python_numbers(seed):
    rng = random.Random(seed)
    values = [
        rng.choice([rng.randint(-(2**62), 2**62), rng.randint(-3, 3), rng.choice([-1.5, 0.5, 2.0])])
        for _ in range(100)
    ]
    assert order(sortable_values(values)) == sorted(
        range(100), key=lambda place: (values[place], place)
    )
