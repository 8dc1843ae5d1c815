"""Words constructed to collide without knowing the seed: they collided while word hashes used public constants."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

import neardup
from neardup.kernels import keys, shingle, unicode

SEEDS = pytest.mark.parametrize("seed", [0, 1, 2, 12345, 2**63, 2**64 - 1])
# The constants of the formats fast-1 and minhash-1, which the attacks use.
SALT = 0xA0761D6478BD642F
MULTIPLIER = 0xE7037ED1A0B428DB
ALL = 2**64 - 1


def fold(left, right):
    product = left * right
    return (product ^ (product >> 64)) & ALL


def item_hashes(items, seed):
    """Hash byte strings as items."""
    data = b"".join(item + b"\x1f" for item in items)
    source = np.frombuffer(data, np.uint8)
    hashes = np.empty(len(data), np.uint64)
    ends = np.empty(2, np.int64)
    offsets = np.array([0, len(data)])
    table = tuple(unicode.load_table())
    key = keys.shingle_key(seed)
    shingle.shingle_items(
        source, offsets, table, 1, key, False, hashes, ends, np.empty(1, np.bool_)
    )
    return hashes[: ends[1]].tolist()


def word_hashes(words, seed):
    return [int(neardup.shingles(word, size=1, seed=seed)[0]) for word in words]


def letters_that_differ_by(difference):
    """Two strings of eight letters whose bytes differ by those of a number, each below 32."""
    pairs = []
    for byte in difference.to_bytes(8, "little"):
        low = next(low for low in range(1, 27) if 1 <= low ^ byte <= 26)
        pairs.append((96 | low, 96 | low ^ byte))
    return tuple(bytes(letters) for letters in zip(*pairs, strict=True))


def colliding_words():
    """Pairs of 24 letters with equal state after the second eight bytes, which compensate for the known first state."""
    rng = random.Random(1)
    by_rest = defaultdict(list)
    found = []
    for _ in range(1 << 15):
        first = bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=8))
        state = fold(SALT ^ 24 ^ int.from_bytes(first, "little"), MULTIPLIER)
        by_rest[state & 0xE0E0E0E0E0E0E0E0].append((first, state))
    for (one, state), (two, other) in (group[:2] for group in by_rest.values() if len(group) > 1):
        ends = letters_that_differ_by(state ^ other)
        found.append(
            [
                (start + end + b"together").decode()
                for start, end in zip((one, two), ends, strict=True)
            ]
        )
    return found


COLLIDING = colliding_words()


def old_hash(word):
    """The hash that fast-1 computed for a word of 24 bytes."""
    blocks = [int.from_bytes(word.encode()[at : at + 8], "little") for at in (0, 8, 16)]
    state = SALT ^ 24
    for block in blocks:
        state = fold(state ^ block, MULTIPLIER)
    return fold(state ^ blocks[-1], SALT)


def test_the_attack_produces_collisions_without_a_key():
    assert len(COLLIDING) >= 10
    for one, two in COLLIDING:
        assert one != two
        assert old_hash(one) == old_hash(two)


@SEEDS
def test_words_built_to_collide_do_not_collide(seed):
    for one, two in COLLIDING:
        words = word_hashes([one, two], seed)
        items = item_hashes([one.encode(), two.encode()], seed)
        assert len(set(words)) == len(set(items)) == 2


def test_texts_without_a_common_word_are_not_similar():
    ones, twos = (" ".join(words) for words in zip(*COLLIDING, strict=True))
    assert neardup.compare(ones, twos, size=1).jaccard == 0


@SEEDS
def test_no_factor_is_zeroed_by_a_public_constant(seed):
    """A zero factor cancels the other one: 16 bytes whose first or last eight equal a constant."""
    rng = random.Random(2)
    zeroing = [
        number.to_bytes(8, "little")
        for constant in (SALT, MULTIPLIER, *map(int, shingle.FIRST_BYTES))
        for number in (constant, constant ^ 16 << 56, constant ^ 24, constant ^ 32)
    ]
    others = [rng.randbytes(8).replace(b"\x1f", b"x") for _ in range(20)]
    items = {half + other for half in zeroing for other in others}
    items |= {other + half for half in zeroing for other in others}
    items |= {half + other + b"8 letters" for half in zeroing for other in others}
    items = sorted(item for item in items if b"\x1f" not in item)
    assert len(set(item_hashes(items, seed))) == len(items)


@SEEDS
def test_an_item_cannot_forge_its_length(seed):
    """A length that is only xored in can be cancelled by one byte."""
    items = [b"abcdefgh" + bytes(7) + bytes([16 ^ width]) for width in range(15)]
    items += [b"abcdefgh" + bytes(count) for count in range(9)]
    items += [bytes([ord("a") ^ 17 ^ width]) + b"x" * (width - 1) for width in range(17, 80)]
    items += [b"x" * width for width in range(80)]
    items = list(dict.fromkeys(item for item in items if b"\x1f" not in item))
    assert len(set(item_hashes(items, seed))) == len(items)


def numpy_fold(left, right):
    """The products of arrays, folded; `right` is one number."""
    low, high = left & np.uint64(0xFFFFFFFF), left >> np.uint64(32)
    right_low, right_high = np.uint64(right & 0xFFFFFFFF), np.uint64(right >> 32)
    middle = high * right_low + (low * right_low >> np.uint64(32))
    other = low * right_high + (middle & np.uint64(0xFFFFFFFF))
    return (left * np.uint64(right)) ^ (
        high * right_high + (middle >> np.uint64(32)) + (other >> np.uint64(32))
    )


def test_thue_morse_words_and_their_complements_have_different_hashes():
    """Modulo 2**64, such a polynomial of 64 words is divisible by 2**26 for any odd base, so 38 equal bits collided."""
    key = keys.shingle_key(1)
    digits = np.arange(3 << 19)[:, None] >> np.arange(0, 32, 4) & 15
    texts = np.frombuffer(b"abcdefghijklmnop", np.uint8)[digits]
    hashes = numpy_fold(texts.view(np.uint64).ravel() ^ key[8], int(key[shingle.SHORT + 1]))
    low = hashes & np.uint64(2**38 - 1)
    order = np.argsort(low)
    at = np.flatnonzero(low[order][1:] == low[order][:-1])
    assert at.size
    one, two = (bytes(texts[order[place]]).decode() for place in (at[0], at[0] + 1))
    signs = [number.bit_count() % 2 for number in range(64)]
    there, back = (" ".join((one, two)[sign ^ turn] for sign in signs) for turn in (0, 1))
    assert neardup.shingles(there, size=64)[0] != neardup.shingles(back, size=64)[0]
    base = int(key[-2])
    first = int(hashes[order[at[0]]]) - int(hashes[order[at[0] + 1]])
    assert (
        sum((1 - 2 * sign) * base ** (63 - place) for place, sign in enumerate(signs)) * first & ALL
        == 0
    )


@pytest.mark.parametrize("width", [3, 8, 9, 15, 16, 17, 24, 31, 32, 33, 64])
def test_every_bit_of_a_hash_depends_on_every_bit_of_an_item(width):
    """Each frequency is one of 64, over 4,000 flips: 6 standard errors of 0.0079."""
    rng = np.random.default_rng(width)
    items = rng.integers(32, 64, (4000, width), dtype=np.uint8)
    flipped = items.copy()
    flipped[np.arange(4000), rng.integers(0, width, 4000)] ^= np.uint8(1) << rng.integers(
        0, 5, 4000, dtype=np.uint8
    )
    one, two = (np.array(item_hashes(map(bytes, each), 5), np.uint64) for each in (items, flipped))
    bits = np.unpackbits((one ^ two).view(np.uint8)).reshape(-1, 64)
    assert abs(bits.mean(axis=0) - 0.5).max() < 6 * 0.0079
    assert abs(bits.mean() - 0.5) < 0.01


def test_hashes_under_two_seeds_are_independent():
    words = [str(number).encode() for number in range(20_000)]
    by_seed = [np.array(item_hashes(words, seed), np.uint64) for seed in (0, 1, 2, 3)]
    for one in range(4):
        for two in range(one):
            bits = np.unpackbits((by_seed[one] ^ by_seed[two]).view(np.uint8)).reshape(-1, 64)
            assert abs(bits.mean(axis=0) - 0.5).max() < 6 * 0.5 / 20_000**0.5


def test_hashes_of_numbers_are_uniform():
    """Chi-squared of 256 classes by every byte of the hash: 255 expected, standard deviation 23."""
    hashes = np.array(
        item_hashes([str(number).encode() for number in range(100_000)], 1), np.uint64
    )
    for byte in range(8):
        counts = np.bincount((hashes >> np.uint64(8 * byte)).astype(np.int64) & 255, minlength=256)
        assert ((counts - 100_000 / 256) ** 2 / (100_000 / 256)).sum() < 255 + 6 * 23


# The secrets


def test_secrets_of_all_seeds_and_purposes_differ():
    drawn = [
        int(secret)
        for seed in (0, 1, 2, 2**63, 2**64 - 1)
        for secret in (*keys.shingle_key(seed), np.frombuffer(keys.group_key(seed), "<u8")[0])
    ]
    assert len(set(drawn)) == len(drawn)


@SEEDS
def test_powers_of_the_bases_less_one_have_the_fewest_factors_of_two(seed):
    assert (keys.shingle_key(seed)[-2:] % 8).tolist() == [3, 3]
