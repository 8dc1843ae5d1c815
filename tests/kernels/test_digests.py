"""Digests: against polynomials in plain Python integers, and under the worst choice of words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import digests
from neardup.kernels.keys import DIGEST_SECRET_BYTES, digest_key, draw_secret, own_secret
from support.digest_oracles import PRIME, coefficient, halves_of, set_digest
from support.plain_kernels import plain

PLAIN = plain(digests)
TOP = 2**64 - 1
SECRETS = st.binary(min_size=DIGEST_SECRET_BYTES, max_size=DIGEST_SECRET_BYTES)
# The largest and the smallest secrets, which no other test draws.
EXTREMES = [bytes(DIGEST_SECRET_BYTES), b"\xff" * DIGEST_SECRET_BYTES]
WORDS = st.integers(0, TOP) | st.sampled_from([0, 1, TOP, PRIME, PRIME + 1])
ROWS = st.lists(st.lists(WORDS, max_size=5), max_size=6)


def row_digest(words, secret):
    """The value of the polynomial whose coefficients stand for the words, at two points."""
    found = []
    for multiplier, point, _ in halves_of(secret):
        value = 1
        for word in words:
            value = (value + coefficient(word, multiplier)) * point % PRIME
        found.append(value)
    return found


def with_group(digest, group, secret):
    if group == 0:
        return digest
    halves = zip(digest, halves_of(secret), strict=True)
    return [
        half * (point + coefficient(group, multiplier)) % PRIME
        for half, (multiplier, _, point) in halves
    ]


def digest_rows(rows, secret, module=digests):
    words = np.array([word for row in rows for word in row], np.uint64)
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    found = np.empty((len(rows), 2), np.uint64)
    with np.errstate(over="ignore"):
        module.digest_words(words, ends, digest_key(secret), found)
    return found.tolist()


@given(rows=ROWS, secret=SECRETS | st.sampled_from(EXTREMES))
def test_digests_of_rows_are_polynomials_at_two_secret_points(rows, secret):
    expected = [row_digest(row, secret) for row in rows]
    assert digest_rows(rows, secret) == expected
    assert digest_rows(rows, secret, PLAIN) == expected


@given(rows=ROWS, seed=st.integers(0, 2**32 - 1))
def test_digests_distinguish_rows_by_their_values_and_order(rows, seed):
    found = digest_rows(rows, np.random.default_rng(seed).bytes(DIGEST_SECRET_BYTES))
    for row, digest in zip(rows, found, strict=True):
        for other, other_digest in zip(rows, found, strict=True):
            assert (digest == other_digest) == (row == other)


@given(groups=st.lists(WORDS, max_size=6), secret=SECRETS | st.sampled_from(EXTREMES))
def test_groups_are_separated_by_one_more_factor(groups, secret):
    before = np.array(
        [set_digest([number], secret) for number in range(len(groups))], np.uint64
    ).reshape(-1, 2)
    for module in (digests, PLAIN):
        found = before.copy()
        with np.errstate(over="ignore"):
            module.separate_groups(np.array(groups, np.uint64), digest_key(secret), found)
        pairs = zip(before.tolist(), groups, strict=True)
        assert found.tolist() == [with_group(digest, group, secret) for digest, group in pairs]


@given(value=st.integers(0, 2**62 + 2**59), factor=st.integers(0, 2**60 - 1))
def test_products_are_right_modulo_the_prime_and_stay_in_bounds(value, factor):
    product = int(digests.multiply_modulo(np.uint64(value), np.uint64(8 * factor)))
    assert product % PRIME == value * factor % PRIME
    assert product < 2**62 + 2**60


def test_the_largest_product_that_occurs_in_a_chain_can_be_multiplied_again():
    """A value that could grow from factor to factor would overflow after some of them."""
    value = 1
    for _ in range(1000):
        value = int(digests.multiply_modulo(np.uint64(value), np.uint64(8 * (2**60 - 1))))
        assert value < 2**62
    assert int(digests.multiply_modulo(np.uint64(2**62), np.uint64(8 * (2**60 - 1)))) <= 2**62


@pytest.mark.parametrize("difference", [1, 31, 2**61 - 1, 2**63, 2**64 - 1])
def test_words_of_any_difference_rarely_share_a_coefficient(difference):
    """Two words share a coefficient of 59 bits with a probability of at most 2**-58, and so in none of 100,000 keys."""
    rng = np.random.default_rng(difference)
    multipliers = rng.integers(0, TOP, 100_000, np.uint64, endpoint=True) | np.uint64(1)
    words = rng.integers(0, TOP, 100_000, np.uint64, endpoint=True)
    others = words + np.uint64(difference)
    assert ((words * multipliers) >> np.uint64(5) != (others * multipliers) >> np.uint64(5)).all()


# The secret


def test_every_run_and_process_has_a_secret_of_its_own():
    assert draw_secret() != draw_secret()
    assert own_secret() == own_secret()
    assert own_secret() != draw_secret()
    assert len(own_secret()) == DIGEST_SECRET_BYTES


@given(secret=SECRETS | st.sampled_from(EXTREMES))
def test_the_key_has_odd_multipliers_and_scaled_points(secret):
    key = digest_key(secret).tolist()
    assert key == [
        number
        for multiplier, point, group in halves_of(secret)
        for number in (multiplier, 8 * point, 8 * group)
    ]
