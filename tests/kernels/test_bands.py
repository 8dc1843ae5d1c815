"""Signatures to band keys, and band keys to links."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels import bands
from neardup.kernels.mixing import GOLDEN_MULTIPLIER
from support.plain_kernels import plain

PLAIN = plain(bands)
PLANS = [(1, 16), (16, 1), (5, 3), (16, 6), (11, 10), (1, 128), (128, 1), (20, 6)]


def band_keys(signatures, num_bands, rows, kernel=bands.band_keys):
    signatures = np.ascontiguousarray(signatures, np.uint32)
    keys = np.full((signatures.shape[0], num_bands), 9, np.uint64)
    with np.errstate(over="ignore"):
        kernel(signatures, rows, keys)
    return keys


def similar_signatures(seed, num_docs, num_perm):
    """Signatures of two values, so that bands are often equal and often not."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**32, (2, num_perm), dtype=np.uint32)
    return np.where(rng.random((num_docs, num_perm)) < 0.1, values[0], values[1])


def star_links(keys, rows, kernel=bands.star_links):
    keys = np.array(keys, np.uint64)
    rows = np.array(rows, np.int64)
    linked, smallest = (np.full(keys.size, -9, np.int64) for _ in range(2))
    with np.errstate(over="ignore"):
        count = kernel(keys, rows, linked, smallest)
    return sorted(zip(linked[:count].tolist(), smallest[:count].tolist(), strict=True))


def star_links_by_dict(keys, rows):
    smallest = {}
    for key, row in zip(keys, rows, strict=True):
        smallest[key] = min(row, smallest.get(key, row))
    links = zip(rows, (smallest[key] for key in keys), strict=True)
    return sorted((row, low) for row, low in links if row != low)


# Band keys


@pytest.mark.parametrize(("num_bands", "rows"), PLANS)
def test_band_keys_compiled_are_those_of_plain_python(num_bands, rows):
    signatures = similar_signatures(1, 20, 128)
    signatures[0] = 0
    signatures[1] = 2**32 - 1
    compiled = band_keys(signatures, num_bands, rows)
    assert np.array_equal(compiled, band_keys(signatures, num_bands, rows, bands.band_keys.py_func))


@pytest.mark.parametrize(("num_bands", "rows"), PLANS)
def test_keys_are_equal_if_and_only_if_the_rows_of_the_band_are(num_bands, rows):
    signatures = similar_signatures(2, 300, 128)
    keys = band_keys(signatures, num_bands, rows)
    for band in range(num_bands):
        _, by_rows = np.unique(
            signatures[:, band * rows : (band + 1) * rows], axis=0, return_inverse=True
        )
        _, by_key = np.unique(keys[:, band], return_inverse=True)
        num_buckets = len(set(zip(by_rows.ravel().tolist(), by_key.tolist(), strict=True)))
        assert num_buckets == by_rows.max() + 1 == by_key.max() + 1


def test_equal_rows_in_another_band_have_another_key():
    signatures = np.zeros((1, 128), np.uint32)
    for num_bands, rows in PLANS:
        assert np.unique(band_keys(signatures, num_bands, rows)).size == num_bands


def test_equal_rows_in_another_order_have_another_key():
    keys = band_keys([[1, 2, 2, 1, 1, 2], [2, 1, 1, 2, 2, 1]], 1, 6)
    assert keys[0, 0] != keys[1, 0]


def test_slots_after_the_last_band_are_ignored():
    signatures = similar_signatures(3, 10, 128)
    changed = signatures.copy()
    changed[:, 96:] += 1
    assert np.array_equal(band_keys(signatures, 16, 6), band_keys(changed, 16, 6))


def test_every_slot_of_a_band_changes_its_key():
    signatures = np.tile(np.arange(6, dtype=np.uint32), (7, 1))
    signatures[np.arange(6), np.arange(6)] ^= np.uint32(1 << 31)
    assert np.unique(band_keys(signatures, 1, 6)).size == 7


def test_300_000_small_numbers_have_distinct_keys():
    """Two slots that count up: the worst input for a weak hash combination."""
    first, second = np.meshgrid(np.arange(600), np.arange(500))
    keys = band_keys(np.stack([first.ravel(), second.ravel()], axis=1), 1, 2)
    assert np.unique(keys).size == 300_000


def test_band_keys_are_written_into_rows_of_a_larger_array():
    signatures = similar_signatures(4, 5, 128)
    whole = np.full((9, 16), 7, np.uint64)
    bands.band_keys(signatures[1:4], 6, whole[2:5])
    assert np.array_equal(whole[2:5], band_keys(signatures, 16, 6)[1:4])
    assert (whole[[0, 1, 5, 6, 7, 8]] == 7).all()


# Links

KEYED_ROWS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 5), st.integers(2**64 - 3, 2**64 - 1), st.integers(0, 2**64 - 1)),
        st.integers(0, 2**62),
    ),
    max_size=60,
)


@given(keyed_rows=KEYED_ROWS)
@example(keyed_rows=[(0, 7), (0, 3), (0, 5)])
def test_star_links_point_to_the_smallest_row_of_the_bucket(keyed_rows):
    keys = [key for key, _ in keyed_rows]
    rows = [row for _, row in keyed_rows]
    assert star_links(keys, rows) == star_links_by_dict(keys, rows)


@given(keyed_rows=KEYED_ROWS)
def test_star_links_compiled_are_those_of_plain_python(keyed_rows):
    keys = [key for key, _ in keyed_rows]
    rows = [row for _, row in keyed_rows]
    assert star_links(keys, rows) == star_links(keys, rows, PLAIN.star_links)


@pytest.mark.parametrize("num_keys", [0, 1, 2, 3, 4, 63, 64, 65, 1024, 1025])
@pytest.mark.parametrize("num_buckets", [1, 7, 10**6])
def test_star_links_are_correct_at_every_load_of_the_table(num_keys, num_buckets):
    rng = np.random.default_rng(num_keys)
    values = rng.integers(0, 2**64 - 1, num_buckets, dtype=np.uint64, endpoint=True)
    keys = rng.choice(values, num_keys).tolist()
    rows = rng.permutation(num_keys).tolist()
    assert star_links(keys, rows) == star_links_by_dict(keys, rows)


@pytest.mark.parametrize("num_keys", [bands.PART_KEYS * 2 + 1, bands.PART_KEYS * 40])
def test_star_links_are_correct_over_many_parts(num_keys):
    rng = np.random.default_rng(num_keys)
    keys = rng.choice(
        rng.integers(0, 2**64 - 1, num_keys, dtype=np.uint64, endpoint=True), num_keys
    ).tolist()
    rows = rng.permutation(num_keys).tolist()
    assert star_links(keys, rows) == star_links_by_dict(keys, rows)


def test_star_links_are_correct_if_all_keys_collide():
    """The slot is the top bits of key * GOLDEN_MULTIPLIER: use keys that all map to the same slot."""
    inverse = pow(int(GOLDEN_MULTIPLIER), -1, 2**64)
    keys = [(2**64 - 1 - number) * inverse % 2**64 for number in range(500)] * 2
    rows = list(range(1000, 0, -1))
    assert star_links(keys, rows) == star_links_by_dict(keys, rows)


def test_bucket_of_a_million_documents_is_one_star():
    rows = np.random.default_rng(1).permutation(1_000_000) + 5
    assert star_links(np.full(1_000_000, 42), rows) == [(row, 5) for row in range(6, 1_000_005)]
