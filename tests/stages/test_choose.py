"""The cost of the exact join estimated from the sample, against the exact join itself."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.stages import choose
from neardup.stages.sketch import sketch
from neardup.theory.plan import plan_for


def documents_of(texts, groups=None):
    columns = [
        np.arange(len(texts)),
        pa.array(texts, pa.large_string()),
        np.zeros(len(texts), np.int64),
    ]
    return pa.record_batch(
        [*map(pa.array, columns), pa.array(groups or [0] * len(texts))], schema=schema.DOCUMENTS
    )


def corpus(seed, num_documents=400, num_words=200, copies=0.4):
    rng = random.Random(seed)
    texts = []
    for _ in range(num_documents):
        words = rng.choice(texts).split() if texts and rng.random() < copies else []
        words = words or [f"w{rng.randrange(5000)}" for _ in range(rng.randrange(3, num_words))]
        words[rng.randrange(len(words))] = f"n{rng.random()}"
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("unit", ["word", "char"])
def test_a_shingle_is_sampled_in_all_documents_or_none(unit):
    texts = corpus(1)
    config = Config(unit=unit)
    batch = sketch(documents_of(texts), plan_for(config), config, is_sampled=True)
    assert batch.schema == schema.sketches(plan_for(config).bands, has_shingles=True)
    for text, sampled in zip(texts, batch.column("shingles").to_pylist(), strict=True):
        whole = neardup.shingles(text, unit=unit)
        assert set(np.array(sampled, np.int64).view(np.uint64)) == set(
            whole[whole % np.uint64(choose.SAMPLED_OF) == 0]
        )


def test_groups_share_no_sampled_shingle():
    texts = corpus(2, num_documents=30)
    config = Config()
    batch = sketch(
        documents_of([*texts, *texts], [0] * 30 + [7] * 30),
        plan_for(config),
        config,
        is_sampled=True,
    )
    lists = batch.column("shingles").to_pylist()
    ours, theirs = ({value for own in half for value in own} for half in (lists[:30], lists[30:]))
    assert len(ours) == len(theirs) > 50
    assert not ours & theirs


def test_a_document_that_shares_nothing_is_ruled_out():
    config = Config()
    counts = np.zeros(1024, np.uint8)
    texts = [" ".join(f"{seed}w{number}" for number in range(500)) for seed in range(3)]
    sketches = sketch(documents_of(texts), plan_for(config), config, is_sampled=True)
    alone = choose.measure(sketches, counts, 0.8)
    assert alone.schema == schema.CONTENTS
    assert alone.to_pylist() == [
        {"row": row, "documents": 1, "postings": 0, "linked_documents": 0, "linked_shingles": 0}
        for row in range(3)
    ]
    shared = choose.measure(sketches, counts + np.uint8(2), 0.8)
    assert all(90 < postings <= 100 for postings in shared.column("postings").to_pylist())
    assert shared.column("linked_documents").to_pylist() == [1] * 3
    assert shared.column("linked_shingles").to_pylist() == [496] * 3
    assert choose.measure(sketches.slice(0, 0), counts, 0.8).num_rows == 0


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
@pytest.mark.parametrize(("copies", "num_words"), [(0.1, 300), (0.5, 300), (0.5, 40)])
def test_the_number_of_postings_is_predicted(threshold, copies, num_words, monkeypatch):
    measured = []
    taken = []
    measure = pipeline._measure
    map_table = LocalEngine.map_table

    def watched(*given):
        measured.append(measure(*given))
        return measured[-1]

    def watched_table(engine, *given):
        table = map_table(engine, *given)
        if given[0] == "postings":
            taken.extend(batch.num_rows for batch in table.batches(["row"]))
        return table

    monkeypatch.setattr(pipeline, "_measure", watched)
    monkeypatch.setattr(LocalEngine, "map_table", watched_table)
    texts = corpus(3, 1500, num_words, copies)
    neardup.deduplicate(texts, threshold=threshold)
    assert measured[0].postings == pytest.approx(sum(taken), rel=0.35)
