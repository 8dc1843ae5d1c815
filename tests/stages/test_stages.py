"""The contract of each stage on small Arrow batches: its schema, and independence of row order and batches."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from neardup import schema
from neardup.config import Config
from neardup.engines.base import VerifiedPairs
from neardup.io.storage import spill
from neardup.io.storage.spill import sort_in_memory, sort_on_disk
from neardup.measures import jaccard
from neardup.stages import match
from neardup.stages.collapse import collapse, separate
from neardup.stages.link import link
from neardup.stages.list_pairs import LISTED_AT_ONCE, count_pairs, list_pairs
from neardup.stages.select import close_pairs, lead_pairs, select
from neardup.stages.sketch import sketch
from neardup.stages.verify import verify
from neardup.theory.plan import plan_for
from support import oracles

TEXTS = ["one two three", "", "ONE, two three!", "four five six", "one two three four", "..."]


def documents_of(texts, rows=None, groups=None):
    rows = rows or list(range(len(texts)))
    return pa.record_batch(
        [rows, texts, list(range(len(texts))), groups or [0] * len(texts)], schema=schema.DOCUMENTS
    )


def sketched(texts=TEXTS, **settings):
    config = Config(**settings)
    return pa.Table.from_batches([sketch(documents_of(texts), plan_for(config), config)])


def shuffled(table, seed):
    return table.take(random.Random(seed).sample(range(table.num_rows), k=table.num_rows))


def verified_of(texts, components=None, put=None, **settings):
    """Verify documents that form one component by default."""
    config = Config(**{"size": 1, "bands": 128, "rows": 1} | settings)
    batch = documents_of(texts).append_column(
        "component", pa.array(components or [0] * len(texts), pa.int64())
    )
    verified = verify(batch, plan_for(config), config, put=put)
    assert verified.schema == schema.VERIFIED
    return pa.Table.from_batches([verified])


def classes_of(*representatives):
    """Classes as given by the representative of every row; only copies are listed."""
    copies = [
        (row, representative)
        for row, representative in enumerate(representatives)
        if row != representative
    ]
    return pa.table([[row for row, _ in copies], [to for _, to in copies]], schema=schema.CLASSES)


# sketch


@pytest.mark.parametrize(
    "settings",
    [{}, {"threshold": 0.5}, {"sketch": "minhash"}, {"unit": "char"}, {"multiset": True}],
)
def test_sketch_preserves_rows_and_returns_its_schema(settings):
    config = Config(**settings)
    plan = plan_for(config)
    batch = sketch(documents_of(TEXTS, rows=[7, 3, 9, 1, 100, 50]), plan, config)
    assert batch.schema == schema.sketches(plan.bands)
    assert batch.column("row").to_pylist() == [7, 3, 9, 1, 100, 50]
    assert batch.column("priority").to_pylist() == [0, 1, 2, 3, 4, 5]
    sizes = [
        len(oracles.shingles(text, unit=config.unit, multiset=config.multiset)) for text in TEXTS
    ]
    assert batch.column("num_shingles").to_pylist() == sizes
    assert batch.column("text_bytes").to_pylist() == [len(text.encode()) for text in TEXTS]


def test_sketch_of_no_documents_is_an_empty_batch():
    plan = plan_for(Config())
    empty = sketch(documents_of([]), plan, Config())
    assert empty.schema == schema.sketches(plan.bands)
    assert empty.num_rows == 0
    assert sketch(documents_of(TEXTS).slice(3, 0), plan, Config()).num_rows == 0


def test_sketch_of_a_slice_is_the_slice_of_the_sketch():
    texts = oracles.random_corpus(1, 80)
    whole = sketch(documents_of(texts), plan_for(Config()), Config())
    for start, length in ((0, 80), (1, 79), (13, 20), (79, 1), (40, 0)):
        part = sketch(documents_of(texts).slice(start, length), plan_for(Config()), Config())
        assert part.equals(whole.slice(start, length))


def test_sketch_of_a_document_does_not_depend_on_its_neighbours():
    texts = oracles.random_corpus(2, 60)
    whole = sketched(texts).to_pylist()
    for row, text in enumerate(texts):
        alone = sketched([text]).to_pylist()[0]
        assert alone | {"row": row, "priority": row} == whole[row]


def test_digests_are_equal_for_equal_sets_only():
    texts = list(dict.fromkeys(oracles.random_corpus(3, 400)))
    rows = sketched(texts, size=2).to_pylist()
    sets = [oracles.shingles(text, size=2) for text in texts]
    by_digest = {}
    by_set = {}
    for row, members in zip(rows, sets, strict=True):
        by_digest.setdefault((row["digest_low"], row["digest_high"]), []).append(row["row"])
        by_set.setdefault(members, []).append(row["row"])
    assert list(by_digest.values()) == list(by_set.values())


def test_documents_of_different_groups_share_neither_key_nor_digest():
    config = Config()
    batch = sketch(
        documents_of(["one two three"] * 3 + [""] * 2, groups=[0, 7, 7, 0, 7]),
        plan_for(config),
        config,
    )
    for name in (
        "digest_low",
        "digest_high",
        *map(schema.key_column, range(plan_for(config).bands)),
    ):
        values = batch.column(name).to_pylist()
        assert values[1] == values[2], name
        assert values[0] != values[1], name
        assert values[3] != values[4], name


# collapse


def collapsed(sketches):
    classes = collapse(sketches.combine_chunks().to_batches()[0])
    assert classes.schema == schema.CLASSES
    return dict(
        zip(
            classes.column("row").to_pylist(),
            classes.column("representative").to_pylist(),
            strict=True,
        )
    )


def test_collapse_maps_every_copy_to_the_best_document_of_its_class():
    assert collapsed(
        sketched(["one two three", "x", "ONE, two three!", "four", "one two three"])
    ) == {2: 0, 4: 0}


def test_collapse_treats_documents_without_shingles_as_one_class():
    assert collapsed(sketched()) == {2: 0, 5: 1}


def test_collapse_orders_by_priority_then_row():
    sketches = sketched(["a", "A", "b", "a."])
    for priority, expected in (
        ([3, 2, 1, 0], {0: 3, 1: 3}),
        ([1, 0, 0, 0], {0: 1, 3: 1}),
        ([0] * 4, {1: 0, 3: 0}),
    ):
        assert collapsed(sketches.set_column(1, "priority", pa.array(priority))) == expected


def test_collapse_does_not_depend_on_the_order_of_rows():
    sketches = sketched(oracles.random_corpus(4, 150))
    expected = collapsed(sketches)
    assert len(expected) > 20
    for seed in range(5):
        assert collapsed(shuffled(sketches, seed)) == expected


def test_collapse_keeps_groups_apart():
    config = Config()
    batch = sketch(
        documents_of(["a"] * 4 + [""] * 2, groups=[0, 7, 0, 7, 0, 7]), plan_for(config), config
    )
    assert collapsed(pa.Table.from_batches([batch])) == {2: 0, 3: 1}


def test_collapse_of_nothing_is_nothing():
    assert collapse(sketch(documents_of([]), plan_for(Config()), Config())).num_rows == 0


# link


def band_of(rows, keys):
    return pa.record_batch([pa.array(rows, pa.int64()), pa.array(keys, pa.int64())], ["row", "key"])


def links_of(band):
    links = link(band)
    assert links.schema == schema.LINKS
    return sorted(
        zip(links.column("row").to_pylist(), links.column("smallest").to_pylist(), strict=True)
    )


def test_link_is_a_star_around_the_smallest_row_of_each_bucket():
    band = band_of([5, 3, 8, 2, 9, 7], [1, -1, 1, -1, 2**63 - 1, 1])
    assert links_of(band) == [(3, 2), (7, 5), (8, 5)]


def test_a_bucket_with_one_document_has_no_links():
    assert links_of(band_of([1, 2, 3], [-(2**63), 0, 2**63 - 1])) == []
    assert links_of(band_of([], [])) == []


def test_link_does_not_depend_on_the_order_of_rows():
    rng = random.Random(5)
    rows = rng.sample(range(10**9), k=300)
    keys = [rng.choice([-3, 0, 7, rng.getrandbits(60)]) for _ in rows]
    expected = links_of(band_of(rows, keys))
    assert expected
    for seed in range(5):
        order = random.Random(seed).sample(range(300), k=300)
        assert links_of(band_of([rows[at] for at in order], [keys[at] for at in order])) == expected


def test_link_is_linear_in_the_rows_of_a_hot_bucket():
    assert links_of(band_of(range(5000), [4] * 5000)) == [(row, 0) for row in range(1, 5000)]


def test_links_of_a_band_connect_documents_with_equal_slots():
    texts = oracles.random_corpus(6, 50)
    config = Config()
    plan = plan_for(config)
    batch = sketch(documents_of(texts), plan, config)
    signatures = jaccard.text_signatures(pa.array(texts), config)
    for band in range(plan.bands):
        slots = [
            tuple(row) for row in signatures[:, band * plan.rows : (band + 1) * plan.rows].tolist()
        ]
        expected = [
            (row, slots.index(slot)) for row, slot in enumerate(slots) if slots.index(slot) != row
        ]
        assert links_of(batch.select(["row", schema.key_column(band)])) == expected


# verify

# J(0, 1) = 0.75, J(1, 2) = 0.8, J(0, 2) = 0.6, 3 is alone.
CHAIN = ["a b c", "a b c d", "a b c d e", "x y z"]


def test_verify_matches_documents_with_earlier_kept_ones():
    verified = verified_of(CHAIN, threshold=0.7).to_pydict()
    assert verified["row"] == [0, 1, 2, 3]
    assert verified["kept_row"] == [None, 0, None, None]
    assert verified["similarity"] == [None, 0.75, None, None]
    assert verified["partners"] == [[], [], [], []]


def test_verify_lists_all_partners_if_pairs_are_requested():
    verified = verified_of(CHAIN, threshold=0.7, pairs=True).to_pydict()
    assert verified["kept_row"] == [None, 0, None, None]
    assert verified["partners"] == [[], [0], [1], []]
    assert verified["partner_similarities"] == [[], [0.75], [0.8], []]


@pytest.mark.parametrize("pairs", [False, True])
def test_verify_closes_pairs_into_components(pairs):
    verified = verified_of(CHAIN, threshold=0.7, cluster="components", pairs=pairs).to_pydict()
    assert verified["kept_row"] == [None, 0, 0, None]
    assert verified["similarity"] == [None, 0.75, 0.6, None]


def test_verify_takes_several_components_at_once():
    verified = verified_of(
        ["a b c", "a b c", "x y z", "x y z w"], components=[0, 0, 2, 2], threshold=0.7, pairs=True
    )
    assert verified.column("kept_row").to_pylist() == [None, 0, None, 2]
    assert verified.column("partners").to_pylist() == [[], [0], [], [2]]
    assert verified.column("compared").to_pylist() == [0, 1, 0, 1]


def test_verifying_components_together_or_alone_gives_the_same_result():
    rng = random.Random(7)
    families = [
        [" ".join(f"{name}{rng.randrange(8)}" for _ in range(12)) for _ in range(9)]
        for name in "abcde"
    ]
    together = []
    for number, family in enumerate(families):
        for row in verified_of(family, threshold=0.6, pairs=True).to_pylist():
            row["row"] += 9 * number
            row["kept_row"] = None if row["kept_row"] is None else row["kept_row"] + 9 * number
            row["partners"] = [partner + 9 * number for partner in row["partners"]]
            together.append(row)
    assert sum(map(len, (row["partners"] for row in together))) > 20
    texts = [text for family in families for text in family]
    labels = [9 * number for number in range(5) for _ in range(9)]
    assert verified_of(texts, components=labels, threshold=0.6, pairs=True).to_pylist() == together


def test_verify_of_nothing_is_nothing():
    assert verified_of([]).num_rows == 0


# select


def found_in(verified, batch_rows=7):
    """The pairs of verified documents, in small batches."""
    table = pa.Table.from_batches([schema.partnered(pa.table(verified))])
    return VerifiedPairs(
        verified.column("row").to_numpy(),
        lambda: iter(table.to_batches(max_chunksize=batch_rows)),
        sort_in_memory,
    )


def listed(classes, verified, num_references=0, **limits):
    batches = list(list_pairs(classes, found_in(verified), num_references=num_references, **limits))
    assert all(batch.num_rows <= limits.get("listed_at_once", LISTED_AT_ONCE) for batch in batches)
    assert all(batch.schema == schema.ROW_PAIRS for batch in batches)
    rows = pa.Table.from_batches(batches, schema=schema.ROW_PAIRS).to_pylist()
    pairs = {(row["row_a"], row["row_b"]): row["similarity"] for row in rows}
    assert len(pairs) == len(rows)
    assert list(pairs) == sorted(pairs)
    return pairs


def selected(classes, verified, num_references):
    """The result of `select` for verified documents, and for copies with their verified representatives."""
    verified = pa.table(verified)
    known = {row["row"]: row for row in verified.to_pylist()}
    copies = classes
    for name, kind in (("kept_row", pa.int64()), ("similarity", pa.float64())):
        values = [
            known.get(row, {}).get(name) for row in classes.column("representative").to_pylist()
        ]
        copies = copies.append_column(name, pa.array(values, kind))
    found = [batch for table in (verified, copies) for batch in table.to_batches()]
    selection = pa.Table.from_batches(
        [select(batch, num_references) for batch in found], schema=schema.SELECTION
    )
    return selection.sort_by("row")


def test_copies_follow_their_representative_in_select():
    # Rows 0..3 are verified; 4 is a copy of 1, 5 of 0, 6 of 3.
    selection = selected(classes_of(0, 1, 2, 3, 1, 0, 3), verified_of(CHAIN, threshold=0.7), 0)
    assert selection.schema == schema.SELECTION
    assert selection.to_pydict() == {
        "row": [1, 4, 5, 6],
        "kept_row": [0, 0, 0, 3],
        "similarity": [0.75, 0.75, 1.0, 1.0],
    }


def test_reference_rows_are_never_removed_and_never_paired_with_each_other():
    classes = classes_of(0, 0, 2, 0)
    verified = verified_of(["a b c"], threshold=0.7, pairs=True)
    assert selected(classes, verified, 2).to_pydict() == {
        "row": [3],
        "kept_row": [0],
        "similarity": [1.0],
    }
    assert listed(classes, verified, 2) == {(0, 3): 1.0, (1, 3): 1.0}


def test_select_does_not_depend_on_the_order_of_the_verified_rows():
    texts = [text for text in oracles.random_corpus(8, 60) if oracles.shingles(text, size=1)]
    verified = verified_of(texts, threshold=0.4, pairs=True)
    classes = classes_of(*range(len(texts)))
    for seed in range(4):
        assert selected(classes, shuffled(verified, seed), 0).equals(selected(classes, verified, 0))
        assert listed(classes, shuffled(verified, seed)) == listed(classes, verified)


@pytest.mark.parametrize("listed_at_once", [1, 3, 1 << 20])
def test_pairs_of_classes_are_listed_member_by_member(listed_at_once):
    classes = classes_of(0, 1, 2, 3, 1, 0)
    verified = verified_of(CHAIN, threshold=0.7, pairs=True)
    near = {(0, 1): 0.75, (0, 4): 0.75, (1, 5): 0.75, (4, 5): 0.75, (1, 2): 0.8, (2, 4): 0.8}
    assert listed(classes, verified, listed_at_once=listed_at_once) == near | {
        (0, 5): 1.0,
        (1, 4): 1.0,
    }
    assert count_pairs(classes, found_in(verified), num_references=0) == 8


def test_a_class_of_a_thousand_copies_is_counted_before_it_is_listed():
    classes = classes_of(*[0] * 1000)
    verified = verified_of([])
    assert count_pairs(classes, found_in(verified), num_references=0) == 499_500
    assert len(listed(classes, verified)) == 499_500


def test_listing_pairs_takes_memory_for_a_few_of_them(tmp_path, monkeypatch):
    """All 400,000 pairs as numbers would take 9.6 MB."""
    monkeypatch.setattr(spill, "_MIN_SORTED_BYTES", 1 << 20)
    num_docs = 900
    listed_at_once = 1 << 12
    left, right = np.tril_indices(num_docs, -1)
    chosen = np.random.default_rng(1).permutation(left.size)[:400_000]
    columns = [left[chosen], right[chosen], np.full(chosen.size, 0.9)]
    batches = pa.Table.from_arrays(
        list(map(pa.array, columns)), schema=schema.PARTNERED
    ).to_batches(listed_at_once)

    def sort(links, columns, by):
        return sort_on_disk(links, columns, by, tmp_path, 1)

    found = VerifiedPairs(np.arange(num_docs), lambda: iter(batches), sort)
    num_listed = 0
    tracemalloc.start()
    for batch in list_pairs(classes_of(), found, num_references=0, listed_at_once=listed_at_once):
        num_listed += batch.num_rows
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_listed == chosen.size
    assert peak < 5_000_000, f"{peak:,}"


def test_verified_pairs_are_put_in_pieces(monkeypatch):
    """Of 120 near-copies every two are a pair: 7,140 pairs, of which a piece has 100 and those of one document more."""
    monkeypatch.setattr(match, "MAX_PAIRS", 100)
    texts = [f"a b c d e f g h i{number}" for number in range(120)]
    pieces = []
    verified = verified_of(texts, threshold=0.7, pairs=True, put=pieces.append)
    assert max(piece.num_rows for piece in pieces) < 100 + 120
    assert (
        sum(verified.column("found").to_pylist())
        == sum(piece.num_rows for piece in pieces)
        == 120 * 119 // 2
    )
    assert not any(verified.column("partners").to_pylist())


def test_no_documents_select_nothing():
    assert selected(classes_of(), verified_of([]), 0).num_rows == 0
    assert listed(classes_of(), verified_of([])) == {}
    assert count_pairs(classes_of(), found_in(verified_of([])), num_references=0) == 0


@pytest.mark.parametrize("seed", range(6))
def test_selection_over_listed_pairs_is_the_oracles(seed):
    texts = oracles.random_corpus(seed, 50)
    sets = [oracles.shingles(text, size=2) for text in texts]
    found = oracles.true_pairs(sets, 0.4)
    order = random.Random(seed).sample(range(50), k=50)
    rows = 10 * np.arange(50) + 3
    priority = np.argsort(order)
    pairs = pa.table(
        [[10 * a + 3 for a, _ in found], [10 * b + 3 for _, b in found], list(found.values())],
        schema=schema.ROW_PAIRS,
    )
    selection = lead_pairs(rows, priority, pairs)
    assert selection.schema == schema.SELECTION
    chosen = [(row["kept_row"] // 10, row["similarity"]) for row in selection.to_pylist()]
    assert {row: kept for row, kept in enumerate(chosen) if kept[0] != row} == oracles.leaders(
        order, found
    )
    closed = close_pairs(rows, priority, pairs) // 10
    assert closed.tolist() == oracles.clusters(50, oracles.components(order, found, sets))


def test_input_copies_of_a_reference_document_form_their_own_class():
    # Rows below 3 are reference documents; 7 and 8 copy 2, which has no shingles.
    copies = pa.table(
        [[1, 4, 5, 6, 7, 8], [0, 0, 0, 3, 2, 2], [9, 9, 9, 9, 0, 0]],
        ["row", "representative", "num_shingles"],
    )
    [classes] = separate(copies.take([4, 2, 1, 0, 5, 3]), None, num_references=3)
    assert classes.schema == schema.CLASSES
    assert sorted(tuple(row.values()) for row in classes.to_pylist()) == [
        (1, 0),
        (5, 4),
        (6, 3),
        (7, 2),
        (8, 2),
    ]
