"""Laws that hold for any corpus: what must not matter does not, and what a run promises holds."""

from __future__ import annotations

import functools
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from support import oracles
from support.corpora import cut
from support.grids import pairwise_grid

TABLES = ("pairs", "removed", "kept", "clusters", "rejected")
CLUSTERS = ("leader", "components")
FIXED_BANDS = {"num_perm": 128, "bands": 32, "rows": 4, "signature_filter": False}
PLANS = pytest.mark.parametrize(
    "plan", [{}, FIXED_BANDS, {"sketch": "minhash"}], ids=["default", "fixed", "minhash"]
)


@functools.cache
def corpus(seed, num_documents=120):
    """Documents by name; the names say nothing about the order."""
    names = [f"document-{number * 7919 % 1009:04d}" for number in range(num_documents)]
    return dict(zip(names, oracles.random_corpus(seed, num_documents), strict=True))


def table_of(documents):
    scores = pa.array(range(len(documents)), pa.int64())
    return pa.table({"id": list(documents), "text": list(documents.values()), "score": scores})


def tables_of(report):
    return {name: getattr(report, name).to_pylist() for name in TABLES}


def pairs_of(report):
    return {
        frozenset((row["doc_a"], row["doc_b"])): row["similarity"]
        for row in report.pairs.to_pylist()
    }


def removed_of(report):
    return {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in report.removed.to_pylist()
    }


def kept_ids(report):
    return [
        row["doc_id"] for row in report.clusters.to_pylist() if row["doc_id"] == row["cluster_id"]
    ]


def chunked(table, seed, text_type):
    """The same rows, split at random positions, every piece a slice of a larger buffer; some pieces are empty."""
    rng = random.Random(seed)
    cuts = sorted(rng.choices(range(table.num_rows + 1), k=9))
    table = table.set_column(1, "text", table.column("text").cast(text_type))
    padded = pa.concat_tables([table.slice(0, 3), table]).combine_chunks().slice(3)
    bounds = zip([0, *cuts], [*cuts, table.num_rows], strict=True)
    return pa.concat_tables([padded.slice(low, high - low) for low, high in bounds])


@PLANS
def test_result_does_not_depend_on_threads(plan):
    for cluster in CLUSTERS:
        runs = [
            tables_of(
                neardup.find_pairs(corpus(21), cluster=cluster, size=3, threads=threads, **plan)
            )
            for threads in (1, 2, 3)
        ]
        assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize(("num_bytes", "threads"), [(1, 2), (300, 1), (300, 3), (5000, 2)])
def test_results_do_not_depend_on_batches(num_bytes, threads, monkeypatch):
    run_settings = {"threshold": 0.5, "size": 2, "keep": "longest"}
    expected = [
        tables_of(neardup.find_pairs(corpus(20), cluster=cluster, **run_settings))
        for cluster in CLUSTERS
    ]
    cut(monkeypatch, batch_bytes=num_bytes, batch_rows=7, cache_bytes=num_bytes // 2)
    assert expected == [
        tables_of(neardup.find_pairs(corpus(20), cluster=cluster, threads=threads, **run_settings))
        for cluster in CLUSTERS
    ]


def test_same_run_twice_gives_the_same_bytes():
    runs = [neardup.find_pairs(corpus(22), size=3, threshold=0.5) for _ in range(2)]
    assert all(getattr(runs[0], name).equals(getattr(runs[1], name)) for name in TABLES)


@pytest.mark.parametrize("text_type", [pa.string(), pa.large_string()], ids=str)
def test_result_does_not_depend_on_chunks_and_slices_of_the_input(text_type):
    table = table_of(corpus(23))
    for keep in ("longest", "max:score"):
        expected = tables_of(neardup.find_pairs(table, keep=keep, threshold=0.5, size=2))
        for seed in range(4):
            pieces = chunked(table, seed, text_type)
            assert pieces.column("text").num_chunks > 1
            assert (
                tables_of(neardup.find_pairs(pieces, keep=keep, threshold=0.5, size=2)) == expected
            )


def test_a_slice_is_read_from_where_it_begins():
    table = table_of(corpus(24))
    part = table.slice(31, 50)
    copied = pa.Table.from_pylist(part.to_pylist(), schema=part.schema)
    run_settings = {"threshold": 0.5, "size": 2}
    assert tables_of(neardup.find_pairs(part, **run_settings)) == tables_of(
        neardup.find_pairs(copied, **run_settings)
    )


def test_list_dict_and_table_give_the_same_answer():
    documents = corpus(25)
    names = list(documents)
    by_name = neardup.find_pairs(documents, threshold=0.5)
    by_table = neardup.find_pairs(table_of(documents), threshold=0.5)
    by_position = neardup.find_pairs(list(documents.values()), threshold=0.5)
    by_given_id = neardup.find_pairs(list(documents.values()), ids=names, threshold=0.5)
    for table in ("pairs", "removed", "clusters"):
        expected = getattr(by_name, table).to_pylist()
        assert getattr(by_table, table).to_pylist() == expected
        assert getattr(by_given_id, table).to_pylist() == expected
        named = [
            {
                column: value if column in ("similarity", "cluster_size") else names[value]
                for column, value in row.items()
            }
            for row in getattr(by_position, table).to_pylist()
        ]
        assert named == expected


@PLANS
def test_pairs_do_not_depend_on_the_input_order(plan):
    documents = corpus(26)
    expected = pairs_of(neardup.find_pairs(documents, threshold=0.5, size=2, **plan))
    assert expected
    for seed in range(3):
        names = random.Random(seed).sample(list(documents), k=len(documents))
        permuted = neardup.find_pairs(
            {name: documents[name] for name in names}, threshold=0.5, size=2, **plan
        )
        assert pairs_of(permuted) == expected
        position = {name: at for at, name in enumerate(names)}
        listed = [
            (position[row["doc_a"]], position[row["doc_b"]]) for row in permuted.pairs.to_pylist()
        ]
        assert all(a < b for a, b in listed)
        assert listed == sorted(listed)


def test_kept_documents_do_not_depend_on_the_input_order_when_scores_are_distinct():
    table = table_of(corpus(27))
    expected = set(kept_ids(neardup.deduplicate(table, keep="max:score", threshold=0.5, size=2)))
    for seed in range(3):
        order = random.Random(seed).sample(range(table.num_rows), k=table.num_rows)
        permuted = neardup.deduplicate(table.take(order), keep="max:score", threshold=0.5, size=2)
        assert set(kept_ids(permuted)) == expected
        assert permuted.kept.column("id").to_pylist() == kept_ids(permuted)


@PLANS
def test_a_pair_depends_on_its_two_documents_only(plan):
    documents = corpus(28)
    whole = pairs_of(neardup.find_pairs(documents, threshold=0.5, size=2, **plan))
    for seed in range(3):
        names = set(random.Random(seed).sample(list(documents), k=40))
        part = {name: text for name, text in documents.items() if name in names}
        expected = {pair: similarity for pair, similarity in whole.items() if pair <= names}
        assert pairs_of(neardup.find_pairs(part, threshold=0.5, size=2, **plan)) == expected


WORD_LISTS = st.lists(
    st.sampled_from([f"w{number}" for number in range(400)]), min_size=1, max_size=300
)


@pytest.mark.parametrize("sketch", ["fast", "minhash"])
@pytest.mark.parametrize("num_perm", [16, 128, 1024])
def test_signature_of_a_union_is_the_slotwise_minimum(sketch, num_perm):
    @given(a=WORD_LISTS, b=WORD_LISTS)
    def check(a, b):
        texts = [" ".join(a), " ".join(b), " ".join(a + b)]
        of_a, of_b, of_both = neardup.signatures(texts, size=1, num_perm=num_perm, sketch=sketch)
        assert np.array_equal(np.minimum(of_a, of_b), of_both)

    check()


@pytest.mark.parametrize("sketch", ["fast", "minhash"])
def test_signature_depends_on_the_shingle_set_only(sketch):
    rng = random.Random(29)
    for num_words in (1, 2, 5, 40, 700):
        words = [f"w{number}" for number in range(num_words)]
        texts = [
            " ".join(words),
            "  ".join(reversed(words)),
            ", ".join(words + rng.choices(words, k=50)).upper(),
        ]
        signatures = neardup.signatures(texts, size=1, sketch=sketch)
        assert signatures.dtype == np.uint32
        assert signatures.shape == (3, 128)
        assert (signatures == signatures[0]).all()


@pytest.mark.parametrize("sketch", ["fast", "minhash"])
@pytest.mark.parametrize("unit", ["word", "char"])
def test_pairs_shrink_as_the_threshold_grows(sketch, unit):
    found = None
    for threshold in (0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0):
        report = neardup.find_pairs(
            corpus(30), threshold=threshold, unit=unit, size=3, sketch=sketch, **FIXED_BANDS
        )
        if found is not None:
            assert pairs_of(report) == {
                pair: similarity for pair, similarity in found.items() if similarity >= threshold
            }
        found = pairs_of(report)
    assert found


@pytest.mark.parametrize(
    ("keep", "cluster", "collapse_empty"),
    pairwise_grid(("first", "last", "longest"), CLUSTERS, (False, True)),
)
def test_at_threshold_selects_among_the_stored_pairs(keep, cluster, collapse_empty):
    texts = list(corpus(31).values())
    sets = [oracles.shingles(text, size=2) for text in texts]
    order = oracles.keep_order(keep, texts)
    run_settings = {
        "threshold": 0.4,
        "size": 2,
        "keep": keep,
        "cluster": cluster,
        "collapse_empty": collapse_empty,
    }
    report = neardup.find_pairs(texts, **run_settings)
    stored = {(row["doc_a"], row["doc_b"]): row["similarity"] for row in report.pairs.to_pylist()}
    for threshold in (0.4, 0.5, 2 / 3, 0.8, 1.0):
        again = report.at_threshold(threshold)
        pairs = {pair: similarity for pair, similarity in stored.items() if similarity >= threshold}
        removed = oracles.select(cluster, order, pairs, sets)
        kept = [row for row in range(len(texts)) if row not in removed]
        assert {
            (row["doc_a"], row["doc_b"]): row["similarity"] for row in again.pairs.to_pylist()
        } == pairs
        assert removed_of(again) == removed
        assert again.kept.to_pylist() == [{"doc_id": row, "text": texts[row]} for row in kept]
        assert again.clusters.column("cluster_id").to_pylist() == oracles.clusters(
            len(texts), removed
        )
        assert again.documents == report.documents
    assert pairs_of(report) == pairs_of(report.at_threshold(0.4))


def test_at_threshold_equals_a_run_with_the_same_bands():
    report = neardup.find_pairs(corpus(32), threshold=0.3, size=2, **FIXED_BANDS)
    for threshold in (0.5, 0.8):
        run = neardup.find_pairs(corpus(32), threshold=threshold, size=2, **FIXED_BANDS)
        assert tables_of(report.at_threshold(threshold)) == tables_of(run)


def test_at_threshold_needs_stored_pairs():
    report = neardup.deduplicate(corpus(32), threshold=0.3)
    with pytest.raises(LookupError, match="pairs"):
        report.at_threshold(0.5)
    with pytest.raises(LookupError, match="pairs"):
        report.borderline(3)


def test_at_threshold_below_that_of_the_run_is_an_error():
    report = neardup.find_pairs(corpus(32), threshold=0.5)
    with pytest.raises(ValueError, match="threshold"):
        report.at_threshold(0.4)


def test_borderline_names_the_least_similar_pairs():
    report = neardup.find_pairs(corpus(33), threshold=0.3, size=2)
    similarities = sorted(report.pairs.column("similarity").to_pylist())
    borderline = report.borderline(5).to_pylist()
    assert [row["similarity"] for row in borderline] == similarities[:5]
    stored = report.pairs.to_pylist()
    assert all(row in stored for row in borderline)


@PLANS
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 1.0])
def test_nothing_false_and_nothing_lost(threshold, plan):
    documents = corpus(34)
    for keep in ("first", "last", "longest"):
        report = neardup.find_pairs(documents, threshold=threshold, size=2, keep=keep, **plan)
        removed = removed_of(report)
        kept = set(kept_ids(report))
        assert kept | set(removed) == set(documents)
        assert not kept & set(removed)
        for doc_id, (kept_id, similarity) in removed.items():
            assert kept_id in kept
            a, b = (oracles.shingles(documents[name], size=2) for name in (doc_id, kept_id))
            assert similarity == oracles.jaccard(a, b) >= threshold
        assert not any(pair <= kept for pair in pairs_of(report))


def test_deduplicating_the_kept_documents_again_removes_nothing():
    documents = corpus(35)
    for threshold in (0.3, 0.5, 0.8):
        kept = kept_ids(neardup.deduplicate(documents, threshold=threshold, size=2))
        again = neardup.deduplicate(
            {name: documents[name] for name in kept}, threshold=threshold, size=2
        )
        assert again.removed.num_rows == 0
        assert kept_ids(again) == kept


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_row_is_kept_removed_or_rejected(cluster):
    texts = [None if row % 7 == 3 else text for row, text in enumerate(corpus(36).values())]
    table = pa.table({"id": list(corpus(36)), "text": texts, "note": pa.array(range(len(texts)))})
    usable = {name: text for name, text in zip(corpus(36), texts, strict=True) if text is not None}
    report = neardup.find_pairs(table, threshold=0.5, cluster=cluster)
    without_nulls = neardup.find_pairs(usable, threshold=0.5, cluster=cluster)
    assert report.rejected.num_rows == texts.count(None) > 0
    assert (
        report.documents
        == report.kept.num_rows + report.removed.num_rows + report.rejected.num_rows
        == len(texts)
    )
    for name in ("pairs", "removed", "clusters"):
        assert getattr(report, name).to_pylist() == getattr(without_nulls, name).to_pylist()
    names = kept_ids(report)
    assert report.kept.to_pylist() == [
        {"doc_id": row["id"]} | row for row in table.to_pylist() if row["id"] in names
    ]
