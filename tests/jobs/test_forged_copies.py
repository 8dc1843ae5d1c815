"""A text that was constructed to have the digest of another is no copy of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.config import Config
from neardup.kernels.keys import draw_secret
from neardup.measures import jaccard
from neardup.theory.plan import plan_for
from support.forgery import FORGED, NUM_LISTS, WORDS_A_LIST, forge, sum_digest

ORIGINAL = "the quick brown fox jumps over a lazy dog"
# A shingle is a word, so that the attack is short.
CONFIG = Config(size=1)


def hashes_of(text):
    return next(jaccard.shingle_runs(pa.array([text]), CONFIG))[1]


def test_the_forged_text_shares_no_word_but_the_sum_of_the_hashes():
    assert not set(ORIGINAL.split()) & set(FORGED.split())
    assert sum_digest(hashes_of(FORGED)) == sum_digest(hashes_of(ORIGINAL))


def removed_ids(inputs, **settings):
    """The ids that a run removes, and that of the kept document of each."""
    removed = neardup.deduplicate(inputs, size=1, **settings).removed
    return dict(
        zip(
            removed.column("doc_id").to_pylist(), removed.column("kept_id").to_pylist(), strict=True
        )
    )


@pytest.mark.parametrize(
    "settings", [{"method": "lsh"}, {"method": "exact"}, {"method": "auto"}, {"multiset": True}]
)
def test_a_forged_copy_is_not_removed(settings):
    documents = {
        "original": ORIGINAL,
        "forged": FORGED,
        "copy": ORIGINAL,
        "copy of the forged": FORGED,
    }
    assert removed_ids(documents, **settings) == {
        "copy": "original",
        "copy of the forged": "forged",
    }


def test_a_forged_copy_of_a_reference_document_is_not_removed(tmp_path):
    reference = tmp_path / "old.csv"
    own = tmp_path / "new.csv"
    reference.write_text(f"id,text\noriginal,{ORIGINAL}\n", encoding="utf-8")
    forged = " ".join(FORGED.split())
    own.write_text(f"id,text\nforged,{forged}\ncopy,{ORIGINAL}\n", encoding="utf-8")
    assert removed_ids([own], against=[str(reference)], id_column="id") == {"copy": "original"}


@pytest.mark.parametrize("settings", [{}, {"multiset": True}], ids=str)
def test_a_forged_copy_has_another_digest_under_every_secret(settings):
    config = Config(size=1, **settings)
    for _ in range(20):
        sketched = jaccard.sketch(
            pa.array([ORIGINAL, FORGED]), plan_for(config), config, secret=draw_secret()
        )
        original, forged = sketched.digests
        assert (original != forged).all()


@pytest.mark.long
def test_copies_could_be_forged_in_seconds_while_digests_were_sums():
    words = [f"w{number}" for number in range(NUM_LISTS * WORDS_A_LIST)]
    forged = forge(words, hashes_of(" ".join(words)), hashes_of(ORIGINAL))
    assert sum_digest(hashes_of(" ".join(forged))) == sum_digest(hashes_of(ORIGINAL))
    assert np.array_equal(sorted(forged), sorted(FORGED.split()))
