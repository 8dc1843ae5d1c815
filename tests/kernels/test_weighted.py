"""Weighted sampling against plain Python, and its laws."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.kernels import weighted
from plain_kernels import plain

PLAIN = plain(weighted)
SETS = st.lists(
    st.dictionaries(st.integers(1, 2**64 - 1), st.floats(1e-300, 1e300), max_size=5), min_size=1, max_size=4
)


def sampled(module, sets, num_perm=16):
    hashes = np.array([key for items in sets for key in items], np.uint64)
    log_weights = np.log(np.array([weight for items in sets for weight in items.values()], np.float64))
    ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    signatures = np.empty((len(sets), num_perm), np.uint32)
    with np.errstate(over="ignore"):
        module.sample_weighted(hashes, log_weights, ends, signatures)
    return signatures


@settings(max_examples=60, deadline=None)
@given(sets=SETS)
def test_samples_are_those_of_plain_python(sets):
    assert (sampled(weighted, sets) == sampled(PLAIN, sets)).all()


@settings(max_examples=60, deadline=None)
@given(sets=SETS)
def test_order_of_items_does_not_matter_and_an_empty_set_has_no_items(sets):
    backwards = [dict(reversed(items.items())) for items in sets]
    signatures = sampled(weighted, sets)
    assert (signatures == sampled(weighted, backwards)).all()
    for items, signature in zip(sets, signatures, strict=True):
        assert (signature == weighted.NO_ITEMS).all() or items


def test_a_shorter_signature_is_the_front_of_a_longer_one():
    sets = [{7: 0.5, 9: 2.0}, {7: 0.5}]
    assert (sampled(weighted, sets, 128)[:, :16] == sampled(weighted, sets, 16)).all()
