"""Weighted sampling against plain Python, and its laws."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import weighted
from support.plain_kernels import plain

PLAIN = plain(weighted)
SETS = st.lists(
    st.dictionaries(
        st.sampled_from([3, 7]) | st.integers(1, 2**64 - 1), st.floats(1e-300, 1e300), max_size=5
    ),
    min_size=1,
    max_size=4,
)


def sampled(module, sets, num_perm=16):
    drawn = sorted(
        (key, doc, weight) for doc, items in enumerate(sets) for key, weight in items.items()
    )
    hashes = np.array([key for key, _, _ in drawn], np.uint64)
    owners = np.array([doc for _, doc, _ in drawn], np.int64)
    log_weights = np.log(np.array([weight for _, _, weight in drawn], np.float64))
    signatures = np.full((len(sets), num_perm), weighted.NO_ITEMS)
    with np.errstate(over="ignore"):
        module.sample_weighted(
            hashes, log_weights, owners, np.full(signatures.shape, np.inf), signatures
        )
    return signatures


@given(sets=SETS)
def test_samples_are_those_of_plain_python(sets):
    assert (sampled(weighted, sets) == sampled(PLAIN, sets)).all()


@given(sets=SETS)
def test_other_documents_do_not_matter_and_an_empty_set_has_no_items(sets):
    for items, signature in zip(sets, sampled(weighted, sets), strict=True):
        assert (signature == sampled(weighted, [items])).all()
        assert (signature == weighted.NO_ITEMS).all() or items


def test_a_shorter_signature_is_a_prefix_of_a_longer_one():
    sets = [{7: 0.5, 9: 2.0}, {7: 0.5}]
    assert (sampled(weighted, sets, 128)[:, :16] == sampled(weighted, sets, 16)).all()
