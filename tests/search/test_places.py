"""First places of windows: against the oracle, also where keys collide, and against plain Python."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import schema
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.io.documents.in_memory import InMemoryDocuments
from neardup.io.storage.big_arrays import BigArrays
from neardup.kernels import places as kernels
from neardup.search import places
from neardup.stages.anchors import anchors, window_shape
from support import passage_oracle
from support.passage_texts import repetitive_texts
from support.plain_kernels import plain


def find_stretches(texts, min_words, groups=None, arrays=None, room=0):
    """The stretches of texts, as the oracle lists them."""
    config = Config()
    shape = window_shape(min_words)
    count = len(texts)
    given_groups = np.zeros(count, np.int64) if groups is None else np.array(groups, np.int64)
    columns = [np.arange(count), pa.array(texts, pa.large_string()), np.arange(count), given_groups]
    documents = InMemoryDocuments(pa.table(columns, schema=schema.DOCUMENTS), count)
    engine = LocalEngine(2)
    table = engine.map_documents(
        documents, lambda batch, _: anchors(batch, shape, config), schema.ANCHORS, lambda _: None
    )
    arrays = arrays or BigArrays()
    found = places.link_anchors(table.batches, arrays, engine.side_by_side, room=room)
    at, islands, num_words = places.lay_out(found, min_words, arrays)
    stored = arrays.empty("words", num_words, np.uint64)
    for batch in documents.read(0, lambda _: None):
        places.store_words(batch, islands, stored, config)
    finder = places.PlaceFinder(found, at, stored, (shape.gram, shape.num_grams - 1))
    stretches = finder.find(engine.side_by_side, lambda _: arrays.drop_pages(), arrays, room)
    return [
        passage_oracle.Place(doc, start, windows + min_words - 1, source, source_start)
        for doc, start, windows, source, source_start in zip(
            *(column.tolist() for column in stretches), strict=True
        )
    ]


def expected_stretches(texts, min_words, groups=None):
    return passage_oracle.stretches(passage_oracle.words_of(texts), min_words, groups)


MIN_WORDS = st.sampled_from([1, 2, 3, 4, 5, 8, 13, 20, 40])
VOCABULARIES = st.sampled_from([1, 2, 3, 5, 50])


@given(st.integers(0, 2**32), MIN_WORDS, VOCABULARIES)
def test_runs_are_those_of_the_oracle(seed, min_words, vocabulary):
    texts = repetitive_texts(random.Random(seed), min_words, vocabulary=vocabulary)
    assert find_stretches(texts, min_words) == expected_stretches(texts, min_words)


@given(st.integers(0, 2**32), MIN_WORDS)
def test_groups_share_nothing(seed, min_words):
    rng = random.Random(seed)
    texts = repetitive_texts(rng, min_words)
    groups = [rng.randrange(3) for _ in texts]
    assert find_stretches(texts, min_words, groups) == expected_stretches(texts, min_words, groups)


@given(st.integers(0, 2**32), MIN_WORDS, st.sampled_from([0, 1]))
def test_keys_that_collide_change_nothing(seed, min_words, kept_bits):
    """Other groups and other words get equal keys, at every level."""
    rng = random.Random(seed)
    texts = repetitive_texts(rng, min_words, num_docs=5)
    groups = [rng.randrange(2) for _ in texts]
    exact = places._linked
    places._linked = lambda keys: exact(keys & np.uint64(kept_bits))
    try:
        found = find_stretches(texts, min_words, groups)
    finally:
        places._linked = exact
    assert found == expected_stretches(texts, min_words, groups)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("seed", range(3))
def test_compiled_kernels_give_the_runs_of_plain_python(seed, monkeypatch):
    texts = repetitive_texts(random.Random(seed), 6, num_docs=5)
    compiled = find_stretches(texts, 6)
    monkeypatch.setattr(places, "kernel", plain(kernels))
    assert find_stretches(texts, 6) == compiled
    assert compiled


def test_arrays_on_disk_small_blocks_and_ranges_of_keys_give_the_same_runs(tmp_path, monkeypatch):
    texts = repetitive_texts(random.Random(4), 8, num_docs=40)
    expected = find_stretches(texts, 8)
    monkeypatch.setattr(places, "_BLOCK", 3)
    monkeypatch.setattr(places, "_CHUNK", 7)
    arrays = BigArrays(tmp_path / "arrays", lambda: 0)
    assert find_stretches(texts, 8, arrays=arrays, room=1) == expected
    assert arrays.are_mapped
    arrays.close()
    assert not (tmp_path / "arrays").exists()


def test_every_window_of_one_word_is_compared_with_few_others(monkeypatch):
    """A text of one word has an anchor everywhere: the work grows with its length, not with the square."""
    compared = []
    exact = places.PlaceFinder._compare

    def counted(self, bundles, *rest):
        compared.append(bundles.keys.size)
        return exact(self, bundles, *rest)

    monkeypatch.setattr(places.PlaceFinder, "_compare", counted)
    work = {}
    for length in (2_000, 8_000):
        compared.clear()
        stretches = find_stretches(["again " * length, "again " * 60], 50)
        assert len(stretches) == length - 50 + 11
        work[length] = sum(compared)
    assert work[8_000] < 4.4 * work[2_000]


@pytest.mark.parametrize("num_pages", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_banner_costs_its_places_not_their_square(num_pages, monkeypatch):
    compared = []
    exact = places.PlaceFinder._compare

    def counted(self, bundles, *rest):
        compared.append(bundles.keys.size)
        return exact(self, bundles, *rest)

    monkeypatch.setattr(places.PlaceFinder, "_compare", counted)
    banner = " ".join(f"banner{word}" for word in range(70))
    texts = [f"page{page} " * 3 + banner + f" end{page}" * 3 for page in range(num_pages)]
    stretches = find_stretches(texts, 50)
    assert [stretch.words for stretch in stretches] == [70] * (num_pages - 1)
    assert {(stretch.source, stretch.source_start) for stretch in stretches} == {(0, 3)}
    assert sum(compared) < 12 * num_pages
