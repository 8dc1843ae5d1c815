"""Every measure: frozen signatures, equal digests only for equal items, the same bytes for any batch and group.

`golden_measures.json` freezes what signatures contain. Changing it is a decision: raise the number
in FORMAT of the measure, or in DIGEST_FORMAT for digests, say so in the CHANGELOG, then write it
again:

    PYTHONPATH=src:tests:tests/measures python -c "import test_measures; test_measures.regenerate()"
"""

from __future__ import annotations

import hashlib
import itertools
import json
import pathlib

import numpy as np
import pyarrow as pa
import pytest

from neardup import schema
from neardup.config import CHOICES, Config
from neardup.io.documents import in_memory as memory
from neardup.kernels import similarity as kernel
from neardup.kernels.keys import DIGEST_SECRET_BYTES
from neardup.measures.base import are_empty, band_keys, joined
from neardup.measures.projections import gaussian_lines, uniform_shifts
from neardup.measures.registry import MODULES, measure_of
from neardup.theory.plan import plan_for

GOLDEN = pathlib.Path(__file__).parent / "golden_measures.json"
NUMBERS = [((17 * row + 29 * at) % 23 - 11) / 7 for row in range(12) for at in range(9)]
VECTORS = np.array(NUMBERS).reshape(12, 9)
BASKETS = [
    {f"item {(row * at) % 31}": 0.25 + at / 3 for at in range(1, 2 + row)} for row in range(12)
]
BASKETS[3] = {}
SOURCES = {
    "jaccard": [" ".join(basket) for basket in BASKETS],
    "weighted": BASKETS,
    "hamming": (VECTORS > 0).astype(np.uint8),
    "cosine": VECTORS,
    "euclidean": VECTORS,
}
SETTINGS = [
    *({"measure": measure} for measure in SOURCES if measure != "jaccard"),
    {"measure": "weighted", "seed": 7, "num_perm": 16},
    {"measure": "hamming", "seed": 2**64 - 1, "num_perm": 64},
    {"measure": "cosine", "seed": 0, "num_perm": 16},
    {"measure": "euclidean", "seed": 5, "distance": 0.5},
]
# Digests are frozen under one secret; a run draws its own.
FROZEN_SECRET = bytes(range(DIGEST_SECRET_BYTES))
EVERY_SETTING = pytest.mark.parametrize("settings", SETTINGS, ids=str)
EVERY_MEASURE = pytest.mark.parametrize("measure", SOURCES)


def contents_of(source, config):
    """The contents of a source, and the settings with their dimension."""
    config = Config.of(config, items_column="items") if config.measure == "weighted" else config
    read = memory.read(source, config)
    return schema.one_array(read.documents.column("text")), memory.with_dimension(read, config)


def sha256(array):
    return hashlib.sha256(
        np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    ).hexdigest()


def frozen(settings):
    contents, config = contents_of(SOURCES[settings["measure"]], Config(**settings))
    plan = plan_for(config)
    measure = measure_of(config)
    sketched = measure.sketch(contents, plan, config, secret=FROZEN_SECRET)
    signatures, slots = measure.sign(measure.items(contents, config), plan, config)
    return {
        "format": measure.signature_format(config),
        "first slots": slots[0, :8].tolist(),
        "slots": sha256(slots),
        "signatures": sha256(signatures),
        "first key": f"{sketched.keys[0, 0]:016x}",
        "keys": sha256(sketched.keys),
        "digests": sha256(sketched.digests),
    }


def regenerate():
    values = ",\n".join(
        f"{json.dumps(str(settings))}: {json.dumps(frozen(settings))}" for settings in SETTINGS
    )
    GOLDEN.write_text(f"{{\n{values}\n}}\n", encoding="utf-8")


@EVERY_SETTING
def test_signatures_keys_and_digests_match_the_golden_file(settings):
    assert frozen(settings) == json.loads(GOLDEN.read_text(encoding="utf-8"))[str(settings)]


def test_the_golden_file_has_no_other_entries():
    assert list(json.loads(GOLDEN.read_text(encoding="utf-8"))) == list(map(str, SETTINGS))


def test_every_measure_has_a_module_and_every_module_is_tested_here():
    assert set(MODULES) == set(CHOICES["measure"])
    assert set(MODULES.values()) == {MODULES[measure] for measure in SOURCES}


@EVERY_MEASURE
def test_both_passes_compute_the_same_keys(measure):
    contents, config = contents_of(SOURCES[measure], Config(measure=measure))
    plan = plan_for(config)
    chosen = measure_of(config)
    groups = np.arange(len(contents)) % 3
    slots = chosen.sign(chosen.items(contents, config), plan, config)[1]
    assert (
        chosen.sketch(contents, plan, config, groups).keys == band_keys(slots, plan, groups)
    ).all()


@EVERY_MEASURE
def test_splitting_a_batch_anywhere_gives_the_same_bytes(measure):
    contents, config = contents_of(SOURCES[measure], Config(measure=measure))
    plan = plan_for(config)
    chosen = measure_of(config)
    whole = chosen.sketch(contents, plan, config)
    for cuts in ([0, 1, 12], [0, 5, 6, 12], list(range(13))):
        parts = [
            chosen.sketch(contents.slice(start, stop - start), plan, config)
            for start, stop in itertools.pairwise(cuts)
        ]
        for name in whole._fields:
            assert (
                np.concatenate([getattr(part, name) for part in parts]).tobytes()
                == getattr(whole, name).tobytes()
            )


@EVERY_MEASURE
def test_items_of_joined_contents_equal_the_joined_items(measure):
    contents, config = contents_of(SOURCES[measure], Config(measure=measure))
    items = measure_of(config).items
    whole = items(contents, config)
    for cut in (0, 5, 12):
        both = joined(items(contents.slice(0, cut), config), items(contents.slice(cut), config))
        for one, two in zip(both, whole, strict=True):
            assert np.array_equal(one, two)


@EVERY_MEASURE
def test_different_groups_share_neither_keys_nor_digests(measure):
    contents, config = contents_of(SOURCES[measure], Config(measure=measure))
    plan = plan_for(config)
    chosen = measure_of(config)
    alone, grouped = (
        chosen.sketch(contents, plan, config, np.full(len(contents), group)) for group in (0, 9)
    )
    assert (alone.keys == chosen.sketch(contents, plan, config).keys).all()
    assert (alone.keys != grouped.keys).all()
    assert (alone.digests != grouped.digests).all()


@EVERY_MEASURE
def test_another_seed_gives_different_signatures(measure):
    contents, config = contents_of(SOURCES[measure], Config(measure=measure))
    plan = plan_for(config)
    one, two = (
        measure_of(config).sketch(contents, plan, Config.of(config, seed=seed)).keys[[0, 1, 5]]
        for seed in (1, 2)
    )
    assert (one != two).mean() > 0.9


@pytest.mark.parametrize("measure", ["cosine", "euclidean"])
def test_negative_zero_equals_zero_and_every_other_bit_changes_the_digest(measure):
    vectors = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nextafter(0, 1), 1.0]])
    contents, config = contents_of(vectors, Config(measure=measure))
    digests = measure_of(config).sketch(contents, plan_for(config), config).digests
    assert (digests[0] == digests[1]).all()
    assert (digests[0] != digests[2]).any()


def test_packed_and_unpacked_bits_give_the_same_result():
    bits = SOURCES["hamming"][:, :8]
    plain_contents, config = contents_of(bits, Config(measure="hamming"))
    packed_contents, packed = contents_of(
        np.packbits(bits, axis=1), Config(measure="hamming", packed=True)
    )
    assert config.dimension == packed.dimension == 8
    assert plain_contents.to_pylist() == packed_contents.to_pylist()


@pytest.mark.parametrize("num_bits", [1, 7, 8, 63, 64, 65, 200])
def test_a_sampled_bit_is_the_bit_at_its_position(num_bits):
    from neardup.measures import hamming

    bits = np.random.default_rng(num_bits).integers(0, 2, (5, num_bits)).astype(np.uint8)
    contents, config = contents_of(bits, Config(measure="hamming", threshold=0.6))
    plan = plan_for(config)
    slots = hamming.sign(hamming.items(contents, config), plan, config)[1]
    positions = hamming.sample_positions(config.seed, num_bits, plan.bands * plan.rows)
    assert (slots == bits[:, positions.astype(np.int64)]).all()
    assert positions.max() < num_bits


def test_the_cosine_of_huge_and_tiny_vectors_depends_only_on_direction():
    directions = np.array([[3.0, 4.0, 0.0], [4.0, 3.0, 0.0], [0.0, 1.0, 1.0]])
    scales = np.array([1.0, 1e300, 1e-300])[:, None]
    contents, config = contents_of(
        np.concatenate([directions, directions * scales]), Config(measure="cosine")
    )
    items = measure_of(config).items(contents, config)
    left, right = np.array([0, 0, 1, 3, 4]), np.array([1, 4, 4, 5, 5])
    values = np.empty(5)
    kernel.similarities(items, left, right, values)
    assert values == pytest.approx([0.96, 0.96, 1.0, 4 / 5 / 2**0.5, 3 / 5 / 2**0.5], abs=1e-15)
    sides = measure_of(config).sign(items, plan_for(config), config)[1]
    assert (sides[:3] == sides[3:]).mean() > 0.99


def test_weights_of_a_repeated_item_are_added_and_weight_0_is_absent():
    baskets = [[("tea", 1.5), ("milk", 0.0), ("tea", 0.5)], {"tea": 2.0}, {"milk": 0}, {}]
    contents, config = contents_of(baskets, Config(measure="weighted"))
    sketched = measure_of(config).sketch(contents, plan_for(config), config)
    items = measure_of(config).items(contents, config)
    assert sketched.sizes.tolist() == [1, 1, 0, 0]
    assert (sketched.digests[0] == sketched.digests[1]).all()
    assert items.weights.tolist() == [2.0, 2.0]
    assert are_empty(items).tolist() == [False, False, True, True]


def test_directions_are_normal_and_a_shorter_signature_is_a_prefix_of_a_longer_one():
    """The mean of 256 x 1024 normal numbers is within 5 standard errors, and so is their mean square."""
    lines = gaussian_lines(1, 256, 1024)
    assert abs(lines.mean()) < 5 / 512
    assert abs((lines.astype(np.float64) ** 2).mean() - 1) < 5 * 2**0.5 / 512
    # Four standard errors of the share of a normal distribution within 1 and within 2 standard
    # deviations.
    for bound, share in ((1, 0.682689), (2, 0.954500)):
        assert abs((np.abs(lines) < bound).mean() - share) < 4 * (share * (1 - share)) ** 0.5 / 512
    assert (gaussian_lines(1, 256, 32) == lines[:, :32]).all()
    assert (gaussian_lines(1, 7, 1024) == lines[:7]).all()
    shifts = uniform_shifts(1, 1024)
    assert 0 < shifts.min() < shifts.max() < 1
    assert abs(shifts.mean() - 0.5) < 5 / (12 * 1024) ** 0.5


def test_an_empty_batch_works():
    for measure in ("weighted", "hamming", "cosine", "euclidean"):
        config = Config(measure=measure)
        contents = pa.array([], pa.large_binary())
        sketched = measure_of(config).sketch(contents, plan_for(config), config)
        assert sketched.sizes.size == sketched.keys.size == sketched.digests.size == 0
