"""Pairs exactly at the threshold, numbers at the limits of their range, and values that only look like data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.measures import weighted


# Around whole bytes and words, or every number.
@pytest.mark.parametrize(
    "numbers",
    [(2, 3, 7, 8, 9, 15, 17, 31, 32, 33), pytest.param(range(2, 40), marks=pytest.mark.long)],
    ids=["some", "every"],
)
def test_bit_vectors_exactly_at_the_threshold_are_pairs(numbers):
    for num_bits in numbers:
        for differing in range(num_bits):
            bits = np.zeros((2, num_bits), np.uint8)
            bits[1, :differing] = 1
            at = (num_bits - differing) / num_bits
            assert neardup.neighbours(bits, measure="hamming", threshold=at).num_rows == 2, (
                num_bits,
                differing,
            )
    bits = np.zeros((2, 33), np.uint8)
    bits[1, :6] = 1
    for settings in ({"threshold": 27 / 33}, {"distance": 6}):
        found = neardup.find_pairs(bits, measure="hamming", recall=0.9999, **settings)
        assert found.pairs.column("similarity").to_pylist() == [27 / 33]


def test_parallel_vectors_have_a_cosine_of_one_everywhere():
    rng = np.random.default_rng(3)
    for factor in (1.0, 2.0, 3.0, 1e-9):
        for vector in rng.standard_normal((25, 9)):
            pair = np.stack([vector, factor * vector])
            assert neardup.neighbours(pair, measure="cosine", distance=0).column(
                "similarity"
            ).to_pylist() == [1.0, 1.0]
            assert neardup.find_pairs(pair, measure="cosine", distance=0).num_pairs == 1
    almost = np.array([[1.0, 0.0], [1.0, 1e-6]])
    assert neardup.neighbours(almost, measure="cosine", distance=0).num_rows == 0


@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_distance_equals_its_threshold_exactly(tenths):
    items = [[str(number) for number in range(10)], [str(number) for number in range(10 - tenths)]]
    for found in (
        neardup.find_pairs(items=items, distance=tenths / 10),
        neardup.find_pairs(items=items, threshold=(10 - tenths) / 10),
    ):
        assert found.pairs.column("similarity").to_pylist() == [(10 - tenths) / 10]


def test_queries_and_documents_keep_ids_of_their_own_type():
    found = neardup.neighbours(items=[["a"], ["b"]], queries={"7": ["a"]})
    assert found.to_pylist() == [{"doc_id": "7", "neighbour_id": 0, "similarity": 1.0, "rank": 1}]


@pytest.mark.filterwarnings(r"ignore:3 of 5 rows were rejected; the first is row 0:UserWarning")
def test_weights_and_numbers_that_would_overflow_are_rejected():
    huge = [{"a": 1e308, "b": 1e308}, {"a": 1e308}, {"a": 10**400}, {"a": 1e299}, {"a": 1e299}]
    found = neardup.find_pairs(items=huge, measure="weighted")
    assert found.pairs.column("doc_a").to_pylist() == [3]
    reasons = found.rejected.column("reason").to_pylist()
    assert reasons[:2] == [
        "weights add up to inf, more than 1e+300",
        "weights add up to 1e+308, more than 1e+300",
    ]
    assert "too large" in reasons[2]
    far = neardup.find_pairs(
        [[1e200, 0.0], [1e150, 0.0], [1e150, 1.0]], measure="euclidean", distance=2.0
    )
    assert far.num_pairs == 1
    assert far.rejected.column("reason").to_pylist() == [
        "element 1 of the vector is 1e+200, beyond 1e+150, where squares overflow"
    ]


@pytest.mark.parametrize("distance", [1e-17, 1e151])
def test_indistinguishable_distances_are_rejected(distance):
    with pytest.raises(neardup.NearDupError, match="from 1e-9 to 1e150"):
        neardup.find_pairs([[0.0], [1.0]], measure="euclidean", distance=distance)


def test_texts_are_rejected_as_vectors_and_unweighted_items_as_weighted():
    with pytest.raises(
        neardup.NearDupError, match="all 3 rows were rejected; the first is row 0: vector is not"
    ):
        neardup.find_pairs(["1224", "9812", [1.0, "2"]], measure="euclidean")
    items = [["a1", "b2"], {None: 1.0}, [{"item": "tea", "weight": 2}], {"tea": 2.0}]
    found = neardup.find_pairs(items=items, measure="weighted")
    assert found.pairs.to_pylist() == [{"doc_a": 2, "doc_b": 3, "similarity": 1.0}]
    assert [
        reason.partition(": ")[2] for reason in found.rejected.column("reason").to_pylist()
    ] == [
        "'a1' has no weight",
        "an item is NoneType, neither text nor a number",
    ]


@pytest.mark.parametrize("kind", [">f8", ">i4", np.longdouble])
def test_arrays_of_any_numeric_type_are_accepted(kind):
    assert neardup.find_pairs(np.ones((2, 2), kind), measure="cosine").num_pairs == 1


def test_a_zero_vector_does_not_set_the_dimension():
    found = neardup.find_pairs([[0.0, 0.0, 0.0], [1.0, 2.0], [1.0, 2.0]], measure="cosine")
    assert found.num_pairs == 1
    assert found.rejected.column("reason").to_pylist() == ["vector is zero, so it has no direction"]


def test_signatures_do_not_depend_on_the_blocks_they_are_sampled_in(monkeypatch):
    rng = np.random.default_rng(4)
    baskets = [
        {str(item): 1.0 + item for item in rng.choice(20, 5, replace=False)} for _ in range(40)
    ]
    settings = {"measure": "weighted", "threshold": 0.3, "pairs": True}
    whole = neardup.deduplicate(items=baskets, **settings).pairs
    monkeypatch.setattr(weighted, "BLOCK", 7)
    assert neardup.deduplicate(items=baskets, **settings).pairs == whole
    assert whole.num_rows > 5
    assert isinstance(whole, pa.Table)


def test_a_dict_with_the_items_column_is_a_record_and_any_other_dict_is_weights(tmp_path):
    baskets = [{"tea": 1.0, "milk": 2}, {"tea": 1.0, "milk": 2}, {}, {"tea": "much"}]
    settings = {"measure": "weighted", "items_column": "basket"}
    found = neardup.find_pairs(baskets, **settings)
    assert found.pairs.to_pylist() == [{"doc_a": 0, "doc_b": 1, "similarity": 1.0}]
    assert found.rejected.column("row").to_pylist() == [3]
    records = [{"id": f"n{row}", "basket": basket} for row, basket in enumerate(baskets)]
    assert neardup.find_pairs(records, **settings).pairs.column("doc_b").to_pylist() == ["n1"]
    with pytest.raises(
        neardup.NearDupError, match="`items_column` names 'baskets', which is not a column"
    ):
        neardup.find_pairs(records, measure="weighted", items_column="baskets")
    with neardup.Index.create(tmp_path / "index", measure="weighted", durability="fast") as index:
        assert index.insert_many(baskets[:2], ids=["a", "b"]).documents == 2
        assert [match.doc_id for match in index.query({"tea": 1.0, "milk": 2})] == ["a", "b"]
