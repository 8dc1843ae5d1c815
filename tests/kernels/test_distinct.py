"""Shingle hashes to sets: against plain Python, including hashes that all map to the same slot."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import distinct
from neardup.kernels.hash_sets import MAX_SPARSE
from neardup.kernels.keys import DIGEST_SECRET_BYTES, digest_key
from support.digest_oracles import set_digest
from support.plain_kernels import plain

TOP = 2**64 - 1
# All in one slot; all in the last slots, so that probing runs past the end; both ends; the
# extremes.
HASHES = st.one_of(
    st.integers(1, TOP),
    st.integers(TOP - 30, TOP),
    st.integers(1, 30),
    st.integers(2**63 - 8, 2**63 + 8),
)
DOCUMENTS = st.lists(st.lists(HASHES, max_size=40), max_size=5)


PLAIN = plain(distinct)
SECRET = np.random.default_rng(0).bytes(DIGEST_SECRET_BYTES)


def arrays_of(documents):
    """The hashes of all documents end to end, and where they end."""
    shingles = np.concatenate(
        [np.empty(0, np.uint64), *(np.asarray(document, np.uint64) for document in documents)]
    )
    return shingles, np.cumsum([0, *map(len, documents)])


def digest_sets(documents, module=distinct, secret=SECRET):
    shingles, ends = arrays_of(documents)
    digests = np.full((len(documents), 2), 9, np.uint64)
    sizes = np.full(len(documents), -9)
    with np.errstate(over="ignore"):
        module.digest_sets(shingles, ends, digest_key(secret), digests, sizes)
    return digests.tolist(), sizes.tolist()


def distinct_of(documents, module=distinct, secret=SECRET):
    """What `digest_sets` leaves at the front of the shingles."""
    shingles, ends = arrays_of(documents)
    digests = np.empty((len(documents), 2), np.uint64)
    sizes = np.empty(len(documents), np.int64)
    with np.errstate(over="ignore"):
        module.digest_sets(shingles, ends, digest_key(secret), digests, sizes)
    return [
        shingles[start:end].tolist() for start, end in itertools.pairwise([0, *np.cumsum(sizes)])
    ]


def sort_sets(documents, module=distinct):
    shingles, ends = arrays_of(documents)
    sets = np.empty(shingles.size, np.uint64)
    set_ends = np.empty(ends.size, np.int64)
    with np.errstate(over="ignore"):
        module.sort_sets(shingles, ends, sets, set_ends)
    assert set_ends[0] == 0
    return [sets[start:end].tolist() for start, end in itertools.pairwise(set_ends)]


def number_repetitions(documents, module=distinct):
    shingles, ends = arrays_of(documents)
    with np.errstate(over="ignore"):
        module.number_repetitions(shingles, ends)
    return [shingles[start:end].tolist() for start, end in itertools.pairwise(ends)]


def random_hashes(seed, size, low=1, high=TOP):
    return np.random.default_rng(seed).integers(low, high, size, dtype=np.uint64, endpoint=True)


def with_repetitions(document, seed):
    rng = np.random.default_rng(seed)
    return rng.permutation(np.concatenate([document, rng.choice(document, document.size // 2)]))


ADVERSARIAL = {
    "at the top end": lambda size: np.uint64(TOP) - np.arange(size, dtype=np.uint64),
    "at the top end, ascending": lambda size: (
        np.uint64(TOP) - np.arange(size, dtype=np.uint64)[::-1]
    ),
    "at the low end": lambda size: np.arange(1, size + 1, dtype=np.uint64),
    "in one place in the middle": lambda size: np.uint64(2**63) + np.arange(size, dtype=np.uint64),
    "at both ends": lambda size: (
        np.arange(1, size + 1, dtype=np.int64).view(np.uint64)
        * np.tile(np.array([1, TOP], np.uint64), size // 2)
    ),
    "the same again and again": lambda size: np.full(size, TOP, np.uint64),
    "evenly spread": lambda size: (
        np.linspace(1, 2**63 - 1024, size).astype(np.uint64) * np.uint64(2)
    ),
}
ATTACKS = pytest.mark.parametrize("attack", ADVERSARIAL.values(), ids=ADVERSARIAL)


def mixed_sizes(seed=1):
    """Documents below, at and above MAX_SPARSE, in both orders, with repetitions."""
    sizes = [0, 1, 100, 9_000, MAX_SPARSE, 3, MAX_SPARSE + 1, 0, 40_000, 7, 12_000]
    documents = [random_hashes(seed + number, size) for number, size in enumerate(sizes)]
    return [with_repetitions(document, 1) if document.size else document for document in documents]


# Plain Python


@given(
    documents=DOCUMENTS,
    secret=st.binary(min_size=DIGEST_SECRET_BYTES, max_size=DIGEST_SECRET_BYTES),
)
def test_digests_compiled_are_those_of_plain_python(documents, secret):
    compiled = digest_sets(documents, secret=secret)
    assert compiled == digest_sets(documents, PLAIN, secret)
    assert compiled[0] == [set_digest(set(document), secret) for document in documents]


@given(documents=DOCUMENTS)
def test_sorted_sets_compiled_are_those_of_plain_python(documents):
    assert sort_sets(documents) == sort_sets(documents, PLAIN)


@given(documents=DOCUMENTS)
def test_numbered_repetitions_compiled_are_those_of_plain_python(documents):
    assert number_repetitions(documents) == number_repetitions(documents, PLAIN)


@pytest.mark.parametrize("function", [digest_sets, sort_sets, number_repetitions])
def test_call_without_documents_has_no_result(function):
    assert function([]) in ([], ([], []))


# Sorted sets


@given(documents=DOCUMENTS)
def test_sorted_sets_are_the_distinct_hashes_in_order(documents):
    assert sort_sets(documents) == [sorted(set(document)) for document in documents]


@ATTACKS
@pytest.mark.parametrize("size", [10, 1000, 4000])
def test_adversarial_hashes_are_sorted(attack, size):
    document = attack(size)
    assert sort_sets([document, document[: size // 2]]) == [
        np.unique(document).tolist(),
        np.unique(document[: size // 2]).tolist(),
    ]


def test_dense_table_full_of_hashes_at_the_top_end_is_sorted():
    """Above MAX_SPARSE the table is fuller, and every one of these hashes probes past its end."""
    document = np.uint64(TOP) - np.arange(MAX_SPARSE + 500, dtype=np.uint64)
    assert sort_sets([document, [5]]) == [document[::-1].tolist(), [5]]


def test_sparse_and_dense_tables_in_one_call_are_sorted():
    documents = mixed_sizes()
    assert sort_sets(documents) == [np.unique(document).tolist() for document in documents]


@pytest.mark.parametrize("most", [MAX_SPARSE - 1, MAX_SPARSE, MAX_SPARSE + 1])
def test_documents_at_the_top_end_around_the_change_of_tables_are_sorted(most):
    """The table of a document with MAX_SPARSE hashes is larger than that of one with a few more."""
    documents = [
        np.r_[random_hashes(size, size - 50), np.uint64(TOP) - np.arange(50, dtype=np.uint64)]
        for size in (most, MAX_SPARSE, most + 1, 60)
    ]
    assert sort_sets(documents) == [np.unique(document).tolist() for document in documents]


# Digests


@given(documents=DOCUMENTS)
def test_sizes_count_distinct_hashes(documents):
    assert digest_sets(documents)[1] == [len(set(document)) for document in documents]


def test_sizes_are_correct_at_the_change_from_sparse_to_dense_tables():
    documents = mixed_sizes()
    assert digest_sets(documents)[1] == [np.unique(document).size for document in documents]


@ATTACKS
def test_sizes_of_adversarial_documents_are_correct(attack):
    document = attack(3000)
    assert digest_sets([document, document])[1] == [np.unique(document).size] * 2


@given(document=st.lists(HASHES, max_size=40), seed=st.integers(0, 99))
def test_digest_depends_on_neither_order_nor_repetitions(document, seed):
    rng = random.Random(seed)
    again = [*document, *rng.choices(document, k=10)] if document else []
    rng.shuffle(again)
    digests, _ = digest_sets([document, again])
    assert digests[0] == digests[1]


def test_digest_does_not_depend_on_the_other_documents_of_a_call():
    documents = mixed_sizes()
    alone = [digest_sets([document])[0][0] for document in documents]
    assert digest_sets(documents)[0] == alone


@given(documents=st.lists(st.frozensets(HASHES, max_size=6), max_size=40, unique=True))
def test_different_sets_have_different_digests(documents):
    digests, _ = digest_sets([list(document) for document in documents])
    assert len({tuple(digest) for digest in digests}) == len(documents)


def test_sets_of_the_same_sum_have_different_digests():
    pairs = [[1000 - number, 1000 + number] for number in range(1, 900)]
    digests, _ = digest_sets(pairs)
    for half in zip(*digests, strict=True):
        assert len(set(half)) == len(pairs)


@ATTACKS
def test_digests_of_adversarial_documents_are_the_products_of_their_sets(attack):
    """The part that is sorted, because it was probed too often, is part of the product."""
    document = attack(3000).tolist()
    assert digest_sets([document])[0] == [set_digest(set(document), SECRET)]


def test_100_000_subsets_of_few_hashes_have_different_digests():
    members = random_hashes(3, 17)
    subsets = [
        members[np.flatnonzero(np.array(list(f"{number:017b}")) == "1")]
        for number in range(100_000)
    ]
    digests, _ = digest_sets(subsets)
    assert len({tuple(digest) for digest in digests}) == 100_000


def test_an_empty_set_has_the_digest_one_the_product_of_nothing():
    assert digest_sets([[], [7], []]) == ([[1, 1], digest_sets([[7]])[0][0], [1, 1]], [0, 1, 0])


# Repetitions


def counted(document):
    """Name every member of a bag by (hash, number of its repetition)."""
    seen = Counter()
    for value in document:
        seen[value] += 1
        yield value, seen[value]


def assert_repetitions_are_named(documents, numbered):
    """Equal (hash, repetition) have equal names in all documents, others differ; first occurrences are unchanged."""
    named = set()
    for document, names in zip(documents, numbered, strict=True):
        bag = list(counted(document))
        named.update(zip(bag, names, strict=True))
        assert [name for (_, count), name in zip(bag, names, strict=True) if count == 1] == [
            value for value, count in bag if count == 1
        ]
    assert len(named) == len({member for member, _ in named}) == len({name for _, name in named})


def test_repetitions_become_separate_shingles_equal_in_every_document():
    values = random_hashes(5, 60).tolist()
    rng = random.Random(5)
    documents = [rng.choices(values, k=size) for size in (0, 1, 5, 50, 400, 3000, 400)]
    assert_repetitions_are_named(documents, number_repetitions(documents))


def test_repetitions_are_numbered_where_sparse_and_dense_tables_meet():
    documents = [document.tolist() for document in mixed_sizes()]
    assert_repetitions_are_named(documents, number_repetitions(documents))


def test_a_document_without_repetitions_is_unchanged():
    documents = [random_hashes(6, 500).tolist(), [1], [], [TOP]]
    assert number_repetitions(documents) == documents


def test_one_hash_10_000_times_becomes_10_000_hashes():
    (numbered,) = number_repetitions([[TOP] * 10_000])
    assert len(set(numbered)) == 10_000


@ATTACKS
def test_first_occurrences_of_adversarial_hashes_are_unchanged(attack):
    """Neighbouring numbers, which finalised hashes are not, may share the name of a repetition."""
    document = attack(1000).tolist()
    firsts = [at for at, (_, count) in enumerate(counted(document)) if count == 1]
    for numbered in number_repetitions([document, document]):
        assert [numbered[at] for at in firsts] == [document[at] for at in firsts]


def test_multisets_share_as_many_shingles_as_their_bags():
    values = random_hashes(8, 12).tolist()
    rng = random.Random(8)
    for _ in range(50):
        bags = [rng.choices(values, k=rng.randrange(40)) for _ in range(2)]
        first, second = (set(document) for document in number_repetitions(bags))
        assert len(first & second) == (Counter(bags[0]) & Counter(bags[1])).total()
        assert len(first | second) == (Counter(bags[0]) | Counter(bags[1])).total()


@given(documents=DOCUMENTS)
def test_digesting_leaves_the_distinct_shingles_in_order_of_appearance(documents):
    assert (
        distinct_of(documents)
        == distinct_of(documents, PLAIN)
        == [list(dict.fromkeys(one)) for one in documents]
    )


@ATTACKS
def test_digesting_adversarial_hashes_leaves_them_in_order_of_appearance(attack):
    documents = [with_repetitions(attack(3000), 1), attack(100), with_repetitions(attack(5000), 2)]
    assert distinct_of(documents) == [
        list(dict.fromkeys(document.tolist())) for document in documents
    ]
    unsorted = [document.tolist() for document in documents]
    shuffled = [sorted(one) for one in documents]
    assert digest_sets(unsorted)[0] == digest_sets(shuffled)[0]


@ATTACKS
def test_repetitions_of_adversarial_hashes_are_numbered_as_in_plain_python(attack):
    """Hashes renamed before the probing limit was reached are renamed the same way."""
    bag = with_repetitions(attack(3000), 3).tolist()
    (names,) = number_repetitions([bag])
    with np.errstate(over="ignore"):
        expected = [
            value if count == 1 else int(distinct._repetition.py_func(np.uint64(value), count - 1))
            for value, count in counted(bag)
        ]
    assert names == expected


@pytest.mark.parametrize("function", [digest_sets, sort_sets, number_repetitions])
@pytest.mark.parametrize(
    "attack", ["at the top end", "in one place in the middle", "a cluster, then its start"]
)
def test_time_is_not_quadratic_in_colliding_hashes(function, attack):
    """300,000 hashes that all probe past each other took 45 billion steps."""
    size = 300_000
    if attack in ADVERSARIAL:
        document = ADVERSARIAL[attack](size)
    else:  # every hash in its own slot, in a row, and then one that must probe past all of them
        places = np.arange(size // 2, dtype=np.uint64) << np.uint64(64 - 19)
        document = np.r_[places + np.uint64(1), np.arange(2, 2 + size // 2, dtype=np.uint64)]
    function([document[:10]])
    began = time.process_time()
    function([document])
    assert time.process_time() - began < 5


@given(documents=DOCUMENTS, data=st.data())
def test_gathered_sets_are_contiguous(documents, data):
    shingles, ends = arrays_of(documents)
    order = data.draw(st.permutations(range(len(documents))))
    starts = ends[order].astype(np.int64) if documents else np.empty(0, np.int64)
    gathered_ends = np.cumsum([0, *(len(documents[at]) for at in order)], dtype=np.int64)
    for module in (distinct, PLAIN):
        gathered = np.empty(shingles.size, np.uint64)
        module.gather_sets(shingles, starts, gathered, gathered_ends)
        assert gathered.tolist() == [value for at in order for value in documents[at]]


@given(
    values=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40)),
    mask=st.sampled_from([0, 1, 15, 2**63]),
)
def test_a_sample_has_the_shingles_without_the_bits_of_the_mask(values, mask):
    for module in (distinct, PLAIN):
        places = np.empty(len(values), np.int64)
        sampled = np.empty(len(values), np.uint64)
        count = module.sample_shingles(
            np.array(values, np.uint64), np.uint64(mask), places, sampled
        )
        expected = [(at, value) for at, value in enumerate(values) if not value & mask]
        assert list(zip(places[:count].tolist(), sampled[:count].tolist(), strict=True)) == expected
