"""Shingle hashes to signatures: compiled against plain Python and against their formulas."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import sketch
from support.plain_kernels import plain

NUM_PERMS = tuple(2**power for power in range(4, 11))
SIZES = (0, 1, 2, 63, 64, 65, 500)
EXTREMES = (1, 2, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)
NO_SHINGLES = 2**32 - 1
KERNELS = pytest.mark.parametrize("name", ["fast_sketch", "minhash"])
PERMS = pytest.mark.parametrize("num_perm", NUM_PERMS)


PLAIN = plain(sketch)


def coefficients(num_perm):
    rng = np.random.default_rng(num_perm)
    multipliers, addends = rng.integers(0, 2**32, (2, num_perm), dtype=np.uint32)
    return multipliers | np.uint32(1), addends


def run(kernel, documents, num_perm):
    """Run a kernel over lists of hashes, end to end."""
    ends = np.cumsum([0, *map(len, documents)])
    shingles = np.array(list(itertools.chain(*documents)), np.uint64)
    signatures = np.full((len(documents), num_perm), 12345, np.uint32)
    with np.errstate(over="ignore"):
        kernel(shingles, ends, *coefficients(num_perm), signatures)
    return signatures


ANY_NUM_PERMS = (1, 7, 8, 9, 31, 33, 100, 1000, 1023)


@pytest.mark.parametrize("num_perm", ANY_NUM_PERMS)
def test_minhash_writes_exactly_the_requested_slots(num_perm):
    documents = random_documents((0, 1, 2, 65))
    ends = np.cumsum([0, *map(len, documents)])
    shingles = np.array(list(itertools.chain(*documents)), np.uint64)
    room = np.full(len(documents) * num_perm + 64, 12345, np.uint32)
    signatures = room[: len(documents) * num_perm].reshape(len(documents), num_perm)
    sketch.minhash(shingles, ends, *coefficients(num_perm), signatures)
    assert signatures.tolist() == [minhash_by_formula(document, num_perm) for document in documents]
    assert np.array_equal(signatures, run(PLAIN.minhash, documents, num_perm))
    assert (room[signatures.size :] == 12345).all()


def random_hashes(seed, size):
    return (
        np.random.default_rng(seed)
        .integers(1, 2**64 - 1, size, dtype=np.uint64, endpoint=True)
        .tolist()
    )


def random_documents(sizes=SIZES):
    return [random_hashes(size, size) for size in sizes]


def least_lines(document, num_perm):
    """min over the document of (a x + b) mod 2**32 for each slot, x the low half of a hash."""
    lines = list(zip(*(array.tolist() for array in coefficients(num_perm)), strict=True))
    return [min((a * (value % 2**32) + b) % 2**32 for value in document) for a, b in lines]


def minhash_by_formula(document, num_perm):
    return least_lines(document, num_perm) if document else [NO_SHINGLES] * num_perm


def fast_sketch_by_formula(document, num_perm):
    if not document:
        return [NO_SHINGLES] * num_perm
    log_slots = num_perm.bit_length() - 1
    slots = {}
    for value in document:
        slot = value >> (64 - log_slots)
        first_round = ((value << log_slots) % 2**64) >> 33
        slots[slot] = min(slots.get(slot, NO_SHINGLES), first_round)
    fallback = [(line >> 1) | 2**31 for line in least_lines(document, num_perm)]
    return [slots.get(slot, fallback[slot]) for slot in range(num_perm)]


FORMULAS = {"fast_sketch": fast_sketch_by_formula, "minhash": minhash_by_formula}
HASHES = st.one_of(st.integers(1, 2**64 - 1), st.sampled_from(EXTREMES))
DOCUMENTS = st.lists(st.lists(HASHES, max_size=40), max_size=4)


@KERNELS
@PERMS
def test_the_compiled_kernel_equals_plain_python_for_every_number_of_slots(name, num_perm):
    documents = random_documents()
    compiled = run(getattr(sketch, name), documents, num_perm)
    assert np.array_equal(compiled, run(getattr(PLAIN, name), documents, num_perm))


@KERNELS
@given(documents=DOCUMENTS, num_perm=st.sampled_from(NUM_PERMS))
def test_the_compiled_kernel_equals_plain_python_on_random_documents(name, documents, num_perm):
    compiled = run(getattr(sketch, name), documents, num_perm)
    assert np.array_equal(compiled, run(getattr(PLAIN, name), documents, num_perm))


@KERNELS
@PERMS
def test_signature_follows_the_formula(name, num_perm):
    documents = [
        *random_documents((0, 1, 2, num_perm // 2, num_perm // 2 + 1, 300)),
        list(EXTREMES),
    ]
    expected = [FORMULAS[name](document, num_perm) for document in documents]
    assert run(getattr(sketch, name), documents, num_perm).tolist() == expected


@KERNELS
@pytest.mark.parametrize("num_perm", [16, 128, 1024])
@pytest.mark.parametrize("value", EXTREMES)
def test_signature_of_an_extreme_value_follows_the_formula(name, num_perm, value):
    assert run(getattr(sketch, name), [[value]], num_perm)[0].tolist() == FORMULAS[name](
        [value], num_perm
    )


@KERNELS
@PERMS
def test_document_without_shingles_has_the_largest_value_in_every_slot(name, num_perm):
    signatures = run(getattr(sketch, name), [[], [5], []], num_perm)
    assert (signatures[[0, 2]] == NO_SHINGLES).all()


@KERNELS
def test_call_without_documents_writes_nothing(name):
    assert run(getattr(sketch, name), [], 128).shape == (0, 128)


@KERNELS
@PERMS
def test_neither_order_nor_repetition_of_shingles_matters(name, num_perm):
    documents = random_documents((1, 2, 63, 500))
    rng = np.random.default_rng(1)
    shuffled = [
        rng.permutation(np.array(document * 3, np.uint64)).tolist() for document in documents
    ]
    kernel = getattr(sketch, name)
    assert np.array_equal(run(kernel, shuffled, num_perm), run(kernel, documents, num_perm))


@KERNELS
@given(
    parts=st.lists(st.lists(HASHES, max_size=60), min_size=1, max_size=4),
    num_perm=st.sampled_from(NUM_PERMS),
)
def test_signature_of_a_union_is_the_slot_wise_minimum(name, parts, num_perm):
    *signatures, of_union = run(
        getattr(sketch, name), [*parts, list(itertools.chain(*parts))], num_perm
    )
    assert np.array_equal(np.minimum.reduce(signatures), of_union)


@KERNELS
@PERMS
def test_signature_of_a_union_of_large_documents_is_the_slot_wise_minimum(name, num_perm):
    first = random_hashes(1, 3 * num_perm)
    second = random_hashes(2, num_perm // 3)
    signatures = run(getattr(sketch, name), [first, second, first + second], num_perm)
    assert np.array_equal(np.minimum(signatures[0], signatures[1]), signatures[2])


@KERNELS
def test_documents_of_one_call_do_not_affect_each_other(name):
    """The scratch arrays of a large document must leave nothing behind for a small one."""
    documents = random_documents((500, 3, 70, 0, 40, 2000, 65, 1, 100))
    kernel = getattr(sketch, name)
    alone = np.concatenate([run(kernel, [document], 128) for document in documents])
    assert np.array_equal(run(kernel, documents, 128), alone)


@KERNELS
@pytest.mark.parametrize("start", range(0, 40, 3))
def test_documents_of_a_slice_have_the_signatures_of_a_copy(name, start):
    shingles = np.array(random_hashes(3, 200), np.uint64)
    ends = np.array([0, 0, 5, 90, 150])
    signatures = np.empty((4, 64), np.uint32)
    of_copy = np.empty((4, 64), np.uint32)
    kernel = getattr(sketch, name)
    kernel(shingles[start:], ends, *coefficients(64), signatures)
    kernel(shingles[start:].copy(), ends, *coefficients(64), of_copy)
    assert np.array_equal(signatures, of_copy)


@KERNELS
def test_the_first_offset_can_be_inside_the_array(name):
    shingles = np.array(random_hashes(4, 100), np.uint64)
    signatures = np.empty((2, 64), np.uint32)
    getattr(sketch, name)(shingles, np.array([30, 70, 90]), *coefficients(64), signatures)
    expected = run(getattr(sketch, name), [shingles[30:70].tolist(), shingles[70:90].tolist()], 64)
    assert np.array_equal(signatures, expected)


@KERNELS
def test_signatures_are_written_into_rows_of_a_larger_array(name):
    documents = random_documents((1, 65, 500))
    whole = np.full((5, 32), 7, np.uint32)
    ends = np.cumsum([0, *map(len, documents)])
    shingles = np.array(list(itertools.chain(*documents)), np.uint64)
    getattr(sketch, name)(shingles, ends, *coefficients(32), whole[1:4])
    assert (whole[[0, 4]] == 7).all()
    assert np.array_equal(whole[1:4], run(getattr(sketch, name), documents, 32))


def test_slots_of_the_first_round_have_the_top_bit_clear_and_those_of_the_fallback_set():
    document = random_hashes(5, 100)
    (signature,) = run(sketch.fast_sketch, [document], 128)
    is_hit = np.isin(np.arange(128), [value >> 57 for value in document])
    assert np.array_equal(signature < 2**31, is_hit)
