"""The exact join finds every pair: against another package, with counts of any size, at any batch size, in groups."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest
import SetSimilaritySearch
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.stages import prefix
from support import oracles
from support.corpora import cut

THRESHOLDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 1.0)
WORDS = tuple(f"w{number}" for number in range(12))


def pairs_of(report):
    return {(row["doc_a"], row["doc_b"]): row["similarity"] for row in report.pairs.to_pylist()}


def removed_of(report):
    return {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in report.removed.to_pylist()
    }


def corpus_of_sets(seed, num_sets=250):
    """Sets as texts of distinct words: of size 1, equal ones, edited copies, and words that most of them share."""
    rng = random.Random(seed)
    frequent = [f"f{number}" for number in range(15)]
    rare = [f"r{number}" for number in range(600)]
    sets = []
    for _ in range(num_sets):
        kind = rng.random()
        own = (
            set(rng.choice(sets))
            if sets and kind < 0.6
            else set(rng.sample(frequent, rng.randrange(10)))
        )
        if kind >= 0.6:
            own |= set(rng.sample(rare, rng.choice([0, 1, 5, 20, 60])))
        for _ in range(rng.choice([0, 1, 2, 5])):
            own ^= {rng.choice(frequent + rare)}
        sets.append(own or {rng.choice(rare)})
    return sets


def searched_pairs(sets, threshold):
    """What SetSimilaritySearch finds."""
    found = SetSimilaritySearch.all_pairs(
        sets, similarity_func_name="jaccard", similarity_threshold=threshold
    )
    return {(min(one, other), max(one, other)): similarity for one, other, similarity in found}


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_another_exact_join_finds_the_same_pairs(threshold):
    for seed in (1, 2, 3):
        sets = [frozenset(own) for own in corpus_of_sets(seed)]
        report = neardup.find_pairs(
            [" ".join(own) for own in sets], size=1, threshold=threshold, method="exact"
        )
        assert pairs_of(report) == searched_pairs(sets, threshold)
        assert report.pairs.num_rows > 20


@pytest.mark.parametrize("cluster", ["leader", "components"])
@pytest.mark.parametrize("num_counters", [2, 16, 1 << 10])
def test_colliding_and_saturated_counts_lose_no_pair(num_counters, cluster, monkeypatch):
    monkeypatch.setattr(prefix, "MIN_COUNTERS", 2)
    monkeypatch.setattr(prefix, "MAX_COUNTERS", num_counters)
    sets = [
        frozenset(own) for own in corpus_of_sets(4, 300)
    ]  # 2 counters with more than 255 shingles each
    texts = [" ".join(own) for own in sets]
    for threshold in (0.5, 0.8, 0.95):
        found = oracles.true_pairs(sets, threshold)
        run = {"size": 1, "threshold": threshold, "method": "exact", "cluster": cluster}
        assert pairs_of(neardup.find_pairs(texts, **run)) == found
        removed = oracles.select(cluster, range(len(texts)), found, sets)
        assert removed_of(neardup.deduplicate(texts, **run)) == removed


@given(
    sets=st.lists(st.sets(st.sampled_from(WORDS), min_size=1), max_size=14),
    threshold=st.sampled_from(THRESHOLDS),
    num_counters=st.sampled_from([2, 8, 1 << 12]),
)
def test_sets_with_many_tied_counts_agree_with_the_oracle(sets, threshold, num_counters):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix, "MIN_COUNTERS", 2)
        patch.setattr(prefix, "MAX_COUNTERS", num_counters)
        texts = [" ".join(sorted(own)) for own in sets]
        run = {"size": 1, "threshold": threshold, "method": "exact"}
        found = oracles.true_pairs(list(map(frozenset, sets)), threshold)
        assert pairs_of(neardup.find_pairs(texts, **run)) == found
        assert removed_of(neardup.deduplicate(texts, **run)) == oracles.leaders(
            range(len(texts)), found
        )


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_sets_of_one_item_are_similar_to_their_copies_only(threshold):
    texts = ["a", "b", "a", "a b", "c", "b"]
    found = {(0, 2): 1.0, (1, 5): 1.0}
    if threshold == 0.5:
        found |= {(0, 3): 0.5, (1, 3): 0.5, (2, 3): 0.5, (3, 5): 0.5}
    assert pairs_of(neardup.find_pairs(texts, size=1, threshold=threshold, method="exact")) == found


@pytest.mark.parametrize("size", [5, 10, 20, 40, 100, 1000])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_pair_exactly_at_a_threshold_times_size_that_is_a_whole_number_is_found(size, threshold):
    words = [f"w{number}" for number in range(size)]
    shared = next(shared for shared in range(1, size + 1) if shared / size >= threshold)
    texts = [" ".join(words), " ".join(words[:shared]), " ".join(words[: shared - 1])]
    found = pairs_of(neardup.find_pairs(texts, size=1, threshold=threshold, method="exact"))
    assert found == oracles.true_pairs([frozenset(text.split()) for text in texts], threshold)
    assert (0, 1) in found
    assert (0, 2) not in found


def test_batches_and_threads_do_not_matter(monkeypatch):
    texts = [" ".join(own) for own in corpus_of_sets(6)]
    run = {"size": 1, "threshold": 0.7, "method": "exact"}
    expected = neardup.find_pairs(texts, threads=1, **run)
    for batch_bytes, threads in itertools.product((1, 300, 5_000), (1, 2, 3)):
        cut(monkeypatch, batch_bytes=batch_bytes)
        report = neardup.find_pairs(texts, threads=threads, **run)
        assert report.pairs.equals(expected.pairs)
        assert report.removed.equals(expected.removed)
        assert report.pairs_verified == expected.pairs_verified
        assert report.comparisons == expected.comparisons


def test_only_documents_of_one_group_are_compared():
    sets = [frozenset(own) for own in corpus_of_sets(7)]
    rng = np.random.default_rng(7)
    sites = rng.integers(0, 3, len(sets)).tolist()
    table = pa.table(
        {"text": [" ".join(own) for own in sets], "site": [f"site{number}" for number in sites]}
    )
    report = neardup.find_pairs(table, group_column="site", size=1, threshold=0.6, method="exact")
    found = oracles.shares_group(oracles.true_pairs(sets, 0.6), sites)
    assert pairs_of(report) == found
    assert removed_of(report) == oracles.leaders(range(len(sets)), found)


def test_the_kept_documents_are_the_first_maximal_independent_set_of_all_true_pairs():
    for seed, threshold in itertools.product((8, 9), (0.5, 0.8)):
        sets = [frozenset(own) for own in corpus_of_sets(seed)]
        report = neardup.deduplicate(
            [" ".join(own) for own in sets], size=1, threshold=threshold, method="exact"
        )
        kept = []
        for row, own in enumerate(sets):
            if all(oracles.jaccard(own, sets[other]) < threshold for other in kept):
                kept.append(row)
        assert report.kept.column("doc_id").to_pylist() == kept


@pytest.mark.parametrize("family", ["near copies", "half shared"])
def test_a_large_cluster_needs_far_fewer_comparisons_than_all_pairs(family):
    rng = random.Random(11)
    page = [f"w{number}" for number in range(200)]
    own = 4 if family == "near copies" else 120
    texts = [
        " ".join(f"own{rng.randrange(10**9)}" if at < own else word for at, word in enumerate(page))
        for _ in range(3000)
    ]
    report = neardup.deduplicate(texts, size=1, threshold=0.8, method="exact")
    assert report.removed.num_rows == (2999 if family == "near copies" else 0)
    assert report.comparisons < 3000 * 2999 // 2 // 100


def test_every_pair_that_lsh_finds_is_found_and_the_report_says_so():
    texts = oracles.random_corpus(21, 120)
    by_lsh, by_join = (
        neardup.find_pairs(texts, size=2, threshold=0.5, num_perm=256, method=method)
        for method in ("lsh", "exact")
    )
    assert pairs_of(by_lsh).items() <= pairs_of(by_join).items()
    assert by_join.plan.as_dict()["recall_at_threshold"] == 1.0
    assert (by_join.plan.method, by_join.plan.bands, by_join.plan.rows) == ("exact", 0, 0)
    assert "exact method finds every pair" in str(by_join)


def test_a_stored_run_supports_a_higher_threshold():
    sets = [frozenset(own) for own in corpus_of_sets(12)]
    report = neardup.find_pairs(
        [" ".join(own) for own in sets], size=1, threshold=0.5, method="exact"
    )
    again = report.at_threshold(0.8)
    found = oracles.true_pairs(sets, 0.8)
    assert pairs_of(again) == found
    assert removed_of(again) == oracles.leaders(range(len(sets)), found)
    assert again.plan.recall_at_threshold == 1.0
