"""What each stage promises on small Arrow batches: its schema, and that row order and batches do not matter."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import oracles
from neardup import schema
from neardup.config import Config
from neardup.planner import plan_for
from neardup.stages.collapse import collapse
from neardup.stages.link import link, take_band
from neardup.stages.select import close_pairs, count_pairs, lead_pairs, list_pairs, select
from neardup.stages.sketch import sketch
from neardup.stages.verify import verify

TEXTS = ["one two three", "", "ONE, two three!", "four five six", "one two three four", "..."]


def documents_of(texts, rows=None):
    rows = rows or list(range(len(texts)))
    return pa.record_batch([rows, texts, list(range(len(texts)))], schema=schema.DOCUMENTS)


def sketched(texts=TEXTS, **settings):
    config = Config(**settings)
    return pa.Table.from_batches([sketch(documents_of(texts), plan_for(config), config)])


def shuffled(table, seed):
    return table.take(random.Random(seed).sample(range(table.num_rows), k=table.num_rows))


def verified_of(texts, components=None, **settings):
    """Verify documents that are all one component, unless told otherwise."""
    config = Config(**{"size": 1, "bands": 128, "rows": 1} | settings)
    batch = documents_of(texts).append_column("component", pa.array(components or [0] * len(texts), pa.int64()))
    verified = verify(batch, plan_for(config), config)
    assert verified.schema == schema.VERIFIED
    return pa.Table.from_batches([verified])


def classes_of(*representatives):
    return pa.table([range(len(representatives)), representatives], schema=schema.CLASSES)


# sketch


@pytest.mark.parametrize(
    "settings", [{}, {"threshold": 0.5}, {"sketch": "minhash"}, {"unit": "char"}, {"multiset": True}]
)
def test_sketch_keeps_rows_and_gives_its_schema(settings):
    config = Config(**settings)
    plan = plan_for(config)
    batch = sketch(documents_of(TEXTS, rows=[7, 3, 9, 1, 100, 50]), plan, config)
    assert batch.schema == schema.sketches(plan.bands)
    assert batch.column("row").to_pylist() == [7, 3, 9, 1, 100, 50]
    assert batch.column("priority").to_pylist() == [0, 1, 2, 3, 4, 5]
    sizes = [len(oracles.shingles(text, unit=config.unit, multiset=config.multiset)) for text in TEXTS]
    assert batch.column("num_shingles").to_pylist() == sizes


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
    by_digest, by_set = {}, {}
    for row, members in zip(rows, sets, strict=True):
        by_digest.setdefault((row["digest_low"], row["digest_high"]), []).append(row["row"])
        by_set.setdefault(members, []).append(row["row"])
    assert list(by_digest.values()) == list(by_set.values())


# collapse


def test_collapse_names_the_best_of_each_class():
    classes = collapse(sketched(), Config())
    assert classes.schema == schema.CLASSES
    assert classes.to_pydict() == {"row": [0, 1, 2, 3, 4, 5], "representative": [0, 1, 0, 3, 4, 5]}


def test_collapse_takes_documents_without_shingles_for_one_class_when_asked():
    classes = collapse(sketched(), Config(collapse_empty=True))
    assert classes.column("representative").to_pylist() == [0, 1, 0, 3, 4, 1]


def test_collapse_follows_the_priority_not_the_row():
    sketches = sketched(["a", "A", "b", "a."])
    last_first = sketches.set_column(1, "priority", pa.array([3, 2, 1, 0]))
    assert collapse(last_first, Config()).column("representative").to_pylist() == [3, 3, 2, 3]


@pytest.mark.parametrize("collapse_empty", [False, True])
def test_collapse_does_not_depend_on_the_order_of_rows(collapse_empty):
    config = Config(collapse_empty=collapse_empty)
    sketches = sketched(oracles.random_corpus(4, 150))
    expected = collapse(sketches, config).sort_by("row")
    assert len(set(expected.column("representative").to_pylist())) < 150
    for seed in range(5):
        assert collapse(shuffled(sketches, seed), config).sort_by("row").equals(expected)


def test_collapse_of_nothing_is_nothing():
    assert collapse(sketched([]), Config()).to_pydict() == {"row": [], "representative": []}


# link


def band_of(rows, keys):
    return pa.record_batch([pa.array(rows, pa.int64()), pa.array(keys, pa.int64())], schema=schema.BAND)


def links_of(band):
    links = link(band)
    assert links.schema == schema.LINKS
    return sorted(zip(links.column("row").to_pylist(), links.column("smallest").to_pylist(), strict=True))


def test_link_is_a_star_around_the_smallest_row_of_each_bucket():
    band = band_of([5, 3, 8, 2, 9, 7], [1, -1, 1, -1, 2**63 - 1, 1])
    assert links_of(band) == [(3, 2), (7, 5), (8, 5)]


def test_link_of_a_bucket_of_one_is_nothing():
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


def test_a_band_is_taken_from_every_chunk():
    sketches = sketched(oracles.random_corpus(6, 50))
    cut = pa.concat_tables([sketches.slice(0, 20), sketches.slice(20, 0), sketches.slice(20, 7), sketches.slice(27)])
    filtered = cut.filter(pa.compute.greater(cut.column("num_shingles"), 3))
    keys = np.array(filtered.column("keys").to_pylist())
    for number in (0, 15):
        band = take_band(filtered, number)
        assert band.schema == schema.BAND
        assert band.column("row").to_pylist() == filtered.column("row").to_pylist()
        assert band.column("key").to_pylist() == keys[:, number].tolist()
    assert take_band(sketches.slice(0, 0), 3).num_rows == 0


# verify

# J(0, 1) = 0.75, J(1, 2) = 0.8, J(0, 2) = 0.6, 3 is alone.
CHAIN = ["a b c", "a b c d", "a b c d e", "x y z"]


def test_verify_matches_with_kept_documents_before_it():
    verified = verified_of(CHAIN, threshold=0.7).to_pydict()
    assert verified["row"] == [0, 1, 2, 3]
    assert verified["kept_row"] == [None, 0, None, None]
    assert verified["similarity"] == [None, 0.75, None, None]
    assert verified["partners"] == [[], [], [], []]


def test_verify_lists_partners_where_pairs_are_wanted():
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
    verified = verified_of(["a b c", "a b c", "x y z", "x y z w"], components=[0, 0, 2, 2], threshold=0.7, pairs=True)
    assert verified.column("kept_row").to_pylist() == [None, 0, None, 2]
    assert verified.column("partners").to_pylist() == [[], [0], [], [2]]
    assert verified.column("compared").to_pylist() == [0, 1, 0, 1]


def test_verify_of_components_together_is_that_of_each_alone():
    rng = random.Random(7)
    families = [[" ".join(f"{name}{rng.randrange(8)}" for _ in range(12)) for _ in range(9)] for name in "abcde"]
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


def test_select_sends_copies_where_their_representative_goes():
    # Rows 0..3 are verified; 4 is a copy of 1, 5 of 0, 6 of 3.
    selection = select(classes_of(0, 1, 2, 3, 1, 0, 3), verified_of(CHAIN, threshold=0.7))
    assert selection.schema == schema.SELECTION
    assert selection.to_pydict() == {
        "row": [0, 1, 2, 3, 4, 5, 6],
        "kept_row": [0, 0, 2, 3, 0, 0, 3],
        "similarity": [1.0, 0.75, 1.0, 1.0, 0.75, 1.0, 1.0],
    }


def test_select_does_not_depend_on_the_order_of_the_verified_rows():
    texts = [text for text in oracles.random_corpus(8, 60) if oracles.shingles(text, size=1)]
    verified = verified_of(texts, threshold=0.4, pairs=True)
    classes = classes_of(*range(len(texts)))
    for seed in range(4):
        assert select(classes, shuffled(verified, seed)).equals(select(classes, verified))
        assert list_pairs(classes, shuffled(verified, seed)).equals(list_pairs(classes, verified))


def test_pairs_of_classes_are_listed_member_by_member():
    classes, verified = classes_of(0, 1, 2, 3, 1, 0), verified_of(CHAIN, threshold=0.7, pairs=True)
    pairs = list_pairs(classes, verified)
    assert pairs.schema == schema.ROW_PAIRS
    listed = {(row["row_a"], row["row_b"]): row["similarity"] for row in pairs.to_pylist()}
    near = {(0, 1): 0.75, (0, 4): 0.75, (1, 5): 0.75, (4, 5): 0.75, (1, 2): 0.8, (2, 4): 0.8}
    assert listed == near | {(0, 5): 1.0, (1, 4): 1.0}
    assert list(listed) == sorted(listed)
    assert count_pairs(classes, verified) == len(listed) == 8


def test_a_class_of_a_thousand_copies_is_counted_before_it_is_listed():
    classes, verified = classes_of(*[0] * 1000), verified_of([])
    assert count_pairs(classes, verified) == 499_500
    assert list_pairs(classes, verified).num_rows == 499_500


def test_no_documents_select_nothing():
    assert select(classes_of(), verified_of([])).num_rows == 0
    assert list_pairs(classes_of(), verified_of([])).num_rows == 0
    assert count_pairs(classes_of(), verified_of([])) == 0


@pytest.mark.parametrize("seed", range(6))
def test_selection_over_listed_pairs_is_the_oracles(seed):
    texts = oracles.random_corpus(seed, 50)
    sets = [oracles.shingles(text, size=2) for text in texts]
    found = oracles.true_pairs(sets, 0.4)
    order = random.Random(seed).sample(range(50), k=50)
    rows, priority = 10 * np.arange(50) + 3, np.argsort(order)
    pairs = pa.table(
        [[10 * a + 3 for a, _ in found], [10 * b + 3 for _, b in found], list(found.values())], schema=schema.ROW_PAIRS
    )
    selection = lead_pairs(rows, priority, pairs)
    assert selection.schema == schema.SELECTION
    chosen = [(row["kept_row"] // 10, row["similarity"]) for row in selection.to_pylist()]
    assert {row: kept for row, kept in enumerate(chosen) if kept[0] != row} == oracles.leaders(order, found)
    closed = close_pairs(rows, priority, pairs) // 10
    assert closed.tolist() == oracles.clusters(50, oracles.components(order, found, sets))
