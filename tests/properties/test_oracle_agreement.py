"""The library agrees with the oracle: no false pair, the exact similarity, the same documents kept and removed."""

from __future__ import annotations

import functools
import itertools
import math
import random
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from support import oracles
from support.grids import pairwise_grid, turning_grid

THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9, 1.0)
UNITS = (("word", 1), ("word", 2), ("word", 5), ("char", 1), ("char", 3), ("char", 8))
# One equal slot makes a bucket: a pair at 0.25 is missed with a chance of 0.75**128 < 1e-15.
EVERY_PAIR = {"num_perm": 128, "bands": 128, "rows": 1, "signature_filter": False}
EXACT = {"method": "exact"}
SKETCHES = ("fast", "minhash")
CLUSTERS = ("leader", "components")
TEXT_SETTINGS = ("unit", "size", "multiset", "fold_numbers")


@functools.cache
def corpus(seed, num_documents=60):
    return tuple(oracles.random_corpus(seed, num_documents))


@functools.cache
def sets_of(texts, **text_settings):
    return [oracles.shingles(text, **text_settings) for text in texts]


def oracle_sets(texts, run_settings):
    return sets_of(
        tuple(texts), **{name: run_settings[name] for name in TEXT_SETTINGS if name in run_settings}
    )


def oracle_pairs(texts, run_settings):
    threshold = run_settings.get("threshold", 0.8)
    collapse_empty = run_settings.get("collapse_empty", False)
    return oracles.true_pairs(
        oracle_sets(texts, run_settings), threshold, collapse_empty=collapse_empty
    )


def pairs_of(report):
    return {(row["doc_a"], row["doc_b"]): row["similarity"] for row in report.pairs.to_pylist()}


def removed_of(report):
    return {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in report.removed.to_pylist()
    }


def assert_pairs_are_true(report, texts, run_settings):
    found = pairs_of(report)
    true = oracle_pairs(texts, run_settings)
    assert {pair: true.get(pair) for pair in found} == found
    assert list(found) == sorted(found)
    assert report.pairs.num_rows == len(found)


def assert_selection_is_the_oracles(report, texts, run_settings, found, scores=None):
    order = oracles.keep_order(run_settings.get("keep", "first"), texts, scores)
    sets = oracle_sets(texts, run_settings)
    removed = oracles.select(run_settings.get("cluster", "leader"), order, found, sets)
    kept = [row for row in range(len(texts)) if row not in removed]
    assert removed_of(report) == removed
    assert report.removed.column("doc_id").to_pylist() == list(removed)
    clusters = oracles.clusters(len(texts), removed)
    assert report.clusters.to_pylist() == [
        {"doc_id": row, "cluster_id": kept_row, "cluster_size": clusters.count(kept_row)}
        for row, kept_row in enumerate(clusters)
    ]
    assert report.documents == len(texts)
    assert report.rejected.num_rows == 0
    assert report.exact_duplicates == oracles.num_exact_duplicates(
        sets, collapse_empty=run_settings.get("collapse_empty", False)
    )
    return kept


def assert_run_agrees(texts, **run_settings):
    """Check one run with pairs and one without against the oracle; return the found pairs."""
    report = neardup.find_pairs(list(texts), **run_settings)
    assert_pairs_are_true(report, texts, run_settings)
    found = pairs_of(report)
    for each in (report, neardup.deduplicate(list(texts), **run_settings)):
        kept = assert_selection_is_the_oracles(each, texts, run_settings, found)
        assert each.kept.to_pylist() == [{"doc_id": row, "text": texts[row]} for row in kept]
    return found


@pytest.mark.parametrize(
    ("unit", "threshold", "sketch"), pairwise_grid(UNITS, THRESHOLDS, SKETCHES)
)
def test_default_plan_reports_true_pairs_only(unit, threshold, sketch):
    unit, size = unit
    assert_run_agrees(corpus(1), unit=unit, size=size, threshold=threshold, sketch=sketch)


@pytest.mark.parametrize(
    ("unit", "threshold", "sketch"), pairwise_grid(UNITS, THRESHOLDS, SKETCHES)
)
def test_one_equal_slot_finds_every_true_pair(unit, threshold, sketch):
    unit, size = unit
    run_settings = {"unit": unit, "size": size, "threshold": threshold, "sketch": sketch}
    found = assert_run_agrees(corpus(2), **run_settings, **EVERY_PAIR)
    assert found == oracle_pairs(corpus(2), run_settings)


@pytest.mark.parametrize(
    ("unit", "threshold", "seed"), pairwise_grid(UNITS, (*THRESHOLDS, 0.6, 0.75, 0.95), (2, 3, 4))
)
def test_the_exact_join_finds_every_true_pair(unit, threshold, seed):
    unit, size = unit
    run_settings = {"unit": unit, "size": size, "threshold": threshold}
    found = assert_run_agrees(corpus(seed), **run_settings, **EXACT)
    assert found == oracle_pairs(corpus(seed), run_settings)


@pytest.mark.parametrize(
    "seed", [10, *(pytest.param(seed, marks=pytest.mark.long) for seed in (11, 12, 13))]
)
def test_larger_corpora_agree(seed):
    texts = corpus(seed, 150)
    for threshold, cluster in itertools.product((0.5, 0.8), ("leader", "components")):
        run_settings = {"threshold": threshold, "cluster": cluster, "size": 3}
        assert_run_agrees(texts, **run_settings)
        for plan in (EVERY_PAIR, EXACT):
            assert assert_run_agrees(texts, **run_settings, **plan) == oracle_pairs(
                texts, run_settings
            )


@functools.cache
def hot_corpus(num_documents):
    """Documents that share a few words and little else: one component, most of its comparisons fail.

    Some are edited copies; some contain a whole other document and just enough rare words that J is
    exactly 0.3, 0.5 or 0.8.
    """
    rng = random.Random(7)
    new_word = (f"w{number}" for number in itertools.count()).__next__
    documents = []
    for _ in range(num_documents):
        words = list(rng.choice(documents)) if documents and rng.random() < 0.5 else []
        if not words:
            words = ["shared", "by", "them", "all"] + [
                new_word() for _ in range(rng.choice([8, 20]))
            ]
        elif rng.random() < 0.5:
            for _ in range(rng.randrange(5)):
                words[rng.randrange(len(words))] = new_word()
        else:
            added = rng.choice([len(words) * 7 // 3, len(words), len(words) // 4])
            words += [new_word() for _ in range(added)] if len(words) < 50 else []
        documents.append(words)
    return tuple(map(" ".join, documents))


@pytest.mark.parametrize("num_documents", [160, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize(("threshold", "cluster"), turning_grid((0.3, 0.5, 0.8, 1.0), CLUSTERS))
def test_hot_buckets_of_dissimilar_documents_lose_nothing(threshold, cluster, num_documents):
    texts = hot_corpus(num_documents)
    run_settings = {"threshold": threshold, "cluster": cluster, "size": 1}
    for plan in (EVERY_PAIR, EXACT):
        assert assert_run_agrees(texts, **run_settings, **plan) == oracle_pairs(texts, run_settings)
    for bands in (1, 2, 64):
        assert_run_agrees(
            texts, keep="longest", bands=bands, rows=1, signature_filter=False, **run_settings
        )


@pytest.mark.parametrize(
    ("keep", "cluster", "threshold", "plan", "seed"),
    pairwise_grid(
        ("first", "last", "longest"), CLUSTERS, (0.3, 0.5, 0.8), ({}, EVERY_PAIR, EXACT), (3, 4)
    ),
)
def test_keep_policies_agree_in_both_cluster_modes(keep, cluster, threshold, plan, seed):
    assert_run_agrees(corpus(seed), keep=keep, cluster=cluster, threshold=threshold, size=2, **plan)


@pytest.mark.parametrize("cluster", ["leader", "components"])
@pytest.mark.parametrize("keep", ["max:score", "min:score"])
@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 3, None],
        [0.5, -0.5, 0.0, -0.0, math.inf, -math.inf, math.nan, None],
        [2**53, 2**53 + 1, None],
    ],
)
def test_keep_by_column_agrees_with_ties_nulls_and_nan(keep, cluster, values):
    texts = corpus(5)
    rng = random.Random(5)
    scores = rng.choices(values, k=len(texts))
    names = [f"document-{row}" for row in range(len(texts))]
    table = pa.table({"id": names, "score": pa.array(scores), "text": list(texts)})
    run_settings = {"keep": keep, "cluster": cluster, "threshold": 0.5, "size": 2}
    report = neardup.deduplicate(table, pairs=True, **run_settings)
    row_of = {name: row for row, name in enumerate(names)}
    found = {(row_of[a], row_of[b]): similarity for (a, b), similarity in pairs_of(report).items()}
    removed = oracles.select(
        cluster, oracles.keep_order(keep, texts, scores), found, oracle_sets(texts, run_settings)
    )
    assert removed_of(report) == {
        names[row]: (names[kept], similarity) for row, (kept, similarity) in removed.items()
    }
    kept = table.take([row for row in range(len(texts)) if row not in removed])
    assert report.kept.column("doc_id").to_pylist() == kept.column("id").to_pylist()
    assert report.kept.drop_columns("doc_id").schema == table.schema
    # As text, because NaN differs from itself.
    assert str(report.kept.drop_columns("doc_id").to_pylist()) == str(kept.to_pylist())
    assert neardup.deduplicate(table, **run_settings).removed.equals(report.removed)


@pytest.mark.parametrize(
    ("unit", "multiset", "fold_numbers", "collapse_empty", "threshold"),
    pairwise_grid(
        (("word", 1), ("word", 2), ("char", 2)),
        (False, True),
        (False, True),
        (False, True),
        (0.5, 0.9),
    ),
)
def test_runs_with_other_text_settings_agree_with_the_oracle(
    unit, multiset, fold_numbers, collapse_empty, threshold
):
    unit, size = unit
    reading = {"unit": unit, "size": size, "multiset": multiset, "fold_numbers": fold_numbers}
    run_settings = {"threshold": threshold, "collapse_empty": collapse_empty, **reading}
    assert_run_agrees(corpus(6), keep="last", **run_settings)
    for plan in (EVERY_PAIR, EXACT):
        assert assert_run_agrees(corpus(6), **run_settings, **plan) == oracle_pairs(
            corpus(6), run_settings
        )


@pytest.mark.parametrize("size", [1, 3])
def test_repetitions_count_only_in_a_multiset(size):
    texts = ["a b a b a b a b", "a b", "a b a b a b a b a b", "a a a a", "a a a", "b a"]
    for multiset in (False, True):
        run_settings = {"size": size, "multiset": multiset, "threshold": 0.5}
        for plan in (EVERY_PAIR, EXACT):
            assert assert_run_agrees(texts, **run_settings, **plan) == oracle_pairs(
                texts, run_settings
            )


# J = shared / union; ceil(t * ...) computed in doubles goes wrong at some of these.
FRACTIONS = [
    (1, 2),
    (2, 3),
    (3, 10),
    (7, 10),
    (4, 5),
    (28, 35),
    (9, 10),
    (29, 36),
    (63, 90),
    (57, 95),
    (17, 19),
    (99, 100),
]


@pytest.mark.parametrize(("fraction", "extra_ratio"), turning_grid(FRACTIONS, [0.0, 0.3, 1.0]))
def test_threshold_is_compared_with_the_quotient_in_doubles(fraction, extra_ratio):
    shared, union = fraction
    numbers = [f"w{number}" for number in range(union)]
    num_extra = round((union - shared) * extra_ratio)
    texts = [
        " ".join(numbers[: shared + num_extra]),
        " ".join(numbers[:shared] + numbers[shared + num_extra :]),
    ]
    similarity = shared / union
    for threshold, expected in [
        (similarity, {(0, 1): similarity}),
        (math.nextafter(similarity, 1), {}),
    ]:
        for plan in (EVERY_PAIR, EXACT):
            assert assert_run_agrees(texts, size=1, threshold=threshold, **plan) == expected


def test_chain_keeps_both_ends_as_leaders_and_one_as_a_component():
    texts = ["1 2 3 4 5 6 7 8", "2 3 4 5 6 7 8 9", "3 4 5 6 7 8 9 10", "4 5 6 7 8 9 10 11"]
    chain = {"size": 1, "threshold": 0.7, **EVERY_PAIR}
    assert_run_agrees(texts, **chain)
    leaders = neardup.deduplicate(texts, **chain)
    assert removed_of(leaders) == {1: (0, 7 / 9), 3: (2, 7 / 9)}
    components = neardup.deduplicate(texts, cluster="components", **chain)
    assert removed_of(components) == {1: (0, 7 / 9), 2: (0, 6 / 10), 3: (0, 5 / 11)}


def test_equally_similar_kept_documents_are_chosen_by_row_not_by_priority():
    left = "1 2 3 4 5 6"
    right = "3 4 5 6 7 8"
    both = "1 2 3 4 5 6 7 8"
    run_settings = {"size": 1, "threshold": 0.7, **EVERY_PAIR}
    assert removed_of(neardup.deduplicate([left, right, both], **run_settings)) == {2: (0, 0.75)}
    assert removed_of(neardup.deduplicate([both, left, right], keep="last", **run_settings)) == {
        0: (1, 0.75)
    }


def test_more_similar_kept_document_wins_over_an_earlier_one():
    texts = ["1 2 3 4 5 6 7", "4 5 6 7 8 9 10 11", "2 3 4 5 6 7 8 9 10 11"]
    report = neardup.deduplicate(texts, size=1, threshold=0.5, **EVERY_PAIR)
    assert removed_of(report) == {2: (1, 8 / 10)}


def test_copies_of_a_removed_document_point_to_its_kept_document():
    texts = ["1 2 3 4 5", "1 2 3 4 5 6", "6, 5 4 3 2 1", "1 2 3 4 5 6 6"]
    report = neardup.deduplicate(texts, size=1, threshold=0.8, **EVERY_PAIR)
    assert removed_of(report) == dict.fromkeys((1, 2, 3), (0, 5 / 6))
    assert report.exact_duplicates == 2


def test_copies_follow_their_representative_although_a_more_similar_document_was_kept_later():
    texts = [
        "1 2 3 4 5 6 7 8",
        "1 2 3 4 5 6 7 8 9 10",
        "2 3 4 5 6 7 8 9 10",
        "1 2 3 4 5 6 7 8 9 10",
    ]
    report = neardup.find_pairs(texts, size=1, threshold=0.75, **EVERY_PAIR)
    assert pairs_of(report) == {(0, 1): 0.8, (0, 3): 0.8, (1, 2): 0.9, (1, 3): 1.0, (2, 3): 0.9}
    assert removed_of(report) == {1: (0, 0.8), 3: (0, 0.8)}
    assert removed_of(report.at_threshold(0.75)) == {1: (0, 0.8), 3: (0, 0.8)}


def test_pairs_list_every_pair_of_a_class_of_copies():
    texts = ["a b c", "A  b c!", "x", "a, b, c", "a b c d"]
    report = neardup.find_pairs(texts, size=1, threshold=0.75, **EVERY_PAIR)
    copies = {(0, 1): 1.0, (0, 3): 1.0, (1, 3): 1.0}
    assert pairs_of(report) == copies | {(0, 4): 0.75, (1, 4): 0.75, (3, 4): 0.75}


def test_documents_without_shingles_are_never_similar():
    texts = ["", "...", " \n", "", "\u3000", "word"]
    for plan in (EVERY_PAIR, EXACT):
        report = neardup.find_pairs(texts, threshold=0.3, **plan)
        assert pairs_of(report) == {}
        assert report.removed.num_rows == 0


def test_documents_without_shingles_collapse_on_request():
    texts = ["", "word", "...", " \n"]
    report = neardup.deduplicate(texts, keep="longest", collapse_empty=True)
    assert removed_of(report) == {0: (2, 1.0), 3: (2, 1.0)}


def test_longest_counts_bytes_not_characters():
    texts = ["one  two", "one\u3000two", "one two."]
    assert [len(text) for text in texts] == [8, 7, 8]
    assert [len(text.encode()) for text in texts] == [8, 9, 8]
    assert removed_of(neardup.deduplicate(texts, keep="longest")) == {0: (1, 1.0), 2: (1, 1.0)}


def characters_of_unicode_3_2():
    """Every character that all supported interpreters classify alike; only a few of Han and Hangul."""
    are_many = (range(0x3400, 0xA000), range(0xAC00, 0xD7A4), range(0x20000, 0x2FA20))
    for code_point in range(0x30000):
        is_rare = code_point % 97 and any(code_point in block for block in are_many)
        if not is_rare and unicodedata.ucd_3_2_0.category(chr(code_point)) not in (
            "Cn",
            "Co",
            "Cs",
        ):
            yield chr(code_point)


def test_every_character_is_read_as_the_oracle_reads_it():
    alone = list(characters_of_unicode_3_2())
    between = [f"x{character}y" for character in alone]
    x, y, *signatures = neardup.signatures(["x", "y", *alone, *between], size=1)
    of_alone, of_between = np.array(signatures).reshape(2, len(alone), -1)
    words = [oracles.words(text) for text in between]
    of_words = neardup.signatures([" ".join(tokens) for tokens in words], size=1)
    separates = (of_between == np.minimum(x, y)).all(axis=1)
    is_a_token = (of_between == np.minimum(np.minimum(x, y), of_alone)).all(axis=1)
    wrong = [
        f"U+{ord(character):04X}"
        for at, character in enumerate(alone)
        if character not in "xyXY"
        and (
            (of_between[at] != of_words[at]).any()
            or separates[at] != (words[at] == ["x", "y"])
            or (is_a_token[at] and not separates[at]) != (len(words[at]) == 3)
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize(
    "spellings",
    [
        ["\u00e9", "e\u0301", "E\u0301"],
        ["\u1eb9\u0301", "e\u0301\u0323", "\u00e9\u0323", "e\u0323\u0301"],
        ["7\u0323\u0301", "7\u0301\u0323"],
        ["\ud55c", "\u1112\u1161\u11ab", "\ud558\u11ab"],
        ["\u304c", "\u304b\u3099"],
        ["\u212b", "\u00c5", "A\u030a", "a\u030a"],
        ["\uf900", "\u8c48"],
        ["\u0915\u093c", "\u0958"],
    ],
    ids=lambda spellings: f"U+{ord(spellings[0][0]):04X}",
)
def test_canonically_equal_spellings_are_copies(spellings, unit):
    for before, after in (
        ("", ""),
        ("a", "b"),
        ("long ascii text " * 9, " and an end"),
        ("\u6771 ", "\u0e44"),
    ):
        texts = [f"{before}{spelling}{after}" for spelling in spellings]
        report = neardup.deduplicate(texts, unit=unit, size=2)
        assert report.exact_duplicates == len(texts) - 1
        assert_run_agrees([*texts, f"{before}{after}"], unit=unit, size=2, threshold=0.3)


# Letters of both cases, marks that compose, digits, scripts with and without spaces, what
# separates.
ALPHABET = "aAbB e\u0301\u0323éÉßσςΣİ7٣０ \n\u00a0\u3000.,-_'²Ⅷ東の々ไ한\u1112\u1161\u11ab😀\u200b\U00020000"
WORDS = ["a", "B", "b", "c", "C", "7", "12", "e\u0301", "é", "東京", "😀", "a-b"]
TEXT = st.one_of(
    st.text(ALPHABET, max_size=12),
    st.lists(st.sampled_from(WORDS), max_size=10).map(" ".join),
)
RUN_SETTINGS = st.fixed_dictionaries(
    {
        "threshold": st.one_of(st.sampled_from(THRESHOLDS), st.floats(0.25, 1.0)),
        "unit": st.sampled_from(["word", "char"]),
        "size": st.integers(1, 6),
        "sketch": st.sampled_from(["fast", "minhash"]),
        "keep": st.sampled_from(["first", "last", "longest"]),
        "cluster": st.sampled_from(["leader", "components"]),
        "multiset": st.booleans(),
        "fold_numbers": st.booleans(),
        "collapse_empty": st.booleans(),
        "seed": st.sampled_from([0, 1, 2**64 - 1]),
        "threads": st.sampled_from([1, 2]),
    }
)


@pytest.mark.slow("hundreds of runs")
@pytest.mark.parametrize("num_examples", [50, pytest.param(1000, marks=pytest.mark.long)])
def test_any_texts_with_any_settings_agree(num_examples):
    @settings(max_examples=num_examples)
    @given(
        texts=st.lists(TEXT, max_size=12),
        run_settings=RUN_SETTINGS,
        plan=st.sampled_from([{}, EVERY_PAIR, EXACT]),
    )
    def check(texts, run_settings, plan):
        found = assert_run_agrees(texts, **run_settings, **plan)
        if plan:
            assert found == oracle_pairs(texts, run_settings)

    check()
