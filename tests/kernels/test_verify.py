"""Verification: bounds in IEEE doubles, exact similarities, and whole components in all three modes."""

from __future__ import annotations

import collections
import fractions
import functools
import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import bounds, similarity, verify
from neardup.stages import match
from support.plain_kernels import PutPairs, plain, plain_match

THRESHOLDS = (
    0.05,
    0.1,
    0.2,
    0.3,
    1 / 3,
    0.5,
    0.55,
    0.6,
    2 / 3,
    0.7,
    0.75,
    0.8,
    0.85,
    0.9,
    0.95,
    0.99,
    1.0,
)
MODES = {"leaders": verify.LEADERS, "pairs": verify.PAIRS, "closure": verify.CLOSURE}
ALL_MODES = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


PLAIN = plain(similarity)
PLAIN_BOUNDS = plain(bounds)
PLAIN_MATCH = plain_match()
# Prefix lists from the first document, and after the first failed comparison.
EAGER = plain_match(-1)
EARLY = plain_match(0)


# The least overlap


def least_overlap_by_trying(size_a, size_b, threshold):
    total = size_a + size_b
    return next(overlap for overlap in range(total) if overlap / (total - overlap) >= threshold)


def test_sets_with_63_elements_in_total_need_an_overlap_of_28_at_four_fifths():
    assert bounds.least_overlap(31, 32, 0.8) == 28
    assert math.ceil(0.8 / 1.8 * 63) == 29


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_least_overlap_is_the_least_integer_that_satisfies_the_comparison_in_doubles(threshold):
    totals = range(2, 400)
    expected = [
        least_overlap_by_trying(total // 2, total - total // 2, threshold) for total in totals
    ]
    assert [
        bounds.least_overlap(total // 2, total - total // 2, threshold) for total in totals
    ] == expected


@given(size_a=st.integers(1, 10**7), size_b=st.integers(1, 10**7), threshold=st.floats(1e-6, 1.0))
def test_least_overlap_of_large_sets_satisfies_the_comparison_and_one_less_does_not(
    size_a, size_b, threshold
):
    total = size_a + size_b
    overlap = int(bounds.least_overlap(size_a, size_b, threshold))
    assert overlap / (total - overlap) >= threshold
    assert overlap == 0 or (overlap - 1) / (total - overlap + 1) < threshold


@given(size=st.integers(1, 300), overlap=st.integers(1, 300))
def test_similarity_itself_as_the_threshold_needs_exactly_its_overlap(size, overlap):
    """As when only a better match than the current one counts."""
    overlap = min(size, overlap)
    assert bounds.least_overlap(size, size, overlap / (2 * size - overlap)) == overlap


@given(
    size_a=st.integers(1, 500), size_b=st.integers(1, 500), threshold=st.sampled_from(THRESHOLDS)
)
def test_least_overlap_compiled_is_that_of_plain_python(size_a, size_b, threshold):
    assert bounds.least_overlap(size_a, size_b, threshold) == PLAIN_BOUNDS.least_overlap(
        size_a, size_b, threshold
    )


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_the_prefix_is_the_shortest_that_every_partner_must_share(threshold):
    for size in range(1, 400):
        least = next(overlap for overlap in range(1, size + 1) if overlap / size >= threshold)
        assert PLAIN_BOUNDS.prefix_size(size, threshold) == size - least + 1


# Similarities


def hash_of(value):
    return value * 0x9E3779B97F4A7C15 % 2**64


def arrays_of(sets):
    """Distinct hashes of all documents end to end, in any order, and where they end."""
    shingles = np.array(
        [value for members in sets for value in sorted(members, key=hash_of)], np.uint64
    )
    return shingles, np.cumsum([0, *map(len, sets)])


def jaccard(a, b):
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if a or b else 0.0


HASH_SETS = st.frozensets(
    st.one_of(st.integers(1, 12), st.integers(2**64 - 8, 2**64 - 1)), max_size=16
)


@given(sets=st.lists(HASH_SETS, min_size=1, max_size=6))
def test_similarities_are_those_of_sets(sets):
    shingles, ends = arrays_of(sets)
    left, right = np.array(list(itertools.product(range(len(sets)), repeat=2))).T.copy()
    values = np.empty(left.size)
    plain_values = np.empty(left.size)
    similarity.similarities(similarity.Sets(shingles, ends), left, right, values)
    PLAIN.similarities(similarity.Sets(shingles, ends), left, right, plain_values)
    expected = [jaccard(sets[a], sets[b]) for a, b in zip(left, right, strict=True)]
    assert values.tolist() == plain_values.tolist() == expected


def test_similarity_is_the_quotient_rounded_once():
    shingles, ends = arrays_of([frozenset(range(1, 64)), frozenset(range(29, 100))])
    values = np.empty(1)
    similarity.similarities(similarity.Sets(shingles, ends), np.array([0]), np.array([1]), values)
    assert values[0] == float(fractions.Fraction(35, 99))


# Components: the oracle


def found_pairs(case):
    """{(later, earlier): similarity} of pairs that share a bucket, agree in enough slots, and are similar enough."""
    components = np.repeat(
        np.arange(len(case["component_ends"]) - 1), np.diff(case["component_ends"])
    )
    shares_bucket = (case["keys"][:, None] == case["keys"]).any(axis=2) & (
        components[:, None] == components
    )
    if "roles" in case:
        shares_bucket &= (
            np.outer(case["roles"] & verify.COMPARED, case["roles"] & verify.ENTERED) > 0
        )
    agreement = (case["signatures"][:, None] == case["signatures"]).sum(axis=2)
    candidates = np.argwhere(
        np.tril(shares_bucket & (agreement >= case["min_agreement"]), -1)
    ).tolist()
    similarities = {
        (doc, other): jaccard(case["sets"][doc], case["sets"][other]) for doc, other in candidates
    }
    return {pair: value for pair, value in similarities.items() if value >= case["threshold"]}


def leaders_of(case, pairs):
    """{removed: (kept, similarity)}: the most similar kept document before it, ties by row."""
    partners = collections.defaultdict(dict)
    removed = {}
    for (doc, other), value in pairs.items():
        partners[doc][other] = value
    for doc in range(len(case["sets"])):
        candidates = [
            (-value, case["rows"][other], other)
            for other, value in partners[doc].items()
            if other not in removed
        ]
        if "given_values" in case and case["given_values"][doc]:
            candidates.append(
                (-case["given_values"][doc], case["given_rows"][doc], verify.UNCHANGED)
            )
        if candidates:
            value, _, other = min(candidates)
            removed[doc] = (other, -value)
    return removed


def closure_of(case, pairs):
    """The first document of each connected component of found pairs."""
    labels = np.arange(len(case["sets"]))
    for one, two in [*pairs, *enumerate(case.get("given_parents", ()))]:
        low, high = sorted((labels[one], labels[two]))
        labels[labels == high] = low
    return labels.tolist()


def expected_of(case, mode, pairs=None):
    pairs = found_pairs(case) if pairs is None else pairs
    return {
        "removed": leaders_of(case, pairs) if mode != verify.CLOSURE else {},
        "closure": closure_of(case, pairs) if mode != verify.LEADERS else None,
        "pairs": pairs if mode == verify.PAIRS else {},
    }


def run(case, mode, module=match):
    """Run the kernel; return what the oracle says, and the comparisons of each document."""
    num_docs = len(case["sets"])
    given = match.initial_state(np.full(num_docs, verify.COMPARED | verify.ENTERED, np.uint8))
    names = {
        "roles": "roles",
        "values": "given_values",
        "rows": "given_rows",
        "parents": "given_parents",
    }
    given = given._replace(**{field: case[name] for field, name in names.items() if name in case})
    documents = verify.ComparedDocuments(
        similarity.Sets(*arrays_of(case["sets"])), case["signatures"], case["keys"], case["rows"]
    )
    rule = verify.Rule(case["threshold"], case["min_agreement"], mode)
    with np.errstate(over="ignore"):
        ends = np.array(case["component_ends"], np.int64)
        put = PutPairs()
        outcome = module.match_components(documents, ends, rule, given, np.zeros(1, np.int64), put)
    matches, values, parents, compared, walked = outcome
    left, right, similarities = put.columns()
    assert walked.tolist() == [np.count_nonzero(given.roles & verify.COMPARED)]
    pairs = dict(
        zip(zip(left.tolist(), right.tolist(), strict=True), similarities.tolist(), strict=True)
    )
    assert len(pairs) == left.size
    answer = {
        "removed": {
            doc: (int(matches[doc]), float(values[doc]))
            for doc in np.flatnonzero(matches != similarity.NOBODY).tolist()
        },
        "closure": parents.tolist() if mode != verify.LEADERS else None,
        "pairs": pairs,
    }
    return answer, compared.tolist()


def random_case(
    seed, component_sizes=(9, 1, 14, 6), *, threshold=0.5, num_bands=3, keys_per_band=3
):
    """Sets of few items with edited copies; keys and signatures are independent, so that every filter matters."""
    rng = np.random.default_rng(seed)
    sets = []
    keys = []
    for component, size in enumerate(component_sizes):
        for _ in range(size):
            fresh = set(rng.choice(30, rng.integers(1, 12), replace=False).tolist())
            copied = set(sets[rng.integers(len(sets))]) if sets else set()
            members = (
                fresh
                if rng.random() < 0.3 or not copied
                else copied ^ set(rng.choice(30, 2).tolist())
            )
            sets.append(frozenset(members or {1}))
            keys.append(
                [
                    component * 1000 + band * 100 + rng.integers(keys_per_band)
                    for band in range(num_bands)
                ]
            )
    hashes = rng.integers(1, 2**64 - 1, 30, dtype=np.uint64).tolist()
    return {
        "sets": [frozenset(hashes[item] for item in members) for members in sets],
        "signatures": (rng.random((len(sets), 16)) < 0.2).astype(np.uint32),
        "keys": np.array(keys, np.uint64),
        "rows": rng.permutation(len(sets)) * 3,
        "component_ends": [0, *itertools.accumulate(component_sizes)],
        "threshold": threshold,
        "min_agreement": int(rng.choice([0, 10, 12])),
    }


@ALL_MODES
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.8, 1.0])
def test_matches_within_components_agree_with_the_oracle(mode, threshold):
    for seed in range(60):
        case = random_case(seed, threshold=threshold)
        assert run(case, mode)[0] == expected_of(case, mode), f"seed {seed}"


@ALL_MODES
@pytest.mark.parametrize("threshold", [0.3, 0.8])
def test_the_compiled_kernel_equals_plain_python(mode, threshold):
    """The number of comparisons too."""
    for seed in range(100, 125):
        case = random_case(seed, threshold=threshold)
        assert run(case, mode) == run(case, mode, PLAIN_MATCH), f"seed {seed}"


@ALL_MODES
@pytest.mark.parametrize("module", [EAGER, EARLY], ids=["from the start", "after one failure"])
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize(
    "seeds", [range(200, 206), pytest.param(range(206, 215), marks=pytest.mark.long)], ids=str
)
def test_prefix_lists_do_not_change_the_result(mode, module, threshold, seeds):
    for seed in seeds:
        case = random_case(seed, (25, 1, 8), threshold=threshold, num_bands=2, keys_per_band=2)
        assert run(case, mode, module)[0] == expected_of(case, mode), f"seed {seed}"


@ALL_MODES
def test_prefix_lists_lose_nothing_where_two_hashes_differ_in_their_last_bits_alone(mode):
    """A prefix list is named by the top 56 bits of a hash, so a document can be in one list twice."""
    case = case_of([{2**63, 2**63 + 1}, {2**63, 2**63 + 1, 7}], threshold=0.5)
    assert run(case, mode, EAGER)[0] == expected_of(case, mode)


def test_eager_prefix_lists_are_used():
    """Otherwise the test above would prove nothing: documents that share no prefix shingle are never compared."""
    case = random_case(200, (40,), threshold=0.8, num_bands=1, keys_per_band=1)
    assert (
        sum(run(case, verify.PAIRS, EAGER)[1])
        < sum(run(case, verify.PAIRS, PLAIN_MATCH)[1])
        == 40 * 39 // 2
    )


# Results of earlier calls


def with_given(case, seed, mode):
    """Documents with all roles; matches with documents of earlier calls; unions so far."""
    rng = np.random.default_rng(seed)
    num_docs = len(case["sets"])
    firsts = np.repeat(case["component_ends"][:-1], np.diff(case["component_ends"]))
    values = rng.choice([0.0, 0.0, 0.5, 2 / 3, 0.75, 1.0], num_docs)
    given = {
        "roles": rng.choice([0, 1, 2, 3, 3, 3], num_docs).astype(np.uint8),
        "given_parents": np.where(
            rng.random(num_docs) < 0.3,
            rng.integers(firsts, np.arange(num_docs) + 1),
            np.arange(num_docs),
        ),
        "given_values": np.where(values < case["threshold"], 0.0, values)
        * (mode != verify.CLOSURE),
        "given_rows": rng.permutation(num_docs) * 3 + 1,
    }
    return case | given


@ALL_MODES
@pytest.mark.parametrize(
    "module",
    [match, PLAIN_MATCH, EAGER, EARLY],
    ids=["compiled", "plain", "prefix", "early prefix"],
)
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_earlier_matches_are_taken_into_account(mode, module, threshold):
    for seed in range(300, 325 if module is match else 308):
        case = random_case(seed, (25, 1, 8), threshold=threshold, num_bands=2, keys_per_band=2)
        case = with_given(case, seed, mode)
        assert run(case, mode, module)[0] == expected_of(case, mode), f"seed {seed}"


@ALL_MODES
def test_a_hot_bucket_takes_earlier_matches_into_account(mode):
    case = with_given(hot_bucket(), 1, mode)
    assert run(case, mode)[0] == expected_of(case, mode)


@ALL_MODES
@pytest.mark.parametrize("threshold", [0.3, 0.8])
def test_compiled_with_an_initial_state_equals_plain_python(mode, threshold):
    for seed in range(400, 410):
        case = with_given(random_case(seed, threshold=threshold), seed, mode)
        assert run(case, mode) == run(case, mode, PLAIN_MATCH), f"seed {seed}"


@pytest.mark.parametrize("most_pairs", [1, 5, 40])
@pytest.mark.parametrize("module", [match, EAGER], ids=["compiled", "plain with prefix lists"])
def test_pairs_put_in_small_pieces_are_those_of_one_walk(module, most_pairs, monkeypatch):
    for seed in range(500, 520):
        case = random_case(seed, threshold=0.3)
        expected = run(case, verify.PAIRS, module)[0]
        monkeypatch.setattr(module, "MAX_PAIRS", most_pairs)
        assert run(case, verify.PAIRS, module)[0] == expected == expected_of(case, verify.PAIRS), (
            f"seed {seed}"
        )
        monkeypatch.undo()


def test_a_component_that_turns_hot_after_pieces_were_put_lists_every_pair_once(monkeypatch):
    """60 copies of a page come first, then strays in the same bucket, whose comparisons all fail."""
    hashes = iter(np.random.default_rng(1).integers(1, 2**64 - 1, 7000, dtype=np.uint64).tolist())
    page = {next(hashes) for _ in range(40)}
    copies = [page | {next(hashes)} for _ in range(60)]
    strays = [{next(hashes) for _ in range(41)} for _ in range(150)]
    case = case_of([*copies, *strays], threshold=0.8)
    monkeypatch.setattr(match, "MAX_PAIRS", 100)
    answer, compared = run(case, verify.PAIRS)
    assert len(answer["pairs"]) == 60 * 59 // 2
    assert sum(compared) < 210 * 209 // 2  # the walk over all 210 documents of the bucket was left


@ALL_MODES
def test_reference_documents_are_not_compared_with_each_other(mode):
    case = case_of([{1, 2}, {1, 2}, {1, 2, 3}]) | {"roles": np.array([2, 2, 3], np.uint8)}
    answer, compared = run(case, mode)
    assert answer == expected_of(case, mode)
    assert compared == [0, 0, 2]


def test_a_document_with_an_earlier_match_is_not_a_leader():
    case = case_of([{1, 2}, {1, 2}]) | {
        "given_values": np.array([0.9, 0.0]),
        "given_rows": np.array([7, 0]),
    }
    assert run(case, verify.LEADERS)[0]["removed"] == {0: (verify.UNCHANGED, 0.9)}


# Ties, empty calls, filters


def case_of(sets, *, threshold=0.5, rows=None, keys=None, signatures=None, min_agreement=0):
    """One component; by default all documents in one bucket, and no signature filter."""
    num_docs = len(sets)
    return {
        "sets": [frozenset(members) for members in sets],
        "signatures": np.zeros((num_docs, 16), np.uint32) if signatures is None else signatures,
        "keys": np.full((num_docs, 1), 77, np.uint64)
        if keys is None
        else np.array(keys, np.uint64),
        "rows": np.arange(num_docs) if rows is None else np.array(rows),
        "component_ends": [0, num_docs],
        "threshold": threshold,
        "min_agreement": min_agreement,
    }


@pytest.mark.parametrize("rows", [[0, 1, 2], [1, 0, 2], [5, 9, 7], [9, 5, 7]])
@pytest.mark.parametrize("mode", [verify.LEADERS, verify.PAIRS])
def test_a_tie_between_kept_documents_goes_to_the_smaller_row(rows, mode):
    case = case_of([{1, 2, 3}, {3, 4, 5}, {1, 2, 3, 4, 5}], rows=rows)
    assert run(case, mode)[0]["removed"] == {2: (0 if rows[0] < rows[1] else 1, 0.6)}


@pytest.mark.parametrize(
    "sets", [[{1, 2, 3, 4}, {4, 5, 6}, {1, 2, 3, 4, 5}], [{4, 5, 6}, {1, 2, 3, 4}, {1, 2, 3, 4, 5}]]
)
def test_removed_document_points_to_the_most_similar_kept_one(sets):
    removed = run(case_of(sets, threshold=0.3), verify.LEADERS)[0]["removed"]
    assert removed == {2: (sets.index({1, 2, 3, 4}), 0.8)}


@ALL_MODES
def test_documents_in_different_buckets_are_not_compared(mode):
    case = case_of([{1, 2}, {1, 2}, {1, 2}], keys=[[1, 11], [2, 12], [3, 11]])
    answer, compared = run(case, mode)
    assert answer == expected_of(case, mode)
    assert compared == [0, 0, 1]


@ALL_MODES
def test_pair_that_shares_several_buckets_is_compared_once(mode):
    case = case_of([{1, 2, 3}, {1, 2}], keys=[[1, 11, 21], [1, 11, 21]])
    assert run(case, mode)[1] == [0, 1]


@ALL_MODES
@pytest.mark.parametrize(
    ("min_agreement", "is_pair"), [(0, True), (11, True), (12, True), (13, False)]
)
def test_pair_whose_signatures_agree_too_little_is_not_found(mode, min_agreement, is_pair):
    signatures = np.zeros((2, 16), np.uint32)
    signatures[1, :4] = 2**32 - 1
    case = case_of([{1, 2}, {1, 2}], signatures=signatures, min_agreement=min_agreement)
    answer, _ = run(case, mode)
    assert answer == expected_of(case, mode)
    assert bool(answer["removed"] or answer["pairs"] or answer["closure"] == [0, 0]) == is_pair


@ALL_MODES
def test_call_without_documents_finds_nothing(mode):
    case = case_of([]) | {"component_ends": [0]}
    assert run(case, mode) == (
        {"removed": {}, "closure": [] if mode != verify.LEADERS else None, "pairs": {}},
        [],
    )


def test_more_pairs_than_the_initial_buffer_holds_are_listed():
    case = case_of([{1, 2, 3, item} for item in range(4, 44)])
    assert len(run(case, verify.PAIRS)[0]["pairs"]) == 40 * 39 // 2


# Large components


@functools.cache
def hot_bucket(num_docs=400):
    """One bucket of documents of 20 to 60 shingles, most of them dissimilar, some edited copies of others."""
    rng = np.random.default_rng(11)
    hashes = rng.integers(1, 2**64 - 1, 3000, dtype=np.uint64)
    sets = []
    for _ in range(num_docs):
        members = set(rng.choice(hashes, rng.integers(20, 60), replace=False).tolist())
        if sets and rng.random() < 0.3:
            members = set(sets[rng.integers(len(sets))])
            num_edits = int(rng.choice([0, 1, 2, 4, 8, 16]))
            members -= set(
                rng.choice(np.array(sorted(members), np.uint64), num_edits, replace=False).tolist()
            )
            members |= set(rng.choice(hashes, num_edits // 2).tolist())
        # A few shingles in nearly all documents, like real boilerplate.
        sets.append(frozenset(members | set(hashes[:5].tolist())))
    keys = np.stack([np.full(num_docs, 5), 1000 + rng.integers(0, 40, num_docs)], axis=1)
    return case_of(sets, rows=rng.permutation(num_docs), keys=keys)


@functools.cache
def hot_bucket_pairs(threshold):
    return found_pairs(hot_bucket() | {"threshold": threshold})


@functools.cache
def hot_bucket_answer(threshold, mode):
    return run(hot_bucket() | {"threshold": threshold}, mode)


@ALL_MODES
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 1.0])
def test_matches_in_a_hot_bucket_agree_with_the_oracle(mode, threshold):
    expected = expected_of(hot_bucket(), mode, hot_bucket_pairs(threshold))
    assert hot_bucket_answer(threshold, mode)[0] == expected


@ALL_MODES
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 1.0])
def test_hot_bucket_of_dissimilar_documents_is_not_compared_pair_by_pair(mode, threshold):
    """The prefix lists of the compiled kernel came into use: 400 documents have 79,800 pairs."""
    assert sum(hot_bucket_answer(threshold, mode)[1]) < 60_000


@ALL_MODES
def test_matches_in_a_hot_bucket_after_another_component_agree_with_the_oracle(mode):
    """The state of one component must not leak into the next."""
    first = hot_bucket() | {"threshold": 0.5}
    num_docs = len(first["sets"])
    case = first | {
        "sets": first["sets"] * 2,
        "signatures": np.tile(first["signatures"], (2, 1)),
        "keys": np.concatenate([first["keys"], first["keys"] + np.uint64(10**6)]),
        "rows": np.concatenate([first["rows"], first["rows"][::-1] + num_docs]),
        "component_ends": [0, num_docs, 2 * num_docs],
    }
    assert run(case, mode)[0] == expected_of(case, mode)


@pytest.mark.parametrize("mode", [verify.LEADERS, verify.CLOSURE], ids=["leaders", "closure"])
def test_copies_of_one_document_cost_one_comparison_each(mode):
    case = case_of([{*range(1, 21), 100 + number} for number in range(3000)], threshold=0.8)
    case["keys"] = np.tile(np.arange(1, 9, dtype=np.uint64), (3000, 1))
    assert sum(run(case, mode)[1]) == 2999


@functools.cache
def page_with_strays(num_docs=600, size=116):
    """A page, copies with one of its shingles in 20 replaced, and one stray in ten that keeps three fifths of it.

    At a threshold of one half, no stray is similar to the page or to another one, but their places
    in the lists alone
    do not show it: only that every copy has the page as a far better match.
    """
    rng = np.random.default_rng(5)
    hashes = iter(rng.integers(1, 2**64 - 1, num_docs * size, dtype=np.uint64).tolist())
    page = [next(hashes) for _ in range(size)]
    sets = [frozenset(page)]
    for doc in range(1, num_docs):
        num_edits = size * 2 // 5 if doc % 10 == 0 else size // 20
        replaced = set(rng.choice(size, num_edits, replace=False).tolist())
        sets.append(
            frozenset(
                next(hashes) if at in replaced else shingle for at, shingle in enumerate(page)
            )
        )
    return case_of(sets, threshold=0.5)


@ALL_MODES
@pytest.mark.parametrize(
    ("module", "num_docs"),
    [
        pytest.param(match, 150, id="compiled"),
        pytest.param(EAGER, 80, id="plain with prefix lists"),
        pytest.param(EAGER, 150, marks=pytest.mark.long, id="more, plain with prefix lists"),
    ],
)
def test_copies_of_a_page_among_strays_agree_with_the_oracle(mode, module, num_docs):
    case = page_with_strays(num_docs)
    assert run(case, mode, module)[0] == expected_of(case, mode)


def test_a_copy_with_a_good_match_is_not_compared_with_strays():
    """Else 600 documents and 59 strays would take about 18,000 comparisons."""
    case = page_with_strays()
    answer, compared = run(case, verify.LEADERS, EAGER)
    assert sum(other == 0 for other, _ in answer["removed"].values()) == 540
    assert sum(compared) < 2 * 600 + 59 * 60 // 2


def test_the_closure_skips_documents_already_joined():
    """Quadratic in a bucket of 40,000, 8 times over, it would take longer than the 5 s; it takes about 0.1."""
    case = case_of([{1, 2, 3, 4, 100 + number} for number in range(40_000)])
    case["keys"] = np.tile(np.arange(1, 9, dtype=np.uint64), (40_000, 1))
    start = time.process_time()
    answer, _ = run(case, verify.CLOSURE)
    assert time.process_time() - start < 5
    assert set(answer["closure"]) == {0}
