"""One kernel for every kind of item: similarities and found pairs against the definition and plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from neardup.kernels import similarity as kernel
from neardup.kernels import verify
from neardup.stages import match
from support import oracles
from support.plain_kernels import PutPairs, plain, plain_match

PLAIN = plain(kernel)
PLAIN_MATCH = plain_match()
SEEDS = range(12)
NUM_DOCS = 24
NUM_BANDS = 3
MODES = {"leaders": verify.LEADERS, "pairs": verify.PAIRS, "closure": verify.CLOSURE}


def make_weights(rng):
    documents = [
        {
            int(key): float(rng.choice([0.25, 0.5, 1, 2, 3.5]))
            for key in rng.integers(1, 9, rng.integers(1, 6))
        }
        for _ in range(NUM_DOCS)
    ]
    documents = [dict(sorted(items.items())) for items in documents]
    items = kernel.Weights(
        np.array([key for document in documents for key in document], np.uint64),
        np.array([weight for document in documents for weight in document.values()]),
        np.cumsum([0, *map(len, documents)], dtype=np.int64),
    )

    def similarity(a, b):
        keys = documents[a].keys() | documents[b].keys()
        pairs = [(documents[a].get(key, 0.0), documents[b].get(key, 0.0)) for key in keys]
        return sum(map(min, pairs)) / sum(map(max, pairs))

    return items, similarity


def make_bits(rng):
    bits = rng.integers(0, 2, (NUM_DOCS, 70)).astype(np.uint8)
    bits[1::2] = bits[::2]
    bits ^= (rng.random(bits.shape) < 0.1).astype(np.uint8)
    words = np.pad(np.packbits(bits, axis=1), ((0, 0), (0, 7))).view(np.uint64)
    return kernel.Bits(words, 70), lambda a, b: 1 - int((bits[a] != bits[b]).sum()) / 70


def some_vectors(rng):
    values = rng.integers(-3, 4, (NUM_DOCS, 7)).astype(np.float64)
    values[:, 0] += 5
    return values


def make_vectors(rng):
    values = some_vectors(rng)
    norms = np.empty(NUM_DOCS)
    kernel.norms(values, norms)

    def similarity(a, b):
        dot = math.fsum(values[a] * values[b])
        return max(
            0.0, dot / (math.sqrt(math.fsum(values[a] ** 2)) * math.sqrt(math.fsum(values[b] ** 2)))
        )

    return kernel.Vectors(values, norms, 16), similarity


def make_points(rng):
    values = some_vectors(rng)
    return kernel.Points(values), lambda a, b: 1 / (1 + math.dist(values[a], values[b]))


# How to generate items, the similarity by definition, and a threshold that about a third of the
# pairs reach.
KINDS = {
    "weights": (make_weights, 0.3),
    "bits": (make_bits, 0.55),
    "vectors": (make_vectors, 0.7),
    "points": (make_points, 0.12),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@EVERY_KIND
@pytest.mark.parametrize("seed", SEEDS)
def test_similarity_follows_the_definition_and_is_symmetric(kind, seed):
    items, similarity = KINDS[kind][0](np.random.default_rng(seed))
    left, right = (half.ravel() for half in np.meshgrid(np.arange(NUM_DOCS), np.arange(NUM_DOCS)))
    values, plain_values, back = (np.empty(left.size) for _ in range(3))
    kernel.similarities(items, left, right, values)
    with np.errstate(over="ignore"):
        PLAIN.similarities(items, left, right, plain_values)
    kernel.similarities(items, right, left, back)
    assert values.tobytes() == plain_values.tobytes() == back.tobytes()
    expected = [similarity(a, b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    assert values == pytest.approx(expected, abs=1e-14)
    assert (values <= 1).all()
    assert (values >= 0).all()


def make_case(kind, seed):
    """Items with random keys and signatures; 4 of 16 slots are flipped at most of the time."""
    rng = np.random.default_rng(seed)
    make, threshold = KINDS[kind]
    items, similarity = make(rng)
    keys = rng.integers(0, 5, (NUM_DOCS, NUM_BANDS)).astype(np.uint64) * 8 + np.arange(
        NUM_BANDS, dtype=np.uint64
    )
    slots = (rng.random((NUM_DOCS, 16)) < 0.2).astype(np.uint8)
    min_agreement = 10 if kind in ("weights", "vectors") else 0
    signatures = slots.astype(np.uint32)
    if kind == "vectors":
        signatures = np.pad(np.packbits(slots, axis=1), ((0, 0), (0, 6))).view(np.uint64)
    pairs = {}
    for b in range(NUM_DOCS):
        for a in range(b):
            agrees = (slots[a] == slots[b]).sum() >= min_agreement
            if agrees and (keys[a] == keys[b]).any() and similarity(a, b) >= threshold:
                pairs[a, b] = similarity(a, b)
    return items, signatures, keys, threshold, min_agreement, pairs


def run(module, case, mode):
    items, signatures, keys, threshold, min_agreement, _ = case
    documents = verify.ComparedDocuments(items, signatures, keys, np.arange(NUM_DOCS))
    given = match.initial_state(np.full(NUM_DOCS, verify.COMPARED | verify.ENTERED, np.uint8))
    rule = verify.Rule(threshold, min_agreement, mode)
    with np.errstate(over="ignore"):
        put = PutPairs()
        outcome = module.match_components(
            documents, np.array([0, NUM_DOCS]), rule, given, np.zeros(1, int), put
        )
    return put.columns(), *outcome


@EVERY_KIND
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_and_matches_agree_with_the_oracle(kind, mode, seed):
    case = make_case(kind, seed)
    (left, right, similarities), matches, values, parents, *_ = run(match, case, MODES[mode])
    pairs = case[-1]
    assert len(pairs) > 3
    if mode == "pairs":
        found = {
            (int(b), int(a)): value for a, b, value in zip(left, right, similarities, strict=True)
        }
        assert found.keys() == pairs.keys()
        assert all(found[pair] == pytest.approx(pairs[pair], abs=1e-14) for pair in pairs)
    if mode == "closure":
        expected = list(range(NUM_DOCS))
        for a, b in pairs:
            old = max(expected[a], expected[b])
            new = min(expected[a], expected[b])
            expected = [new if label == old else label for label in expected]
        assert parents.tolist() == expected
        return
    removed = oracles.verified_leaders(range(NUM_DOCS), pairs)
    if mode == "leaders":
        found_removed = {doc: int(matches[doc]) for doc in range(NUM_DOCS) if matches[doc] >= 0}
        assert found_removed == {doc: kept for doc, (kept, _) in removed.items()}
        assert all(
            values[doc] == pytest.approx(similarity, abs=1e-14)
            for doc, (_, similarity) in removed.items()
        )


@EVERY_KIND
@pytest.mark.parametrize("mode", MODES)
def test_the_compiled_walk_equals_plain_python(kind, mode):
    case = make_case(kind, 99)
    compiled = run(match, case, MODES[mode])
    plainly = run(PLAIN_MATCH, case, MODES[mode])
    assert all((one == two).all() for one, two in zip(compiled[0], plainly[0], strict=True))
    is_removed = compiled[1] >= 0
    assert (compiled[1] == plainly[1]).all() or mode == "closure"
    assert (compiled[2][is_removed] == plainly[2][is_removed]).all()
    assert (compiled[3] == plainly[3]).all()
    assert (compiled[4] == plainly[4]).all()


def test_popcount_equals_that_of_python():
    words = np.array([0, 1, 2**64 - 1, 2**63, 0x0123456789ABCDEF, 0xAAAAAAAAAAAAAAAA], np.uint64)
    values = np.empty(words.size)
    bits = kernel.Bits(np.r_[words, np.zeros(1, np.uint64)].reshape(-1, 1), 64)
    kernel.similarities(bits, np.arange(words.size), np.full(words.size, words.size), values)
    assert values.tolist() == [1 - int(word).bit_count() / 64 for word in words]
